"""Every HTTP backend against servers that break the rules: each fault is one typed error, and no key goes astray."""

import gzip
import json
import re
import ssl
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from massgen_mcp.backends import http
from massgen_mcp.backends.base import Part, StopPart, TextPart, UsagePart
from massgen_mcp.backends.failures import MAY_PASS, translate
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.errors import BackendError
from tests.backends.wires import (
    CHAT,
    CLAUDE,
    KEY,
    RESPONSES,
    WIRES,
    Wire,
    ask,
    calls_in,
    parts_of,
    reply_of,
    stop_of,
    text_in,
)
from tests.raw_double import raw_server, reply, sse

every_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


async def failure_of(wire: Wire, *replies: bytes, heard: list[Part] | None = None) -> BackendError:
    async with raw_server(*replies) as server:
        with pytest.raises(BackendError) as caught:
            await parts_of(wire.backend(server.url), ask("capital?"), heard)
    return caught.value


@every_wire
async def test_the_whole_stream_is_a_whole_answer(wire: Wire) -> None:
    async with raw_server(reply(sse(*wire.whole))) as server:
        parts = await parts_of(wire.backend(server.url), ask("capital?"))
    assert text_in(parts) == "Paris"
    assert stop_of(parts).reason == "end"


@every_wire
async def test_an_orderly_end_before_the_models_own_is_an_error(wire: Wire) -> None:
    for length in range(len(wire.whole)):
        error = await failure_of(wire, reply(sse(*wire.whole[:length])))
        assert (error.reason, error.retryable) == ("provider_error", True)


@every_wire
async def test_a_cut_connection_at_any_event_is_retried_from_the_start(wire: Wire) -> None:
    whole = sse(*wire.whole)
    for end in range(0, len(whole), 97):
        cut = reply(whole[:end], headers={"Content-Length": str(len(whole))})
        async with raw_server(cut, reply(whole)) as server:
            answer = await reply_of(wire.backend(server.url), ask("capital?"))
        assert answer.text == "Paris"


@every_wire
async def test_a_key_does_not_follow_a_redirect(wire: Wire) -> None:
    async with raw_server(reply(sse(*wire.whole))) as other:
        moved = reply(b"", status="307 Temporary Redirect", headers={"Location": f"{other.url}{wire.path}"})
        async with raw_server(moved) as server:
            with pytest.raises(BackendError, match="massgen doesn't follow redirects, so correct base_url"):
                await parts_of(wire.backend(server.url), ask("capital?"))
            assert KEY in server.heads[0]
        assert other.heads == []


@every_wire
async def test_replies_are_asked_for_uncompressed(wire: Wire) -> None:
    async with raw_server(reply(sse(*wire.whole))) as server:
        await parts_of(wire.backend(server.url), ask("capital?"))
        assert "accept-encoding: identity" in server.heads[0].lower()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKED: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("GZip, identity", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
]


@every_wire
async def test_what_is_compressed_all_the_same_is_read_answers_and_errors(wire: Wire) -> None:
    told = json.dumps({"error": {"message": "because"}}).encode()
    for name, pack in PACKED:
        headers = {"Content-Encoding": name}
        async with raw_server(reply(pack(sse(*wire.whole)), headers=headers)) as server:
            assert text_in(await parts_of(wire.backend(server.url), ask("capital?"))) == "Paris"
        refused = reply(pack(told), status="400 Bad Request", media_type="application/json", headers=headers)
        assert ": because" in str(await failure_of(wire, refused))


@every_wire
@pytest.mark.parametrize("name", ["compress", "gzip, gzip", "an invented one"])
async def test_a_compression_that_cannot_be_read_is_named(wire: Wire, name: str) -> None:
    error = await failure_of(wire, reply(b"?", headers={"Content-Encoding": name}))
    assert (error.reason, name in str(error)) == ("bad_reply", True)


@every_wire
@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error"])
async def test_the_limit_of_a_reply_holds_for_what_is_in_it(
    wire: Wire, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_REPLY_BYTES", 100_000)
    packed = gzip.compress(b"x" * 200_000)
    error = await failure_of(wire, reply(packed, status=status, headers={"Content-Encoding": "gzip"}))
    assert (error.reason, "sent more than 100000 bytes" in str(error)) == ("bad_reply", True)


SHAPES: tuple[Any, ...] = (
    {"error": "because"},
    {"error": {"message": "because"}},
    {"error": {"error": {"message": "because"}}},
    {"error": ["because"]},
    {"detail": "because"},
    {"detail": [{"loc": ["body"], "msg": "because"}]},
    {"message": "because"},
    {"errors": [{"message": "because"}]},
    {"title": "because", "status": 422},
    {"unheard_of": "because"},
    [{"error": {"message": "because"}}],
    ["because"],
    "because",
)


@every_wire
async def test_an_error_is_shown_whatever_the_shape_of_its_body(wire: Wire) -> None:
    for shape in SHAPES:
        for words, reason, part in (
            ("because", "bad_request", None),
            ("This model does not support tools.", "tools_unsupported", "tools"),
        ):
            body = json.dumps(shape).replace("because", words).encode()
            told = await failure_of(wire, reply(body, status="422 X", media_type="application/json"))
            assert (told.reason, told.refused) == (reason, part), body
            assert words in str(told)


@every_wire
async def test_an_error_with_status_200_is_shown(wire: Wire) -> None:
    for shape in ({"error": "because"}, {"error": {"message": "because"}}):
        told = await failure_of(wire, reply(json.dumps(shape).encode(), media_type="application/json"))
        assert (told.reason, told.retryable, "because" in str(told)) == ("provider_error", True, True)


@pytest.mark.parametrize("wire", [CHAT, RESPONSES], ids=lambda wire: wire.name)
async def test_an_event_that_is_named_an_error_is_one(wire: Wire) -> None:
    told = await failure_of(wire, reply(b'event: error\ndata: {"detail": "because"}\n\n'))
    assert (told.reason, told.retryable, "because" in str(told)) == ("provider_error", True, True)


def test_the_page_on_traffic_names_the_statuses_that_are_tried_again() -> None:
    page = Path("docs/providers-traffic.md").read_text(encoding="utf-8")
    named = re.search(r"the statuses ([0-9, ]+) and all from (\d+) on", page)
    assert named is not None
    assert {int(status) for status in named[1].split(", ")} == MAY_PASS | {429}
    assert named[2] == "500"


async def test_servers_that_only_imitate_claude_get_the_key_once_in_the_header_that_they_look_for() -> None:
    async with raw_server(reply(sse(*CLAUDE.whole))) as server:
        await parts_of(CLAUDE.backend(server.url), ask("capital?"))
        head = server.heads[0].lower()
    assert f"x-api-key: {KEY}" in head
    assert head.count(KEY) == 1
    assert "authorization" not in head


@every_wire
@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error"])
async def test_a_flood_without_line_ends_is_cut_off(wire: Wire, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_REPLY_BYTES", 100_000)
    error = await failure_of(wire, reply(b"x" * 200_000, status=status))
    assert error.reason == "bad_reply"


@every_wire
async def test_garbage_json_is_a_bad_reply(wire: Wire) -> None:
    error = await failure_of(wire, reply(b'event: message_start\ndata: {"type": "message_start", \n\n'))
    assert error.reason == "bad_reply"


@every_wire
@pytest.mark.parametrize("event", [{"type": "message_start"}, {"type": "response.completed"}, {"choices": 7}, [1], 7])
async def test_json_of_another_shape_is_an_error(wire: Wire, event: Any) -> None:
    error = await failure_of(wire, reply(f"event: message_start\ndata: {json.dumps(event)}\n\n".encode()))
    assert error.reason in ("bad_reply", "provider_error")


@every_wire
async def test_a_web_page_instead_of_a_stream_points_at_the_base_url(wire: Wire) -> None:
    error = await failure_of(wire, reply(b"<html>Welcome</html>", media_type="text/html; charset=utf-8"))
    assert error.reason == "bad_reply"
    assert "base_url" in str(error)


@pytest.mark.parametrize(
    ("cause", "reason", "retryable"),
    [
        (httpx2.ConnectError("refused"), "unreachable", True),
        (httpx2.ConnectTimeout("slow"), "unreachable", True),
        (ssl.SSLError("certificate"), "unreachable", True),
        (httpx2.UnsupportedProtocol("gopher"), "unreachable", False),
        (httpx2.ReadTimeout("idle"), "timeout", False),
        (httpx2.RemoteProtocolError("cut"), "provider_error", True),
        (httpx2.DecodingError("no gzip"), "provider_error", True),
        (RuntimeError("odd"), "provider_error", False),
    ],
)
def test_a_broken_connection_means_the_same_bare_or_wrapped(cause: Exception, reason: str, retryable: bool) -> None:
    endpoint = Endpoint("some-model", KEY, base_url="http://127.0.0.1:1")
    wrapped = RuntimeError("wrapped by an SDK")
    wrapped.__cause__ = cause
    for error in (cause, wrapped):
        told = translate(error, endpoint)
        assert (told.reason, told.retryable) == (reason, retryable)
        assert "http://127.0.0.1:1" in str(told)


ERROR_EVENTS: dict[str, dict[str, Any]] = {
    "chatcompletion": {"error": {"message": "too many", "type": "rate_limit_error", "code": None}},
    "openai": {"type": "error", "code": "rate_limit_exceeded", "message": "too many", "sequence_number": 1},
    "claude": {"type": "error", "error": {"type": "rate_limit_error", "message": "too many"}},
    "gemini": {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "too many"}},
}


@every_wire
async def test_an_error_event_in_a_good_stream_is_told_by_its_code(wire: Wire) -> None:
    heard: list[Part] = []
    error = await failure_of(wire, reply(sse(*wire.whole[:2], ERROR_EVENTS[wire.name])), heard=heard)
    assert (error.reason, error.retryable) == ("rate_limited", True)
    assert "too many" in str(error)
    assert not any(isinstance(part, StopPart) for part in heard)


GOOGLE_ERRORS: list[tuple[str, dict[str, Any], str, bool, float | None]] = [
    ("400 Bad Request", {"reason": "API_KEY_INVALID"}, "auth", False, None),
    ("400 Bad Request", {"reason": "FIELD_INVALID"}, "bad_request", False, None),
    (
        "429 Too Many",
        {"@type": "google.rpc.RetryInfo", "retryDelay": "34.5s"},
        "rate_limited",
        True,
        34.5,
    ),
    ("429 Too Many", {"retryDelay": "-1s"}, "rate_limited", True, None),
    ("429 Too Many", {"retryDelay": 7}, "rate_limited", True, None),
]


@pytest.mark.parametrize(("status", "detail", "reason", "retryable", "wait"), GOOGLE_ERRORS)
@pytest.mark.parametrize("listed", [True, False])
async def test_googles_errors_are_told_by_their_details(
    status: str, detail: dict[str, Any], reason: str, retryable: bool, wait: float | None, listed: bool
) -> None:
    error = {"error": {"code": int(status[:3]), "message": "because", "status": "X", "details": [{"a": "b"}, detail]}}
    body = json.dumps([error] if listed else error).encode()
    told = await failure_of(CHAT, reply(body, status=status, media_type="application/json"))
    assert (told.reason, told.retryable, told.retry_after) == (reason, retryable, wait)
    assert ": because" in str(told)


async def test_a_numeric_code_in_an_error_event_is_a_status() -> None:
    error = await failure_of(CHAT, reply(sse({"error": {"message": "no credit", "code": 402}})))
    assert (error.reason, error.retryable) == ("quota_exhausted", False)


async def test_a_failed_response_is_told_by_its_code() -> None:
    response = {**RESPONSES.whole[-1]["response"], "status": "failed"}
    response["error"] = {"code": "invalid_prompt", "message": "not allowed"}
    error = await failure_of(RESPONSES, reply(sse({"type": "response.failed", "response": response})))
    assert (error.reason, error.retryable) == ("bad_request", False)


@every_wire
@pytest.mark.parametrize(
    ("status", "code", "reason", "retryable"),
    [
        ("400 Bad Request", "", "bad_request", False),
        ("400 Bad Request", "invalid_api_key", "auth", False),
        ("402 Payment Required", "", "quota_exhausted", False),
        ("403 Forbidden", "", "auth", False),
        ("408 Request Timeout", "", "provider_error", True),
        ("409 Conflict", "", "provider_error", True),
        ("413 Too Large", "", "bad_request", False),
        ("421 Misdirected", "", "bad_request", False),
        ("425 Too Early", "", "provider_error", True),
        ("422 Unprocessable", "", "bad_request", False),
        ("429 Too Many", "", "rate_limited", True),
        ("429 Too Many", "insufficient_quota", "quota_exhausted", False),
        ("502 Bad Gateway", "", "provider_error", True),
        ("529 Overloaded", "", "provider_error", True),
    ],
)
async def test_a_status_has_one_meaning(wire: Wire, status: str, code: str, reason: str, retryable: bool) -> None:
    body = json.dumps({"error": {"message": "because", "type": code, "code": code or None}}).encode()
    error = await failure_of(wire, reply(body, status=status, media_type="application/json"))
    assert (error.reason, error.retryable) == (reason, retryable)
    assert "because" in str(error)


@every_wire
async def test_messages_are_short_and_hold_no_key(wire: Wire) -> None:
    body = json.dumps({"error": {"message": f"{KEY} " * 500, "type": "x"}}).encode()
    error = await failure_of(wire, reply(body, status="400 Bad Request", media_type="application/json"))
    assert len(str(error)) <= 500
    assert KEY[:8] not in str(error)
    assert error.__cause__ is None


@every_wire
async def test_lone_surrogates_become_replacement_characters(wire: Wire) -> None:
    events = json.loads(json.dumps(wire.whole).replace('"ris"', '"ris\\ud800!"'))
    async with raw_server(reply(sse(*events))) as server:
        parts = await parts_of(wire.backend(server.url), ask("a lone \ud800 in the question"))
    assert text_in(parts) == "Paris\ufffd!"


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        *(("length", "length"), ("MAX_TOKENS", "length"), ("eos", "end")),
        *(("content_filter", "refusal"), ("content_filter: RECITATION", "refusal"), ("SAFETY", "refusal")),
    ],
)
async def test_chat_finish_reasons(finish: str, stop: str) -> None:
    events = json.loads(json.dumps(CHAT.whole).replace('"stop"', f'"{finish}"'))
    async with raw_server(reply(sse(*events))) as server:
        assert stop_of(await parts_of(CHAT.backend(server.url), ask("?"))).reason == stop


@pytest.mark.parametrize(("reason", "stop"), [("max_output_tokens", "length"), ("content_filter", "refusal")])
async def test_incomplete_responses(reason: str, stop: str) -> None:
    response = {**RESPONSES.whole[-1]["response"], "status": "incomplete", "incomplete_details": {"reason": reason}}
    events = (*RESPONSES.whole[:-1], {"type": "response.incomplete", "sequence_number": 3, "response": response})
    async with raw_server(reply(sse(*events))) as server:
        assert stop_of(await parts_of(RESPONSES.backend(server.url), ask("?"))).reason == stop


@pytest.mark.parametrize(("reason", "stop"), [("max_tokens", "length"), ("refusal", "refusal"), ("end_turn", "end")])
async def test_claude_stop_reasons(reason: str, stop: str) -> None:
    events = json.loads(json.dumps(CLAUDE.whole).replace("end_turn", reason))
    async with raw_server(reply(sse(*events))) as server:
        assert stop_of(await parts_of(CLAUDE.backend(server.url), ask("?"))).reason == stop


@pytest.mark.parametrize("finish", ["error", "insufficient_system_resource", "MALFORMED_FUNCTION_CALL"])
async def test_a_chat_reply_that_the_server_broke_off_is_no_reply(finish: str) -> None:
    events = json.loads(json.dumps(CHAT.whole).replace('"stop"', f'"{finish}"'))
    error = await failure_of(CHAT, reply(sse(*events)))
    assert (error.reason, error.retryable) == ("provider_error", True)


@pytest.mark.parametrize(("arguments", "whole"), [('{"where": "up"}', True), ('{"where": "u', False), ("[]", False)])
async def test_an_invented_end_is_good_enough_for_calls_that_are_whole(arguments: str, whole: bool) -> None:
    call = {"index": 0, "id": "c", "function": {"name": "look", "arguments": arguments}}
    events: list[dict[str, Any]] = [
        {"choices": [{"delta": {"tool_calls": [call]}}]},
        {"choices": [{"delta": {}, "finish_reason": "fin"}]},
    ]
    if not whole:
        error = await failure_of(CHAT, reply(sse(*events, "[DONE]")))
        assert (error.reason, error.retryable) == ("provider_error", True)
        return
    async with raw_server(reply(sse(*events, "[DONE]"))) as server:
        assert stop_of(await parts_of(CHAT.backend(server.url), ask("?"))).reason == "tool_calls"


async def test_a_refusal_is_text_with_a_stop_of_its_own() -> None:
    refusals = (
        (CHAT, json.loads(json.dumps(CHAT.whole).replace('"content"', '"refusal"'))),
        (RESPONSES, json.loads(json.dumps(RESPONSES.whole).replace("response.output_text.", "response.refusal."))),
    )
    for wire, events in refusals:
        async with raw_server(reply(sse(*events))) as server:
            parts = await parts_of(wire.backend(server.url), ask("?"))
        assert text_in(parts) == "Paris"
        assert stop_of(parts).reason == "refusal"


async def test_a_claude_call_counts_even_if_its_end_is_not_told_apart() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"where": "up"}}
    opened = {"type": "content_block_start", "index": 0, "content_block": block}
    async with raw_server(reply(sse(CLAUDE.whole[0], opened, *CLAUDE.whole[-2:]))) as server:
        parts = await parts_of(CLAUDE.backend(server.url), ask("?"))
    (call,) = calls_in(parts)
    assert json.loads(call.arguments) == {"where": "up"}
    assert stop_of(parts).reason == "tool_calls"


async def test_claudes_cached_input_counts_as_input() -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5, "output_tokens": 1}
    start = {"type": "message_start", "message": {**CLAUDE.whole[0]["message"], "usage": usage}}
    async with raw_server(reply(sse(start, *CLAUDE.whole[1:]))) as server:
        parts = await parts_of(CLAUDE.backend(server.url), ask("?"))
    assert [part for part in parts if isinstance(part, UsagePart)] == [
        UsagePart(48, 40, 2, 0, "m", cache_write_tokens=5)
    ]


async def test_chat_calls_without_ids_or_with_one_id_twice_stay_apart() -> None:
    def call(index: int, call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
        fragment = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
        return {**CHAT.whole[0], "choices": [{"index": 0, "delta": {"tool_calls": [fragment]}, "finish_reason": None}]}

    fragments = [
        call(0, None, "look", '{"where"'),
        call(0, None, None, ': "left"}'),
        call(1, "same", "look", '{"where": "up"}'),
        call(2, "same", "look", '{"where": "down"}'),
        call(2, "other", "vote", "{}"),
    ]
    async with raw_server(reply(sse(*fragments, CHAT.whole[-1]))) as server:
        parts = await parts_of(CHAT.backend(server.url), ask("?"))
    calls = calls_in(parts)
    assert [(one.name, one.arguments) for one in calls] == [
        ("look", '{"where": "left"}'),
        ("look", '{"where": "up"}'),
        ("look", '{"where": "down"}'),
        ("vote", "{}"),
    ]
    assert all(one.id for one in calls)
    assert len({one.id for one in calls}) == 4
    assert stop_of(parts).reason == "tool_calls"


@pytest.mark.parametrize("index", [{}, {"index": None}, {"index": 0}])
@pytest.mark.parametrize("call_id", [{}, {"id": ""}, {"id": "same"}])
async def test_whole_calls_under_one_number_and_id_stay_apart(index: dict[str, Any], call_id: dict[str, Any]) -> None:
    """As Gemini and gateways to it stream parallel calls."""
    calls = [
        {**index, **call_id, "function": {"name": "look", "arguments": json.dumps({"where": where})}}
        for where in ("up", "down")
    ]
    events = [{**CHAT.whole[0], "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls]
    async with raw_server(reply(sse(*events, CHAT.whole[-1]))) as server:
        made = calls_in(await parts_of(CHAT.backend(server.url), ask("?")))
    assert [json.loads(call.arguments) for call in made] == [{"where": "up"}, {"where": "down"}]
    assert len({call.id for call in made}) == 2


async def test_a_call_in_fragments_that_all_bear_its_name_is_one_call() -> None:
    pieces = [{"index": 0, "id": "c", "function": {"name": "look", "arguments": text}} for text in ('{"a": {}', "}")]
    events = [{**CHAT.whole[0], "choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]} for piece in pieces]
    async with raw_server(reply(sse(*events, CHAT.whole[-1]))) as server:
        (call,) = calls_in(await parts_of(CHAT.backend(server.url), ask("?")))
    assert (call.name, call.arguments) == ("look", '{"a": {}}')


async def test_tokens_that_only_the_total_counts_are_output() -> None:
    """Gemini and xAI leave thoughts out of `completion_tokens`."""
    counted: dict[str, Any] = {
        "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 125},
        "choices": [],
    }
    async with raw_server(reply(sse(*CHAT.whole, counted))) as server:
        parts = await parts_of(CHAT.backend(server.url), ask("?"))
    (usage,) = [part for part in parts if isinstance(part, UsagePart)]
    assert (usage.input_tokens, usage.output_tokens) == (20, 105)


async def test_chat_servers_may_leave_fields_out() -> None:
    bare: tuple[dict[str, Any], ...] = (
        {"choices": [{"delta": {"content": "Paris"}}]},
        {"choices": [{"finish_reason": "stop"}]},
        {"usage": {}},
    )
    async with raw_server(reply(sse(*bare, "[DONE]"))) as server:
        parts = await parts_of(CHAT.backend(server.url), ask("?"))
    assert [part for part in parts if isinstance(part, TextPart)] == [TextPart("Paris")]
    assert stop_of(parts).reason == "end"
