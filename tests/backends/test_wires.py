"""Every HTTP backend against aimock: settings, keys and addresses. What every wire does is in `tests/wires`."""

import json

import pytest

from massgen_mcp.errors import BackendError
from tests.backends.wires import GEMINI, KEY, VOTE, WIRES, Wire, ask, calls_in, parts_of, reply_of, stop_of
from tests.wire_check import check_body
from tests.wire_double import Aimock

pytestmark = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


async def test_a_tool_call_arrives_whole_with_its_id_and_name(wire: Wire, aimock: Aimock) -> None:
    call = {"id": "call_77", "name": "vote", "arguments": {"agent_id": "agent2", "reason": "clear and complete"}}
    aimock.load({"match": {"toolName": "vote"}, "response": {"toolCalls": [call], **wire.calls_end}, "chunkSize": 3})
    parts = await parts_of(wire.backend(aimock.url), ask("Vote!", VOTE, must_call_tool=True))
    (got,) = calls_in(parts)
    assert (got.id, got.name) == ("call_77", "vote")
    assert json.loads(got.arguments) == call["arguments"]
    assert stop_of(parts).reason == "tool_calls"
    (request,) = aimock.requests
    check_body(request.path, request.body)
    forced = request.body.get("tool_choice") or request.body["toolConfig"]["functionCallingConfig"]
    assert forced in ("required", {"type": "any"}, {"mode": "ANY"})


async def test_all_settings_go_out_in_fields_the_api_knows(wire: Wire, aimock: Aimock) -> None:
    aimock.load({"match": {"userMessage": "capital"}, "response": {"content": "Paris"}})
    tier = "serviceTier" if wire is GEMINI else "service_tier"
    backend = wire.backend(
        aimock.url, temperature=0.5, top_p=0.9, max_output_tokens=100, reasoning_effort="low",
        extra_body={tier: "auto"},
    )  # fmt: skip
    await parts_of(backend, ask("capital?", VOTE))
    (request,) = aimock.requests
    check_body(request.path, _without_sampling(request.body, wire))
    sent = {**request.body, **request.body.get("generationConfig", {})}
    assert sent["temperature"] == 0.5
    assert sent["topP" if wire is GEMINI else "top_p"] == 0.9
    assert 100 in sent.values()
    assert '"low"' in json.dumps(request.body)
    assert request.body[tier] == "auto"


async def test_verbosity_goes_to_the_apis_that_have_it(wire: Wire, aimock: Aimock) -> None:
    aimock.load({"match": {"userMessage": "capital"}, "response": {"content": "Paris"}})
    await parts_of(wire.backend(aimock.url, verbosity="low"), ask("capital?"))
    (request,) = aimock.requests
    check_body(request.path, request.body)
    expected = {"claude": None, "openai": {"verbosity": "low"}, "chatcompletion": "low", "gemini": None}
    assert request.body.get("text", request.body.get("verbosity")) == expected[wire.name]


async def test_a_refused_key_is_not_tried_again_and_not_told(wire: Wire, aimock: Aimock) -> None:
    refused = {"error": {"message": f"bad key {KEY}", "type": "authentication_error"}, "status": 401}
    aimock.load({"match": {}, "response": refused})
    with pytest.raises(BackendError, match=r"bad key \[key THE_KEY\]") as caught:
        await reply_of(wire.backend(aimock.url), ask("capital?"))
    assert caught.value.reason == "auth"
    assert not caught.value.retryable
    assert len(aimock.requests) == 1


async def test_a_missing_model_is_named_together_with_its_address(wire: Wire, aimock: Aimock) -> None:
    with pytest.raises(BackendError) as caught:
        await reply_of(wire.backend(aimock.url), ask("nobody answers this"))
    assert caught.value.reason == "model_not_found"
    assert "some-model" in str(caught.value)
    assert aimock.url in str(caught.value)
    assert len(aimock.requests) == 1


async def test_an_unreachable_server_is_named(wire: Wire, free_tcp_port: int) -> None:
    root = f"http://127.0.0.1:{free_tcp_port}"
    retries: list[BackendError] = []
    with pytest.raises(BackendError, match=root) as caught:
        await reply_of(wire.backend(root), ask("capital?"), retries=retries)
    assert caught.value.reason == "unreachable"
    assert len(retries) == 3


def _without_sampling(body: dict[str, object], wire: Wire) -> dict[str, object]:
    """anthropic 2 has taken sampling out of its types; the API takes it."""
    hidden = ("temperature", "top_p") if wire.name == "claude" else ()
    return {name: value for name, value in body.items() if name not in hidden}
