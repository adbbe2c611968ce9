"""The verbs of `massgen-mcp`: the runs of the server, operated from a shell."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from massgen_mcp.cli.massgen_mcp.main import main
from massgen_mcp.config.loader import load_config
from massgen_mcp.home import find_home
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from massgen_mcp.runs.watcher import Until
from massgen_mcp.server import results
from tests.commands import run_command, starting_by
from tests.harness import (
    COMMAND_MODULE,
    RUNNER_MODULE,
    SERVER_MODULE,
    TempHome,
    after,
    agent,
    call,
    end,
    events_of,
    happened,
    poll_until,
    spawned,
    wait_until,
    without_escapes,
)
from tests.planted import PLANTED
from tests.run_requests import asked
from tests.sandbox.table import LEVELS

DONE, FAILED, NOT_ENDED, UNKNOWN, INPUT_NEEDED, BROKEN, USAGE, STOPPED = 0, 1, 2, 3, 4, 5, 64, 130
STUCK = agent("stuck", {"hang": True})
SCRIPTED = "@examples/scripted"


def verb(home: TempHome, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_command(home, SERVER_MODULE, *arguments)


def document(home: TempHome, shape: type[BaseModel], *arguments: str) -> Any:
    """The one JSON document that a verb prints, checked against the tool's published shape."""
    done = verb(home, *arguments, "--json")
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
    shape.model_validate_json(done.stdout, strict=True, extra="forbid")
    return json.loads(done.stdout)


async def start(home: TempHome, config: str, *, until: Until | None = None) -> str:
    """A run in the background, as a server starts it."""
    service = RunService(local_engine(find_home(home.environ)), home.environ)
    with starting_by(home.python):
        view, _ = await service.start(await service.prepare(asked("What is it?", load_config(config, environ={}))))
    if until is not None:
        view = await service.watcher.wait(view.row.run_id, until=until, seconds=50, cursor=None)
    service.close()
    return view.row.run_id


async def test_a_run_that_a_client_started_is_followed_to_its_result_in_a_shell(home: TempHome) -> None:
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="What is it?", config="scripted"))["run_id"]
    waited = verb(home, "wait", run_id)
    assert waited.returncode == DONE, waited.stderr
    assert waited.stdout.splitlines()[0].startswith(f"{run_id}: completed, ")
    result = verb(home, "result", run_id)
    assert result.returncode == DONE
    assert result.stdout.startswith("Neither: replace it piece by piece.\n")
    assert "\nbo · 2 of 3 agree; cleo disagrees: The tests come first in both answers; I doubt" in result.stdout
    assert re.search(r"\nCost   \$0\.00 for \d+ calls, ", result.stdout)
    (listed,) = verb(home, "runs").stdout.splitlines()
    assert listed.split()[:2] == [run_id, "completed"]
    assert listed.split()[3:5] == ["s", "ago"]
    assert "What is it?" in listed


async def test_json_has_the_fields_of_the_tool_of_the_same_name(home: TempHome) -> None:
    run_id = await start(home, SCRIPTED, until="terminal")
    assert document(home, results.RunList, "runs")["runs"][0]["run_id"] == run_id
    assert document(home, results.Status, "status", run_id)["status"] == "completed"
    assert document(home, results.Status, "wait", run_id)["status"] == "completed"
    whole = document(home, results.Result, "result", run_id)
    assert whole["answer"].startswith("Neither")
    assert not whole["truncated"]
    assert "answer" not in document(home, results.Result, "result", run_id, "--view", "votes")
    assert "## cleo's 1st answer" in document(home, results.Result, "result", run_id, "--view", "full")["answer"]
    assert document(home, results.Result, "result", run_id, "--agent", "cleo")["answer"].startswith("Mend it")
    assert document(home, results.Controlled, "cancel", run_id)["status"] == "completed"
    configs = document(home, results.ConfigList, "configs", "scripted")
    assert configs["yaml"].startswith("# Three scripted agents")


async def test_watching_tells_every_event_and_ends_with_the_run(home: TempHome) -> None:
    run_id = await start(home, SCRIPTED)
    told = verb(home, "watch", run_id)
    assert told.returncode == DONE
    assert "bo: votes for bo's 2nd answer" in told.stdout
    assert "completed with bo's answer (2 of 3 agree; cleo disagrees: The tests come" in told.stdout.splitlines()[-1]
    assert " | DEBUG | " not in told.stdout
    lines = verb(home, "watch", run_id, "--json").stdout.splitlines()
    assert [json.loads(line)["event"] for line in lines] == events_of(home.run_directory(run_id))


async def test_a_run_that_loses_its_runner_while_it_is_watched_goes_on_by_itself(home: TempHome) -> None:
    gate = home.work / "go-on"
    run_id = await start(home, home.config("held", agent("solo", {"answer": "there", **after(gate)})))
    await wait_until(lambda: happened(home.run_directory(run_id), "model_call_started"))
    (runner,) = home.processes(RUNNER_MODULE)
    command = (sys.executable, "-W", "error", "-m", SERVER_MODULE, "watch", run_id)
    async with spawned(home, *command, stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        told = [await watching.stdout.receive()]
        end(runner, signal.SIGKILL)
        gate.touch()
        with anyio.fail_after(60):
            told += [piece async for piece in watching.stdout]
            assert await watching.wait() == DONE
    assert b"completed with solo's answer: there" in b"".join(told)
    assert happened(home.run_directory(run_id), "run_resumed")


async def test_an_id_may_be_cut_short_as_long_as_it_is_one_runs(home: TempHome) -> None:
    first = await start(home, SCRIPTED)
    for beginning in (first[:9], first[4:9]):
        assert first in verb(home, "status", beginning).stdout
    for name, *more in (("cancel",), ("apply", "--dry-run"), ("mark", "right"), ("resume",)):
        short = verb(home, name, first[4:7], *more)
        assert (short.returncode, "at least 4 characters of the id" in short.stderr) == (UNKNOWN, True), name
    for pattern in ("run-%", "run-*", "_un-"):
        assert verb(home, "status", pattern).returncode == UNKNOWN
    mistyped = verb(home, "status", f"{first[4:10]}!")
    assert f"did you mean {first}? `massgen runs` lists all runs" in mistyped.stderr
    await start(home, home.config("other", STUCK))
    both = verb(home, "status", "run-")
    assert both.returncode == UNKNOWN
    assert "several run ids start with 'run-'" in both.stderr
    assert verb(home, "cancel", first).returncode == DONE


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("status", "nope"), ("wait", ""), ("watch", "../.."), ("result", "run-%"), ("cancel", "\x1b[31m")],
)
def test_an_unknown_run_has_an_exit_code_of_its_own(home: TempHome, name: str, beginning: str) -> None:
    done = verb(home, name, beginning, "--json")
    assert done.returncode == UNKNOWN
    assert done.stderr.startswith("ERROR unknown_run: ")
    assert done.stdout == ""
    assert without_escapes(done.stderr)


async def test_waiting_no_longer_than_asked_for_is_told_from_the_end(home: TempHome) -> None:
    run_id = await start(home, home.config("stuck", agent("quick", {"answer": "quick"}), STUCK))
    assert verb(home, "wait", run_id, "--timeout", "0.2").returncode == NOT_ENDED
    assert verb(home, "result", run_id).returncode == NOT_ENDED
    assert verb(home, "status", run_id).returncode == DONE
    poll_until(lambda: happened(home.run_directory(run_id), "answer_submitted"))
    assert run_id in verb(home, "runs", "--state", "running").stdout
    cancelled = verb(home, "cancel", run_id)
    assert (cancelled.returncode, cancelled.stdout) == (DONE, f"{run_id}: cancelled\n")
    assert verb(home, "wait", run_id).returncode == FAILED
    result = verb(home, "result", run_id)
    assert result.returncode == FAILED
    assert result.stdout.startswith("quick\n"), "the best answer so far is kept"
    assert verb(home, "runs", "--state", "running").stdout == "no runs\n"


async def test_a_failed_run_tells_its_reason_and_fails_the_command(home: TempHome) -> None:
    run_id = await start(home, home.config("refused", agent("a", {"fail": "auth"})), until="terminal")
    for name in ("wait", "watch", "result"):
        done = verb(home, name, run_id)
        assert done.returncode == FAILED, name
        assert "auth" in done.stdout


async def test_a_run_that_asks_is_told_from_one_that_has_ended_and_hears_the_answer(home: TempHome) -> None:
    ask: dict[str, Any] = {"call": "ask_the_asker", "arguments": {"question": "Metres or feet?"}}
    asking = agent("solo", ask, {"answer": "in metres"})
    run_id = await start(home, home.config("asking", asking, orchestrator={"allow_questions": True}))
    waited = verb(home, "wait", run_id)
    assert waited.returncode == INPUT_NEEDED
    assert "reason: question: Metres or feet?" in waited.stdout
    watched = verb(home, "watch", run_id)
    assert watched.returncode == INPUT_NEEDED
    assert "Metres or feet?" in watched.stdout.splitlines()[-1]
    assert verb(home, "answer", run_id, "Metres.").returncode == DONE
    assert verb(home, "wait", run_id).returncode == DONE
    again = verb(home, "answer", run_id, "Feet.")
    assert again.returncode == FAILED
    assert again.stderr.startswith("ERROR invalid_action: ")


async def test_an_interrupted_run_says_which_key_it_lacks_and_goes_on_with_it(home: TempHome) -> None:
    backend = {"type": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "OPENAI_API_KEY"}
    config = home.config("keyed", STUCK, {"id": "keyed", "backend": backend})
    keyed = home.with_variables(OPENAI_API_KEY="sk-first-0001")
    run_id = await start(keyed, config)
    poll_until(lambda: happened(home.run_directory(run_id), "model_call_started"))
    for runner in home.processes(RUNNER_MODULE):
        end(runner, signal.SIGKILL)
    poll_until(lambda: not home.processes(RUNNER_MODULE))
    waited = verb(home, "wait", run_id)
    assert waited.returncode == INPUT_NEEDED
    assert "this environment lacks OPENAI_API_KEY" in waited.stdout
    refused = verb(home, "resume", run_id)
    assert (refused.returncode, refused.stderr[:18]) == (FAILED, "ERROR missing_key:")
    assert verb(keyed, "resume", run_id).returncode == DONE
    poll_until(lambda: happened(home.run_directory(run_id), "run_resumed"))
    assert verb(keyed, "cancel", run_id).returncode == DONE


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
async def test_leaving_a_watch_leaves_the_run_alone(home: TempHome, sign: signal.Signals) -> None:
    run_id = await start(home, home.config("stuck", STUCK))
    command = [home.python, "-m", SERVER_MODULE, "watch", run_id]
    async with spawned(home, *command, stderr=subprocess.PIPE) as watching:
        assert watching.stdout
        assert watching.stderr
        assert b"the run starts" in await watching.stdout.receive()
        end(watching.pid, sign)
        assert await watching.wait() == STOPPED
        assert [chunk async for chunk in watching.stderr] == []
    assert verb(home, "status", run_id).stdout.startswith(f"{run_id}: running")


async def test_a_reader_that_has_seen_enough_ends_a_watch_quietly(home: TempHome) -> None:
    run_id = await start(home, SCRIPTED)
    line = f"{home.python} -m {SERVER_MODULE} watch {run_id} | head -1"
    done = await anyio.run_process(["bash", "-c", line], env=home.environ)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == b""


def test_configs_are_listed_and_shown(home: TempHome) -> None:
    listed = verb(home, "configs")
    assert listed.returncode == DONE
    assert "two_providers: Two strong models" in listed.stdout
    assert "missing OPENAI_API_KEY, ANTHROPIC_API_KEY; $" in listed.stdout
    assert verb(home, "configs", "scripted").stdout.startswith("# Three scripted agents")
    unknown = verb(home, "configs", "scriptd")
    assert unknown.returncode == FAILED
    assert "Did you mean @examples/scripted?" in unknown.stderr


USAGES: dict[str, Sequence[str]] = {
    "no such verb": ["wiat", "x"],
    "no id": ["cancel"],
    "a timeout that is none": ["wait", "x", "--timeout", "soon"],
    "an endless number": ["wait", "x", "--timeout", "inf"],
    "no such state": ["runs", "--state", "done"],
    "no such limit": ["runs", "--limit", "0"],
    "no such moment": ["runs", "--since", "yesterday"],
    "no such age": ["prune", "--older-than", "-1"],
    "two views at once": ["result", "x", "--view", "votes", "--agent", "agent_a"],
    "a cut option": ["wait", "x", "--time", "1"],
    "two forms of a watch": ["watch", "x", "--json", "--plain"],
    "a branch to take back": ["apply", "x", "--undo", "--branch", "b"],
    "all branches without a name": ["apply", "x", "--all"],
    "all branches of one agent": ["apply", "x", "--all", "--branch", "b", "--agent", "a"],
    "all branches to take back": ["apply", "x", "--all", "--branch", "b", "--undo"],
    "a path to take back": ["apply", "x", "--undo", "--paths", "p"],
    "an age of named runs": ["prune", "x", "--older-than", "1"],
    "nothing to trust": ["trust"],
}


@pytest.mark.parametrize("arguments", USAGES.values(), ids=USAGES)
def test_a_wrong_command_line_cannot_be_taken_for_an_answer(
    arguments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == USAGE
    printed = capsys.readouterr()
    assert "ERROR invalid_arguments: " in printed.err
    assert printed.out == ""


def test_a_state_directory_that_cannot_be_used_has_an_exit_code_of_its_own(home: TempHome, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a directory should be")
    done = verb(TempHome(blocked / "home", home.work), "runs")
    assert done.returncode == BROKEN
    assert done.stderr.startswith("ERROR store_unavailable: ")
    assert "Traceback" not in done.stderr


# -- looking after the state directory --------------------------------------------------------------------------------


def test_the_doctor_finds_a_fresh_home_well_and_names_keys_without_their_values(home: TempHome) -> None:
    others = dict.fromkeys(PLANTED, "")
    done = verb(home.with_variables(**others, OPENAI_API_KEY="sk-never-to-be-seen"), "doctor")
    assert done.returncode == DONE, done.stdout
    assert "ok    keys: set: OPENAI_API_KEY" in done.stdout
    assert "sk-never" not in done.stdout
    checks = json.loads(verb(home, "doctor", "--json").stdout)["checks"]
    assert all(set(check) == {"name", "level", "message", "advice"} for check in checks)
    assert {"keys", "run store", "runner", "client"} <= {check["name"] for check in checks}
    tried = [check["message"] for check in checks if check["name"] == "commands of agents"]
    assert [message.split()[:2] for message in tried] == [[level, "works;"] for level in LEVELS]
    assert all(check["advice"] for check in checks if check["level"] != "ok")


def test_the_doctor_fails_over_a_broken_store_and_says_what_to_do(home: TempHome) -> None:
    home.path.mkdir(mode=0o700)
    (home.path / "runs.sqlite3").write_bytes(b"this is no database" * 100)
    done = verb(home, "doctor")
    assert done.returncode == FAILED
    (at,) = (at for at, line in enumerate(done.stdout.splitlines()) if line.startswith("fail  run store: "))
    assert done.stdout.splitlines()[at + 1].startswith("      ")


@pytest.mark.parametrize("knows", [False, True])
def test_the_doctor_says_whether_a_client_knows_the_server(home: TempHome, tmp_path: Path, knows: bool) -> None:
    tools, person = tmp_path / "bin", tmp_path / "person"
    tools.mkdir()
    person.mkdir()
    (tools / "claude").write_text("#!/bin/sh\n")
    (tools / "claude").chmod(0o755)
    if knows:
        (person / ".claude.json").write_text(
            '{"mcpServers": {"massgen": {"type": "http", "url": "http://127.0.0.1:8000/massgen-mcp"}}}'
        )
    variables = {"PATH": str(tools), "HOME": str(person), "CLAUDE_CONFIG_DIR": ""}
    told = verb(home.with_variables(**variables), "doctor").stdout
    if knows:
        assert "ok    client: Claude Code: massgen-mcp is in ~/.claude.json" in told
    else:
        assert "warn  client: Claude Code is installed, but massgen-mcp isn't set up in it\n" in told
        assert "      massgen install claude-code\n" in told


async def test_old_runs_are_pruned_and_only_shown_when_asked_to(home: TempHome) -> None:
    run_id = await start(home, SCRIPTED, until="terminal")
    poll_until(lambda: not home.processes(RUNNER_MODULE))
    shown = json.loads(verb(home, "prune", "--dry-run", "--older-than", "0", "--json").stdout)
    assert shown["dry_run"]
    assert run_id in {one["run_id"] for one in shown["removed"]}
    assert shown["bytes"] > 0
    assert verb(home, "result", run_id).returncode == DONE
    assert verb(home, "prune").stdout == "deleted 0 B in total\n", "nothing is as old as the limits"
    pruned = verb(home, "prune", "--older-than", "0")
    assert pruned.returncode == DONE
    assert f"deleted results of {run_id}, " in pruned.stdout
    expired = verb(home, "result", run_id)
    assert expired.returncode == UNKNOWN
    assert expired.stderr.startswith("ERROR expired: ")


async def test_runs_are_listed_since_a_moment_and_of_a_session(home: TempHome) -> None:
    run_id = await start(home, SCRIPTED, until="terminal")
    assert run_id in verb(home, "runs", "--since", "1h").stdout
    assert verb(home, "runs", "--since", "2999-01-01").stdout == "no runs\n"
    assert verb(home, "runs", "--session", "other").stdout == "no runs\n"


async def test_a_running_runs_budget_is_raised(home: TempHome) -> None:
    run_id = await start(home, home.config("stuck", STUCK))
    poll_until(lambda: happened(home.run_directory(run_id), "model_call_started"))
    assert verb(home, "raise-budget", run_id, "25").returncode == DONE
    poll_until(lambda: '"max_usd": 25' in json.dumps(events_of(home.run_directory(run_id))))
    refused = verb(home, "raise-budget", run_id, "-1")
    assert refused.returncode == USAGE
    assert verb(home, "cancel", run_id).returncode == DONE


async def test_the_result_of_a_run_that_goes_on_is_refused_in_words_for_people(home: TempHome) -> None:
    run_id = await start(home, home.config("held", STUCK))
    refused = verb(home, "result", run_id)
    assert refused.returncode == NOT_ENDED
    assert re.fullmatch(
        rf"ERROR not_finished: {run_id} is (queued|running); `massgen watch {run_id}` follows it\n", refused.stderr
    )
    assert verb(home, "cancel", run_id).returncode == DONE


def test_a_run_whose_directory_was_deleted_is_told_with_what_forgets_it(home: TempHome) -> None:
    assert run_command(home, COMMAND_MODULE, "-q", "-m", "scripted/x", "q").returncode == 0
    run_id = json.loads(verb(home, "runs", "--json").stdout)["runs"][0]["run_id"]
    shutil.rmtree(home.work / ".massgen" / "massgen_logs")
    for words in (("status",), ("result",), ("result", "--page"), ("watch",), ("export",)):
        told = verb(home, words[0], run_id, *words[1:])
        assert f"its directory is missing; remove the run with `massgen prune {run_id}`" in told.stdout + told.stderr, (
            words
        )
    assert verb(home, "prune", run_id).returncode == DONE
    assert verb(home, "status", run_id).returncode == UNKNOWN
