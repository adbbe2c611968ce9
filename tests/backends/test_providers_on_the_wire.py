"""Every provider by its own `type`, against aimock: the path, the key and the model that go out."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import TypeAdapter

from massgen_mcp.backends.base import AssistantMessage, Backend, ToolResultMessage, UserMessage
from massgen_mcp.backends.registry import make_backend
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.providers.catalog import PROVIDERS, named_provider
from massgen_mcp.errors import BackendError
from tests.backends.wires import CHAT, LOOK, VOTE, ask, parts_of, reply_of, text_in
from tests.raw_double import raw_server, reply, sse
from tests.wire_check import check_body
from tests.wire_double import Aimock

CONFIG: TypeAdapter[BackendConfig] = TypeAdapter(BackendConfig)
LOCAL = ("lmstudio", "vllm", "sglang", "llamacpp")
KEYED = tuple(row.type for row in PROVIDERS if row.type not in ("azure_openai", "ollama", *LOCAL))
SUFFIX = {
    "responses": "/responses",
    "chat": "/chat/completions",
    "messages": "/v1/messages",
    "gemini": "/models/some-model:streamGenerateContent?alt=sse",
}
HEADERS = {"messages": "x-api-key", "gemini": "x-goog-api-key"}
PARIS = {"match": {"userMessage": "capital"}, "response": {"content": "Paris"}}


def backend(kind: str, environ: dict[str, str], **settings: Any) -> Backend:
    return make_backend(CONFIG.validate_python({"type": kind, "model": "some-model", **settings}), environ)


@pytest.mark.parametrize("kind", KEYED)
async def test_a_provider_is_asked_below_its_own_path_with_its_key_in_one_header(kind: str, aimock: Aimock) -> None:
    aimock.load(PARIS)
    row = named_provider(kind)
    prefix = urlsplit(row.base_url).path
    asked = backend(kind, {"MY_KEY": "sk-mine"}, base_url=aimock.url + prefix, api_key_env="MY_KEY")
    assert text_in(await parts_of(asked, ask("capital?", VOTE))) == "Paris"
    (request,) = aimock.requests
    assert request.path == prefix + SUFFIX[row.wire]
    header = HEADERS.get(row.wire)
    own_header = {header: "sk-mine"} if header else {"authorization": "Bearer sk-mine"}
    assert {name: value for name, value in request.headers.items() if "sk-mine" in value} == own_header
    others = {"authorization", "x-api-key", "api-key", "x-goog-api-key"}.difference(own_header)
    assert not others.intersection(request.headers)
    assert row.wire == "gemini" or request.body["model"] == "some-model"
    check_body(request.path, request.body)


def test_the_paths_are_the_providers_documented_ones() -> None:
    paths = {row.type: urlsplit(row.base_url).path for row in PROVIDERS}
    assert paths["gemini"] == "/v1beta"
    assert paths["qwen"] == "/compatible-mode/v1"
    assert paths["github"] == "/inference"
    assert paths["deepseek"] == paths["perplexity"] == ""
    assert paths["openrouter"] == "/api/v1"
    assert paths["groq"] == "/openai/v1"
    assert paths["fireworks"] == "/inference/v1"
    assert paths["zai"] == "/api/paas/v4"


async def test_azure_is_asked_for_a_deployment_with_a_version_and_a_key_in_its_own_header(aimock: Aimock) -> None:
    aimock.load(PARIS)
    environ = {"AZURE_OPENAI_API_KEY": "az-mine", "AZURE_OPENAI_ENDPOINT": aimock.url + "/", "OPENAI_API_KEY": "sk-no"}
    settings = {"deployment": "team-1", "api_version": "2024-10-21", "max_output_tokens": 100}
    asked = backend("azure_openai", environ, **settings)
    assert text_in(await parts_of(asked, ask("capital?"))) == "Paris"
    (request,) = aimock.requests
    assert request.path == "/openai/deployments/team-1/chat/completions?api-version=2024-10-21"
    assert request.headers["api-key"] == "az-mine"
    assert "authorization" not in request.headers
    assert request.body["model"] == "some-model"
    assert request.body["max_completion_tokens"] == 100
    check_body(urlsplit(request.path).path, request.body)


@pytest.mark.parametrize("root", ["", "/", "/openai/v1", "/openai/v1/"])
async def test_azures_current_api_is_asked_for_the_deployment_by_name(root: str, aimock: Aimock) -> None:
    aimock.load(PARIS)
    asked = backend(
        "azure_openai", {"MY_KEY": "k"}, api_key_env="MY_KEY", endpoint=aimock.url + root, deployment="team-1"
    )
    assert asked.model == "some-model"
    await parts_of(asked, ask("capital?"))
    (request,) = aimock.requests
    assert request.path == "/openai/v1/chat/completions"
    assert request.headers["api-key"] == "k"
    assert request.body["model"] == "team-1"


async def test_azures_deployment_is_called_like_the_model_unless_told_otherwise(aimock: Aimock) -> None:
    aimock.load(PARIS)
    version = "2025-04-01-preview"
    settings = {"model": "gpt 5/x", "endpoint": aimock.url, "api_version": version}
    asked = backend("azure_openai", {"MY_KEY": "k"}, api_key_env="MY_KEY", **settings)
    await parts_of(asked, ask("capital?"))
    (request,) = aimock.requests
    assert request.path == f"/openai/deployments/gpt%205%2Fx/chat/completions?api-version={version}"


async def test_keys_of_the_process_do_not_reach_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN", "OPENAI_ORG_ID"):
        monkeypatch.setenv(name, "sk-of-the-process")
    async with raw_server(reply(sse(*CHAT.whole))) as server:
        asked = backend("azure_openai", {"MY_KEY": "az-mine"}, endpoint=server.url, api_key_env="MY_KEY")
        assert text_in(await parts_of(asked, ask("?"))) == "Paris"
        assert "sk-of-the-process" not in server.heads[0]
        assert "az-mine" in server.heads[0]


@pytest.mark.parametrize(
    ("environ", "named"),
    [({"AZURE_OPENAI_API_KEY": "k"}, "AZURE_OPENAI_ENDPOINT"), ({"AZURE_OPENAI_ENDPOINT": "https://a.b"}, "API_KEY")],
)
def test_what_azure_lacks_is_named(environ: dict[str, str], named: str) -> None:
    with pytest.raises(BackendError, match=f"set AZURE_OPENAI_.*{named}|set {named}"):
        backend("azure_openai", environ)


@pytest.mark.parametrize("kind", LOCAL)
async def test_a_local_server_is_asked_for_a_named_model_without_any_listing(kind: str, aimock: Aimock) -> None:
    aimock.load(PARIS)
    asked = backend(kind, {"OPENAI_API_KEY": "sk-no"}, base_url=f"{aimock.url}/v1")
    assert text_in(await parts_of(asked, ask("capital?"))) == "Paris"
    (request,) = aimock.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer not-needed"
    assert request.body["model"] == "some-model"


def listing(*names: str) -> bytes:
    body = json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode()
    return reply(body, media_type="application/json")


@pytest.mark.parametrize("kind", LOCAL)
async def test_a_local_server_without_a_model_serves_one_that_it_lists(kind: str, aimock: Aimock) -> None:
    models = ("nomic-embed", "qwen-4", "other")
    aimock.load(*({"match": {"model": model}, "response": {"content": f"from {model}"}} for model in models))
    asked = backend(kind, {"MY_KEY": "mine"}, model="auto", base_url=f"{aimock.url}/v1/", api_key_env="MY_KEY")
    assert asked.model == "auto"
    for _ in range(2):
        assert text_in([part async for part in asked.stream(ask("capital?"))]) == "from qwen-4"
    await asked.aclose()
    await asked.aclose()
    first, second = aimock.requests
    own = ["/api/v1/models", "/api/v0/models"] if kind == "lmstudio" else []
    assert [request.path for request in aimock.lists] == [*own, "/v1/models"]
    assert {request.headers["authorization"] for request in (*aimock.lists, first, second)} == {"Bearer mine"}
    for request in (first, second):
        assert (request.path, request.body["model"]) == ("/v1/chat/completions", "qwen-4")
        check_body(request.path, request.body)


@pytest.mark.parametrize(
    ("answer", "reason", "message"),
    [
        (listing("nomic-embed"), "model_not_found", "lists no chat models"),
        (reply(b"<html>"), "model_not_found", "lists no chat models"),
        (reply(b"", status="404 Not Found"), "provider_error", "answered 404 instead of listing its models"),
        (reply(b"", status="307 Temporary Redirect", headers={"Location": "/x"}), "provider_error", "answered 307"),
        (reply(b"x" * 2_000_000), "bad_reply", "more than"),
    ],
    ids=["no-chat-model", "no-json", "404", "redirect", "endless"],
)
async def test_a_local_server_that_lists_nothing_is_told_of(answer: bytes, reason: str, message: str) -> None:
    async with raw_server(answer) as server:
        with pytest.raises(BackendError, match=message) as caught:
            await parts_of(backend("vllm", {}, model="auto", base_url=f"{server.url}/v1"), ask("?"))
        assert caught.value.reason == reason
        assert server.url in str(caught.value)


async def test_a_local_server_that_is_not_there_is_unreachable(free_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{free_tcp_port}/v1"
    with pytest.raises(BackendError, match=url) as caught:
        await parts_of(backend("lmstudio", {}, model="auto", base_url=url), ask("?"))
    assert caught.value.reason == "unreachable"
    assert caught.value.retryable


def gemini_call(call_id: str, signature: str | None) -> dict[str, Any]:
    """As Gemini streams them: whole, without an index, the signature on the first of parallel calls."""
    call: dict[str, Any] = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return call if signature is None else {**call, "extra_content": {"google": {"thought_signature": signature}}}


async def test_at_its_compatible_endpoint_geminis_signatures_go_back_with_the_calls_they_came_with(
    aimock: Aimock,
) -> None:
    aimock.load(PARIS)
    calls = [gemini_call("call_1", "SIGNED"), gemini_call("call_2", None)]
    delta = {"role": "assistant", "content": "I look.", "tool_calls": calls}
    chunk = {**CHAT.whole[0], "choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]}
    request = ask("look around", LOOK)
    compatible = "/v1beta/openai"
    async with raw_server(reply(sse(chunk))) as server:
        asked = backend("gemini", {"MY_KEY": "k"}, base_url=server.url + compatible, api_key_env="MY_KEY")
        first = await reply_of(asked, request)
    assert [call.id for call in first.tool_calls] == ["call_1", "call_2"]
    said = AssistantMessage(first.text, first.tool_calls, first.replay)
    results = [ToolResultMessage(call.id, "look", "empty") for call in first.tool_calls]
    second = replace(request, messages=(*request.messages, said, *results, UserMessage("capital?")))
    await parts_of(backend("gemini", {"MY_KEY": "k"}, base_url=aimock.url + compatible, api_key_env="MY_KEY"), second)
    (sent,) = aimock.requests
    check_body(sent.path, sent.body)
    assert sent.body["messages"][2] == {"role": "assistant", "content": "I look.", "tool_calls": calls}
