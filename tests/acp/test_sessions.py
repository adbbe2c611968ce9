"""An agent CLI over ACP: what one conversation is to it, and how it goes wrong. The CLI is a fake one."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.backends.base import ModelRequest, ReasoningPart, StopPart, ToolCallPart, UsagePart, UserMessage
from massgen_mcp.backends.calling import CallHooks, RetryPolicy, call_model
from massgen_mcp.errors import BackendError
from tests.acp.acting import LOOK, Acting, after, is_alive, question, reply, text_of
from tests.harness import wait_until

KEY = "sk-secret-0123456789abcdef"
CALL = {"call": "look", "arguments": {"at": "it"}}


async def test_a_held_call_gets_its_verdict_and_the_same_turn_goes_on(tmp_path: Path) -> None:
    acting = Acting(tmp_path, [{"say": "I look."}, CALL, {"call": "vote", "arguments": {}}, {"say": "Done."}])
    first = question()
    looked = await reply(acting.backend, first)
    assert [part.call.name for part in looked if isinstance(part, ToolCallPart)] == ["look"]
    assert looked[-1] == StopPart("tool_calls")
    second = after(first, looked, "seen")
    voted = await reply(acting.backend, second)
    third = after(second, voted, "refused: vote again", say="The time is nearly up.", error=True)
    done = await reply(acting.backend, third)
    assert text_of(done) == "Done."
    assert acting.asked("session/prompt") == acting.asked("session/new") == acting.asked("initialize") == 1
    seen, refused = acting.told("result")
    assert (seen["content"][0]["text"], seen["isError"]) == ("seen", False)
    assert "refused: vote again\n\nThe time is nearly up." in refused["content"][0]["text"]
    assert refused["isError"]
    await acting.backend.aclose()


async def test_words_after_a_turn_that_ended_are_a_prompt_in_the_same_session(tmp_path: Path) -> None:
    acting = Acting(tmp_path, [{"say": "One."}], [{"say": "Two."}])
    first = question()
    second = after(first, await reply(acting.backend, first), say="Call a tool.")
    assert text_of(await reply(acting.backend, second)) == "Two."
    assert acting.asked("session/new") == 1
    await acting.backend.aclose()


async def test_another_conversation_is_another_session_of_the_same_process(tmp_path: Path) -> None:
    acting = Acting(tmp_path, [CALL], [{"say": "Anew."}])
    await reply(acting.backend, question())
    assert text_of(await reply(acting.backend, question("Another ballot."))) == "Anew."
    assert (acting.asked("session/new"), acting.asked("initialize")) == (2, 1)
    assert len(set(acting.told("pid"))) == 1
    assert acting.asked("session/cancel") == 1
    await acting.backend.aclose()


async def test_a_tool_more_is_another_session_that_is_told_the_conversation(tmp_path: Path) -> None:
    acting = Acting(tmp_path, [CALL], [{"say": "Anew."}])
    first = question()
    second = after(first, await reply(acting.backend, first), "seen")
    more = replace(second, tools=(*second.tools, replace(LOOK, name="listen")))
    await reply(acting.backend, more)
    assert acting.told("tools") == [["look", "vote"], ["look", "vote", "listen"]]
    prompts = [params["prompt"][0]["text"] for params in acting.told("params") if "prompt" in params]
    assert "You are one of a team." in prompts[1]
    assert "Result of look:\nseen" in prompts[1]
    await acting.backend.aclose()


async def test_tools_stay_and_words_for_one_call_alone_do_not(tmp_path: Path) -> None:
    acting = Acting(tmp_path, [CALL, CALL, {"say": "Done."}])
    first = question()
    warned = replace(first, messages=(*first.messages, UserMessage("Five steps are left.")))
    second = after(first, await reply(acting.backend, warned), "seen")
    third = after(second, await reply(acting.backend, replace(second, tools=second.tools[:1])), "seen")
    assert text_of(await reply(acting.backend, third)) == "Done."
    assert acting.told("tools") == [["look", "vote"]]
    await acting.backend.aclose()


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        ({"name": "mcp__team__look"}, "allow_once"),
        ({"rawInput": {"server": "team", "tool": "look"}}, "allow_once"),
        ({"title": "mcp__team__look", "kind": "execute"}, "reject_once"),
        ({"name": "Bash", "rawInput": {"command": "rm", "server": "team"}}, "reject_once"),
        ({}, "reject_once"),
    ],
    ids=["ours by name", "ours by server", "a title", "a shell", "nothing"],
)
async def test_only_tools_of_the_team_are_permitted(tmp_path: Path, call: dict[str, object], outcome: str) -> None:
    acting = Acting(tmp_path, [{"ask": call}])
    await reply(acting.backend, question())
    assert acting.told("permitted") == [{"outcome": {"outcome": "selected", "optionId": outcome}}]
    await acting.backend.aclose()


async def test_a_call_that_was_told_of_is_known_by_its_id_in_the_question(tmp_path: Path) -> None:
    told = {"sessionUpdate": "tool_call", "toolCallId": "c7", "title": "x", "rawInput": {"server": "team"}}
    acting = Acting(tmp_path, [{"update": told}, {"ask": {"toolCallId": "c7"}}])
    await reply(acting.backend, question())
    assert acting.told("permitted") == [{"outcome": {"outcome": "selected", "optionId": "allow_once"}}]
    await acting.backend.aclose()


async def test_a_reply_that_is_cut_off_is_cancelled_at_the_cli(tmp_path: Path) -> None:
    acting = Acting(tmp_path, [{"think": "Hm."}, {"hang": True}], [{"say": "Anew."}])
    stream = acting.backend.stream(question())
    assert await anext(stream) == ReasoningPart("Hm.")
    await stream.aclose()
    assert text_of(await reply(acting.backend, question())) == "Anew."
    assert acting.asked("session/cancel") == 1
    await acting.backend.aclose()


async def test_silence_ends_with_the_time_of_the_call(tmp_path: Path) -> None:
    acting = Acting(tmp_path, [{"hang": True}])
    with pytest.raises(BackendError) as caught:
        await call_model(acting.backend, question(), CallHooks(), policy=RetryPolicy(), deadline_seconds=2)
    assert caught.value.reason == "timeout"
    await acting.backend.aclose()


async def test_a_crash_is_an_error_with_its_last_words_without_keys_and_another_try_starts_it_again(
    tmp_path: Path,
) -> None:
    environ = {"OTHER_API_KEY": KEY}
    acting = Acting(tmp_path, [{"say": "I"}, {"crash": f"no more, {KEY}"}], environ=environ)
    with pytest.raises(BackendError, match="no more, ") as caught:
        await reply(acting.backend, question())
    assert (caught.value.reason, caught.value.retryable) == ("provider_error", True)
    assert KEY not in str(caught.value)
    with pytest.raises(BackendError):
        await reply(acting.backend, question())
    assert len(set(acting.told("pid"))) == 2
    await acting.backend.aclose()


@pytest.mark.parametrize(
    ("raw", "times", "words"),
    [
        ("{no json}\n", 1, "aren't JSON"),
        ("npm warn\n", 200, "aren't messages"),
        ("x" * 50_000, 400, "larger than"),
    ],
    ids=["broken JSON", "stray lines", "an endless line"],
)
async def test_what_is_no_message_ends_the_call_with_a_reason(tmp_path: Path, raw: str, times: int, words: str) -> None:
    acting = Acting(tmp_path, [{"raw": raw, "times": times}, {"hang": True}])
    with pytest.raises(BackendError, match=words):
        await reply(acting.backend, question())
    await acting.backend.aclose()


async def test_a_few_stray_lines_are_passed_over(tmp_path: Path) -> None:
    acting = Acting(tmp_path, [{"raw": "npm warn\n", "times": 3}, {"say": "Well."}])
    assert text_of(await reply(acting.backend, question())) == "Well."
    await acting.backend.aclose()


async def test_who_floods_while_a_call_is_held_is_ended(tmp_path: Path) -> None:
    said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x" * 100_000}}
    chunk = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1", "update": said}}
    held = tmp_path / "held"
    flood = {"raw": json.dumps(chunk) + "\n", "times": 200}
    acting = Acting(tmp_path, [{**CALL, "beside": True}, {"await": str(held)}, flood, {"hang": True}])
    first = question()
    second = after(first, await reply(acting.backend, first), "seen")
    held.touch()  # until here somebody reads what it says
    pid = acting.told("pid")[0]
    await wait_until(lambda: not is_alive(pid))
    await reply(acting.backend, second)
    assert len(set(acting.told("pid"))) == 2
    await acting.backend.aclose()


async def test_a_cli_of_another_protocol_is_refused(tmp_path: Path) -> None:
    acting = Acting(tmp_path, environ={"FAKE_VERSION": "7"}, env=["FAKE_VERSION"])
    with pytest.raises(BackendError, match="doesn't support version 1"):
        await reply(acting.backend, question())
    await acting.backend.aclose()


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}, (10, 5, 0)),
        ({"inputTokens": 10, "cachedReadTokens": 90, "outputTokens": 5, "totalTokens": 105}, (100, 5, 90)),
        ({"inputTokens": 100, "cachedReadTokens": 90, "outputTokens": 5, "totalTokens": 105}, (100, 5, 90)),
        ({"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}, None),
        ({"inputTokens": -4, "outputTokens": "many"}, None),
        ("a lot", None),
    ],
)
async def test_what_is_counted_is_taken_and_what_is_not_is_unknown(
    tmp_path: Path, usage: object, counted: tuple[int, int, int] | None
) -> None:
    acting = Acting(tmp_path, [{"say": "Well."}, {"usage": usage}])
    parts = await reply(acting.backend, question())
    found = [(p.input_tokens, p.output_tokens, p.cached_input_tokens) for p in parts if isinstance(p, UsagePart)]
    assert found == ([] if counted is None else [counted])
    await acting.backend.aclose()


async def test_a_turn_of_several_steps_is_no_count_of_one(tmp_path: Path) -> None:
    acting = Acting(tmp_path, [CALL, {"say": "Well."}, {"usage": {"inputTokens": 10, "outputTokens": 5}}])
    first = question()
    second = after(first, await reply(acting.backend, first), "seen")
    assert not [part for part in await reply(acting.backend, second) if isinstance(part, UsagePart)]
    await acting.backend.aclose()


async def test_notices_of_a_known_cli_are_no_part_of_its_answer(tmp_path: Path) -> None:
    notice = "Warning: Model metadata for `x` not found.\n\n"
    turn = [{"say": notice}, {"say": "Forty-two. "}, {"say": "Warning: hot."}]
    environ = {"OPENAI_API_KEY": KEY}
    acting = Acting(tmp_path, turn, preset="codex", program="codex-acp", environ=environ)
    assert text_of(await reply(acting.backend, question())) == "Forty-two. "
    params = next(one for one in acting.told("params") if "systemPrompt" in one)
    assert "You are one of a team." in params["systemPrompt"]["content"][0]["text"]
    assert acting.asked("authenticate") == 1
    await acting.backend.aclose()


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        ([{"say": "Warning: hot."}, {"call": "final_answer", "arguments": {"text": "Forty-two."}}], "Forty-two."),
        ([{"call": "final_answer", "arguments": {"text": " "}}, {"say": "Forty-"}, {"say": "three."}], "Forty-three."),
    ],
    ids=["handed over", "only said"],
)
async def test_a_reply_in_words_is_what_is_handed_over_or_else_all_that_was_said(
    tmp_path: Path, turn: list[dict[str, Any]], text: str
) -> None:
    acting = Acting(tmp_path, turn, [{"say": "Anew."}])
    parts = await reply(acting.backend, ModelRequest("Write it.", (UserMessage("All answers."),)))
    assert (text_of(parts), [part.reason for part in parts if isinstance(part, StopPart)]) == (text, ["end"])
    assert acting.told("tools") == [["final_answer"]]
    assert text_of(await reply(acting.backend, ModelRequest("Next.", (UserMessage("?"),)))) == "Anew."
    await acting.backend.aclose()


async def test_nothing_is_left_when_it_is_closed(tmp_path: Path) -> None:
    acting = Acting(tmp_path, [{"probe": [["leave", "3600"]]}, CALL])
    await reply(acting.backend, question())
    pid = acting.told("pid")[0]
    await acting.backend.aclose()
    await wait_until(lambda: not is_alive(pid))
    assert not acting.private.exists()
