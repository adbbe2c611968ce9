"""How checks are asked for, proposed and refused, at each door."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import massgen_mcp
from massgen_mcp.errors import MassgenError
from tests.checks.project import GOOD, TOLD, project, write
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, agent, call, expect_error, home

__all__ = ["home", "project"]

TELLS = [write("notes", "told\n"), {"answer": "told"}]


async def test_start_run_takes_checks_and_get_result_shows_what_came_out(home: TempHome, project: Path) -> None:
    config = home.config("teller", agent("a", *TELLS))
    async with home.client() as client:
        started = await call(
            client, "start_run", question="Tell.", config=config, context_paths=[str(project)], checks=[GOOD, TOLD]
        )
        assert "Checks run in the sandbox" in started["note"]
        await call(client, "wait_run", run_id=started["run_id"])
        result = await call(client, "get_result", run_id=started["run_id"])
    lines = [(line["of"], line["command"], line["result"]) for line in result["checks"]]
    assert lines == [
        ("final", GOOD, "passed"), ("final", TOLD, "passed"), ("base", GOOD, "passed"), ("base", TOLD, "failed"),
    ]  # fmt: skip
    assert result["checks"][0]["agent"] == "a"
    assert result["checks"][1]["not_passed_before"] is True


async def test_a_completed_run_whose_final_files_fail_says_so(home: TempHome, project: Path) -> None:
    config = home.config("breaker", agent("a", write("value", "bad\n"), {"answer": "green, I swear"}))
    async with home.client() as client:
        started = await call(
            client, "start_run", question="Tell.", config=config, context_paths=[str(project)], checks=[GOOD]
        )
        await call(client, "wait_run", run_id=started["run_id"])
        result = await call(client, "get_result", run_id=started["run_id"])
    assert result["status"] == "completed"
    assert f"The final files fail checks: {GOOD} (FAILED: the value is wrong)." in result["note"]
    assert "FAILED: the value is wrong" in result["checks"][0]["excerpt"]


async def test_a_dry_run_proposes_the_checks_that_a_directory_has_and_runs_none(home: TempHome, project: Path) -> None:
    (project / "Makefile").write_text("X := 1\ntest: build\n\ttouch ran\nbuild:\n\ttouch ran\nlint:\n\ttrue\n")
    (project / "package.json").write_text(json.dumps({"scripts": {"test": "jest", "start": "x"}}))
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\n[tool.ruff]\n")
    config = home.config("teller", agent("a", *TELLS))
    asked: dict[str, Any] = {"question": "Q", "config": config, "context_paths": [str(project)], "dry_run": True}
    async with home.client() as client:
        planned = await call(client, "start_run", **asked)
        chosen = await call(client, "start_run", **asked, checks=["make test"])
        (project / "Makefile").unlink()
        os.mkfifo(project / "Makefile")
        os.truncate(project / "pyproject.toml", 2 << 20)
        odd = await call(client, "start_run", **asked)
    assert (
        "Possible checks (not run yet): `make test`, `make lint`, `npm test`, `python -m pytest -q`, `ruff check .`."
        in planned["note"]
    )
    assert "Possible checks" not in chosen["note"]
    assert "Possible checks (not run yet): `npm test`." in odd["note"], "nothing is waited for or read whole"
    assert not (project / "ran").exists()
    assert home.runs == []


async def test_without_a_sandbox_checks_are_refused_by_name_before_anything_begins(
    home: TempHome, project: Path
) -> None:
    config = home.config("team", agent("a", *TELLS), orchestrator={"commands": {"sandbox": "sandbox-exec"}})
    async with home.client() as client:
        code, told = await expect_error(
            client, "start_run", question="Q", config=config, context_paths=[str(project)], checks=[GOOD]
        )
        assert code == "sandbox_denied"
        assert told.startswith(f"the checks `{GOOD}` run only in a sandbox: no sandbox works here (sandbox-exec: ")
        code, told = await expect_error(client, "start_run", question="Q", config=config, checks=[GOOD])
        assert code == "invalid_arguments"
        assert told.startswith("`checks` test changes to your directories; ")
    assert home.runs == []


def test_the_command_line_checks_the_working_directory_where_no_path_is_named(home: TempHome, project: Path) -> None:
    config = home.config("teller", agent("a", *TELLS))
    asked = ("--automation", "--config", config, "--check", GOOD, "--check", TOLD, "Tell.")
    done = run_command(replace(home, work=project), COMMAND_MODULE, *asked)
    assert done.returncode == 0, done.stderr
    (status,) = [line.removeprefix("STATUS: ") for line in done.stdout.splitlines() if line.startswith("STATUS: ")]
    outcomes = json.loads(Path(status).read_text())["checks"]["final"]["outcomes"]
    assert [(one["command"], one["result"]) for one in outcomes] == [(GOOD, "passed"), (TOLD, "passed")]


def test_a_projects_own_config_with_checks_waits_for_a_yes(home: TempHome, project: Path) -> None:
    folder = project / ".massgen"
    folder.mkdir()
    settings = {"context_paths": [{"path": "."}], "checks": ["make evil"]}
    (folder / "config.yaml").write_text(json.dumps({"agents": [agent("a", *TELLS)], "orchestrator": settings}))
    done = run_command(replace(home, work=project), COMMAND_MODULE, "--automation", "Tell.")
    assert done.returncode == 1
    assert done.stderr.startswith("ERROR config_untrusted: ")
    assert "! starts: the check make evil in a sandbox" in done.stderr


@pytest.fixture
def in_home(home: TempHome, monkeypatch: pytest.MonkeyPatch) -> TempHome:
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    for name in os.environ.keys() - home.environ.keys():
        monkeypatch.delenv(name)
    monkeypatch.chdir(home.work)
    return home


async def test_python_takes_checks_too(in_home: TempHome, project: Path) -> None:
    config = in_home.config("teller", agent("a", *TELLS))
    with pytest.raises(MassgenError, match="checks is of the wrong type"):
        await massgen_mcp.run("Tell.", config=config, context_paths=[str(project)], checks="make test")
    path = {"path": str(project), "permission": "read"}
    found = await massgen_mcp.run("Tell.", config=config, context_paths=[path], checks=[GOOD], enable_logging=True)
    (run,) = (in_home.work / ".massgen" / "massgen_logs").iterdir()
    assert json.loads((run / "status.json").read_text())["checks"]["final"]["outcomes"][0]["result"] == "passed"
    assert found["final_answer"] == "told"
