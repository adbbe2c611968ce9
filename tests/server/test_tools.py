"""Every tool, as a client of the official SDK meets it on a real server process."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any, cast

import anyio
import jsonschema
import pytest
from mcp import Client

from massgen_mcp.config.providers.catalog import NEWEST
from tests.clients.search_phrases import PHRASES
from tests.harness import (
    MODES,
    RUNNER_MODULE,
    Mode,
    TempHome,
    after,
    agent,
    call,
    connections,
    events_of,
    expect_error,
    happened,
    text_of,
    wait_until,
)
from tests.schemas import checker
from tests.server.reply_check import check_reply

TOOLS = [
    "start_run",
    "wait_run",
    "get_status",
    "get_result",
    "control_run",
    "apply_result",
    "list_runs",
    "list_configs",
]
QUESTION = "Should we rewrite it or refactor it?"
HANG = {"hang": True}


# -- what is published ------------------------------------------------------------------------------------------------


async def published(client: Client) -> list[dict[str, Any]]:
    return (await client.list_tools()).model_dump(mode="json", by_alias=True, exclude_none=True)["tools"]


@pytest.mark.parametrize("mode", MODES)
async def test_every_tool_is_offered_with_strict_schemas_in_every_era(home: TempHome, mode: Mode) -> None:
    async with home.client(mode) as client:
        tools = await published(client)
    assert [tool["name"] for tool in tools] == TOOLS, "name every tool in TOOLS, and run `make docs ONLY=first-answers`"
    for tool in tools:
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert "null" not in json.dumps(schema), "what is not given is left out"
        assert tool["inputSchema"]["additionalProperties"] is False
        assert tool["title"]
        assert tool["description"]


async def test_annotations_tell_what_a_tool_may_do(home: TempHome) -> None:
    async with home.client() as client:
        hints = {tool["name"]: tool["annotations"] for tool in await published(client)}
    looking = set(TOOLS) - {"start_run", "control_run", "apply_result"}
    assert {name for name, hint in hints.items() if hint["readOnlyHint"]} == looking
    assert {name for name, hint in hints.items() if hint["openWorldHint"]} == {"start_run"}
    assert hints["start_run"]["destructiveHint"] is False
    assert hints["start_run"]["idempotentHint"] is False
    assert hints["control_run"]["destructiveHint"] is False, "headless clients refuse what destroys, such as to cancel"
    assert hints["apply_result"]["destructiveHint"] is True
    assert hints["control_run"]["idempotentHint"] is True


@pytest.mark.parametrize("mode", MODES)
async def test_who_asks_for_other_models_finds_start_run_by_their_words(home: TempHome, mode: Mode) -> None:
    """As Claude Code searches: whole words, in what a tool says of itself and in the hint that it gives to the search
    (`make clients` asks the real search). It is loaded without a search where the client allows that.
    """
    async with home.client(mode) as client:
        tools = {tool["name"]: tool for tool in await published(client)}
    start = tools.pop("start_run")
    assert start["_meta"]["anthropic/alwaysLoad"] is True
    hints = {name: tool["_meta"] for name, tool in tools.items() if "_meta" in tool}
    assert not any("anthropic/alwaysLoad" in hint for hint in hints.values()), "others are loaded when they are needed"
    assert "what did the team say" in hints["get_result"]["anthropic/searchHint"]
    assert "cancel it" in hints["control_run"]["anthropic/searchHint"]
    assert {"Costs money", "to their providers"} <= {
        part for part in ("Costs money", "to their providers") if part in start["description"][:200]
    }
    hint = start["_meta"]["anthropic/searchHint"].lower()
    for phrase in PHRASES:
        assert all(re.search(rf"\b{word}\b", hint) for word in phrase.lower().split()), phrase
        said = f"{start['title']} {start['description']}".lower()
        assert any(re.search(rf"\b{word}\b", said) for word in phrase.lower().split()), phrase


async def test_descriptions_carry_no_indentation_of_the_source(home: TempHome) -> None:
    async with home.client() as client:
        tools = await published(client)
    assert [tool["name"] for tool in tools if re.search(r"\s{2,}", tool["description"])] == []


# -- a run from question to result ------------------------------------------------------------------------------------


class Checked:
    """Calls tools, and holds every result against the schema that the server published."""

    def __init__(self, client: Client, tools: list[dict[str, Any]]) -> None:
        self._client = client
        self._schemas = {tool["name"]: checker(tool["outputSchema"]) for tool in tools}

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        reply = await self._client.call_tool(tool, arguments)
        assert not reply.is_error, text_of(reply)
        result = cast("dict[str, Any]", reply.structured_content)
        self._schemas[tool](result)
        check_reply(reply)
        return result


@pytest.mark.parametrize("mode", MODES)
async def test_a_question_becomes_an_answer_with_votes_and_dissent(home: TempHome, mode: Mode) -> None:
    async with home.client(mode) as client:
        checked = Checked(client, await published(client))
        started = await checked.call("start_run", question=QUESTION, config="scripted")
        run_id = started["run_id"]
        assert started["status"] in ("queued", "running")
        assert started["team"] == dict.fromkeys(["ada", "bo", "cleo"], "scripted/scripted")
        assert started["source"] == "scripted"
        assert "before your turn ends, call wait_run" in started["next_step"]

        waited = await checked.call("wait_run", run_id=run_id, timeout_seconds=30)
        assert (waited["status"], waited["changed"]) == ("completed", True)
        status = await checked.call("get_status", run_id=run_id)
        assert status["agents"] == [
            "ada (scripted): voted for bo's 2nd answer",
            "bo (scripted): voted for bo's 2nd answer",
            "cleo (scripted): voted for cleo's 1st answer",
        ]
        summary = await checked.call("get_result", run_id=run_id)
        assert summary["answer"].startswith("Neither: replace it piece by piece.")
        assert {**summary, "changed": True, "cursor": waited["cursor"]} == waited, "the wait has given it already"
        assert (summary["winner"], summary["outcome"]) == ("bo", "majority")
        assert summary["vote_counts"]["agent2.2"] == 2
        assert {vote["voter"]: vote["voted_for"] for vote in summary["votes"]} == {
            "ada": "bo",
            "bo": "bo",
            "cleo": "cleo",
        }
        assert all(vote["reason"] for vote in summary["votes"])
        assert [(one["agent"], one["label"], one["votes"]) for one in summary["dissent"]] == [("cleo", "agent3.1", 1)]
        assert summary["degraded"] == []
        assert summary["usage"]["model_calls"] > 6
        final = Path(summary["paths"]["final_answer"])
        assert final.read_text() == summary["answer"]
        assert final.is_relative_to(summary["paths"]["run_directory"])

        full = await checked.call("get_result", run_id=run_id, view="full")
        assert full["answer"].startswith(summary["answer"])
        for name in ("ada's 1st", "bo's 1st", "bo's 2nd", "cleo's 1st"):
            assert f"## {name} answer" in full["answer"]
        assert "Mend it. The service earns money" in full["answer"]
        votes = await checked.call("get_result", run_id=run_id, view="votes")
        assert ("answer" in votes, votes["votes"]) == (False, summary["votes"])
        one = await checked.call("get_result", run_id=run_id, view="agent", agent="cleo")
        assert one["answer"].startswith("Mend it.")
        assert one == await checked.call("get_result", run_id=run_id, view="agent", agent="agent_c")
        assert (Path(one["paths"]["agent_answer"]) / "answer.txt").read_text() == one["answer"]

        (row,) = (await checked.call("list_runs"))["runs"]
        assert (row["run_id"], row["status"], row["winner"]) == (run_id, "completed", "bo")
        assert row["question"] == QUESTION
        ended = await checked.call("control_run", run_id=run_id, action="cancel")
        assert ended["status"] == "completed", "asking an ended run changes nothing"


async def test_answers_that_say_the_same_win_together_and_the_result_shows_it(home: TempHome) -> None:
    """By label two answers of two votes each would be tied; the third author's vote is for the same thing as one."""
    same = {"same_as": ["It is 42"]}
    team = home.config(
        "team",
        agent("a", {"answer": "It is 42."}, {"vote": "own", "same_as": ["Forty-two"]}),
        agent("b", {"answer": "Forty-two."}, {"vote": "own", **same}),
        agent("c", {"answer": "41, I think."}, {"vote": "Forty-two", **same}),
        agent("d", {"answer": "It is 43."}, {"vote": "own", "same_as": []}),
        agent("e", {"answer": "Nobody knows."}, {"vote": "43"}),
    )
    async with home.client() as client:
        run_id = (await call(client, "start_run", question=QUESTION, config=team))["run_id"]
        assert (await call(client, "wait_run", run_id=run_id, timeout_seconds=30))["status"] == "completed"
        result = await call(client, "get_result", run_id=run_id)
    assert (result["winner"], result["outcome"], result["usage"]["model_calls"]) == ("b", "majority", 11)
    assert result["vote_counts"] == {"agent1.1": 1, "agent2.1": 2, "agent3.1": 0, "agent4.1": 2, "agent5.1": 0}
    assert "same content: a's 1st answer = b's 1st answer (3 votes combined)" in result["note"]
    assert [dissent["label"] for dissent in result["dissent"]] == ["agent4.1"]
    record = json.loads((home.run_directory(run_id) / "coordination_events.json").read_text())
    assert record["camps"][0] == {"answers": ["agent1.1", "agent2.1"], "votes": 3}
    said = {e["agent_id"]: e["context"]["same_as"] for e in record["events"] if e["event_type"] == "vote_cast"}
    assert [said[f"agent_{letter}"] for letter in "abcde"] == [["agent2.1"], ["agent1.1"], ["agent1.1"], [], None]
    table = (home.run_directory(run_id) / "coordination_table.txt").read_text()
    assert "agent1.1 = agent2.1 (3 votes combined)" in " ".join(table.split())


async def test_a_tie_is_voted_on_once_more_then_stays_one_and_the_result_tells_both(home: TempHome) -> None:
    votes = {"vote": "own"}
    team = home.config("team", agent("a", {"answer": "A"}, votes, votes), agent("b", {"answer": "B"}, votes, votes))
    async with home.client() as client:
        run_id = (await call(client, "start_run", question=QUESTION, config=team))["run_id"]
        assert (await call(client, "wait_run", run_id=run_id, timeout_seconds=30))["status"] == "completed"
        result = await call(client, "get_result", run_id=run_id)
    labels = ["agent1.1", "agent2.1"]
    drawn = min(labels, key=lambda label: hashlib.sha256(f"{run_id}/{label}".encode()).hexdigest())
    assert (result["outcome"], result["winner"]) == ("tie_broken", {"agent1.1": "a"}.get(drawn, "b"))
    assert [vote["voter"] for vote in result["votes"]] in (["a", "b"], ["b", "a"])
    assert "a's 1st answer: 1, b's 1st answer: 1; tied: a's 1st answer, b's 1st answer" in result["note"]
    table = (home.run_directory(run_id) / "coordination_table.txt").read_text()
    assert "run-off: agent1.1: 1, agent2.1: 1; tied: agent1.1, agent2.1" in " ".join(table.split())


@pytest.mark.parametrize("mode", MODES)
async def test_ready_made_teams_are_listed_with_the_keys_they_lack(home: TempHome, mode: Mode) -> None:
    async with home.with_variables(OPENAI_API_KEY="sk-here").client(mode) as client:
        checked = Checked(client, await published(client))
        whole = await checked.call("list_configs")
        listed = whole["configs"]
        assert listed["scripted"]["use"] == "Three scripted agents that disagree"
        assert not any("missing" in config for config in listed.values())
        assert "two_providers" in whole["unusable"]
        lacking = await checked.call("list_configs", name="two_providers")
        assert lacking["configs"]["two_providers"]["missing"] == ["ANTHROPIC_API_KEY"]
        assert re.fullmatch(r"0\.\d+-0\.\d+", listed["basic/single/one_agent"]["usd"])
        assert listed["basic/single/one_agent"]["models"]
        assert "providers/hosted" in whole["copy_from"]
        shown = await checked.call("list_configs", name="scripted")
        assert [*shown["configs"]] == ["scripted"]
        assert shown["team"] == dict.fromkeys(["ada", "bo", "cleo"], "scripted/scripted")
        assert "agents:" in shown["yaml"]
        assert await checked.call("list_configs", name="@examples/scripted") == shown
        assert "sk-here" not in json.dumps([listed, shown])
        code, message = await expect_error(client, "list_configs", name="scriptd")
    assert code == "config_not_found"
    assert "scripted" in message


async def test_waiting_in_start_run_returns_the_answer_at_once(home: TempHome) -> None:
    async with home.client() as client:
        started = await call(client, "start_run", question="q", models=["scripted/one"], wait_seconds=30)
    assert started["status"] == "completed"
    assert started["answer"]
    assert started.keys().isdisjoint({"estimate", "reach", "reused"}), "after the end nobody needs them"


async def test_models_make_a_team_and_num_agents_multiplies_one(home: TempHome) -> None:
    async with home.client() as client:
        two = await call(client, "start_run", question="q", models=["scripted/x", "scripted/y"], wait_seconds=30)
        three = await call(client, "start_run", question="q", models=["scripted/x"], num_agents=3, wait_seconds=30)
    assert [*two["team"].values()] == ["scripted/x", "scripted/y"]
    assert two["status"] == three["status"] == "completed"
    assert len(three["team"]) == 3


async def test_runs_are_listed_newest_first_page_by_page(home: TempHome) -> None:
    async with home.client() as client:
        runs = [
            (await call(client, "start_run", question=f"q{n}", models=["scripted/x"], wait_seconds=30))["run_id"]
            for n in range(5)
        ]
        seen: list[str] = []
        cursor: dict[str, Any] = {}
        for rows in (2, 2, 1):
            page = await call(client, "list_runs", limit=2, **cursor)
            assert len(page["runs"]) == rows
            seen += [row["run_id"] for row in page["runs"]]
            assert ("next_cursor" not in page) == (len(seen) == 5)
            cursor = {"cursor": page.get("next_cursor")}
        assert seen == runs[::-1]
        assert (await call(client, "list_runs", state="failed"))["runs"] == []
        assert len((await call(client, "list_runs", state="completed"))["runs"]) == 5


async def test_context_paths_are_refused_for_a_team_without_files(home: TempHome) -> None:
    config = home.config("blind", agent("solo"), orchestrator={"enable_filesystem": False})
    async with home.client() as client:
        code, message = await expect_error(
            client, "start_run", question="q", config=config, context_paths=[str(home.work)]
        )
    assert code == "invalid_arguments"
    assert "context_paths need file tools, but the config sets enable_filesystem: false" in message


async def test_the_team_may_read_what_context_paths_name(home: TempHome) -> None:
    notes = home.work / "notes"
    notes.mkdir()
    (notes / "facts.txt").write_text("the moon is round")
    search = {"call": "search_files", "arguments": {"pattern": "the moon", "path": "context/notes"}}
    config = home.config("reader", agent("solo", search, {"answer": "seen"}))
    async with home.client() as client:
        started = await call(
            client, "start_run", question="q", config=config, context_paths=[str(notes)], wait_seconds=30
        )
    assert started["status"] == "completed"
    tools = [event for event in events_of(home.run_directory(started["run_id"])) if event["type"] == "tool_finished"]
    assert [("the moon is round" in event["result"], event["is_error"]) for event in tools] == [(True, False)]


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
async def test_an_unknown_tool_is_refused_with_the_nearest_name(home: TempHome, mode: Mode) -> None:
    async with home.client(mode) as client:
        code, message = await expect_error(client, "get_statu", run_id="x")
    assert code == "invalid_arguments"
    assert "'get_status'" in message


REFUSED: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "unknown argument": ("start_run", {"question": "q", "teem": "scripted"}, "invalid_arguments", "'team'"),
    "unknown argument of a reader": ("get_status", {"run": "x"}, "invalid_arguments", "'run_id'"),
    "missing argument": ("get_status", {}, "invalid_arguments", "run_id"),
    "wrong type": ("start_run", {"question": ["q"], "config": "scripted"}, "invalid_arguments", "question"),
    "permission of a context path": (
        "start_run",
        {"question": "q", "context_paths": [{"path": "/", "permission": "rw"}]},
        "invalid_arguments",
        "context_paths.0.permission: Input should be 'read' or 'write'",
    ),
    "no context path": (
        "start_run",
        {"question": "q", "context_paths": [5]},
        "invalid_arguments",
        "context_paths.0.path: Input should be a valid string",
    ),
    "unknown choice": ("control_run", {"run_id": "x", "action": "explode"}, "invalid_arguments", "action"),
    "number out of range": ("wait_run", {"run_id": "x", "timeout_seconds": 51}, "invalid_arguments", "timeout_seconds"),
    "no question": ("start_run", {"question": "", "config": "scripted"}, "invalid_arguments", "question"),
    "blank question": ("start_run", {"question": " \n\t", "config": "scripted"}, "invalid_arguments", "empty"),
    "config and models": (
        "start_run",
        {"question": "q", "config": "scripted", "models": ["scripted/x"]},
        "invalid_arguments",
        "not both",
    ),
    "num_agents of a config": (
        "start_run",
        {"question": "q", "config": "scripted", "num_agents": 2},
        "invalid_arguments",
        "num_agents",
    ),
    "unknown backend of a model": (
        "start_run",
        {"question": "q", "models": ["opnai/gpt-5"]},
        "config_invalid",
        "'openai'",
    ),
    "model without a clear provider": (
        "start_run",
        {"question": "q", "models": ["who-knows"]},
        "config_invalid",
        "provider/model",
    ),
    "unknown example": ("start_run", {"question": "q", "config": "scriptd"}, "config_not_found", "scripted"),
    "missing file": (
        "start_run",
        {"question": "q", "config": "/nowhere/team.yaml"},
        "config_not_found",
        "/nowhere/team.yaml",
    ),
    "relative context path": (
        "start_run",
        {"question": "q", "config": "scripted", "context_paths": ["src"]},
        "invalid_arguments",
        "absolute",
    ),
    "missing context path": (
        "start_run",
        {"question": "q", "config": "scripted", "context_paths": ["/nowhere/at/all"]},
        "invalid_arguments",
        "/nowhere/at/all",
    ),
    "context path with a null byte": (
        "start_run",
        {"question": "q", "config": "scripted", "context_paths": ["/tmp/\0x"]},  # noqa: S108 - never opened
        "invalid_arguments",
        "context path",
    ),
    "missing key": ("start_run", {"question": "q", "config": "two_providers"}, "missing_key", "ANTHROPIC_API_KEY"),
}


@pytest.mark.parametrize(("tool", "arguments", "code", "hint"), REFUSED.values(), ids=REFUSED)
async def test_a_bad_request_is_refused_with_a_code_and_the_way_out(
    home: TempHome, tool: str, arguments: dict[str, Any], code: str, hint: str
) -> None:
    async with home.client() as client:
        got, message = await expect_error(client, tool, **arguments)
        assert (await call(client, "list_runs"))["runs"] == [], "a refused request starts nothing"
    assert got == code, message
    assert hint in message
    assert home.runs == []
    assert home.processes(RUNNER_MODULE) == []


@pytest.mark.parametrize("tool", ["get_status", "wait_run", "get_result", "control_run"])
async def test_a_run_that_never_was_is_unknown_whatever_its_id_looks_like(home: TempHome, tool: str) -> None:
    ids = ["run-aaaaaaaaaaaaaaaaaaaaaaaaaa", "../x", "a/b", "/etc/passwd", "..", "", "a\0b", "run-\u202e", "r" * 10_000]
    more = {"action": "cancel"} if tool == "control_run" else {}
    async with home.client() as client:
        codes = {run_id[:40]: (await expect_error(client, tool, run_id=run_id, **more))[0] for run_id in ids}
    assert codes == {run_id[:40]: "unknown_run" for run_id in ids}


async def test_a_question_of_ten_megabytes_is_refused_and_the_server_goes_on(home: TempHome) -> None:
    async with home.client() as client:
        code, message = await expect_error(client, "start_run", question="x" * 10_000_000, config="scripted")
        assert code == "invalid_arguments"
        assert "10000000" in message
        assert "context_paths" in message
        assert len(message) < 1_000
        assert (await call(client, "list_runs"))["runs"] == []
    assert home.runs == []


async def test_a_bad_config_is_refused_with_file_line_and_nearest_name(home: TempHome) -> None:
    bad = home.work / "bad.yaml"
    bad.write_text("agents:\n  - id: ada\n    backend:\n      type: opnai\n      model: gpt-5\n  - idd: bo\n")
    torn = home.work / "torn.yaml"
    torn.write_text("agents: [unclosed\n")
    async with home.client() as client:
        code, message = await expect_error(client, "start_run", question="q", config=str(bad))
        assert code == "config_invalid"
        assert f"{bad}:4: " in message
        assert "openai" in message
        assert f"{bad}:6: " in message
        code, message = await expect_error(client, "start_run", question="q", config=str(torn))
        assert code == "config_invalid"
        assert str(torn) in message
    assert home.runs == []


async def test_without_config_models_and_keys_the_ways_out_are_named(home: TempHome) -> None:
    async with home.client() as client:
        code, message = await expect_error(client, "start_run", question="q")
    assert code == "no_default_team"
    assert all(way in message for way in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "scripted"))
    assert "under `env` in this server's entry" in message
    assert "restart the client" in message


async def test_an_answer_that_is_given_whole_is_not_asked_for_again_and_scripted_ones_are_marked(
    home: TempHome,
) -> None:
    async with home.client() as client:
        started = await call(client, "start_run", question="q", config="scripted", wait_seconds=30)
        assert started["answer"]
        result = await call(client, "get_result", run_id=started["run_id"])
        status = await call(client, "get_status", run_id=started["run_id"])
    assert started["note"].startswith("Not a real answer")
    assert (started["truncated"], result["truncated"]) == (False, False)
    for told in (started["next_step"], result["next_step"]):
        assert "for the answer" not in told
        assert "for the rest" not in told
    assert result["note"].startswith("Not a real answer")
    assert status["note"].startswith("Not a real answer")


# -- starting ---------------------------------------------------------------------------------------------------------


async def test_a_dry_run_shows_the_team_and_starts_nothing(home: TempHome) -> None:
    async with home.client() as client:
        planned = await call(client, "start_run", question="q", config="two_providers", dry_run=True)
        assert (planned["status"], "run_id" in planned) == ("planned", False)
        assert planned["missing_keys"] == ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"]
        assert "OPENAI_API_KEY" in planned["next_step"]
        assert len(planned["team"]) == 2
        assert (await call(client, "list_runs"))["runs"] == []
    assert home.runs == []
    assert home.processes(RUNNER_MODULE) == []


async def test_the_default_team_is_made_of_the_keys_that_are_there(home: TempHome) -> None:
    async with home.with_variables(ANTHROPIC_API_KEY="sk-a", OPENAI_API_KEY="sk-b").client() as client:
        planned = await call(client, "start_run", question="q", dry_run=True)
    assert [model.split("/")[0] for model in planned["team"].values()] == ["openai", "claude", "openai"]
    assert "default team" in planned["source"]


async def test_the_same_key_and_request_give_the_same_run_and_another_request_is_a_conflict(home: TempHome) -> None:
    request = {"config": "scripted", "idempotency_key": "key-1"}
    async with home.client() as client:
        first = await call(client, "start_run", question="one", **request)
        again = await call(client, "start_run", question="one", **request)
        assert (first["reused"], again["reused"]) == (False, True)
        assert again["run_id"] == first["run_id"]
        code, message = await expect_error(client, "start_run", question="two", **request)
        assert code == "idempotency_conflict"
        assert first["run_id"] in message
    assert [run.name for run in home.runs] == [first["run_id"]]


async def test_fifty_starts_with_one_key_at_two_servers_give_one_run(home: TempHome) -> None:
    replies: list[dict[str, Any]] = []

    async def start(client: Client) -> None:
        arguments = {"models": ["scripted/x"], "idempotency_key": "the-one"}
        replies.append(await call(client, "start_run", question="q", **arguments))

    async with home.client() as one, home.client() as other, anyio.create_task_group() as tasks:
        for _ in range(25):
            tasks.start_soon(start, one)
            tasks.start_soon(start, other)
    assert len({reply["run_id"] for reply in replies}) == 1
    assert sum(not reply["reused"] for reply in replies) == 1
    assert len(home.runs) == 1


# -- while it goes on -------------------------------------------------------------------------------------------------


def half_answered(home: TempHome) -> str:
    """A config of one agent that answers and one that never does."""
    return home.config("half", agent("quick", {"answer": "the quick answer"}), agent("stuck", HANG, HANG))


async def started(home: TempHome, client: Client, config: str, **arguments: Any) -> str:
    """Id of a run in which the first answer is there."""
    run_id = str((await call(client, "start_run", question="q", config=config, **arguments))["run_id"])
    await wait_until(lambda: happened(home.run_directory(run_id), "answer_submitted"))
    return run_id


async def test_a_result_before_the_end_is_not_finished_but_answers_can_be_read(home: TempHome) -> None:
    async with home.client() as client:
        run_id = await started(home, client, half_answered(home))
        for view in ("summary", "full"):
            code, message = await expect_error(client, "get_result", run_id=run_id, view=view)
            assert code == "not_finished"
            assert "wait_run" in message
        one = await call(client, "get_result", run_id=run_id, view="agent", agent="quick")
        assert (one["answer"], one["status"]) == ("the quick answer", "running")
        code, message = await expect_error(client, "get_result", run_id=run_id, view="agent", agent="agent_b")
        assert (code, message) == ("not_finished", "stuck has not answered yet")
        code, message = await expect_error(client, "get_result", run_id=run_id, view="agent", agent="agent_z")
        assert code == "invalid_arguments"
        assert message.endswith("quick, stuck")


async def test_cancel_ends_a_run_and_keeps_the_best_answer(home: TempHome) -> None:
    async with home.client() as client:
        run_id = await started(home, client, half_answered(home))
        await call(client, "control_run", run_id=run_id, action="cancel")
        waited = await call(client, "wait_run", run_id=run_id, timeout_seconds=50)
        assert waited["status"] == "cancelled"
        again = await call(client, "control_run", run_id=run_id, action="cancel")
        assert again["status"] == "cancelled"
        result = await call(client, "get_result", run_id=run_id)
    assert (result["status"], result["answer"], result["outcome"]) == ("cancelled", "the quick answer", "best_so_far")
    assert waited["answer"] == "the quick answer"
    assert "get_result returns" not in waited["next_step"]


async def test_finish_now_decides_with_the_answers_there_are(home: TempHome) -> None:
    async with home.client() as client:
        run_id = await started(home, client, half_answered(home))
        await call(client, "control_run", run_id=run_id, action="finish_now")
        waited = await call(client, "wait_run", run_id=run_id, timeout_seconds=50)
        result = await call(client, "get_result", run_id=run_id)
    assert (waited["status"], result["winner"]) == ("completed", "quick")
    assert result["answer"] == "the quick answer"
    assert happened(home.run_directory(run_id), "finish_requested")


async def test_finish_now_without_any_answer_takes_the_first_one(home: TempHome) -> None:
    gate = home.work / "go-on"
    config = home.config("late", agent("one", {"answer": "the first answer", **after(gate)}), agent("two", HANG))
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        await wait_until(lambda: happened(home.run_directory(run_id), "model_call_started"))
        await call(client, "control_run", run_id=run_id, action="finish_now")
        await wait_until(lambda: happened(home.run_directory(run_id), "finish_requested"))
        gate.touch()
        waited = await call(client, "wait_run", run_id=run_id, timeout_seconds=50)
        result = await call(client, "get_result", run_id=run_id)
    assert waited["status"] == "completed"
    assert (result["winner"], result["answer"]) == ("one", "the first answer")


async def test_max_seconds_ends_a_run_as_timed_out_and_names_the_limit(home: TempHome) -> None:
    async with home.client() as client:
        run_id = await started(home, client, half_answered(home), max_seconds=3)
        waited = await call(client, "wait_run", run_id=run_id, timeout_seconds=50)
        result = await call(client, "get_result", run_id=run_id)
    assert waited["status"] == "timed_out"
    assert "the run took longer than 3 s" in waited["reason"]
    assert result["answer"] == "the quick answer"


async def test_a_wait_that_runs_out_is_no_error_and_says_that_nothing_changed(home: TempHome) -> None:
    config = home.config("stuck", agent("one", HANG), agent("two", HANG))
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        await wait_until(lambda: len(events_of(home.run_directory(run_id))) >= 5)
        first = await call(client, "wait_run", run_id=run_id, until="change", cursor=0, timeout_seconds=50)
        assert first["changed"]
        latest = await call(client, "wait_run", run_id=run_id, timeout_seconds=0)
        waited = await call(
            client, "wait_run", run_id=run_id, until="change", cursor=latest["cursor"], timeout_seconds=0.3
        )
    assert (waited["status"], waited["changed"]) == ("running", False)
    assert waited["cursor"] == latest["cursor"]
    assert waited["next_step"] == "Still running. Call wait_run again, or do other work first."


async def test_waiting_for_a_phase_returns_when_it_begins(home: TempHome) -> None:
    gate, waited = home.work / "go-on", dict[str, Any]()
    steps = [{"answer": "a", **after(gate)}, {"hang": True}]
    config = home.config("phases", agent("one", *steps), agent("two", *steps))
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        await wait_until(lambda: happened(home.run_directory(run_id), "model_call_started"))

        async def wait() -> None:
            waited.update(await call(client, "wait_run", run_id=run_id, until="phase", timeout_seconds=50))

        (runner,) = home.processes(RUNNER_MODULE)
        before = connections(runner)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await wait_until(lambda: connections(runner) > before)
            gate.touch()
    assert (waited["status"], waited["phase"], waited["changed"]) == ("running", "voting", True)


async def test_a_waiting_client_hears_progress_before_it_would_give_up(home: TempHome) -> None:
    heard: list[tuple[float, str | None]] = []

    # The client calls it with all three.
    async def on_progress(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        heard.append((progress, message))

    config = home.config("stuck", agent("one", HANG), agent("two", HANG))
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
        arguments = {"run_id": run_id, "timeout_seconds": 11}
        await client.call_tool("wait_run", arguments, progress_callback=on_progress)
    assert heard
    assert [progress for progress, _ in heard] == sorted({progress for progress, _ in heard})
    assert heard[0][0] <= 10
    assert "running" in (heard[0][1] or "")


async def test_a_json_config_may_escape_its_characters_as_json_does(home: TempHome) -> None:
    config = home.work / "team.json"
    config.write_text(json.dumps({"agents": [agent("solo", {"answer": "well done \N{PARTY POPPER}"})]}))
    async with home.client() as client:
        started = await call(client, "start_run", question="q", config=str(config), wait_seconds=30)
    assert started["answer"] == "well done \N{PARTY POPPER}"


@pytest.mark.parametrize(
    ("names", "providers"),
    [
        (["gpt", "Gemini", "claude"], ["openai", "gemini", "claude"]),
        (["anthropic", "GOOGLE", "xai"], ["claude", "gemini", "grok"]),
        (["chatgpt", "grok"], ["openai", "grok"]),
    ],
)
async def test_a_family_or_provider_means_its_strong_model_of_today(
    home: TempHome, names: list[str], providers: list[str]
) -> None:
    async with home.client() as client:
        planned = await call(client, "start_run", question="q", models=names, dry_run=True)
    assert [*planned["team"].values()] == [f"{one}/{NEWEST[one]}" for one in providers]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gemnii", "did you mean gemini?"),
        ("mystery", "write a provider (gpt, chatgpt, claude, gemini, grok, openai"),
        ("ollama", "write ollama/MODEL"),
        ("gpt5", "did you mean gpt-5?"),
    ],
)
async def test_an_unknown_bare_name_is_refused_with_the_nearest_ones(home: TempHome, name: str, told: str) -> None:
    async with home.client() as client:
        code, message = await expect_error(client, "start_run", question="q", models=[name], dry_run=True)
    assert (code, told in message) == ("config_invalid", True), message
    assert "--backend" not in message, "a command line is nothing to a model"


async def test_an_unlisted_model_is_taken_with_a_warning(home: TempHome) -> None:
    async with home.with_variables(OPENAI_API_KEY="sk-some-key-of-a-test").client() as client:
        planned = await call(client, "start_run", question="q", models=["openai/nonsense-99", "gpt"], dry_run=True)
    assert "These models aren't in the price lists, so check their names: openai/nonsense-99." in planned["note"]
