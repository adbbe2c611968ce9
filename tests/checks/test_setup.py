"""A config's setup runs once on the base; what it makes that git ignores is there for every agent and check."""

import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.changes.run_changes import RunChanges
from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.events.coordination import AnswerSubmitted
from massgen_mcp.events.run import RunCompleted, SetupFinished
from massgen_mcp.runs.host.setting_up import try_checks
from massgen_mcp.sandbox import LevelName
from tests.checks.project import commit, environ, evidence, play, project, results, team_on, write
from tests.commands import run_command
from tests.harness import (
    COMMAND_MODULE,
    TempHome,
    after,
    agent,
    call,
    events_of,
    happened,
    home,
    poll_until,
    wait_until,
)
from tests.interrupted import kill, log_directory, started, the_only_run
from tests.sandbox.table import LEVELS

__all__ = ["environ", "home", "project"]

MAKES = (
    "ls tools && exit 9; mkdir -p tools build .pytest_cache && echo made | tee tools/made build/made && echo new >value"
    " && echo other >beside && echo the last line"
)


def command(text: str) -> dict[str, Any]:
    return {"call": "run_command", "arguments": {"command": f"cd project && {text}"}}


def ignoring(project: Path, text: str = "tools/\nbuild\n") -> None:
    (project / ".gitignore").write_text(text)
    commit(project)


@pytest.mark.parametrize("level", LEVELS)
async def test_what_a_setup_makes_is_there_for_agents_and_checks_which_may_write_there_for_themselves(
    tmp_path: Path, project: Path, environ: dict[str, str], level: LevelName
) -> None:
    ignoring(project)
    (project / "tools").mkdir()
    (project / "tools/old").write_text("of the person\n")
    use = "! ls tools/own && grep made tools/made build/made && echo x >tools/own && echo y >build/made && ! ls beside"
    ended = await play(
        tmp_path, project, environ,
        [command(f"{use} && grep right value && echo as hoped"), write("value", "bad\n"), {"answer": "done"}],
        [command(f"{use} && echo as hoped"), {"answer": "nothing"}, {"vote": "own"}],
        setup=MAKES, checks=[use, f"{use} && ! ls tools/old"], commands={"enabled": True, "sandbox": level},
    )  # fmt: skip
    (done,) = ended.of(SetupFinished)
    assert (done.outcome.result, done.outcome.excerpt.splitlines()[-1]) == ("passed", "the last line"), done
    assert set(done.directories) == {"project/tools", "project/build"}
    looked = [event.result for event in ended.of(ToolFinished) if event.name == "run_command"]
    assert ["as hoped" in result for result in looked] == [True, True], looked
    assert results(evidence(ended, "base").outcomes) == ["passed", "passed"], evidence(ended, "base")
    assert [
        [file.path for file in event.changes.files] if event.changes else None for event in ended.of(AnswerSubmitted)
    ].count(["project/value"]) == 1
    assert sorted(path.name for path in (project / "tools").iterdir()) == ["old"]
    assert not RunChanges(ended.directory.changes).made.exists(), "nobody needs it after the run"


@pytest.mark.parametrize(
    ("setup", "why"),
    [
        ("echo no such package; exit 4", "exit code 4"),
        ("sleep 600", "timed out after"),
        ("exec kill -9 $$", "exit code"),
    ],
)
async def test_after_a_setup_that_fails_nothing_is_checked_and_the_record_says_why(
    tmp_path: Path, project: Path, environ: dict[str, str], setup: str, why: str
) -> None:
    ended = await play(
        tmp_path, project, environ,
        [write("value", "bad\n"), {"answer": "done"}],
        setup=setup, setup_timeout_seconds=2 if setup == "sleep 600" else 300,
        checks=["false"], checks_policy="required",
    )  # fmt: skip
    (done,) = ended.of(SetupFinished)
    assert (done.outcome.result, done.directories) == ("failed", ())
    problem = evidence(ended, "base").problem
    assert f"the setup `{setup}` failed (" in problem
    assert "massgen ran no checks" in problem
    assert why in done.outcome.how
    assert ended.of(RunCompleted)


async def test_a_setup_leads_nobody_out_of_the_directory(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    ignoring(project, "tools\nlinks/\n")
    (outside := tmp_path / "outside").mkdir()
    (outside / "secret").write_text("planted\n")
    look = "! cat tools/secret links/there/secret | grep planted"
    ended = await play(
        tmp_path, project, environ,
        [command(f"{look} && echo as hoped"), write("value", "bad\n"), {"answer": "done"}],
        setup=f"ln -s {outside} tools && mkdir links && ln -s {outside} links/there", checks=[look],
        commands={"enabled": True},
    )  # fmt: skip
    (done,) = ended.of(SetupFinished)
    assert done.directories == ("project/links",)
    (looked,) = [event.result for event in ended.of(ToolFinished) if event.name == "run_command"]
    assert "as hoped" in looked
    assert results(evidence(ended, "final").outcomes) == ["passed"]


async def test_a_setup_runs_once_for_all_trials_and_runs_on_the_same_files(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    ignoring(project)
    setup, commands = "mkdir tools && date +%s.%N >tools/made", {"commands": {"enabled": True}}

    async def tried(code: int, **more: Any) -> str:
        check = f"cat tools/made; exit {code}"
        config = team_on(project, [{"answer": "a"}], setup=setup, checks=[check], **{**commands, **more})
        (one,) = await try_checks(config, environ, seconds=60)
        return one.excerpt

    async def ran(code: int) -> tuple[str, str]:
        script = [command("cat tools/made"), {"answer": "a"}]
        checks = [f"cat tools/made; exit {code}"]
        ended = await play(tmp_path / str(code), project, environ, script, setup=setup, checks=checks, **commands)
        assert len(ended.of(SetupFinished)) == 1
        (looked,) = ended.of(ToolFinished)
        return evidence(ended, "base").outcomes[0].excerpt, looked.result

    first = await tried(1)
    assert first
    assert await tried(2) == first
    checked, looked = await ran(3)
    assert checked == first
    assert first in looked
    assert (await ran(4))[0] == first, "also after a run that used it"
    assert await tried(5, commands={"env": {"CI": "1"}}) != first, "the environment is another"
    (project / "value").write_text("right, and more\n")
    assert await tried(6) != first, "the files are others"


def test_a_run_that_is_resumed_goes_on_with_what_its_setup_made(home: TempHome, project: Path) -> None:
    ignoring(project)
    gate = home.work / "go-on"
    held = [{"answer": "the first", **after(gate)}, {"vote": "own"}]
    config = home.config(
        "slow",
        agent("ada", write("value", "bad\n"), *held),
        agent("bo", write("value", "worse\n"), *held),
        orchestrator={
            "context_paths": [{"path": str(project)}],
            "setup": "mkdir tools && date +%s.%N >tools/made",
            "checks": ["cat tools/made; exit 1"],
        },
    )
    with started(home, config) as massgen:
        directory = log_directory(massgen)
        poll_until(lambda: happened(directory, "files_checked"))
        kill(home)
    gate.touch()
    done = run_command(home, COMMAND_MODULE, "--automation", "--resume", str(the_only_run(home)["run_id"]))
    assert done.returncode == 0, done.stderr
    events = events_of(directory)
    assert [event["type"] for event in events].count("setup_finished") == 1
    assert "run_resumed" in {event["type"] for event in events}
    seen = {outcome["excerpt"] for event in events if event["type"] == "files_checked" for outcome in event["outcomes"]}
    assert len(seen) == 1
    assert seen != {""}


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server that has a package."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"a package\n")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.parametrize("given", [True, False])
async def test_a_setup_reaches_the_network_where_the_config_was_given_one(
    tmp_path: Path, project: Path, environ: dict[str, str], port: int, given: bool
) -> None:
    ignoring(project)
    (project / "package.json").write_text("{}")
    fetch = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/', timeout=5).read().decode())"
    setup = f'mkdir tools; python3 -c "{fetch}" >tools/package; came=$?; echo "offline=$npm_config_offline"; exit $came'
    ended = await play(
        tmp_path, project, environ,
        [write("value", "bad\n"), {"answer": "done"}],
        setup=setup, checks=["grep package tools/package"],
        commands={"network": [f"127.0.0.1:{port}"]} if given else {},
    )  # fmt: skip
    (done,) = ended.of(SetupFinished)
    assert done.outcome.result == ("passed" if given else "failed"), done
    assert ("offline=true" in done.outcome.excerpt) != given


async def test_a_run_whose_setup_goes_on_can_be_cancelled(home: TempHome, project: Path) -> None:
    ignoring(project)
    paths = [{"path": str(project), "permission": "write"}]
    config = home.config(
        "slow",
        agent("one", {"answer": "never"}),
        orchestrator={"setup": "touch /tmp/begun; sleep 600"},
    )
    async with home.client() as client:
        run_id = str((await call(client, "start_run", question="q", config=config, context_paths=paths))["run_id"])
        await wait_until(lambda: any("begun" in names for _, _, names in os.walk(home.run_directory(run_id))))
        await call(client, "control_run", run_id=run_id, action="cancel")
        ended = await call(client, "wait_run", run_id=run_id, timeout_seconds=50)
    assert ended["status"] == "cancelled", ended
    (done,) = [event for event in events_of(home.run_directory(run_id)) if event["type"] == "setup_finished"]
    assert done["outcome"]["how"] == "cut short"
    assert not happened(home.run_directory(run_id), "model_call_started"), "a model was asked after the cancel"


async def test_what_is_tried_before_a_run_finds_what_the_setup_makes(home: TempHome, project: Path) -> None:
    ignoring(project)
    orchestrator = {"setup": "mkdir tools && echo made >tools/made", "checks": ["grep made tools/made"]}
    config = home.config("ready", agent("one", {"answer": "yes"}), orchestrator=orchestrator)
    async with home.client() as client:
        paths = [{"path": str(project), "permission": "write"}]
        tried = await call(client, "start_run", question="q", config=config, context_paths=paths, dry_run=True)
    assert [check["state"] for check in tried["checks"]] == ["passed"], tried
