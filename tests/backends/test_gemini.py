"""Gemini through Google's own API: what is sent, what goes back as it came, and what its search found."""

import json
from dataclasses import replace
from typing import Any

import pytest

from massgen_mcp.backends import gemini
from massgen_mcp.backends.base import (
    AssistantMessage,
    CitationsPart,
    ModelRequest,
    ToolResultMessage,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.errors import BackendError
from tests import gemini_body
from tests.backends.wires import GEMINI, LOOK, VOTE, ask, calls_in, parts_of, reply_of, stop_of, text_in
from tests.raw_double import raw_server, reply
from tests.wires.dialects import Gemini

CODE = {"executableCode": {"language": "PYTHON", "code": "print(6 * 7)"}}
RESULT = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}}
SEARCH = {"toolCall": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["France"]}}}
FOUND = {"toolResponse": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"r": 1}}, "thoughtSignature": "F="}


async def parts_in(dialect: Gemini, **settings: Any) -> list[Any]:
    async with raw_server(reply(dialect.body())) as server:
        return await parts_of(GEMINI.backend(server.url, **settings), ask("capital?", LOOK, VOTE))


def body_after(parts: list[Any], request: ModelRequest | None = None) -> list[Any]:
    """The contents of the request of the next turn, with a result for every call."""
    request = request or ask("capital?", LOOK, VOTE)
    calls = tuple(calls_in(parts))
    said = AssistantMessage(text_in(parts), calls, stop_of(parts).replay)
    results = [ToolResultMessage(call.id, call.name, "empty") for call in calls]
    again = replace(request, messages=(*request.messages, said, *results, UserMessage("Go on.")))
    body: Any = gemini.request_body(Endpoint("some-model", "key"), again)
    gemini_body.check(body)
    return body["contents"]


async def test_all_parts_of_a_reply_go_back_as_they_came() -> None:
    signed = "Ab+/cd=="
    dialect = Gemini().part(text="Hm, ", thought=True).part(text="look.", thought=True).part(**SEARCH).part(**FOUND)
    dialect = dialect.part(**CODE).part(**RESULT).text("I ", "look.").part(text="", thoughtSignature="T=")
    one = {"id": "c1", "name": "look", "args": {"where": "up", "deep": {"er": [1, None]}}}
    two: dict[str, Any] = {"id": "c2", "name": "look", "args": {}}
    dialect = dialect.part(functionCall=one, thoughtSignature=signed).part(functionCall=two).stop("calls")
    parts = await parts_in(dialect)
    assert [(call.id, json.loads(call.arguments)) for call in calls_in(parts)] == [("c1", one["args"]), ("c2", {})]
    _, said, results, _ = body_after(parts)
    assert said == {
        "role": "model",
        "parts": [
            {"text": "Hm, look.", "thought": True}, SEARCH, FOUND, CODE, RESULT, {"text": "I look."},
            {"text": "", "thoughtSignature": "T="}, {"functionCall": one, "thoughtSignature": signed},
            {"functionCall": two},
        ],
    }  # fmt: skip
    named = [(part["functionResponse"]["name"], part["functionResponse"]["id"]) for part in results["parts"]]
    assert (results["role"], named) == ("user", [("look", "c1"), ("look", "c2")])


async def test_a_call_without_an_id_is_answered_without_one_and_a_second_use_of_an_id_gets_another() -> None:
    unnamed: dict[str, Any] = {"name": "default_api:look", "args": {}}
    dialect = Gemini().part(functionCall=unnamed).part(functionCall=unnamed)
    dialect = dialect.call("look", "{}", call_id="same").call("look", "{}", call_id="same").stop("calls")
    parts = await parts_in(dialect)
    ids = [call.id for call in calls_in(parts)]
    assert len(set(ids)) == 4
    _, said, results, _ = body_after(parts)
    sent = [part["functionCall"].get("id") for part in said["parts"]]
    assert sent == [None, None, "same", ids[3]]
    assert [part["functionResponse"].get("id") for part in results["parts"]] == sent
    assert results["parts"][0]["functionResponse"]["name"] == "default_api:look"


async def test_a_call_whose_signature_is_lost_says_so() -> None:
    parts = await parts_in(Gemini().reason("hm").call("look", '{"where": "up"}').stop("calls"))
    lost = AssistantMessage("I look.", tuple(calls_in(parts)))
    request = replace(
        ask("?", LOOK), messages=(UserMessage("?"), lost, ToolResultMessage("call_1", "look", "no", is_error=True))
    )
    body: Any = gemini.request_body(Endpoint("some-model", "key"), request)
    gemini_body.check(body)
    assert body["contents"][1]["parts"][1]["thoughtSignature"] == "skip_thought_signature_validator"
    assert body["contents"][2]["parts"][0]["functionResponse"]["response"] == {"error": "no"}


@pytest.mark.parametrize(
    ("native", "must_call", "config"),
    [
        ((), False, {"functionCallingConfig": {"mode": "AUTO"}}),
        ((), True, {"functionCallingConfig": {"mode": "ANY"}}),
        (
            ("web_search", "code_execution"),
            False,
            {"functionCallingConfig": {"mode": "VALIDATED"}, "includeServerSideToolInvocations": True},
        ),
        (
            ("web_search",),
            True,
            {"functionCallingConfig": {"mode": "ANY"}, "includeServerSideToolInvocations": True},
        ),
    ],
)
def test_calls_are_asked_for_in_the_words_of_the_api(native: Any, must_call: bool, config: Any) -> None:
    endpoint = Endpoint("some-model", "key", native_tools=native)
    body: Any = gemini.request_body(endpoint, ask("?", LOOK, must_call_tool=must_call))
    gemini_body.check(body)
    assert body["toolConfig"] == config
    tools: list[dict[str, Any]] = [{"googleSearch": {}}, {"codeExecution": {}}]
    own = tools[: len(native)]
    assert body["tools"][:-1] == own
    alone: Any = gemini.request_body(endpoint, ask("?"))
    gemini_body.check(alone)
    assert alone.get("tools", []) == own


@pytest.mark.parametrize(
    ("model", "effort", "thinking"),
    [
        ("gemini-4-argon", None, {"includeThoughts": True}),
        ("gemini-4-argon", "low", {"includeThoughts": True, "thinkingLevel": "low"}),
        ("gemini-4-argon", "max", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3-flash", "none", {"includeThoughts": True, "thinkingLevel": "minimal"}),
        ("gemini-2.5-flash", "medium", {"includeThoughts": True, "thinkingBudget": 8192}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.0-flash", "high", None),
    ],
)
def test_a_model_is_asked_to_think_as_its_generation_understands(model: str, effort: Any, thinking: Any) -> None:
    endpoint = Endpoint(model, "key", reasoning_effort=effort, temperature=0.0)
    body: Any = gemini.request_body(endpoint, ask("?"))
    gemini_body.check(body)
    assert body["generationConfig"].get("thinkingConfig") == thinking
    assert body["generationConfig"]["temperature"] == 0.0


def test_fields_of_the_users_own_stand_beside_ours() -> None:
    extra: Any = {"generationConfig": {"topK": 3, "temperature": 1}, "safetySettings": []}
    body: Any = gemini.request_body(
        Endpoint("gemini-2.0-x", "key", temperature=0.5, top_p=0.9, extra_body=extra), ask("?")
    )
    assert body["generationConfig"] == {"temperature": 1, "topP": 0.9, "topK": 3}
    assert body["safetySettings"] == []


@pytest.mark.parametrize(
    ("root", "path"),
    [
        ("", "/v1beta/models/some-model:streamGenerateContent?alt=sse"),
        ("/", "/v1beta/models/some-model:streamGenerateContent?alt=sse"),
        ("/v1/", "/v1/models/some-model:streamGenerateContent?alt=sse"),
    ],
)
async def test_the_address_may_leave_the_version_out(root: str, path: str) -> None:
    async with raw_server(reply(Gemini().text("Paris").stop("end").body())) as server:
        endpoint = Endpoint("some-model", "key", base_url=server.url + root)
        assert text_in(await parts_of(gemini.GeminiBackend(endpoint), ask("?"))) == "Paris"
    assert [seen.path for seen in server.requests] == [path]


async def test_what_a_search_found_is_told_with_what_the_reply_rests_on_first() -> None:
    pages = [{"web": {"uri": f"https://p{n}.example/", "title": f"p{n}"}} for n in range(4)]
    metadata = {
        "webSearchQueries": ["France", "capital"],
        "groundingChunks": pages,
        "groundingSupports": [{"groundingChunkIndices": [2, 0]}, {"groundingChunkIndices": [2]}],
    }
    parts = await parts_in(Gemini().text("Paris.").grounded(metadata).stop("end"))
    (told,) = [part for part in parts if isinstance(part, CitationsPart)]
    assert [cited.url for cited in told.citations] == ["https://p2.example/", "https://p0.example/"]
    (usage,) = [part for part in parts if isinstance(part, UsagePart)]
    assert usage.web_searches == 2
    (usage,) = [
        part
        for part in await parts_in(Gemini().text("Paris.").grounded(metadata).stop("end"), model="gemini-2.5-pro")
        if isinstance(part, UsagePart)
    ]
    assert usage.web_searches == 1, "Gemini 2 bills the request, not the query"


BROKEN_REPORTS: list[dict[str, Any]] = [
    {"groundingChunks": "none", "webSearchQueries": 7},
    {"groundingChunks": [7, {"web": None}, {"web": {"uri": ["x"], "title": 1}}], "groundingSupports": {}},
    {"groundingChunks": [{"web": {}}], "groundingSupports": [{"groundingChunkIndices": [-1, "x", 10**30]}]},
]


@pytest.mark.parametrize("metadata", BROKEN_REPORTS)
async def test_a_broken_report_of_a_search_costs_no_reply(metadata: dict[str, Any]) -> None:
    parts = await parts_in(Gemini().text("Paris.").grounded(metadata).stop("end"))
    assert (text_in(parts), stop_of(parts).reason) == ("Paris.", "end")
    assert not [part for part in parts if isinstance(part, CitationsPart)]


async def test_a_blocked_request_is_told_with_its_reason_and_what_it_counted() -> None:
    heard: list[Any] = []
    async with raw_server(reply(Gemini().error("policy").body())) as server:
        with pytest.raises(BackendError, match="blocked the request: PROHIBITED_CONTENT") as caught:
            await parts_of(GEMINI.backend(server.url), ask("?"), heard)
    assert (caught.value.reason, caught.value.retryable) == ("content_filter", False)
    assert [type(part) for part in heard] == [UsagePart]


@pytest.mark.parametrize(
    ("status", "error", "reason", "after"),
    [
        (
            "429 Too Many Requests",
            {"code": 429, "message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED",
             "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]},
            "rate_limited", 34.5,
        ),
        (
            "400 Bad Request",
            {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT",
             "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]},
            "auth", None,
        ),
        (
            "404 Not Found",
            {"code": 404, "message": "models/some-model is not found", "status": "NOT_FOUND"}, "model_not_found", None,
        ),
        (
            "400 Bad Request",
            {"code": 400, "message": "The input token count (2000000) exceeds the maximum number of tokens allowed "
             "(1048576).", "status": "INVALID_ARGUMENT"},
            "context_too_small", None,
        ),
        (
            "503 Service Unavailable",
            {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}, "provider_error", None,
        ),
    ],
)  # fmt: skip
async def test_googles_errors_are_read(status: str, error: Any, reason: str, after: float | None) -> None:
    body = json.dumps({"error": error}).encode()
    async with raw_server(reply(body, status=status, media_type="application/json")) as server:
        with pytest.raises(BackendError) as caught:
            await parts_of(GEMINI.backend(server.url), ask("?"))
    assert (caught.value.reason, caught.value.retry_after) == (reason, after)
    assert error["message"] in str(caught.value)


async def test_a_reply_of_thoughts_and_text_is_told_apart() -> None:
    async with raw_server(reply(Gemini().reason("hm").text("Pa", "ris").stop("end").body())) as server:
        whole = await reply_of(GEMINI.backend(server.url), ask("capital?"))
    assert (whole.reasoning, whole.text, whole.replay) == ("hm", "Paris", ())
