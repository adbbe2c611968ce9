"""Work that is longer than what the model can read at once: shortened, noted and finished, and never lost."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.agent_work import (
    ConversationCondensed,
    ConversationShortened,
    ModelReplied,
    RoundStarted,
)
from massgen_mcp.events.coordination import AgentDropped, VoteCast
from massgen_mcp.request.question import EarlierTurn
from tests.checks.project import environ, project, write
from tests.raw_double import answering
from tests.small_window import NOTE, Plan, SmallWindow
from tests.teams import run_team
from tests.wires.dialects import Chat

__all__ = ["environ", "project"]


def reading(times: int, lines: int = 90) -> Plan:
    """Writes a file of so many lines, reads it so many times, and answers."""
    seen = 0

    def plan(messages: list[dict[str, Any]], number: int) -> Chat:
        nonlocal seen
        del messages
        seen += 1
        chat, name = Chat(), f"c{number}"
        if seen == 1:
            content = "".join(f"line {place}: {'x' * 60}\n" for place in range(lines))
            return chat.call("write_file", json.dumps({"path": "notes.txt", "content": content}), call_id=name)
        if seen <= times:
            return chat.call("read_file", json.dumps({"path": "notes.txt"}), call_id=name)
        if seen == times + 1:
            return chat.call("new_answer", json.dumps({"content": "42"}), call_id=name)
        return chat.text("It is 42.")

    return plan


def one_agent(url: str, *, backend: dict[str, str] | None = None, **settings: Any) -> Config:
    backend = {"type": "chatcompletion", "base_url": url, "model": "m", **(backend or {})}
    orchestrator = {"enable_filesystem": True, "max_steps_per_round": 200, **settings}
    return config_from_data({"agents": [{"backend": backend}], "orchestrator": orchestrator}, "test", environ={})


async def test_work_that_is_longer_than_the_window_is_finished(tmp_path: Path) -> None:
    model = SmallWindow(12_000, reading(60))
    async with answering(model.respond) as double:
        ended = await run_team(tmp_path, one_agent(double.url), environ={})
    assert ended.snapshot.final_answer == "42"
    assert not ended.of(AgentDropped)
    assert model.refused == 1, "the window is learned once"
    assert ended.of(ConversationShortened)
    notes = ended.of(ConversationCondensed)
    assert {event.note for event in notes} == {NOTE}
    asked = [event for event in ended.of(ModelReplied) if event.purpose == "condense"]
    assert len(asked) == len(notes), "every note was paid for once"
    (reads, *_) = [body for body in model.taken if NOTE in json.dumps(body)]
    assert "What is six times seven?" in json.dumps(reads), "the question stays"


async def test_a_window_that_a_refusal_tells_counts_and_not_a_larger_one_of_the_price_list(tmp_path: Path) -> None:
    environ = {"MASSGEN_PRICE_AS": "openai/gpt-4o"}  # its window there: 128,000 tokens
    model = SmallWindow(12_000, reading(40))
    async with answering(model.respond) as double:
        ended = await run_team(tmp_path, one_agent(double.url), environ=environ)
    assert ended.snapshot.final_answer == "42"
    assert model.refused == 1, "the window is learned once"
    assert ended.of(ConversationShortened)


async def test_no_note_is_paid_for_where_shorter_results_alone_make_room(tmp_path: Path) -> None:
    model = SmallWindow(30_000, reading(40, lines=600))
    async with answering(model.respond) as double:
        ended = await run_team(tmp_path, one_agent(double.url), environ={})
    assert ended.snapshot.final_answer == "42"
    assert 0 < len(ended.of(ConversationCondensed)) <= 15, "two results fill the window, so each step makes room"


@pytest.mark.parametrize(
    "note",
    [
        Chat().text(""),
        Chat().text("漢" * 100_000),
        Chat().text("I cannot help with that."),
        Chat().call("read_file", json.dumps({"path": "notes.txt"}), call_id="n1"),
        Chat().call("new_answer", json.dumps({"content": "41"}), call_id="n1"),
    ],
    ids=["empty", "huge", "refusal", "call", "answer"],
)
async def test_work_goes_on_whatever_a_model_writes_for_a_note(tmp_path: Path, note: Chat) -> None:
    model = SmallWindow(12_000, reading(60), note=lambda: note)
    async with answering(model.respond) as double:
        ended = await run_team(tmp_path, one_agent(double.url), environ={})
    assert ended.snapshot.final_answer == "42"
    assert model.refused <= 2
    assert ended.of(ConversationCondensed)


@pytest.mark.parametrize(
    ("server", "says", "asked"),
    [
        ("vllm", {"/v1/models": {"data": [{"id": "m", "max_model_len": 12_000}]}}, ["/v1/models"]),
        ("llamacpp", {"/props": {"default_generation_settings": {"n_ctx": 12_000}}}, ["/props", "/props"]),
        (
            "lmstudio",
            {
                "/api/v1/models": {
                    "models": [
                        {
                            "key": "publisher/m",
                            "type": "llm",
                            "max_context_length": 131_072,
                            "loaded_instances": [{"config": {"context_length": 12_000}}],
                        }
                    ]
                }
            },
            ["/api/v1/models"],
        ),
    ],
)
async def test_a_local_server_is_asked_for_the_window_before_it_refuses_anything(
    tmp_path: Path, server: str, says: dict[str, Any], asked: list[str]
) -> None:
    model = SmallWindow(12_000, reading(40), says=says)
    async with answering(model.respond) as double:
        ended = await run_team(tmp_path, one_agent(double.url, backend={"type": server}), environ={})
    assert ended.snapshot.final_answer == "42"
    assert (model.refused, model.asked) == (0, asked)
    assert ended.of(ConversationShortened)


async def test_a_window_that_no_message_tells_is_found_out(tmp_path: Path) -> None:
    model = SmallWindow(12_000, reading(40), told="maximum context length is exceeded")
    async with answering(model.respond) as double:
        ended = await run_team(tmp_path, one_agent(double.url), environ={})
    assert ended.snapshot.final_answer == "42"
    assert model.refused <= 3


async def test_a_question_that_is_larger_than_the_window_is_shown_in_part(tmp_path: Path) -> None:
    question = f"{'a' * 490_000} What is six times seven? {'b' * 490_000} The end."
    model = SmallWindow(12_000, reading(2))
    async with answering(model.respond) as double:
        ended = await run_team(tmp_path, one_agent(double.url), question=question, environ={})
    assert ended.snapshot.final_answer == "42"
    first, second = ended.of(RoundStarted)
    assert first.most is None
    assert second.most is not None
    asked = str(model.taken[0]["messages"][1]["content"])
    assert "characters are left out here" in asked
    assert asked.count("The end.") == 1


def voting(answer: Callable[[int], str] = lambda _: "42") -> Plan:
    """Answers, and votes for the first answer wherever there are some."""

    def plan(messages: list[dict[str, Any]], number: int) -> Chat:
        said, name = str(messages), f"c{number}"
        if "These are the current answers" in said or "The votes are tied" in said:
            return Chat().call("vote", '{"agent_id": "agent1", "reason": "first"}', call_id=name)
        if "These are the answers" in said:
            return Chat().text("It is 42.")
        return Chat().call("new_answer", json.dumps({"content": answer(number)}), call_id=name)

    return plan


def ballots(model: SmallWindow) -> list[str]:
    said = (str(body["messages"]) for body in model.taken)
    return [one for one in said if "These are the current answers" in one]


async def test_ten_answers_that_are_larger_than_the_window_are_read_in_part(tmp_path: Path) -> None:
    model = SmallWindow(32_000, voting(lambda number: f"{number:04} " * 40_000))
    async with answering(model.respond) as double:
        agents = [{"backend": {"type": "chatcompletion", "base_url": double.url, "model": "m"}}] * 10
        ended = await run_team(tmp_path, config_from_data({"agents": agents}, "test", environ={}), environ={})
    assert not ended.of(AgentDropped)
    assert ended.snapshot.final_answer
    assert len(ended.of(VoteCast)) == 10
    assert [one.count("characters are left out here") for one in ballots(model)] == [10] * 10


async def test_changes_and_what_checks_say_of_them_are_read_in_part_where_the_window_is_smaller(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    """Of one answer: 24 kB of its changes, and 12 kB of what checks print."""
    model = SmallWindow(8_000, voting())
    large = write("new", "".join(f"line {number}: {'x' * 60}\n" for number in range(600)))
    loud = [large, {"answer": "43"}, {"vote": "agent2"}, {"vote": "agent1"}]
    checks = [f"seq 1000000 1000300 | sed 's/^/FAILED {number} /'; exit 1" for number in range(6)]
    async with answering(model.respond) as double:
        reads_little = {"backend": {"type": "chatcompletion", "base_url": double.url, "model": "m"}}
        agents = [reads_little, {"backend": {"type": "scripted", "script": loud}}]
        orchestrator = {"context_paths": [{"path": str(project)}], "checks": checks}
        config = config_from_data({"agents": agents, "orchestrator": orchestrator}, "test", environ={})
        ended = await run_team(tmp_path, config, environ=environ)
    assert not ended.of(AgentDropped)
    (ballot, *_) = ballots(model)
    assert "characters are left out here" in ballot
    assert ballot.count("FAILED") > 6


async def test_all_turns_of_a_long_session_are_there_in_part_where_the_window_is_smaller(tmp_path: Path) -> None:
    history = tuple(
        EarlierTurn(question=f"What is {number} times seven?", answer=f"It is {number * 7}. {'So. ' * 500}")
        for number in range(40)
    )
    model = SmallWindow(8_000, reading(1))
    async with answering(model.respond) as double:
        ended = await run_team(tmp_path, one_agent(double.url), history=history, environ={})
    assert ended.snapshot.final_answer == "42"
    asked = "\n".join(str(message["content"]) for message in model.taken[0]["messages"])
    assert all(f"It is {number * 7}." in asked for number in range(40))
    assert asked.count("characters are left out here") == 40


async def test_without_anything_to_leave_out_the_agent_is_dropped_and_the_reason_said(tmp_path: Path) -> None:
    model = SmallWindow(100, reading(1), told="maximum context length is exceeded")
    async with answering(model.respond) as double:
        ended = await run_team(tmp_path, one_agent(double.url), environ={})
    assert ended.of(AgentDropped)[0].reason == "context_too_small"
    assert model.refused < 30
