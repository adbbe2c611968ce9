"""Checks are tried on the unchanged files before a model is asked, at every door, and what came of it is kept."""

import json
import shutil
from pathlib import Path
from typing import Any

from massgen_mcp.events.agent_work import ModelCallStarted
from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.runs.host.setting_up import try_checks
from tests.checks.project import GOOD, TOLD, environ, evidence, play, project, team_on, write
from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome, agent, call, home
from tests.teams import Ended
from tests.terminal import terminal

__all__ = ["environ", "home", "project"]

TELLS = [write("notes", "told\n"), {"answer": "told"}]
MISSING = "no-such-program --all"
DRAWN = "cat /proc/sys/kernel/random/uuid"
"""Prints something else each time it runs."""


def base_line(ended: Ended) -> str:
    return evidence(ended, "base").outcomes[0].excerpt


async def test_the_base_is_checked_before_a_model_is_asked(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    ended = await play(tmp_path, project, environ, TELLS, [{"answer": "no"}, {"vote": "told"}])
    kinds = [type(event) for event in ended.events if isinstance(event, ModelCallStarted | FilesChecked)]
    assert kinds[0] is FilesChecked


async def test_what_a_check_said_of_the_same_files_is_not_found_out_again(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    config = team_on(project, TELLS, checks=[DRAWN, GOOD])
    (tried, _) = await try_checks(config, environ, seconds=60)
    first, second = [await play(tmp_path / name, project, environ, TELLS, checks=[DRAWN, GOOD]) for name in "ab"]
    assert tried.excerpt == base_line(first) == base_line(second) != ""
    (project / "value").write_text("right, and more\n")
    third = await play(tmp_path / "c", project, environ, TELLS, checks=[DRAWN, GOOD])
    assert base_line(third) != base_line(second), "the files are others"
    (project / "value").write_text("right\n")
    variables = {"commands": {"env": {"CI": "1"}}}
    fourth = await play(tmp_path / "d", project, environ, TELLS, checks=[DRAWN, GOOD], **variables)
    assert base_line(fourth) != base_line(second), "the environment is another"


async def test_a_dry_run_says_how_checks_stand_and_the_start_after_it_says_it_again(
    home: TempHome, project: Path
) -> None:
    config = home.config("teller", agent("a", *TELLS))
    asked: dict[str, Any] = {
        "question": "Q", "config": config, "context_paths": [str(project)], "checks": [GOOD, TOLD, MISSING],
    }  # fmt: skip
    async with home.client() as client:
        started = await call(client, "start_run", **asked)
        await call(client, "wait_run", run_id=started["run_id"])
        (project / "value").write_text("right, and more\n")
        planned = await call(client, "start_run", **asked, dry_run=True)
        again = await call(client, "start_run", **asked)
        await call(client, "wait_run", run_id=again["run_id"])
    assert [check["state"] for check in started["checks"]] == ["untried"] * 3
    assert [check["state"] for check in planned["checks"]] == ["passed", "failed", "void"]
    assert "install no-such-program" in planned["checks"][2]["cure"]
    assert "Fix the checks marked void" in planned["next_step"]
    assert again["checks"] == planned["checks"]
    assert list((home.path / "checks" / "trials").iterdir()) == []


async def test_a_check_that_misses_what_git_ignores_is_told_what_to_do(project: Path, environ: dict[str, str]) -> None:
    (project / ".gitignore").write_text("dist\nnode_modules\n.env\n")
    for name in ("dist/made.js", "node_modules/there.js", ".env"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("x\n")
    named = 'cat "$PWD/{}"'
    checks = [named.format("dist/made.js"), named.format(".env"), named.format("dist/not.js")]
    checks += [f'echo "Cannot find module from $PWD/{name}"; false' for name in ("value", "node_modules/there.js")]
    tried = await try_checks(team_on(project, TELLS, checks=checks), environ, seconds=60)
    assert [one.state for one in tried] == ["failed"] * 5
    assert tried[0].cure.startswith("dist/made.js is missing from the copies because git ignores it")
    assert "copy_ignored" not in "".join(one.cure for one in tried[1:])


async def test_checks_that_take_longer_than_a_trial_may_are_told_as_unfinished(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    ended = await play(tmp_path, project, environ, TELLS, checks=[GOOD])
    config = ended.directory.read_request().config
    slow = config.model_copy(
        update={"orchestrator": config.orchestrator.model_copy(update={"checks": ("sleep 600", GOOD)})}
    )
    assert [one.state for one in await try_checks(slow, environ, seconds=1.0)] == ["unfinished"] * 2
    assert [one.state for one in await try_checks(config, environ, seconds=60)] == ["passed"]


def test_a_run_whose_every_check_is_void_says_so_in_its_result(home: TempHome, project: Path) -> None:
    settings = {"context_paths": [{"path": str(project), "permission": "write"}], "checks_policy": "required"}
    config = home.config("teller", agent("a", *TELLS), orchestrator={**settings, "checks": [MISSING]})
    done = run_command(home, "massgen_mcp.cli.massgen.main", "--config", config, "--json", "Tell.")
    result = json.loads(done.stdout)
    assert result["checked"] == "nothing_checked"
    assert result["note"].startswith("Nothing was checked")
    assert "NOT_APPLIED: 1 file; nothing was checked; apply them with `massgen apply run-" in done.stderr
    planned = run_command(home, SERVER_MODULE, "apply", result["run_id"], "--dry-run")
    assert "clean: No check ran on the final files. Nothing has been changed yet." in planned.stdout


def test_a_person_is_asked_whether_to_go_on_with_a_check_that_says_nothing(home: TempHome, project: Path) -> None:
    settings = {"context_paths": [{"path": str(project)}], "checks": [GOOD, MISSING]}
    config = home.config("teller", agent("a", *TELLS), orchestrator=settings)
    with terminal(home, "--config", config, "Tell.", size=(140, 60)) as window:
        shown = window.wait_for("Start anyway (y/n) [n]:")
        assert f"Check passed: {GOOD}" in shown
        assert "Fix: install no-such-program" in shown
        window.type("\r")
        window.wait_for("Nothing was started.")
        assert window.leave() == 4
    assert not (home.work / ".massgen").exists()


def test_in_the_chat_a_person_is_asked_until_it_agrees(home: TempHome, project: Path) -> None:
    settings = {"context_paths": [{"path": str(project)}], "checks": [GOOD, MISSING]}
    config = home.config("teller", agent("a", *TELLS), orchestrator=settings)
    with terminal(home, "--config", config, size=(140, 60)) as window:

        def times(text: str, number: int) -> None:
            window.wait_until(
                lambda shown: window.everything.count(text) == number and "You: " in shown.splitlines()[-1]
            )

        window.wait_for("You: ")
        window.say("Tell.")
        window.wait_for("Start anyway (y/n) [n]:")
        window.type("\r")
        times("Nothing was started.", 1)
        window.say("Tell again.")
        window.wait_until(lambda _: window.everything.count("Start anyway (y/n) [n]:") == 2)
        window.type("y\r")
        times("Some checks couldn't run.", 1)
        window.say("Tell once more.")
        times("Some checks couldn't run.", 2)
        window.say("/quit")
        assert window.leave() == 0


def test_the_doctor_tries_the_checks_of_a_config_only_if_it_may_run(home: TempHome, project: Path) -> None:
    shutil.copytree(project, home.work, dirs_exist_ok=True)
    (home.work / ".massgen").mkdir()
    found = home.work / ".massgen" / "config.yaml"
    settings = {"context_paths": [{"path": str(home.work)}], "checks": [GOOD, MISSING]}
    Path(home.config("found", agent("a", *TELLS), orchestrator=settings)).rename(found)

    def tried(*options: str) -> list[dict[str, str]]:
        done = run_command(home, SERVER_MODULE, "doctor", "--json", *options)
        return [one for one in json.loads(done.stdout)["checks"] if one["name"] == "checks"]

    (refused,) = tried()
    assert refused["level"] == "warn"
    assert refused["message"].startswith("not tried: ")
    assert not (home.path / "checks").exists()
    (gone,) = tried("--config", "gone.yaml")
    assert (gone["level"], "Config file not found: gone.yaml" in gone["message"]) == ("fail", True), (
        "what a person names has to be there"
    )
    assert [one["level"] for one in tried("--config", str(found))] == ["ok", "warn"], "a person names it"
    assert run_command(home, SERVER_MODULE, "trust", str(found)).returncode == 0
    passed, void = tried()
    assert passed["message"].startswith("can run; on your unchanged files: passed: ")
    assert "Fix: install no-such-program" in void["message"]
