"""What every wire has to do with a provider that behaves, or misbehaves in the usual ways: the columns of the table.

A check raises AssertionError, or returns what was seen in a few words. aimock plays the provider, or our own double
where it cannot; every request body is validated with the SDK's own types. What neither can play (`own ways`) comes from
the dialects.
"""

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest

from massgen_mcp.backends.base import (
    AssistantMessage,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolResultMessage,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.calling import RetryPolicy
from massgen_mcp.errors import BackendError
from tests.raw_double import raw_server, reply
from tests.wire_double import Provider
from tests.wires.calls import LOOK, ask, call, load_sdks, parts_of
from tests.wires.dialects import USAGE
from tests.wires.rows import KEY, Row

LONG = "Paris has been the capital of France for most of a thousand years, with a few interruptions."


@dataclass(frozen=True)
class Check:
    """`play` returns what was seen."""

    title: str
    play: Callable[[Row, Provider], Awaitable[str]]


async def streaming_text(row: Row, aimock: Provider) -> str:
    aimock.load({"match": {"userMessage": "capital"}, "response": {"content": LONG}})
    parts = await parts_of(row.backend(aimock.url), ask("capital?"))
    pieces = [part.text for part in parts if isinstance(part, TextPart)]
    assert "".join(pieces) == LONG
    assert len(pieces) > 1
    assert isinstance(parts[-1], StopPart)
    assert parts[-1].reason == "end"
    _check_requests(row, aimock, 1)
    return f"{len(pieces)} pieces"


async def parallel_calls(row: Row, aimock: Provider) -> str:
    calls = [{"id": f"call_{n}", "name": "look", "arguments": {"where": f"room {n}"}} for n in (1, 2)]
    aimock.load(
        {
            "match": {"userMessage": "look around", "hasToolResult": False},
            "response": {"toolCalls": calls, **row.calls_end},
        },
        {"match": {"userMessage": "go on"}, "response": {"content": "Both rooms are empty."}},
    )
    first = ask("look around", LOOK)
    told = await call(row.backend(aimock.url), first)
    assert told.reply is not None
    assert told.reply.stop == "tool_calls"
    assert [made.id for made in told.reply.tool_calls] == ["call_1", "call_2"]
    assert [json.loads(made.arguments) for made in told.reply.tool_calls] == [made["arguments"] for made in calls]
    said = AssistantMessage(told.reply.text, told.reply.tool_calls, told.reply.replay)
    results = (
        ToolResultMessage("call_1", "look", "empty"),
        ToolResultMessage("call_2", "look", "no such room", is_error=True),
    )
    second = replace(first, messages=(*first.messages, said, *results, UserMessage("go on")))
    told = await call(row.backend(aimock.url), second)
    assert told.reply is not None
    assert told.reply.text == "Both rooms are empty."
    _check_requests(row, aimock, 2)
    return "2 calls and their results, 2 requests"


async def reasoning(row: Row, aimock: Provider) -> str:
    aimock.load({"match": {"userMessage": "six"}, "response": {"content": "42", "reasoning": "six times seven"}})
    parts = await parts_of(row.backend(aimock.url, reasoning_effort="low"), ask("six by seven?"))
    assert "".join(part.text for part in parts if isinstance(part, TextPart)) == "42"
    assert "".join(part.text for part in parts if isinstance(part, ReasoningPart)) == "six times seven"
    _check_requests(row, aimock, 1)
    asked: Any = aimock.requests[0].body
    for name in row.effort_field.split("."):
        asked = asked[name]
    assert asked in ("low", {"effort": "low"})
    return f"apart from the text; asked for by `{row.effort_field.rpartition('.')[2]}`"


async def usage(row: Row, aimock: Provider) -> str:
    counts = {"prompt_tokens": 21, "completion_tokens": 7, "total_tokens": 28, "input_tokens": 21, "output_tokens": 7}
    aimock.load({"match": {"userMessage": "capital"}, "response": {"content": "Paris", "usage": counts}})
    parts = await parts_of(row.backend(aimock.url), ask("capital?"))
    (seen,) = [part for part in parts if isinstance(part, UsagePart)]
    assert (seen.input_tokens, seen.output_tokens, seen.model) == (21, 7, "" if row.model_in_path else row.asked)
    _check_requests(row, aimock, 1)
    return f"{seen.input_tokens} in, {seen.output_tokens} out"


async def own_ways(row: Row, aimock: Provider) -> str:
    """The provider's own form of a stream: thoughts that have to come back, kinds of tokens told apart."""
    del aimock
    dialect = row.dialect()
    streamed = dialect.reason("hm").call("look", '{"where":', ' "up"}').stop("calls").body()
    request = ask("look", LOOK)
    async with raw_server(reply(streamed), beside=row.beside) as server:
        got = (await call(row.backend(server.url), request)).reply or pytest.fail("there was no answer")
        said = AssistantMessage(got.text, got.tool_calls, got.replay)
        second = replace(request, messages=(*request.messages, said, ToolResultMessage("call_1", "look", "empty")))
        await call(row.backend(server.url), second)
    assert (got.stop, got.model) == ("tool_calls", "told-model")
    assert got.reasoning == ("hm" if dialect.thinks_aloud else "")
    (made,) = got.tool_calls
    assert (made.id, made.name, json.loads(made.arguments)) == ("call_1", "look", {"where": "up"})
    counted = got.usage or pytest.fail("there was no usage")
    assert (counted.input_tokens, counted.output_tokens) == (USAGE["input"], USAGE["output"])
    told_apart = USAGE if dialect.counts_kinds else dict.fromkeys(USAGE, 0)
    assert counted.cached_input_tokens == told_apart["cached"]
    assert counted.reasoning_tokens == (told_apart["reasoning"] if dialect.thinks_aloud else 0)
    sent = server.requests[1].body
    row.check(sent)
    assert f'"{dialect.proof_of_thought}": ' in json.dumps(sent), f"{dialect.proof_of_thought} was not sent back"
    return f"thoughts go back as `{dialect.proof_of_thought}`"


async def rate_limit(row: Row, aimock: Provider) -> str:
    limited = {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 0}
    aimock.load(
        {"match": {"userMessage": "capital", "sequenceIndex": 0}, "response": limited},
        {"match": {"userMessage": "capital"}, "response": {"content": "Paris"}},
    )
    told = await call(row.backend(aimock.url), ask("capital?"))
    assert told.reply is not None
    assert told.reply.text == "Paris"
    ((error, wait),) = told.retries
    assert (error.reason, wait) == ("rate_limited", 0)
    assert "slow down" in str(error)
    _check_requests(row, aimock, 2)
    return "answered, 2 requests"


NEVER = -1.0
"""It is not asked again."""
RETRY_AFTER = (
    ({"Retry-After": "7"}, 7),
    ({"Retry-After": "1642"}, 60),
    ({"Retry-After": "4233600"}, NEVER),  # 49 days
    ({"Retry-After": "1e308"}, NEVER),
    ({"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT"}, NEVER),
    ({"Retry-After": "Sat, 01 Jan 2000 00:00:00 GMT"}, None),
    ({"Retry-After": "Fri, 31 Dec 99999 23:59:59 GMT"}, None),
    ({"Retry-After": "0"}, None),
    ({"Retry-After": "-1"}, None),
    ({"Retry-After": "NaN"}, None),
    ({"Retry-After": "inf"}, None),
    ({"Retry-After": "soon"}, None),
    ({"Retry-After": ""}, None),
    ({"retry-after-ms": "1500"}, 1.5),
    ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5),
    ({"retry-after-ms": "-1", "Retry-After": "9"}, 9),
    ({"retry-after-ms": "4e12"}, NEVER),
)
"""What a provider may ask for with a 429, and the seconds that are waited: its wish up to a minute, if it is not above
an hour. None: our own.
"""
OWN_WAIT = RetryPolicy(first_wait=1e6, longest_wait=1e6)
"""Our own waits last for days: no wish is taken for one, nor none."""


class _EnoughError(Exception):
    """A wait has begun; nobody has to sit through it."""


async def retry_after(row: Row, aimock: Provider, policy: RetryPolicy = OWN_WAIT) -> str:
    del aimock
    for headers, seconds in RETRY_AFTER:
        begun: list[float] = []

        def stop(wait: float, begun: list[float] = begun) -> None:
            begun.append(wait)
            raise _EnoughError

        limited = reply(b"{}", status="429 Too Many Requests", media_type="application/json", headers=headers)
        async with raw_server(limited, beside=row.beside) as server:
            with suppress(_EnoughError):
                await call(row.backend(server.url), ask("capital?"), deadline=1e9, policy=policy, on_wait=stop)
            requests = len(server.requests)
        asked_for = begun[0] > 60 if seconds is None else begun == [seconds] * (seconds != NEVER)
        assert (asked_for, requests) == (True, 1), f"{headers}: waits {begun}"
    return f"at most 60 s, {len(RETRY_AFTER)} forms"


async def server_error(row: Row, aimock: Provider) -> str:
    broken = {"error": {"message": "out of order", "type": "server_error"}, "status": 500}
    aimock.load({"match": {}, "response": broken})
    error = _failed((await call(row.backend(aimock.url), ask("capital?"))).error, "provider_error")
    assert "out of order" in str(error)
    _check_requests(row, aimock, 4)
    return f"`{error.reason}`, 4 requests"


async def disconnect(row: Row, aimock: Provider) -> str:
    broken = {"response": {"content": LONG}, "chunkSize": 8, "latency": 20, "disconnectAfterMs": 90}
    aimock.load(
        {"match": {"userMessage": "capital", "sequenceIndex": 0}, **broken},
        {"match": {"userMessage": "capital"}, "response": {"content": "Paris"}},
    )
    told = await call(row.backend(aimock.url), ask("capital?"))
    assert told.reply is not None
    assert (told.reply.text, "".join(told.heard)) == ("Paris", "Paris"), "what came before the cut is void"
    assert [error.reason for error, _ in told.retries] == ["provider_error"]
    _check_requests(row, aimock, 2)
    return "answered, 2 requests"


async def slow_first_byte(row: Row, aimock: Provider) -> str:
    return await _too_slow(row, aimock, {"ttft": 30_000, "tps": 1000}, deadline=0.5, speaks=False)


async def slow_tokens(row: Row, aimock: Provider) -> str:
    return await _too_slow(row, aimock, {"ttft": 10, "tps": 20}, deadline=2.0, speaks=True)


async def _too_slow(row: Row, aimock: Provider, profile: dict[str, int], *, deadline: float, speaks: bool) -> str:
    """Either profile would take more than 20 seconds."""
    slow = {"response": {"content": LONG * 20}, "chunkSize": 4, "streamingProfile": profile}
    aimock.load({"match": {"userMessage": "capital"}, **slow})
    load_sdks()
    told = await call(row.backend(aimock.url), ask("capital?"), deadline=deadline)
    error = _failed(told.error, "timeout")
    assert "call_timeout_seconds" in str(error)
    assert bool(told.heard) == speaks
    assert len("".join(told.heard)) < len(LONG * 20), "the rest was not waited for"
    _check_requests(row, aimock, 1)
    return "`timeout` at its limit, 1 request"


CHECKS = (
    Check("streaming text", streaming_text),
    Check("parallel tool calls, two turns", parallel_calls),
    Check("reasoning", reasoning),
    Check("usage", usage),
    Check("own ways", own_ways),
    Check("429, then success", rate_limit),
    Check("Retry-After in every form", retry_after),
    Check("500", server_error),
    Check("disconnect mid-stream", disconnect),
    Check("slow first byte", slow_first_byte),
    Check("slow tokens", slow_tokens),
)


def _failed(error: BackendError | None, reason: str) -> BackendError:
    assert error is not None, "there was an answer"
    assert error.reason == reason, str(error)
    return error


def _check_requests(row: Row, aimock: Provider, number: int) -> None:
    """As many as they should be, each to the right path with the key in its header, each allowed by the API."""
    requests = aimock.requests
    assert len(requests) == number
    for request in requests:
        assert request.path == row.path
        assert row.model_in_path or request.body["model"] == row.asked
        assert request.headers[row.key_header].removeprefix("Bearer ") == KEY
        row.check(request.body)
