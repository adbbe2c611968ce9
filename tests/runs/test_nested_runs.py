"""Agents that start runs of their own: each once, within the bounds of the run they work in, and ended with it."""

import json
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
import yaml
from mcp import Client

from tests.commands import ROOT, run_command
from tests.harness import (
    COMMAND_MODULE,
    RUNNER_MODULE,
    TempHome,
    after,
    agent,
    call,
    end,
    events_of,
    expect_error,
    happened,
    spawned,
    wait_until,
)

NESTED: dict[str, Any] = {"max_depth": 1, "max_runs": 3, "share_of_budget": 0.5}
ENDED = ("completed", "failed", "cancelled", "timed_out")


def delegate(question: str = "Is it so?", **arguments: Any) -> dict[str, Any]:
    return {"call": "delegate", "arguments": {"question": question, **arguments}}


def written(*agents: dict[str, Any], **settings: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The steps of an agent that writes a config, and then delegates to that team."""
    content = json.dumps({"agents": agents, **settings})
    return {"call": "write_file", "arguments": {"path": "team.json", "content": content}}, delegate(config="team.json")


WAIT: dict[str, Any] = {"call": "get_status", "arguments": {"wait_seconds": 40}}
READ: dict[str, Any] = {"call": "get_result", "arguments": {}}
HANGING = agent("inner", {"hang": True})


def results(home: TempHome, run_id: str) -> list[str]:
    """What tools gave to the agents of a run, in order."""
    return [event["result"] for event in of_type(home, run_id, "tool_finished")]


def of_type(home: TempHome, run_id: str, kind: str) -> list[dict[str, Any]]:
    return [event for event in events_of(home.run_directory(run_id)) if event["type"] == kind]


def started_in(home: TempHome, run_id: str) -> list[str]:
    """Ids of the runs that were started in a run."""
    return [event["run_id"] for event in of_type(home, run_id, "nested_run_started")]


async def run(client: Client, config: str, **arguments: Any) -> dict[str, Any]:
    """The result of a run that is waited for."""
    run_id = (await call(client, "start_run", question="q", config=config, **arguments))["run_id"]
    assert (await call(client, "wait_run", run_id=run_id))["status"] in ENDED
    return await call(client, "get_result", run_id=run_id)


async def test_an_agent_delegates_waits_and_reads_the_answer_where_one_run_may_run_at_a_time(home: TempHome) -> None:
    home = home.with_variables(MASSGEN_MCP_MAX_RUNNING="1")
    inner = written(agent("inner", {"answer": "It is so."}))
    config = home.config("outer", agent("solo", *inner, WAIT, READ, {"answer": "They say: so."}), nested=NESTED)
    async with home.client() as client:
        outer = await run(client, config)
        (inner_id,) = started_in(home, outer["run_id"])
        _, started, waited, read = results(home, outer["run_id"])
        assert (outer["status"], f"started {inner_id}" in started) == ("completed", True)
        assert f"{inner_id}: completed" in waited
        assert read.endswith("It is so.")
        (line,) = outer["nested"]
        assert (line["run_id"], line["status"], line["started_by"]) == (inner_id, "completed", "solo")
        one = await call(client, "get_result", run_id=inner_id)
        assert one["parent"] == outer["run_id"]
        assert outer["usage"]["nested_calls"] == one["usage"]["model_calls"] == 1
        assert outer["usage"]["model_calls"] == 1 + 5
        assert outer["usage"]["nested_tokens"] == one["usage"]["input_tokens"] + one["usage"]["output_tokens"]
        rows = {row["run_id"]: row.get("parent") for row in (await call(client, "list_runs"))["runs"]}
        assert rows == {outer["run_id"]: None, inner_id: outer["run_id"]}


async def test_a_run_without_the_setting_has_no_such_tools(home: TempHome) -> None:
    config = home.config("plain", agent("solo", delegate(), {"answer": "alone"}))
    async with home.client() as client:
        outer = await run(client, config)
    (refused,) = results(home, outer["run_id"])
    assert "There is no tool named 'delegate'" in refused


async def test_a_run_as_deep_as_runs_may_be_nested_is_told_so_and_works_alone(home: TempHome) -> None:
    config = home.config("deep", agent("solo", delegate(), WAIT, {"answer": "done"}), nested=NESTED)
    async with home.client() as client:
        outer = await run(client, config)
        (inner_id,) = started_in(home, outer["run_id"])
        inner = await call(client, "get_result", run_id=inner_id)
    refused, *_ = results(home, inner_id)
    assert "this run is at nesting level 1, the maximum here" in refused
    assert "max_depth" in refused
    assert (inner["status"], inner["answer"], started_in(home, inner_id)) == ("completed", "done", [])


async def test_runs_may_be_nested_as_deep_as_the_first_one_allows(home: TempHome) -> None:
    deep = {**NESTED, "max_depth": 2}
    config = home.config("deeper", agent("solo", delegate(), WAIT, {"answer": "done"}), nested=deep)
    async with home.client() as client:
        outer = await run(client, config)
    (second,) = started_in(home, outer["run_id"])
    (third,) = started_in(home, second)
    assert "this run is at nesting level 2, the maximum here" in results(home, third)[0]
    spent = [of_type(home, run_id, "nested_run_ended")[0]["spent"]["calls"] for run_id in (outer["run_id"], second)]
    assert spent == [3 + 3, 3], "a run counts what those below it spent"


async def test_no_more_runs_are_started_than_may_be(home: TempHome) -> None:
    steps = [delegate(config="scripted"), delegate(config="scripted"), {"answer": "done"}]
    config = home.config("few", agent("solo", *steps), nested={**NESTED, "max_runs": 1})
    async with home.client() as client:
        outer = await run(client, config)
    assert "may start no more (max_runs)" in results(home, outer["run_id"])[1]
    assert len(started_in(home, outer["run_id"])) == 1


async def test_when_the_budget_for_nested_runs_is_used_up_the_error_says_so(home: TempHome) -> None:
    write, ask = written(agent("inner", {"answer": "word " * 3_600}))
    ask["arguments"]["max_usd"] = 1_000
    config = home.config(
        "poor",
        agent("solo", write, ask, WAIT, delegate(), {"answer": "done"}),
        nested={**NESTED, "share_of_budget": 0.05},
        budget={"max_tokens": 100_000},
    )
    async with home.client() as client:
        outer = await run(client, config)
    refused = results(home, outer["run_id"])[-1]
    assert "the budget for nested runs is used up: of 5% of the budget (share_of_budget)" in refused
    assert (outer["status"], len(started_in(home, outer["run_id"]))) == ("completed", 1)


async def test_what_runs_that_go_on_may_still_spend_is_not_given_away_twice(home: TempHome) -> None:
    steps = [delegate(config="scripted", max_usd=1_000), delegate(config="scripted"), {"answer": "done"}]
    config = home.config("twice", agent("solo", *steps), nested=NESTED)
    async with home.client() as client:
        outer = await run(client, config)
    (only,) = of_type(home, outer["run_id"], "nested_run_started")
    assert (only["max_usd"], only["max_tokens"]) == (5.0, 5_000_000)
    assert "of 50% of the budget (share_of_budget) $0.00 and 0 tokens are left" in results(home, outer["run_id"])[1]


async def test_what_goes_on_when_a_run_ends_is_cancelled_and_paid_for(home: TempHome) -> None:
    ask = agent("inner", {"call": "list_files", "arguments": {}}, {"hang": True})
    inner = written(ask)
    poll = {"call": "get_status", "arguments": {"wait_seconds": 1}}
    config = home.config("leaving", agent("solo", *inner, poll, {"answer": "without them"}), nested=NESTED)
    async with home.client() as client:
        outer = await run(client, config)
        (inner_id,) = started_in(home, outer["run_id"])
        assert (await call(client, "wait_run", run_id=inner_id))["status"] == "cancelled"
    events = [event["type"] for event in events_of(home.run_directory(outer["run_id"]))]
    assert events[-2:] == ["nested_run_ended", "run_completed"]
    assert outer["usage"]["nested_calls"] == 2, "the one that was cut off included"
    assert happened(home.run_directory(inner_id), "run_cancelled")


async def test_who_cancels_a_run_cancels_those_in_it(home: TempHome) -> None:
    config = home.config("outer", agent("solo", *written(HANGING), WAIT), nested={**NESTED, "max_depth": 2})
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        await wait_until(lambda: started_in(home, run_id))
        (inner_id,) = started_in(home, run_id)
        await wait_until(lambda: happened(home.run_directory(inner_id), "model_call_started"))
        await call(client, "control_run", run_id=run_id, action="cancel")
        assert (await call(client, "wait_run", run_id=run_id))["status"] == "cancelled"
        assert (await call(client, "wait_run", run_id=inner_id))["status"] == "cancelled"
        outer = await call(client, "get_result", run_id=run_id)
    assert outer["nested"][0]["status"] == "cancelled"
    assert outer["usage"]["nested_tokens"] < 100_000, "what it cost is known"
    assert happened(home.run_directory(inner_id), "model_call_aborted")


MOMENTS = {
    "as soon as it is told of": None,
    "while a model of it works": "model_call_started",
    "when it has ended": "run_completed",
}
"""What has happened in the nested run by then."""


@pytest.mark.parametrize("moment", MOMENTS)
async def test_runs_whose_runner_is_killed_both_go_on_and_nothing_is_started_or_paid_for_twice(
    home: TempHome, moment: str
) -> None:
    gate, kind = home.work / "go-on", MOMENTS[moment]
    held = {} if kind == "run_completed" else after(gate)
    inner = written(agent("inner", {"call": "list_files", "arguments": {}, **held}, {"answer": "It is so."}))
    last = {"answer": "They say: so.", **after(gate)}
    config = home.config("outer", agent("solo", *inner, WAIT, READ, last), nested=NESTED)
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        await wait_until(lambda: started_in(home, run_id))
        (inner_id,) = started_in(home, run_id)
        await wait_until(lambda: kind is None or happened(home.run_directory(inner_id), kind))
        for pid in home.processes(RUNNER_MODULE):
            end(pid, signal.SIGKILL)
        gate.touch()
        assert (await call(client, "wait_run", run_id=run_id))["status"] == "completed"
        outer = await call(client, "get_result", run_id=run_id)
        inner_usage = (await call(client, "get_result", run_id=inner_id))["usage"]
        listed = (await call(client, "list_runs"))["runs"]
    assert {row["run_id"]: row["status"] for row in listed} == {run_id: "completed", inner_id: "completed"}
    assert outer["resumed"] == 1
    assert results(home, run_id)[-1].endswith("It is so.")
    for one in (run_id, inner_id):
        replies = Counter(event["call_id"] for event in of_type(home, one, "model_replied"))
        assert set(replies.values()) == {1}
    assert len(of_type(home, run_id, "nested_run_started")) == len(of_type(home, run_id, "nested_run_ended")) == 1
    assert outer["usage"]["nested_calls"] == inner_usage["model_calls"] == 2 + inner_usage.get("cut_off_calls", 0)


@pytest.mark.parametrize("told", [True, False])
async def test_a_call_that_was_lost_before_its_result_finds_the_run_that_it_had_started(
    home: TempHome, told: bool
) -> None:
    """The journal ends with the word of the nested run, or (not `told`) right before that."""
    gate = home.work / "go-on"
    inner = written(agent("inner", {"answer": "It is so.", **after(gate)}))
    config = home.config("outer", agent("solo", *inner, WAIT, READ, {"answer": "They say: so."}), nested=NESTED)
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        await wait_until(lambda: started_in(home, run_id))
        (inner_id,) = started_in(home, run_id)
        await wait_until(lambda: happened(home.run_directory(inner_id), "run_started"))
        for pid in home.processes(RUNNER_MODULE):
            end(pid, signal.SIGSTOP)  # nobody sends for another one meanwhile
    for pid in home.processes(RUNNER_MODULE):
        end(pid, signal.SIGKILL)
    await wait_until(lambda: not home.processes(RUNNER_MODULE))
    gate.touch()
    journal = home.run_directory(run_id) / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    (place,) = [number for number, line in enumerate(lines) if b'"nested_run_started"' in line]
    journal.write_bytes(b"".join(lines[: place + told]))
    async with home.client() as client:
        assert (await call(client, "wait_run", run_id=run_id))["status"] == "completed"
        rows = (await call(client, "list_runs"))["runs"]
    assert {row["run_id"]: row["status"] for row in rows} == {run_id: "completed", inner_id: "completed"}
    assert started_in(home, run_id) == [inner_id]
    assert results(home, run_id)[-1].endswith("It is so.")


async def test_the_agents_read_status_and_log_of_a_run_and_nothing_beside_it(home: TempHome) -> None:
    search: dict[str, Any] = {"path": "runs", "glob": "status.json", "pattern": '"completion_percentage"'}
    log: dict[str, Any] = {"path": "runs", "glob": "massgen.log", "pattern": "wins with"}
    steps: list[dict[str, Any]] = [
        *written(agent("inner", {"answer": "It is so."})),
        WAIT,
        {"call": "search_files", "arguments": search},
        {"call": "search_files", "arguments": log},
        {"call": "write_file", "arguments": {"path": "runs/mine.txt", "content": "x"}},
        {"call": "read_file", "arguments": {"path": "runs/../../config.json"}},
    ]
    config = home.config("reading", agent("solo", *steps, {"answer": "read"}), nested=NESTED)
    async with home.client() as client:
        outer = await run(client, config)
    (inner_id,) = started_in(home, outer["run_id"])
    *_, status, logged, wrote, escaped = results(home, outer["run_id"])
    assert f"runs/{inner_id}/status.json" in status
    assert '"completion_percentage": 100' in status
    assert f"runs/{inner_id}/massgen.log" in logged
    assert "wins with inner's 1st answer" in logged
    assert "is read-only" in wrote
    assert "'..' is refused" in escaped


async def test_a_team_that_reaches_further_than_the_run_is_refused(home: TempHome) -> None:
    home = home.with_variables(OPENAI_API_KEY="sk-not-for-everybody-01", MY_SECRET="not-for-anybody-0002")
    elsewhere = {
        "type": "chatcompletion",
        "model": "m",
        "base_url": "http://127.0.0.1:9/v1",
        "api_key_env": "MY_SECRET",
    }
    steps = [*written({"id": "inner", "backend": elsewhere}), delegate(config="basic_multi"), {"answer": "alone"}]
    config = home.config("bounded", agent("solo", *steps), nested=NESTED)
    async with home.client() as client:
        outer = await run(client, config)
    _, one, other = results(home, outer["run_id"])
    assert "host: http://127.0.0.1:9; key: MY_SECRET" in one
    assert "host: api.openai.com" in other
    assert started_in(home, outer["run_id"]) == []


def suggesting(home: TempHome, **scripts: list[dict[str, Any]]) -> str:
    """The packaged team that studies MassGen, with scripts in place of its models."""
    team = yaml.safe_load((ROOT / "configs" / "meta" / "massgen_suggests_to_improve_massgen.yaml").read_text())
    agents = [{**one, "backend": {"type": "scripted", "script": scripts[one["id"]]}} for one in team.pop("agents")]
    return home.config("suggesting", *agents, **team)


SUGGESTIONS = """\
1. Show what each agent costs while it works. status.json of the run has telemetry by agent only when a reply is in.
   telemetry["by_agent"][name] = spent_json(spent)
2. Stop the wait for stragglers sooner: massgen.log has 0.3 s between the last answer and the first vote.
   first_answer_wait_seconds: 60"""


async def test_agents_that_study_massgen_run_it_watch_it_read_its_logs_and_suggest_improvements(home: TempHome) -> None:
    (home.work / "code.py").write_text("print('the code')\n")
    experiment = agent("one", {"answer": "A page.", "delay_seconds": 1}), agent("two", {"answer": "Another page."})
    page = "Create a simple HTML page about Bob Dylan"
    write, ask = written(*experiment)
    ask["arguments"]["question"] = page
    search: dict[str, Any] = {"path": "runs", "glob": "status.json"}
    watch: dict[str, Any] = {"call": "search_files", "arguments": {**search, "pattern": "completion_percentage"}}
    logs: dict[str, Any] = {
        "call": "search_files",
        "arguments": {"path": "runs", "glob": "*.log", "pattern": "wins with"},
    }
    code: dict[str, Any] = {"call": "search_files", "arguments": {"path": "context", "pattern": "print"}}
    poll: dict[str, Any] = {"call": "get_status", "arguments": {}}
    config = suggesting(
        home,
        agent_a=[code, write, ask, poll, watch, WAIT, watch, logs, READ, {"answer": SUGGESTIONS}],
        agent_b=[{"answer": "I saw no run."}, {"vote": "1. Show"}],
    )
    done = run_command(home, COMMAND_MODULE, "--automation", "--config", config, "Study MassGen, and improve it.")
    assert done.returncode == 0, done.stderr
    directory = Path(done.stdout.split("LOG_DIR: ")[1].splitlines()[0])
    told = [event["result"] for event in events_of(directory) if event["type"] == "tool_finished"]
    read, _, started, polled, _, waited, watched, logged, answer = told
    ((inner_id, inner),) = json.loads((directory / "status.json").read_text())["nested_runs"].items()
    assert ("code.py" in read, inner_id in started, inner["state"]) == (True, True, "completed")
    assert polled.startswith(f"{inner_id}: ")
    assert f"{inner_id}: completed" in waited
    assert f"runs/{inner_id}/status.json" in watched
    assert '"completion_percentage": 100' in watched
    assert f"runs/{inner_id}/massgen.log" in logged
    assert "page" in answer
    assert events_of(home.run_directory(inner_id))[0]["question"] == page
    assert (directory / "final" / "agent_a" / "answer.txt").read_text() == SUGGESTIONS


async def test_a_run_of_the_command_line_delegates_too(home: TempHome) -> None:
    steps = [*written(agent("inner", {"answer": "It is so."})), WAIT, READ, {"answer": "They say: so."}]
    config = home.config("outer", agent("solo", *steps), nested=NESTED)
    done = run_command(home, COMMAND_MODULE, "--automation", "--config", config, "q")
    assert done.returncode == 0, done.stderr
    log_dir = Path(done.stdout.split("LOG_DIR: ")[1].splitlines()[0])
    status = json.loads((log_dir / "status.json").read_text())
    ((inner_id, told),) = status["nested_runs"].items()
    assert (told["state"], told["started_by"]) == ("completed", "agent_a")
    assert status["telemetry"]["nested"]["calls"] == 1
    inner = json.loads((home.run_directory(inner_id) / "status.json").read_text())
    assert inner["meta"]["parent_run_id"]


async def test_what_runs_cost_that_are_cancelled_with_an_interrupted_one_is_a_part_of_its_cost(home: TempHome) -> None:
    ask = agent("inner", {"call": "list_files", "arguments": {}}, {"hang": True})
    config = home.config("outer", agent("solo", *written(ask), WAIT), nested=NESTED)

    def inner() -> str | None:
        two = [run for run in home.runs if len(of_type(home, run.name, "model_call_started")) == 2]
        return two[0].name if two else None

    command = [home.python, "-m", COMMAND_MODULE, "--automation", "--config", config, "q"]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    async with spawned(home, *command, cwd=home.work, **pipes) as outer:
        inner_id = await wait_until(inner)
        outer.kill()
        await outer.wait()
    async with home.client() as client:
        listed = {row["run_id"]: row["status"] for row in (await call(client, "list_runs"))["runs"]}
        (outer_id,) = listed.keys() - {inner_id}
        assert listed[outer_id] == "interrupted"
        await call(client, "control_run", run_id=outer_id, action="cancel")
        assert (await call(client, "wait_run", run_id=inner_id))["status"] == "cancelled"
        alone = (await call(client, "get_result", run_id=inner_id))["usage"]
        result = await call(client, "get_result", run_id=outer_id)
    assert result["status"] == "cancelled"
    assert [(one["run_id"], one["status"]) for one in result["nested"]] == [(inner_id, "cancelled")]
    assert result["usage"]["nested_calls"] == alone["model_calls"] == 2
    assert result["usage"]["input_tokens"] > alone["input_tokens"]


# -- over MCP ---------------------------------------------------------------------------------------------------------


async def outer_run(client: Client, home: TempHome, **nested: Any) -> str:
    """A run that goes on until it is told to end."""
    config = home.config("hosting", agent("solo", {"hang": True}), nested={**NESTED, **nested})
    run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
    await wait_until(lambda: happened(home.run_directory(run_id), "model_call_started"))
    return run_id


async def test_a_server_inside_a_run_starts_runs_of_that_run(home: TempHome) -> None:
    home = home.with_variables(MASSGEN_MCP_MAX_RUNNING="1")
    inner_team = home.config("inner", agent("inner", {"answer": "It is so."}))
    async with home.client() as client:
        outer_id = await outer_run(client, home)
        inside = home.with_variables(MASSGEN_MCP_PARENT=outer_id)
        async with inside.client() as server:
            key = {"idempotency_key": "once"}
            started = await call(server, "start_run", question="q", config=inner_team, wait_seconds=40, **key)
            assert (started["status"], started["answer"]) == ("completed", "It is so.")
            again = await call(server, "start_run", question="q", config=inner_team, **key)
            assert (again["run_id"], again["reused"]) == (started["run_id"], True)
        await wait_until(lambda: happened(home.run_directory(outer_id), "nested_run_ended"))
        await call(client, "control_run", run_id=outer_id, action="cancel")
        await call(client, "wait_run", run_id=outer_id)
        outer = await call(client, "get_result", run_id=outer_id)
    assert [one["run_id"] for one in outer["nested"]] == [started["run_id"]]
    assert outer["usage"]["nested_calls"] == 1
    (event,) = of_type(home, outer_id, "nested_run_started")
    assert event["max_usd"] == pytest.approx(5 / 3)


async def test_a_server_inside_a_run_knows_its_depth_and_its_budget(home: TempHome) -> None:
    team = home.config("inner", agent("inner", {"hang": True}))
    async with home.client() as client:
        outer_id = await outer_run(client, home, max_runs=1)
        async with home.with_variables(MASSGEN_MCP_PARENT=outer_id).client() as server:
            inner_id = (await call(server, "start_run", question="q", config=team))["run_id"]
            await wait_until(lambda: happened(home.run_directory(inner_id), "model_call_started"))
            code, message = await expect_error(server, "start_run", question="q", config=team)
            assert (code, "max_runs" in message) == ("nesting_refused", True)
            code, message = await expect_error(
                server, "control_run", run_id=inner_id, action="raise_budget", value=1_000
            )
            assert (code, outer_id in message) == ("invalid_action", True)
        async with home.with_variables(MASSGEN_MCP_PARENT=inner_id).client() as server:
            code, message = await expect_error(server, "start_run", question="q", config=team)
            assert (code, "the config of run" in message) == ("nesting_refused", True)
        await call(client, "control_run", run_id=outer_id, action="cancel")
        assert (await call(client, "wait_run", run_id=inner_id))["status"] == "cancelled"
        async with home.with_variables(MASSGEN_MCP_PARENT=outer_id).client() as server:
            code, message = await expect_error(server, "start_run", question="q", config=team)
            assert (code, "is cancelled" in message) == ("nesting_refused", True)
        async with home.with_variables(MASSGEN_MCP_PARENT="run-of-nobody").client() as server:
            assert (await expect_error(server, "start_run", question="q", config=team))[0] == "nesting_refused"


async def test_of_runs_that_are_started_inside_a_run_at_once_it_admits_what_it_may_and_refuses_the_rest(
    home: TempHome,
) -> None:
    team = home.config("inner", agent("inner", {"answer": "It is so."}))
    async with home.client() as client:
        outer_id = await outer_run(client, home, max_runs=1)
        (runner,) = home.processes(RUNNER_MODULE)
        end(runner, signal.SIGSTOP)
        async with home.with_variables(MASSGEN_MCP_PARENT=outer_id).client() as server:
            ids = [(await call(server, "start_run", question=f"q{n}", config=team))["run_id"] for n in range(2)]
            end(runner, signal.SIGCONT)
            ended = [await call(server, "wait_run", run_id=run_id) for run_id in ids]
        assert [one["status"] for one in ended] == ["completed", "failed"]
        assert "may start no more (max_runs)" in ended[1]["reason"]
        assert started_in(home, outer_id) == ids[:1]
        await call(client, "control_run", run_id=outer_id, action="cancel")


async def test_the_command_line_inside_a_run_starts_runs_of_that_run(home: TempHome) -> None:
    team = home.config("inner", agent("inner", {"answer": "It is so."}))

    async def massgen(inside: TempHome, *options: str) -> subprocess.CompletedProcess[str]:
        arguments = ("--automation", *options, "--config", team, "q")
        return await anyio.to_thread.run_sync(lambda: run_command(inside, COMMAND_MODULE, *arguments))

    async with home.client() as client:
        outer_id = await outer_run(client, home, max_runs=1)
        inside = home.with_variables(MASSGEN_MCP_PARENT=outer_id)
        done = await massgen(inside)
        assert (done.returncode, "It is so." in done.stdout) == (0, True)
        await wait_until(lambda: happened(home.run_directory(outer_id), "nested_run_ended"))
        ((inner_id, told),) = json.loads((home.run_directory(outer_id) / "status.json").read_text())[
            "nested_runs"
        ].items()
        assert told["started_by"] is None
        rows = {row["run_id"]: row.get("parent") for row in (await call(client, "list_runs"))["runs"]}
        assert rows[inner_id] == outer_id
        refused = await massgen(inside)
        assert "nested runs, the maximum (max_runs)" in refused.stderr
        assert "must be in the list of runs" in (await massgen(inside, "--no-logs")).stderr
        await call(client, "control_run", run_id=outer_id, action="cancel")
    assert refused.returncode != 0
    assert len(started_in(home, outer_id)) == 1
