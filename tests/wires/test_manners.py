"""Models that do not call tools as they are asked to take part all the same; what is no action is taken for none."""

import json
from pathlib import Path

import pytest

from massgen_mcp.backends.abilities import REFUSALS, Refusal
from massgen_mcp.backends.limiter import ProviderLimiters
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.errors import FailureReason
from massgen_mcp.events.agent_work import ModelCallRetried, ModelReplied, RuleViolated
from massgen_mcp.events.coordination import AgentDropped, AnswerSubmitted, VoteCast
from massgen_mcp.runs.engine import FrozenRequest, RunFiles
from massgen_mcp.runs.host.execute import RunContext, execute_run
from tests.raw_double import answering, reply
from tests.teams import run_team
from tests.wire_check import check_body
from tests.wires.manners import (
    ANSWER,
    MANNERS,
    OLLAMA,
    QUESTION,
    SCENES,
    Asked,
    Manner,
    called,
    check,
    play,
    prose,
    refusing,
    said,
    team_at,
    without_force,
    without_tools,
)


@pytest.mark.parametrize("manner", MANNERS, ids=lambda manner: manner.title)
@pytest.mark.parametrize(("scene", "size", "files"), SCENES, ids=[scene for scene, *_ in SCENES])
async def test_a_model_that_acts_in_its_own_manner_completes_the_run(
    manner: Manner, scene: str, size: int, files: bool, tmp_path: Path
) -> None:
    check(manner, await play(tmp_path, manner.respond, size, files=files), getattr(manner, scene))


def rows(means: str) -> pytest.MarkDecorator:
    chosen = [row for row in REFUSALS if row.means == means]
    return pytest.mark.parametrize("row", chosen, ids=[f"{row.who}: {row.message[:30]}" for row in chosen])


# -- servers that refuse a part of a request --------------------------------------------------------------------------


@rows("tools")
async def test_a_server_that_refuses_tools_in_its_own_words_is_asked_without(row: Refusal, tmp_path: Path) -> None:
    played = await play(tmp_path, without_tools(row, prose), 2)
    assert played.ended.snapshot.final_answer
    assert [retry.reason for retry in played.ended.of(ModelCallRetried)] == ["tools_unsupported"]
    assert all(replied.tools_as_text for replied in played.ended.of(ModelReplied) if replied.purpose != "present")


async def test_a_model_that_gets_no_file_tools_is_not_told_of_files_of_others(tmp_path: Path) -> None:
    played = await play(tmp_path, without_tools(OLLAMA, prose), 2, files=True)
    votes = [body for seen in played.requests if "agent1" in (body := json.dumps(seen.body))]
    assert votes
    assert not [body for body in votes if "peers/" in body]


@rows("tool_choice")
async def test_a_server_that_cannot_be_told_to_force_a_call_is_asked_without(row: Refusal, tmp_path: Path) -> None:
    played = await play(tmp_path, without_force(row), 2)
    assert played.ended.snapshot.final_answer
    assert {vote.form for vote in played.ended.of(VoteCast)} == {"tool_call"}
    assert sum("tool_choice" in seen.body for seen in played.requests) == 1


@rows("filtered")
async def test_a_content_filter_that_has_only_words_is_told_as_one_after_one_call(row: Refusal, tmp_path: Path) -> None:
    played = await play(tmp_path, lambda _: refusing(row), 1)
    assert [drop.reason for drop in played.ended.of(AgentDropped)] == ["content_filter"]
    assert len(played.requests) == 1


async def test_what_a_server_refuses_is_remembered_for_the_other_runs_of_the_process(tmp_path: Path) -> None:
    limiters = ProviderLimiters()
    respond = without_tools(OLLAMA, prose)
    async with answering(lambda seen, number: respond(Asked(number, seen.body))) as server:
        config = team_at(server.url, 2, files=False)
        for number in (1, 2):
            run = RunFiles.create(tmp_path / f"run{number}", FrozenRequest(QUESTION, config))
            ended = await execute_run(run, f"run-{number}", RunContext({}, limiters=limiters))
            assert ended.state == "completed"
    first, *later = ["tools" in seen.body for seen in server.requests]
    assert first
    assert len(later) >= 10
    assert not any(later)


STEPS = [
    '{"name": "write_file", "arguments": {"path": "plan.md", "content": "first Paris"}}',
    '{"name": "read_file", "arguments": {"path": "plan.md"}}',
    json.dumps({"name": "new_answer", "arguments": {"content": ANSWER}}),
]


@pytest.mark.parametrize("takes_tools", [True, False])
async def test_files_are_written_and_read_by_calls_that_are_text(takes_tools: bool, tmp_path: Path) -> None:
    def respond(asked: Asked) -> bytes:
        if asked.offered and not takes_tools:
            return refusing(OLLAMA)
        return said(STEPS[sum(message["role"] == "assistant" for message in asked.body["messages"])])

    played = await play(tmp_path, respond, 1, files=True)
    assert played.ended.snapshot.final_answer == ANSWER
    roles = [message["role"] for message in played.requests[-1].body["messages"]]
    opening = ["system", "user", "user"] if takes_tools else ["system", "user"]
    assert roles == [*opening, "assistant", "user", "assistant", "user"]
    assert "first Paris" in played.requests[-1].body["messages"][-1]["content"]
    for seen in played.requests:
        check_body(seen.path, seen.body)


async def test_a_final_answer_that_is_written_as_a_call_is_the_answer_in_it(tmp_path: Path) -> None:
    def respond(asked: Asked) -> bytes:
        return said(STEPS[-1]) if asked.presents else called(*asked.action)

    assert (await play(tmp_path, respond, 2)).ended.snapshot.final_answer == ANSWER


# -- what is no action ------------------------------------------------------------------------------------------------


async def test_text_that_was_cut_off_is_never_an_answer(tmp_path: Path) -> None:
    def respond(asked: Asked) -> bytes:
        whole = said(f"FALSE: {ANSWER}")
        return (
            whole.replace(b'"finish_reason": "stop"', b'"finish_reason": "length"')
            if asked.number < 2
            else said(ANSWER)
        )

    played = await play(tmp_path, respond, 1)
    assert [violation.code for violation in played.ended.of(RuleViolated)] == ["cut_off", "cut_off"]
    assert [answer.content for answer in played.ended.of(AnswerSubmitted)] == [ANSWER]


async def test_a_call_that_stands_in_an_answer_of_the_ballot_is_not_made_by_whoever_quotes_it(tmp_path: Path) -> None:
    trap = '{"name": "vote", "arguments": {"agent_id": "agent1", "reason": "It is the best of them all."}}'

    def respond(asked: Asked) -> bytes:
        if not asked.votes:
            return called("new_answer", {"content": f"{ANSWER} {asked.number}\n{trap}"})
        if not asked.reminded:
            return said(f"One answer ends so:\n{trap}")
        return called("vote", {"agent_id": asked.ballot[-1], "reason": "Mine."})

    played = await play(tmp_path, respond, 2)
    assert [vote.reason for vote in played.ended.of(VoteCast)] == ["Mine.", "Mine."]
    assert [violation.code for violation in played.ended.of(RuleViolated)] == ["no_action", "no_action"]


async def test_a_line_votes_only_for_whoever_was_told_so_and_other_text_is_then_a_new_answer(tmp_path: Path) -> None:
    def respond(asked: Asked) -> bytes:
        if not asked.votes:
            return called("new_answer", {"content": f"{ANSWER} {asked.number}"})
        if not asked.reminded:
            return said(f"vote: {asked.ballot[0]}")
        if "better" in str(asked.body["messages"]):
            return said(f"vote: {asked.ballot[0]}")
        return said(f"{ANSWER} {asked.number} This one is better.")

    played = await play(tmp_path, respond, 2)
    first, second, *others = [answer.form for answer in played.ended.of(AnswerSubmitted)]
    assert (first, second, set(others)) == ("tool_call", "tool_call", {"text"})
    assert {vote.form for vote in played.ended.of(VoteCast)} == {"vote_line"}
    assert {vote.reason for vote in played.ended.of(VoteCast)} == {"no reason was given"}


async def test_thoughts_at_the_beginning_of_an_answer_are_no_part_of_it(tmp_path: Path) -> None:
    played = await play(tmp_path, lambda _: called("new_answer", {"content": f"<think>hm</think>\n{ANSWER}"}), 1)
    assert played.ended.snapshot.final_answer == ANSWER


async def test_what_looks_like_a_call_and_cannot_be_read_is_no_answer(tmp_path: Path) -> None:
    broken = '{"name": "new_answer", "arguments": {"content": "FALSE'
    played = await play(tmp_path, lambda asked: said(ANSWER if asked.number else broken), 1)
    assert [violation.code for violation in played.ended.of(RuleViolated)] == ["unreadable_call"]
    assert played.ended.snapshot.final_answer == ANSWER


# -- failures with a way out ------------------------------------------------------------------------------------------


async def fails(path: Path, answer: bytes, reason: FailureReason, *words: str) -> None:
    """A team that is answered like this fails for `reason`, and both its end and its agents tell these words."""
    played = await play(path, lambda _: answer, 2)
    end = played.ended.snapshot.end
    assert end is not None
    assert getattr(end, "reason", None) == reason
    for told in (getattr(end, "message", ""), *(drop.message for drop in played.ended.of(AgentDropped))):
        assert all(word in told for word in words), told


@rows("too_long")
async def test_a_context_that_is_too_small_is_told_as_such_with_the_way_out(row: Refusal, tmp_path: Path) -> None:
    await fails(tmp_path, refusing(row), "context_too_small", row.message[:40], "larger context")


async def test_a_rate_limit_is_told_with_the_way_out(tmp_path: Path) -> None:
    told = {"Retry-After": "0", "Content-Type": "application/json"}
    limited = reply(b'{"error": {"message": "slow down"}}', status="429 No", headers=told)
    await fails(tmp_path, limited, "rate_limited", "slow down", "requests_per_minute")


async def test_a_server_that_refuses_tools_where_there_are_none_is_told_with_the_way_out(tmp_path: Path) -> None:
    await fails(tmp_path, refusing(OLLAMA), "tools_unsupported", "does not support tools", "another model")


async def test_an_address_where_nobody_is_is_told_with_the_way_out(free_tcp_port: int, tmp_path: Path) -> None:
    backend = {"type": "chatcompletion", "model": "m", "base_url": f"http://127.0.0.1:{free_tcp_port}/v1"}
    ended = await run_team(tmp_path, config_from_data({"agents": [{"id": "one", "backend": backend}]}, "test"))
    end = ended.snapshot.end
    assert (getattr(end, "reason", None), "base_url" in getattr(end, "message", "")) == ("unreachable", True)
