"""Runs belong to nobody's session: clients, servers and runners come, go and die, and the record stays true."""

import json
import shutil
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError

from tests.harness import (
    PATIENCE_SECONDS,
    RUNNER_MODULE,
    SERVER_MODULE,
    TempHome,
    after,
    agent,
    call,
    end,
    expect_error,
    happened,
    raw_server,
    spawned,
    wait_until,
)
from tests.soak.crowd import call_at_once, crowd

STUCK = {"hang": True}
NOBODY = "http://127.0.0.1:9/v1"


def gate(home: TempHome) -> Path:
    """The file for which agents wait."""
    return home.work / "go-on"


def held(home: TempHome, name: str = "held") -> str:
    """A config whose run waits for the gate."""
    return home.config(name, agent("solo", {"answer": f"the {name} answer", **after(gate(home))}))


async def at_work(home: TempHome, run_id: str) -> None:
    await wait_until(lambda: happened(home.run_directory(run_id), "model_call_started"))


async def test_a_run_goes_on_when_its_server_is_killed_and_the_next_server_has_the_result(home: TempHome) -> None:
    async with raw_server(home) as server:
        arguments = {"question": "q", "config": held(home)}
        started = await server.ask("tools/call", name="start_run", arguments=arguments)
        run_id = started["result"]["structuredContent"]["run_id"]
        await at_work(home, run_id)
        (runner,) = home.processes(RUNNER_MODULE)
        end(server.process.pid, signal.SIGKILL)
        await wait_until(lambda: not home.processes(SERVER_MODULE))
    assert home.processes(RUNNER_MODULE) == [runner]
    gate(home).touch()
    async with home.client() as client:
        waited = await call(client, "wait_run", run_id=run_id, timeout_seconds=20)
        result = await call(client, "get_result", run_id=run_id)
    assert (waited["status"], result["answer"]) == ("completed", "the held answer")


async def test_a_run_is_executed_although_the_client_left_right_after_starting_it(home: TempHome) -> None:
    async with raw_server(home) as server:
        arguments = {"question": "q", "models": ["scripted/x"]}
        started = await server.ask("tools/call", name="start_run", arguments=arguments)
        await server.stdin.aclose()
        assert await server.leave() == 0
    run_id = started["result"]["structuredContent"]["run_id"]
    await wait_until(lambda: happened(home.run_directory(run_id), "run_completed"))


async def test_two_servers_of_one_home_share_runs_and_one_runner(home: TempHome) -> None:
    runs: dict[str, str] = {}

    async def start(name: str, client: Any) -> None:
        runs[name] = (await call(client, "start_run", question=name, config=held(home, name)))["run_id"]

    async with home.client() as one, home.client() as other:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start, "one", one)
            tasks.start_soon(start, "other", other)
        for run_id in runs.values():
            await at_work(home, run_id)
        assert len(home.processes(RUNNER_MODULE)) == 1
        assert len(home.processes(SERVER_MODULE)) == 2
        for client in (one, other):
            listed = await call(client, "list_runs")
            assert {row["run_id"] for row in listed["runs"]} == set(runs.values())
        gate(home).touch()
        assert (await call(other, "wait_run", run_id=runs["one"], timeout_seconds=20))["status"] == "completed"
        assert (await call(one, "get_result", run_id=runs["one"]))["answer"] == "the one answer"
        cancelled = await call(one, "control_run", run_id=runs["other"], action="cancel")
        assert cancelled["run_id"] == runs["other"]


NOTING = """
import os, sys
if "massgen_mcp.runs.host.runner" in sys.orig_argv:
    with open(os.environ["NOTES"], "a") as notes:
        print(os.getpid(), file=notes)
"""


async def test_many_starts_at_once_start_one_process(home: TempHome) -> None:
    hook = home.work / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(NOTING)
    home = home.with_variables(PYTHONPATH=str(hook), NOTES=str(hook / "notes"), MASSGEN_MCP_RUNNER_IDLE_SECONDS="30")
    calls = [[{"question": "q", "models": ["scripted/x"], "wait_seconds": 30}] * 15] * 2
    async with crowd(home, 2) as servers:
        replies = await call_at_once(servers, "start_run", calls)
    assert [reply.content and reply.content["status"] for reply in replies] == ["completed"] * 30
    assert len((hook / "notes").read_text().splitlines()) == 1


async def test_runs_under_other_credentials_have_another_runner(home: TempHome) -> None:
    rich, poor = home.with_variables(OPENAI_API_KEY="sk-rich-0001"), home.with_variables(OPENAI_API_KEY="sk-poor-0002")
    async with rich.client() as one, poor.client() as other:
        for client in (one, other):
            stuck = home.config("stuck", agent("one", STUCK))
            run_id = (await call(client, "start_run", question="q", config=stuck))["run_id"]
            await at_work(home, run_id)
        owners = {
            variable
            for pid in home.processes(RUNNER_MODULE)
            for variable in Path(f"/proc/{pid}/environ").read_text().split("\0")
            if variable.startswith("OPENAI_API_KEY=")
        }
    assert owners == {"OPENAI_API_KEY=sk-rich-0001", "OPENAI_API_KEY=sk-poor-0002"}


async def test_a_killed_client_leaves_no_process_behind_once_its_run_ended(home: TempHome) -> None:
    code = f"""
import anyio, os, sys
from mcp import Client, StdioServerParameters

async def main():
    server = StdioServerParameters(command=sys.executable, args=["-m", {SERVER_MODULE!r}], env=dict(os.environ))
    async with Client(server) as client:
        started = await client.call_tool("start_run", {{"question": "q", "config": sys.argv[1]}})
        print(started.structured_content["run_id"], flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""
    with (home.work / "client.log").open("ab") as log:
        async with spawned(home, sys.executable, "-c", code, held(home), stderr=log) as client:
            assert client.stdout
            with anyio.fail_after(PATIENCE_SECONDS):
                run_id = (await client.stdout.receive()).decode().strip()
            await at_work(home, run_id)
            assert len(home.processes()) == 3, "client, server, runner"
            end(client.pid, signal.SIGKILL)
            await client.wait()
    await wait_until(lambda: not home.processes(SERVER_MODULE))
    gate(home).touch()
    await wait_until(lambda: happened(home.run_directory(run_id), "run_completed"))
    await wait_until(lambda: not home.processes())
    async with home.client() as later:
        assert (await call(later, "get_result", run_id=run_id))["answer"] == "the held answer"


async def replies(home: TempHome, run_id: str) -> list[str]:
    """The ids of the model calls that were replied to, with repetitions."""
    lines = (home.run_directory(run_id) / "events.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    return [event["call_id"] for event in events if event["type"] == "model_replied"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_run_whose_runner_ends_goes_on_from_its_journal_at_once(home: TempHome, how: signal.Signals) -> None:
    config = home.config(
        "half", agent("quick", {"answer": "kept"}), agent("slow", {"answer": "b", **after(gate(home))})
    )
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        await wait_until(lambda: happened(home.run_directory(run_id), "answer_submitted"))
        (runner,) = home.processes(RUNNER_MODULE)
        end(runner, how)
        await wait_until(lambda: runner not in home.processes(RUNNER_MODULE))
        one = await call(client, "get_result", run_id=run_id, view="agent", agent="agent_a")
        assert one["answer"] == "kept"
        gate(home).touch()
        waited = await call(client, "wait_run", run_id=run_id, timeout_seconds=30)
        assert waited["status"] == "completed"
        result = await call(client, "get_result", run_id=run_id)
        assert (result["resumed"], result["degraded"]) == (1, [])
        called = await replies(home, run_id)
        assert len(called) == len(set(called)), "nothing was paid for twice"


async def test_a_run_waits_for_its_keys_and_says_which_one_is_missing(home: TempHome) -> None:
    keyed = {"id": "one", "backend": {"type": "scripted", "script": [STUCK]}}
    asking = {
        "id": "two",
        "backend": {"type": "openai", "model": "m", "base_url": NOBODY, "api_key_env": "OPENAI_API_KEY"},
    }
    config = home.config("keyed", keyed, asking)
    async with home.with_variables(OPENAI_API_KEY="sk-first-0001").client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        await at_work(home, run_id)
        end(home.processes(RUNNER_MODULE)[0], signal.SIGSTOP)  # nobody sends for a new runner meanwhile
    end(home.processes(RUNNER_MODULE)[0], signal.SIGKILL)
    await wait_until(lambda: not home.processes(RUNNER_MODULE))
    async with home.client() as poor:
        status = await call(poor, "wait_run", run_id=run_id, timeout_seconds=5)
        assert status["status"] == "interrupted"
        assert status["reason"] == "runner_lost: this environment lacks OPENAI_API_KEY"
        code, message = await expect_error(poor, "control_run", run_id=run_id, action="resume")
        assert (code, "OPENAI_API_KEY" in message) == ("missing_key", True)
        assert not home.processes(RUNNER_MODULE)
    async with home.with_variables(OPENAI_API_KEY="sk-other-0002").client() as other:
        status = await call(other, "get_status", run_id=run_id)
        assert "keys other than" in status["reason"]
        assert not home.processes(RUNNER_MODULE), "one client's keys never pay for another's run by themselves"
        await call(other, "control_run", run_id=run_id, action="resume")
        await wait_until(lambda: happened(home.run_directory(run_id), "run_resumed"))
        assert (await call(other, "control_run", run_id=run_id, action="cancel"))["run_id"] == run_id
        assert (await call(other, "wait_run", run_id=run_id, timeout_seconds=20))["status"] == "cancelled"
        assert (await expect_error(other, "control_run", run_id=run_id, action="resume"))[0] == "invalid_action"


async def test_an_agents_question_reaches_the_asker_and_the_decision_reaches_the_agent(home: TempHome) -> None:
    ask: dict[str, Any] = {"call": "ask_the_asker", "arguments": {"question": "Metres or feet?"}}
    config = home.config("asking", agent("solo", ask, {"answer": "in metres"}), orchestrator={"allow_questions": True})
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        asked = await call(client, "wait_run", run_id=run_id, timeout_seconds=20)
        assert (asked["status"], asked["reason"]) == ("input_required", "question: Metres or feet?")
        for state, count in (("input_required", 1), ("running", 0)):
            assert len((await call(client, "list_runs", state=state))["runs"]) == count
        end(home.processes(RUNNER_MODULE)[0], signal.SIGKILL)
        await call(client, "control_run", run_id=run_id, action="answer", message="Metres.")
        assert (await call(client, "wait_run", run_id=run_id, timeout_seconds=20))["status"] == "completed"
        late = await expect_error(client, "control_run", run_id=run_id, action="answer", message="Feet.")
        assert late[0] == "invalid_action"
    lines = (home.run_directory(run_id) / "events.jsonl").read_text().splitlines()
    told = [json.loads(line)["event"]["type"] for line in lines if "Metres." in line]
    assert told == ["input_given", "tool_finished"]


async def test_an_answer_that_a_kill_leaves_open_is_not_given_to_the_next_question(home: TempHome) -> None:
    """The runner has recorded the answer and asks for the next one, and is lost before the store knows of it."""
    agents = [
        agent(name, {"call": "ask_the_asker", "arguments": {"question": question}}, {"answer": name})
        for name, question in (("ada", "Metres or feet?"), ("bo", "Red or blue?"))
    ]
    config = home.config("asking", *agents, orchestrator={"allow_questions": True})
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        first = await call(client, "wait_run", run_id=run_id, timeout_seconds=20)
        journal = home.run_directory(run_id) / "events.jsonl"
        runner = home.processes(RUNNER_MODULE)[0]
        end(runner, signal.SIGSTOP)
        await call(client, "control_run", run_id=run_id, action="answer", message="The first decision.")
        with closing(sqlite3.connect(home.path / "runs.sqlite3", isolation_level=None)) as store:
            store.execute("BEGIN IMMEDIATE")
            end(runner, signal.SIGCONT)
            await wait_until(lambda: journal.read_text().count('"input_required"') == 2)
            end(runner, signal.SIGKILL)
            store.execute("ROLLBACK")
        second = await call(client, "wait_run", run_id=run_id, timeout_seconds=20)
        assert {first["reason"], second["reason"]} == {"question: Metres or feet?", "question: Red or blue?"}
        await call(client, "control_run", run_id=run_id, action="answer", message="The second decision.")
        assert (await call(client, "wait_run", run_id=run_id, timeout_seconds=20))["status"] == "completed"
    events = [json.loads(line)["event"] for line in journal.read_text().splitlines()]
    given = [event["text"] for event in events if event["type"] == "input_given"]
    assert given == ["The first decision.", "The second decision."]


async def test_a_message_of_the_asker_reaches_the_agents_of_a_running_run(home: TempHome) -> None:
    read: dict[str, Any] = {"call": "list_files", "arguments": {}, **after(gate(home))}
    config = home.config("steered", agent("solo", read, {"answer": "done"}))
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        await at_work(home, run_id)
        await call(client, "control_run", run_id=run_id, action="steer", message="Mind the units.")
        await wait_until(lambda: happened(home.run_directory(run_id), "asker_said"))
        gate(home).touch()
        assert (await call(client, "wait_run", run_id=run_id, timeout_seconds=20))["status"] == "completed"
        assert happened(home.run_directory(run_id), "messages_shown")
        late = await expect_error(client, "control_run", run_id=run_id, action="steer", message="Too late.")
        assert late[0] == "invalid_action"
        assert (await expect_error(client, "control_run", run_id=run_id, action="steer"))[0] == "invalid_arguments"


async def test_a_message_that_nobody_would_read_any_more_is_refused_and_says_why(home: TempHome) -> None:
    words = " ".join(f"word{number}" for number in range(15_000))
    slow = agent("ada", {"answer": "one"}, presentation=words, chunk_delay_seconds=0.02)
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=home.config("slow", slow, agent("bo"))))[
            "run_id"
        ]
        while (await call(client, "wait_run", run_id=run_id, until="phase", timeout_seconds=20))[
            "phase"
        ] != "presenting":
            pass
        code, why = await expect_error(client, "control_run", run_id=run_id, action="steer", message="Mind the units.")
        assert (code, "the winner is writing the final answer" in why) == ("invalid_action", True)
        await call(client, "control_run", run_id=run_id, action="cancel")


def writer(home: TempHome, word: str) -> str:
    """A config of agents that write one word into files of the same names."""
    write = {"call": "write_file", "arguments": {"path": "note.txt", "content": f"written: {word}"}}
    return home.config(word, *(agent(f"a{n}", write, {"answer": f"{word} by {n}"}) for n in range(2)))


async def test_two_runs_at_once_keep_their_files_apart(home: TempHome) -> None:
    runs: dict[str, Path] = {}
    async with home.client() as client:

        async def start(word: str) -> None:
            started = await call(client, "start_run", question="q", config=writer(home, word), wait_seconds=30)
            assert started["status"] == "completed"
            runs[word] = home.run_directory(started["run_id"])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start, "alpha")
            tasks.start_soon(start, "omega")
    for word, other in (("alpha", "omega"), ("omega", "alpha")):
        files = [path for path in runs[word].rglob("*") if path.is_file()]
        assert any(path.name == "note.txt" and path.read_text() == f"written: {word}" for path in files)
        assert [path for path in files if other.encode() in path.read_bytes()] == []


async def test_two_runs_of_one_config_at_once_have_directories_of_their_own(home: TempHome) -> None:
    config = writer(home, "same")
    ids: list[str] = []
    async with home.client() as client:

        async def start() -> None:
            started = await call(client, "start_run", question="q", config=config, wait_seconds=30)
            assert started["status"] == "completed"
            ids.append(started["run_id"])

        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(start)
    one, other = ids
    assert one != other
    for mine, foreign in ((one, other), (other, one)):
        files = [path for path in home.run_directory(mine).rglob("*") if path.is_file()]
        assert len([path for path in files if path.name == "note.txt"]) >= 2
        assert [path for path in files if foreign.encode() in path.read_bytes()] == []


async def test_what_a_run_leaves_on_disk_is_the_users_alone(home: TempHome) -> None:
    async with home.client() as client:
        started = await call(client, "start_run", question="q", models=["scripted/x"], wait_seconds=30)
    assert started["status"] == "completed"
    doors = [home.path, *home.path.iterdir(), *home.runs, *(home.path / "runners").rglob("*")]
    assert [path for path in doors if path.lstat().st_mode & 0o077] == []
    assert [path for path in home.path.rglob("*") if path.lstat().st_mode & 0o022] == []


async def test_a_damaged_record_of_one_run_leaves_the_others_readable(home: TempHome) -> None:
    async with home.client() as client:
        ids = [
            (await call(client, "start_run", question="q", models=["scripted/x"], wait_seconds=30))["run_id"]
            for _ in range(2)
        ]
        journal = home.run_directory(ids[0]) / "events.jsonl"
        journal.write_text(json.dumps({"seq": 1, "nonsense": True}) + "\n")
        assert "run_damaged" in (await call(client, "get_status", run_id=ids[0]))["reason"]
        assert (await expect_error(client, "get_result", run_id=ids[0]))[0] == "run_damaged"
        assert (await call(client, "get_status", run_id=ids[1]))["status"] == "completed"
        listed = await call(client, "list_runs")
        assert ids[1] in [row["run_id"] for row in listed["runs"]]


async def test_an_idle_runner_leaves_and_the_next_run_gets_a_new_one(home: TempHome) -> None:
    async with home.client() as client:
        for _ in range(2):
            started = await call(client, "start_run", question="q", models=["scripted/x"], wait_seconds=30)
            assert started["status"] == "completed"
            await wait_until(lambda: not home.processes(RUNNER_MODULE))


async def test_a_client_of_a_killed_server_hears_that_the_connection_is_gone(home: TempHome) -> None:
    async with home.client() as client:
        (server,) = home.processes(SERVER_MODULE)
        end(server, signal.SIGKILL)
        with pytest.raises(MCPError):
            await client.call_tool("list_runs", {})


@pytest.mark.parametrize(("tool", "arguments"), [("get_status", {}), ("wait_run", {"timeout_seconds": 0})])
async def test_a_run_whose_server_died_before_it_woke_a_runner_is_taken_up_by_the_next_server(
    home: TempHome, tool: str, arguments: dict[str, Any]
) -> None:
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=home.config("s", agent("one", STUCK))))["run_id"]
        await at_work(home, run_id)
        (runner,) = home.processes(RUNNER_MODULE)
        end(runner, signal.SIGKILL)
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
    with closing(sqlite3.connect(home.path / "runs.sqlite3")) as store, store:
        store.execute("UPDATE runs SET state = 'queued', runner = NULL")  # as if no runner had ever taken it
    for trace in home.run_directory(run_id).iterdir():
        if trace.name != "config.json":
            trace.unlink() if trace.is_file() else shutil.rmtree(trace)
    async with home.client() as client:
        await call(client, tool, run_id=run_id, **arguments)
        await at_work(home, run_id)
        await call(client, "control_run", run_id=run_id, action="cancel")
        assert (await call(client, "wait_run", run_id=run_id))["status"] == "cancelled"


async def test_a_cancel_stays_in_the_store_until_the_run_has_ended_there(home: TempHome) -> None:
    """Otherwise a kill between the two would lose it."""
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=home.config("s", agent("one", STUCK))))["run_id"]
        await at_work(home, run_id)
        with closing(sqlite3.connect(home.path / "runs.sqlite3")) as store, store:
            store.execute("CREATE TABLE completed (action TEXT, state TEXT)")
            store.execute(
                "CREATE TRIGGER on_completed BEFORE DELETE ON controls BEGIN INSERT INTO completed"
                " SELECT OLD.action, state FROM runs WHERE run_id = OLD.run_id; END"
            )
        await call(client, "control_run", run_id=run_id, action="cancel")
        assert (await call(client, "wait_run", run_id=run_id, timeout_seconds=20))["status"] == "cancelled"
        with closing(sqlite3.connect(home.path / "runs.sqlite3")) as store:
            await wait_until(lambda: store.execute("SELECT * FROM completed").fetchone())
            assert store.execute("SELECT * FROM completed").fetchall() == [("cancel", "cancelled")]


async def test_a_run_whose_runner_is_lost_just_before_its_last_event_ends_once_more_with_the_same_files(
    home: TempHome,
) -> None:
    write = {"call": "write_file", "arguments": {"path": "a.txt", "content": "a"}}
    config = home.config("writer", agent("one", write, {"answer": "there"}))
    async with home.client() as client:
        started = await call(client, "start_run", question="q", config=config, wait_seconds=30)
        assert started["status"] == "completed"
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
    run = home.run_directory(started["run_id"])
    journal = run / "events.jsonl"
    *kept, last = journal.read_bytes().splitlines(keepends=True)
    assert json.loads(last)["event"]["type"] == "run_completed"
    journal.write_bytes(b"".join(kept))
    (run / "final" / "agent_a" / ".workspace.0.partial").mkdir()
    with closing(sqlite3.connect(home.path / "runs.sqlite3")) as store, store:
        store.execute("UPDATE runs SET state = 'running', ended = NULL, events = NULL")
    async with home.client() as client:
        assert (await call(client, "wait_run", run_id=run.name, timeout_seconds=30))["status"] == "completed"
        assert (await call(client, "get_result", run_id=run.name))["answer"] == "there"
    files = {path.relative_to(run / "final").as_posix() for path in (run / "final").rglob("*") if path.is_file()}
    assert files == {"agent_a/answer.txt", "agent_a/workspace/a.txt"}
    assert not list((run / "final" / "agent_a").glob("*.partial"))


async def test_nobody_with_other_keys_takes_up_a_queued_run(home: TempHome) -> None:
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=home.config("s", agent("one", STUCK))))["run_id"]
        await at_work(home, run_id)
        end(home.processes(RUNNER_MODULE)[0], signal.SIGKILL)
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
    with closing(sqlite3.connect(home.path / "runs.sqlite3")) as store, store:
        store.execute("UPDATE runs SET state = 'queued', runner = NULL")
    async with home.with_variables(OPENAI_API_KEY="somebody else's").client() as stranger:
        waited = await call(stranger, "wait_run", run_id=run_id, timeout_seconds=1)
    assert waited["status"] == "queued"
    assert not home.processes(RUNNER_MODULE)
