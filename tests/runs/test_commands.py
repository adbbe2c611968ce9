"""Commands in whole runs: who may run them and when, what the record says of them, and what a resumed run does."""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.events.agent_work import ModelCallStarted, ToolFinished, ToolStarted
from massgen_mcp.events.coordination import AnswerPresented
from massgen_mcp.events.parts import Event
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunFailed, RunStarted
from tests.cut_off import check_every_cut
from tests.harness import TempHome, agent, call, expect_error, home
from tests.needs import needs
from tests.sandbox.at_work import hands, living
from tests.sandbox.table import LEVELS
from tests.stage import perform
from tests.teams import Act, Ended, Script, run_team, team

__all__ = ["home"]

COMMANDS = {"commands": {"enabled": True}}


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A state directory in which the levels of this machine are known after the first run."""
    return {"MASSGEN_MCP_HOME": str(tmp_path_factory.mktemp("home"))}


def command(text: str, **arguments: Any) -> dict[str, Any]:
    return {"call": "run_command", "arguments": {"command": text, **arguments}}


async def play(
    path: Path, environ: dict[str, str], *scripts: Script, act: Act | None = None, **orchestrator: Any
) -> Ended:
    config = team(*scripts, orchestrator={**COMMANDS, **orchestrator})
    return await run_team(path, config, environ=environ, act=act)


async def test_an_agent_runs_commands_and_its_answer_carries_what_they_made(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    ended = await play(tmp_path, environ, [command("echo made > out.txt; cat out.txt"), {"answer": "42"}])
    assert ended.snapshot.state == "completed"
    (started,) = ended.of(ToolStarted)
    assert started.shown == "echo made > out.txt; cat out.txt"
    (finished,) = ended.of(ToolFinished)
    assert finished.result.startswith("[exit code 0")
    assert finished.nonce, "what a command prints is marked as somebody's words"
    assert (ended.directory.path / "final" / "agent_a" / "workspace" / "out.txt").read_text() == "made\n"
    (began,) = ended.of(RunStarted)
    assert began.sandbox == LEVELS[0]
    assert f"level: {LEVELS[0]}" in (ended.directory.path / "execution_metadata.yaml").read_text()


@needs("bwrap")
async def test_an_agent_reads_the_files_of_the_others_answers(tmp_path: Path, environ: dict[str, str]) -> None:
    maker = [command("echo 'print(42)' > tool.py"), {"answer": "see tool.py"}, {"vote": "own"}]
    reader = [{"answer": "?"}, command("python3 peers/*/tool.py"), {"vote": "tool.py"}]
    ended = await play(tmp_path, environ, maker, reader)
    assert ended.of(ToolFinished, "agent_b")[0].result.endswith("\n42")


async def test_in_planning_mode_only_the_winner_runs_commands(tmp_path: Path, environ: dict[str, str]) -> None:
    run = command("echo ran >> ran.txt; cat ran.txt")
    planner = [run, {"answer": "I would run it"}, {"vote": "own"}, run, {"say": "Ran."}]
    planning: dict[str, Any] = {"coordination": {"enable_planning_mode": True}}
    ended = await play(tmp_path, environ, planner, [{"answer": "no"}, {"vote": "would"}], **planning)
    planned, executed = ended.of(ToolFinished, "agent_a")
    assert "Not executed" in planned.result
    assert executed.result.endswith("\nran")
    assert len(ended.of(ToolStarted)) == 1


@pytest.mark.parametrize("level", LEVELS)
async def test_commands_change_an_agents_own_copy_and_see_what_git_ignores_there(
    tmp_path: Path, environ: dict[str, str], level: str
) -> None:
    project = tmp_path / "project"
    (project / "node_modules").mkdir(parents=True)
    (project / "node_modules" / "tool.js").write_text("tool\n")
    (project / "node_modules" / ".env").write_text("PLANTED=2\n")
    (project / ".gitignore").write_text("node_modules/\n*.log\n")
    (project / "a.txt").write_text("before\n")
    (project / ".env").write_text("PLANTED=1\n")
    work = command(
        "echo x >> context/project/a.txt; cd project; echo more >> a.txt; echo noise > run.log; "
        "cat node_modules/tool.js; touch node_modules/x || echo refused; ls -A; cat node_modules/.env"
    )
    paths = [{"path": str(project), "permission": "write"}]
    rules = {"enabled": True, "sandbox": level}
    ended = await play(tmp_path, environ, [work, {"answer": "42"}], context_paths=paths, commands=rules)
    (done,) = ended.of(ToolFinished)
    assert "tool\n" in done.result
    if level != "bubblewrap":  # which has a layer that is thrown away, where the kernel allows it
        assert "refused" in done.result
    assert "PLANTED" not in done.result
    assert "\n.env" not in done.result
    patch = (ended.directory.path / "final" / "agent_a" / "changes.patch").read_text()
    assert "+more" in patch
    assert patch.count("diff --git") == 1
    assert (project / "a.txt").read_text() == "before\n"
    assert not (project / "node_modules" / "x").exists()


async def test_files_that_were_voted_for_are_not_lost_when_the_winner_makes_its_copy_unreadable(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("before\n")
    winner = [
        *(command("echo more >> project/a.txt"), {"answer": "42"}, {"vote": "own"}),
        *(command("mkfifo project/.gitignore"), {"say": "The final text."}),
    ]
    ended = await play(
        tmp_path, environ, winner, [{"answer": "no"}, {"vote": "42"}],
        context_paths=[{"path": str(project)}], final_answer_strategy="winner_present",
    )  # fmt: skip
    (presented,) = ended.of(AnswerPresented)
    assert presented.answer == "The final text."
    assert presented.changes is not None
    assert [file.path for file in presented.changes.files] == ["project/a.txt"]
    assert "+more" in (ended.directory.path / "final" / "agent_a" / "changes.patch").read_text()


async def test_what_an_agent_left_in_the_background_ends_with_the_run(tmp_path: Path, environ: dict[str, str]) -> None:
    mark = secrets.token_hex(8)
    stay = command(f"trap '' TERM; sleep 300; : {mark}", background=True)
    ended = await play(tmp_path, environ, [stay, {"answer": "42"}])
    assert ended.snapshot.state == "completed"
    assert living(mark) == []


async def test_what_an_agent_left_in_the_background_ends_with_its_turn(tmp_path: Path, environ: dict[str, str]) -> None:
    """Its next turn begins without it, and is told that there is none of that name."""
    stay = command("sleep 300", background=True, name="server")
    look = {"call": "read_command"}
    maker = [stay, look, {"answer": "42"}, look, {"vote": "own"}]
    ended = await play(tmp_path, environ, maker, [{"answer": "no"}, {"vote": "42"}])
    _, running, later = ended.of(ToolFinished, "agent_a")
    assert running.result.endswith("server: is running: sleep 300")
    assert later.result.endswith("server: has ended: sleep 300")


async def test_a_cancelled_run_leaves_nothing_of_its_commands(tmp_path: Path, environ: dict[str, str]) -> None:
    mark = secrets.token_hex(8)
    long = command(f"(setsid sleep 300 &); sleep 300; : {mark}")
    ended = await play(tmp_path, environ, [long, {"answer": "42"}], act=Act(ToolStarted, "cancel"))
    assert ended.snapshot.state == "cancelled"
    assert living(mark) == []


async def test_massgens_keys_give_one_agent_commands_under_a_rule_that_it_reads(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """The rule is told, and heeded; the other agent has no commands, and the first one no file tools."""
    backend = {
        "exclude_file_operation_mcps": True,
        "enable_mcp_command_line": True,
        "command_line_execution_mode": "local",
        "command_line_allowed_commands": ["echo .*", "cat .*"],
        "command_line_blocked_commands": [".*secret"],
    }
    deeds = [command("ls"), command("cat my-secret"), command("echo made > f; cat f"), {"call": "list_files"}]
    made = config_from_data(
        {
            "agents": [
                agent("able", *deeds, {"answer": "42"}, {"vote": "own"}, **backend),
                agent("other", command("echo"), {"answer": "no"}, {"vote": "42"}),
            ]
        },
        "test",
    )
    ended = await run_team(tmp_path, made, environ=environ)
    not_allowed, blocked, ran, no_files = ended.of(ToolFinished, "agent_a")
    assert "those that begin with echo .* or cat .* (regular expressions)" in not_allowed.result
    assert "commands that begin with .*secret are blocked" in blocked.result
    assert ran.result.endswith("\nmade")
    assert "There is no tool named 'list_files'" in no_files.result
    assert [started.shown for started in ended.of(ToolStarted)] == [*("ls", "cat my-secret", "echo made > f; cat f")]
    (none,) = ended.of(ToolFinished, "agent_b")
    assert "There is no tool named 'run_command'" in none.result


async def test_a_command_has_as_many_processors_as_the_config_says(tmp_path: Path, environ: dict[str, str]) -> None:
    count = command("python3 -c 'import os; print(len(os.sched_getaffinity(0)))'")
    ended = await play(tmp_path, environ, [count, {"answer": "42"}], commands={"enabled": True, "max_cpus": 0.5})
    (finished,) = ended.of(ToolFinished)
    assert finished.result.endswith("\n1")


async def test_a_run_whose_commands_have_no_sandbox_ends_before_a_model_is_asked_and_says_how_to_get_one(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """One that was begun elsewhere, or when there was a sandbox: a new one is refused."""
    ended = await play(
        tmp_path,
        environ,
        [command("touch ran"), {"answer": "42"}],
        commands={"enabled": True, "sandbox": "sandbox-exec"},
    )
    (failed,) = ended.of(RunFailed)
    assert failed.reason == "sandbox_denied"
    assert failed.message.startswith("agents' commands run only in a sandbox: no sandbox works here (sandbox-exec: ")
    assert "or set `sandbox: docker`" in failed.message
    assert not ended.of(ModelCallStarted)


async def test_a_sandbox_that_breaks_in_the_middle_of_a_run_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The level held when the run began; what starts it is another program by then."""
    broken = tmp_path / "broken"
    broken.mkdir()
    async with hands(tmp_path / "agent", LEVELS[0]) as agent_at_work:
        assert (await agent_at_work.run("touch before")).startswith("[exit code 0")
        (broken / "bwrap").write_text("#!/bin/sh\nexit 1\n")
        (broken / "bwrap").chmod(0o755)
        monkeypatch.setenv("PATH", f"{broken}:{os.environ['PATH']}")
        result = await agent_at_work.use("run_command", command="touch after")
        assert result.is_error
        assert "sandbox could not start" in result.text
        assert sorted(path.name for path in agent_at_work.place.glob("[ab]*")) == ["before"]


async def test_cut_off_at_any_event_no_command_runs_twice(tmp_path: Path) -> None:
    script = [command("echo one >> log"), command("echo two >> log"), {"answer": "42"}]

    async def again(name: str, past: Sequence[LogRecord]) -> tuple[list[Event], list[str]]:
        """The rest of the run in an untouched workspace: what stands in the log is what was run now."""
        async with hands(tmp_path / name, LEVELS[0]) as agent_at_work:
            rest = await perform(script, tools=agent_at_work.tools, past=past)
            log = agent_at_work.place / "log"
            return rest.events, log.read_text().split() if log.exists() else []

    await check_every_cut(again)


async def test_dry_run_and_the_start_say_where_commands_run_or_how_to_get_them(home: TempHome) -> None:
    one = agent("one", {"answer": "42"})
    there = home.config("there", one, orchestrator=COMMANDS)
    absent = home.config("absent", one, orchestrator={"commands": {"enabled": True, "sandbox": "sandbox-exec"}})
    container = home.config("container", one, orchestrator={"commands": {"enabled": True, "sandbox": "podman"}})
    async with home.with_variables(PATH="/usr/bin:/bin").client() as client:
        planned = await call(client, "start_run", question="q", config=there, dry_run=True)
        assert "Agents run commands in this sandbox: " in planned["note"]
        told = await call(client, "start_run", question="q", config=absent, dry_run=True)
        why = "agents' commands run only in a sandbox: no sandbox works here (sandbox-exec: "
        assert f"massgen won't start this run: {why}" in told["note"]
        assert "bubblewrap is installed: remove any other `sandbox`" in told["note"]
        code, refused = await expect_error(client, "start_run", question="q", config=absent)
        assert code == "sandbox_denied"
        assert why in refused
        for dry_run in (True, False):
            code, refused = await expect_error(client, "start_run", question="q", config=container, dry_run=dry_run)
            assert code == "config_invalid"
            assert "no container is available for agents' commands: no sandbox works here (podman: " in refused
