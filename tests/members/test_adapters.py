"""Members of people's own: installed packages that bring an adapter, as the example does."""

import json
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.harness import COMMAND_MODULE, ROOT, SERVER_MODULE, TempHome, agent, call, events_of, expect_error, home

__all__ = ["home"]

EXAMPLE = ROOT / "examples" / "own_member"
OWN_LOOP = ROOT / "examples" / "own_loop"


def put_in(place: Path, source: Path = EXAMPLE) -> Path:
    """The package as pip lays it out, in a directory of its own."""
    about = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    for module in source.glob("*.py"):
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(module, place)
    dist_info = place / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    dist_info.mkdir()
    (dist_info / "METADATA").write_text(f"Name: {about['name']}\nVersion: {about['version']}\n")
    groups = about["entry-points"].items()
    lines = [
        line for group, named in groups for line in (f"[{group}]", *(f"{key} = {of}" for key, of in named.items()))
    ]
    (dist_info / "entry_points.txt").write_text("\n".join(lines))
    return place


@pytest.fixture
def with_poet(home: TempHome, tmp_path: Path) -> TempHome:
    return home.with_variables(PYTHONPATH=str(put_in(tmp_path / "site")))


@pytest.fixture
def with_clerk(home: TempHome, tmp_path: Path) -> TempHome:
    return home.with_variables(PYTHONPATH=str(put_in(tmp_path / "other-site", OWN_LOOP)))


def poet(name: str, **settings: object) -> dict[str, object]:
    return {"id": name, "backend": {"type": "poet", **settings}}


def test_a_member_of_ones_own_answers_votes_and_wins_beside_another(with_poet: TempHome) -> None:
    others = (agent(name, {"answer": f"prose of {name}"}, {"vote": "sonnet"}) for name in ("s", "t"))
    config = with_poet.config("team", poet("p", model="sonnet"), *others)
    done = run_command(with_poet, COMMAND_MODULE, "--config", config, "--automation", "Write a poem")
    assert done.returncode == 0, done.stderr
    assert "WINNER: agent_a" in done.stdout
    assert "agent_a (poet/sonnet)" in done.stdout
    assert "ANSWER_PREVIEW: A sonnet in a glad mood" in done.stdout
    assert "starts the adapter poet from own-member 1.0, with your full permissions" in done.stdout


def test_what_is_wrong_in_its_settings_is_told_in_its_own_terms(with_poet: TempHome) -> None:
    done = run_command(with_poet, COMMAND_MODULE, "--validate", with_poet.config("team", poet("p", mode="x")))
    assert done.returncode == 1
    assert "agents[0].backend: mode: Extra inputs are not permitted" in done.stderr


def test_an_unknown_type_lists_the_adapters_that_are_installed(with_poet: TempHome) -> None:
    config = with_poet.config("team", {"id": "p", "backend": {"type": "poem"}})
    told = run_command(with_poet, COMMAND_MODULE, "--validate", config).stderr
    assert "did you mean 'poet'?" in told
    assert told.rstrip().endswith("installed adapters: poet")


def test_a_failure_of_a_member_of_ones_own_is_its_alone_and_told_by_its_kind(with_poet: TempHome) -> None:
    config = with_poet.config("team", poet("p", mood="wrong key"), agent("s", {"answer": "prose"}))
    done = run_command(with_poet, COMMAND_MODULE, "--config", config, "--automation", "Write a poem")
    assert "ANSWER_PREVIEW: prose" in done.stdout
    assert "auth" in done.stdout + done.stderr


def test_an_adapter_that_no_config_names_is_not_imported(with_poet: TempHome) -> None:
    trap = Path(with_poet.environ["PYTHONPATH"]) / "own_member.py"
    trap.write_text("raise SystemExit('imported')")
    done = run_command(with_poet, COMMAND_MODULE, "--config", with_poet.config("team", agent("s")), "Why?")
    assert done.returncode == 0, done.stderr
    told = run_command(with_poet, COMMAND_MODULE, "--validate", with_poet.config("other", agent("s", typ="x"))).stderr
    assert "imported" not in told


def test_a_package_that_cannot_be_loaded_is_told_in_one_line(with_poet: TempHome) -> None:
    (Path(with_poet.environ["PYTHONPATH"]) / "own_member.py").write_text("import nothing_of_that_name")
    done = run_command(with_poet, COMMAND_MODULE, "--validate", with_poet.config("team", poet("p")))
    assert "cannot load poet of own-member 1.0: ModuleNotFoundError" in done.stderr
    assert "Traceback" not in done.stderr
    doctor = run_command(with_poet, SERVER_MODULE, "doctor").stdout
    assert "warn  Adapter poet: cannot load poet of own-member 1.0: ModuleNotFoundError" in doctor


def test_a_repository_cannot_bring_an_adapter_along(home: TempHome) -> None:
    put_in(home.work)
    (home.work / "own_member.py").write_text("open('loaded', 'w')")
    config = home.config("team", poet("p"))
    done = run_command(replace(home, starts_anew=True), COMMAND_MODULE, "--config", config, "Why?")
    assert done.returncode == 1
    assert "unknown type" in done.stderr
    assert not (home.work / "loaded").exists()


def test_a_config_that_came_with_a_project_needs_a_yes_before_an_adapter_runs(with_poet: TempHome) -> None:
    project = with_poet.work / ".massgen"
    project.mkdir()
    (project / "config.yaml").write_text("agent: {id: p, backend: {type: poet}}")
    done = run_command(with_poet, COMMAND_MODULE, "--automation", "Why?")
    assert done.returncode == 1
    assert "starts: the adapter poet from own-member 1.0, with your full permissions" in done.stdout + done.stderr


async def test_an_agent_that_names_the_users_own_config_needs_a_yes_before_an_adapter_runs(with_poet: TempHome) -> None:
    config = with_poet.config("team", poet("p"))
    async with with_poet.client() as client:
        code, message = await expect_error(client, "start_run", question="Why?", dry_run=True, config=config)
        assert code == "config_untrusted"
        assert "  ! starts: the adapter poet from own-member 1.0, with your full permissions\n" in message
        done = run_command(with_poet, SERVER_MODULE, "validate", "--trust", config)
        assert done.returncode == 0, done.stderr
        planned = await call(client, "start_run", question="Why?", dry_run=True, config=config)
        assert planned["status"] == "planned"


def test_an_agent_with_a_loop_of_its_own_works_at_a_desk_and_what_it_counted_in_part_is_told_as_such(
    with_clerk: TempHome,
) -> None:
    clerk = {"id": "c", "backend": {"type": "clerk", "answer": "It is filed.", "writes": {"notes.txt": "42"}}}
    others = (agent(name, {"answer": f"prose of {name}"}, {"vote": "filed"}) for name in ("s", "t"))
    config = with_clerk.config("team", clerk, *others)
    done = run_command(with_clerk, COMMAND_MODULE, "--config", config, "--automation", "File it")
    assert done.returncode == 0, done.stderr
    assert "WINNER: agent_a" in done.stdout
    assert "ANSWER_PREVIEW: It is filed." in done.stdout
    directory = Path(done.stdout.split("LOG_DIR: ")[1].splitlines()[0])
    steps = [
        event for event in events_of(directory) if event["type"] == "model_replied" and event["agent"] == "agent_a"
    ]
    first = [
        [call["name"] for call in step["tool_calls"]] for step in steps if step["call_id"].startswith("agent_a.1.1")
    ]
    assert first == [["write_file"], ["new_answer"]]
    assert [step["usage"]["at_least"] for step in steps] == [True] * (len(steps) - 1) + [False]
    assert ", at least " in done.stdout, "in the sum of the costs"


@pytest.mark.parametrize("member", ["poet", "clerk"])
def test_the_kit_plays_every_situation_and_finds_what_is_wrong(
    with_poet: TempHome, with_clerk: TempHome, member: str
) -> None:
    with_member = with_poet if member == "poet" else with_clerk
    done = run_command(with_member, SERVER_MODULE, "check-adapter", member)
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [
        f"pass  {name}"
        for name in (
            *("answers", "calls", "refuses", "hangs", "auth", "rate_limited", "unreachable", "crashes"),
            *("resumed", "run"),
        )
    ]
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("right", "wrong", "situation"),
    [
        ("await anyio.sleep_forever()", "return", "hangs"),
        ('(result,) = await desk.use(', 'desk.say(TextPart("")); result = TextPart(""); (', "calls"),
        ("heard += len(result.text)", "raise OSError(result.text)", "calls"),
        ('await desk.news(StopPart("refusal" if plays == "refuses" else "end"))', "return", "refuses"),
    ],
)  # fmt: skip
def test_the_kit_tells_an_agent_that_does_not_behave(
    with_clerk: TempHome, right: str, wrong: str, situation: str
) -> None:
    check_told(with_clerk, "own_loop", "clerk", (right, wrong), situation)


@pytest.mark.parametrize(
    ("right", "wrong", "situation"),
    [
        ("yield UsagePart(", "UsagePart(", "answers"),
        ('json.dumps(known[called])', '"moon"', "calls"),
        ('"refusal" if self.mood == "proud" else ', "", "refuses"),
        ("await anyio.sleep_forever()", "return", "hangs"),
        ('"wrong key": "auth"', '"wrong key": "rate_limited"', "auth"),
        ("raise BackendError(FAULTS[self.mood], f", "raise OSError(f", "crashes"),
        ("yield TextPart(poem)", 'yield TextPart(poem if "call" not in str(request.messages) else "")', "resumed"),
    ],
)  # fmt: skip
def test_the_kit_tells_an_adapter_that_does_not_behave(
    with_poet: TempHome, right: str, wrong: str, situation: str
) -> None:
    check_told(with_poet, "own_member", "poet", (right, wrong), situation)


def check_told(home: TempHome, module: str, member: str, change: tuple[str, str], situation: str) -> None:
    code = Path(home.environ["PYTHONPATH"]) / f"{module}.py"
    assert change[0] in code.read_text()
    code.write_text(code.read_text().replace(*change))
    done = run_command(home, SERVER_MODULE, "check-adapter", member, "--json")
    failed = [check["name"] for check in json.loads(done.stdout)["checks"] if check["level"] == "fail"]
    assert situation in failed
    assert done.returncode != 0
