"""Checks and commands find the user's tools and caches, by what the project is built with; never a login."""

import base64
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.runs.host.setting_up import try_checks
from massgen_mcp.sandbox import LevelName
from massgen_mcp.sandbox.probe import try_level
from massgen_mcp.sandbox.project_tools import TOOL_CHAINS
from tests.checks.project import commit, environ, evidence, play, project, results, team_on, write
from tests.sandbox.table import LEVELS
from tests.sandbox.tool_home import MARKS, SEEN, UNSEEN, changed, plant

__all__ = ["environ", "project"]

VARIABLES = {
    "RUSTUP_HOME": ".rustup",
    "CARGO_HOME": ".cargo",
    "GOMODCACHE": "go/pkg/mod",
    "GRADLE_RO_DEP_CACHE": ".gradle/caches",
    "YARN_GLOBAL_FOLDER": ".yarn/berry",
    "BUN_INSTALL": ".bun",
    "MISE_CONFIG_DIR": ".config/mise",
    "GEM_PATH": ".local/share/gem/ruby/3.1.0:",
    "NUGET_PACKAGES": ".nuget/packages",
    "COREPACK_HOME": ".cache/node/corepack",
}
FIXED = ("CARGO_NET_OFFLINE", "GOPROXY", "UV_OFFLINE", "UV_NO_SYNC", "npm_config_offline", "COMPOSER_DISABLE_NETWORK")


@pytest.fixture
def person() -> Iterator[Path]:
    """A home with every tool's programs, caches and logins; not below /tmp, which commands have for themselves."""
    with TemporaryDirectory(dir="/var/tmp") as place:
        home = Path(place)
        home.chmod(0o755)
        plant(home)
        yield home


def put(project: Path, *names: str) -> None:
    for name in names:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).touch()
    commit(project)


def looks(home: Path) -> str:
    """A script that prints every expectation that does not hold."""
    lines = [f'cat "{home / name}" >/dev/null || echo "NOT SEEN {name}"' for name in SEEN]
    lines += [f'echo x 2>/dev/null >"{home / name}"' for name in SEEN]
    lines += [f'cat "{home / name}" 2>/dev/null && echo "SEEN {name}"' for name in UNSEEN]
    lines += [f'test "${name}" = "{home / place}" || echo "{name} is $"{name}' for name, place in VARIABLES.items()]
    lines += [f'test -n "${name}" || echo "{name} is not set"' for name in FIXED]
    return "\n".join([*lines, "true\n"])


@pytest.mark.parametrize("level", LEVELS)
async def test_what_the_tools_of_a_project_need_is_there_and_their_logins_are_not(
    tmp_path: Path, project: Path, person: Path, environ: dict[str, str], level: str
) -> None:
    (project / "look.sh").write_text(looks(person))
    put(project, *MARKS)
    command = {"call": "run_command", "arguments": {"command": "cd project && sh look.sh 2>&1"}}
    ended = await play(
        tmp_path, project, {**environ, "HOME": str(person)},
        [command, write("value", "bad\n"), {"answer": "done"}],
        checks=["sh look.sh >found 2>&1; ! grep . found"], commands={"enabled": True, "sandbox": level},
    )  # fmt: skip
    (looked,) = [event for event in ended.of(ToolFinished) if event.name == "run_command"]
    assert looked.result.split("\n")[1:] == [], looked.result
    assert results(evidence(ended, "final").outcomes) == ["passed"], evidence(ended, "final")
    assert changed(person) == []


async def test_a_project_without_such_tools_shows_nothing_of_the_home(
    tmp_path: Path, project: Path, person: Path, environ: dict[str, str]
) -> None:
    ended = await play(
        tmp_path, project, {**environ, "HOME": str(person), "CARGO_HOME": str(person)},
        [write("value", "bad\n"), {"answer": "done"}],
        checks=[f"! ls {person}", 'test -z "$RUSTUP_HOME$GOPROXY$npm_config_offline"'],
    )  # fmt: skip
    assert results(evidence(ended, "final").outcomes) == ["passed", "passed"]


async def test_a_project_of_poetry_has_the_environment_that_was_made_for_it(
    tmp_path: Path, project: Path, person: Path, environ: dict[str, str]
) -> None:
    put(project, "poetry.lock")
    mark = base64.urlsafe_b64encode(hashlib.sha256(bytes(project)).digest()).decode()[:8]
    environments = person / ".cache/pypoetry/virtualenvs"
    for name in (f"small-{mark}-py3.13", "small-AAAAAAAA-py3.13"):
        (environments / name / "bin").mkdir(parents=True)
    ended = await play(
        tmp_path, project, {**environ, "HOME": str(person)},
        [write("value", "bad\n"), {"answer": "done"}],
        checks=[f'test "$VIRTUAL_ENV" = {environments}/small-{mark}-py3.13 && ls "$VIRTUAL_ENV"'],
    )  # fmt: skip
    assert results(evidence(ended, "final").outcomes) == ["passed"]


async def test_a_variable_of_a_tool_says_where_its_things_are_but_never_shows_the_whole_home(
    tmp_path: Path, project: Path, person: Path, environ: dict[str, str]
) -> None:
    put(project, "Cargo.toml", "go.mod")
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "toolchains/x/lib").mkdir(parents=True)
    named = {"HOME": str(person), "RUSTUP_HOME": str(elsewhere), "GOMODCACHE": str(person)}
    ended = await play(
        tmp_path, project, {**environ, **named},
        [write("value", "bad\n"), {"answer": "done"}],
        checks=[f'test "$RUSTUP_HOME" = {elsewhere} && ls {elsewhere}/toolchains', f"! cat {person}/notes.txt"],
    )  # fmt: skip
    assert results(evidence(ended, "final").outcomes) == ["passed", "passed"]


async def test_of_a_tool_whose_directory_cannot_be_read_nothing_is_shown_and_checks_run_all_the_same(
    project: Path, person: Path, environ: dict[str, str]
) -> None:
    put(project, "pyproject.toml", "go.mod")
    (person / ".local/bin/loop").symlink_to("loop")
    unreadable = {
        place.variable: f"/{'long' * 100}" for chain in TOOL_CHAINS for place in chain.places if place.variable
    }
    config = team_on(project, [{"answer": "a"}], checks=['test -z "$PYENV_ROOT$GOMODCACHE"', f"ls {person}/go/bin"])
    tried = await try_checks(config, {**environ, **unreadable, "HOME": str(person)}, seconds=60)
    assert [(one.state, one.how) for one in tried] == [("passed", "exit code 0")] * 2


async def test_a_check_finds_the_programs_of_an_activated_environment_and_none_that_an_answer_may_change(
    project: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".gitignore").write_text(".venv\n")
    for place in (".venv/bin", "own"):
        (project / place).mkdir(parents=True)
        (project / place / "tool").write_text(f"#!/bin/sh\necho of {place}\n")
        (project / place / "tool").chmod(0o755)
    commit(project)
    monkeypatch.setenv("PATH", f"{project}/own:{project}/.venv/bin:{os.environ['PATH']}")
    (tried,) = await try_checks(team_on(project, [{"answer": "a"}], checks=["tool"]), environ, seconds=60)
    assert (tried.state, tried.excerpt) == ("passed", "of .venv/bin")


@pytest.mark.parametrize("copied", [[], [".venv"]])
async def test_keys_that_a_package_from_an_index_brought_are_there_and_no_others(
    project: Path, environ: dict[str, str], copied: list[str]
) -> None:
    (project / ".gitignore").write_text(".venv\n")
    installed = project / ".venv/lib/python3.11/site-packages"
    for package in ("tls", "mine"):
        (installed / package).mkdir(parents=True)
        (installed / f"{package}-1.dist-info").mkdir()
        lines: list[str] = []
        for name in ("test.pem", "server.key", "changed.pem"):
            (installed / package / name).write_text("PRIVATE KEY\n")
            digest = base64.urlsafe_b64encode(hashlib.sha256(b"PRIVATE KEY\n").digest()).decode().rstrip("=")
            lines.append(f"{package}/{name},sha256={digest},12\n")
        (installed / f"{package}-1.dist-info/RECORD").write_text("".join(lines))
        (installed / package / "changed.pem").write_text("PRIVATE KEY, and my own\n")
        (installed / package / "own.pem").write_text("PRIVATE KEY\n")
    (installed / "mine-1.dist-info/direct_url.json").write_text("{}")
    commit(project)
    look = f"cd {installed.relative_to(project)} && echo $(grep -l KEY */*.pem */*.key 2>/dev/null)"
    context = {"path": str(project), "copy_ignored": copied}
    config = team_on(project, [{"answer": "a"}], checks=[look], context_paths=[context])
    (tried,) = await try_checks(config, environ, seconds=60)
    assert (tried.state, tried.excerpt) == ("passed", "tls/test.pem tls/server.key")


@pytest.mark.parametrize("level", LEVELS)
async def test_commands_and_checks_have_the_variables_that_the_config_sets_before_those_of_a_tool(
    tmp_path: Path, project: Path, environ: dict[str, str], level: str
) -> None:
    put(project, "Cargo.toml")
    script = 'test "$CI" = "1 ü" && test "$CARGO_NET_OFFLINE" = false'
    command = {"call": "run_command", "arguments": {"command": f"{script} && echo as set"}}
    variables = {"CI": "1 ü", "CARGO_NET_OFFLINE": "false"}
    ended = await play(
        tmp_path, project, environ,
        [command, write("value", "bad\n"), {"answer": "done"}],
        checks=[script], commands={"enabled": True, "sandbox": level, "env": variables},
    )  # fmt: skip
    (looked,) = [event for event in ended.of(ToolFinished) if event.name == "run_command"]
    assert "as set" in looked.result
    assert results(evidence(ended, "final").outcomes) == ["passed"]


@pytest.mark.parametrize("level", LEVELS)
async def test_what_commands_and_checks_write_beside_installed_packages_is_gone_with_them(
    tmp_path: Path, project: Path, environ: dict[str, str], level: LevelName
) -> None:
    layered = (await try_level(level)).outcomes["usual_layer"] == "open"
    (project / ".gitignore").write_text("node_modules\n.venv\ndata\n")
    put(project, "package.json")
    for name in ("node_modules/left/index.js", ".venv/bin/tool", "data/table", "node_modules/own.key"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("planted\n")
    script = (
        "cd node_modules && ! ls .cache && mkdir .cache && echo x >.cache/x && echo y >left/index.js && rm -r left"
        " && ! grep planted own.key && cd .. && touch .venv/bin/new && grep planted .venv/bin/tool"
    )
    only_read = "grep planted node_modules/left/index.js && ! touch node_modules/new && ! touch .venv/new"
    in_a_command = f"cd project && {script} && ! touch data/new && echo as hoped"
    command = {"call": "run_command", "arguments": {"command": in_a_command}}
    in_a_check = f"{script} && ! ls data/new && touch data/new"
    checks = [f"# {number}\n{in_a_check}" for number in range(2)] if layered else [only_read]
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    ended = await play(
        tmp_path, project, environ,
        [command, command, write("value", "bad\n"), {"answer": "done"}],
        checks=checks, commands={"enabled": True, "sandbox": level},
    )  # fmt: skip
    looked = [event.result for event in ended.of(ToolFinished) if event.name == "run_command"]
    assert ["as hoped" in result for result in looked] == [layered] * 2, looked
    assert set(results(evidence(ended, "final").outcomes)) == {"passed"}, evidence(ended, "final")
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before
