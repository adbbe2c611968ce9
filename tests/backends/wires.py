"""The four HTTP wires as one parameter, and small helpers to use them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from massgen_mcp.backends.base import (
    Backend,
    JsonObject,
    ModelRequest,
    Part,
    StopPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolSpec,
    UserMessage,
)
from massgen_mcp.backends.calling import CallHooks, ModelReply, RetryPolicy, call_model
from massgen_mcp.backends.chatcompletion import ChatCompletionBackend
from massgen_mcp.backends.claude import ClaudeBackend
from massgen_mcp.backends.gemini import GeminiBackend
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.backends.openai_responses import ResponsesBackend
from massgen_mcp.errors import BackendError
from massgen_mcp.redaction import Redactor

KEY = "sk-secret-0123456789"

VOTE = ToolSpec(
    "vote", "Vote.", {"type": "object", "properties": {"agent_id": {"type": "string"}}, "required": ["agent_id"]}
)
LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {"where": {"type": "string"}}})


@dataclass(frozen=True)
class Wire:
    """`whole` are events of a whole reply with the text "Paris"; the last one is the model's own end."""

    name: str
    make: Callable[[Endpoint], Backend]
    suffix: str
    path: str
    whole: tuple[dict[str, Any], ...]
    calls_end: dict[str, str] = field(default_factory=dict[str, str])
    """What aimock has to be told to end a reply with calls as the provider does."""

    def backend(self, root: str, **settings: Any) -> Backend:
        redactor = Redactor({"THE_KEY": KEY})
        endpoint = Endpoint(model="some-model", api_key=KEY, base_url=root + self.suffix, redactor=redactor)
        return self.make(replace(endpoint, **settings))


def _chunk(delta: JsonObject, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


_RESPONSE: dict[str, Any] = {
    "id": "r", "object": "response", "created_at": 1, "model": "m", "output": [], "status": "completed",
    "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
}  # fmt: skip

CHAT = Wire(
    "chatcompletion",
    ChatCompletionBackend,
    "/v1",
    "/v1/chat/completions",
    (_chunk({"role": "assistant", "content": "Pa"}), _chunk({"content": "ris"}), _chunk({}, "stop")),
)
RESPONSES = Wire(
    "openai",
    ResponsesBackend,
    "/v1",
    "/v1/responses",
    (
        {"type": "response.created", "sequence_number": 0, "response": {**_RESPONSE, "status": "in_progress"}},
        {"type": "response.output_text.delta", "sequence_number": 1, "item_id": "i", "output_index": 0,
         "content_index": 0, "delta": "Pa", "logprobs": []},
        {"type": "response.output_text.delta", "sequence_number": 2, "item_id": "i", "output_index": 0,
         "content_index": 0, "delta": "ris", "logprobs": []},
        {"type": "response.completed", "sequence_number": 3, "response": _RESPONSE},
    ),
)  # fmt: skip
CLAUDE = Wire(
    "claude",
    ClaudeBackend,
    "",
    "/v1/messages",
    (
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "m",
         "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Pa"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ris"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
         "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ),
)  # fmt: skip


def _candidate(text: str, **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0, **more}
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r"}


GEMINI = Wire(
    "gemini",
    GeminiBackend,
    "/v1beta",
    "/v1beta/models/some-model:streamGenerateContent?alt=sse",
    (_candidate("Pa"), _candidate("ris"), _candidate("", finishReason="STOP")),
    calls_end={"finishReason": "STOP"},
)

WIRES = (CHAT, RESPONSES, CLAUDE, GEMINI)


def ask(text: str, *tools: ToolSpec, must_call_tool: bool = False) -> ModelRequest:
    return ModelRequest("You are terse.", (UserMessage(text),), tools, must_call_tool)


async def parts_of(backend: Backend, request: ModelRequest, heard: list[Part] | None = None) -> list[Part]:
    """All parts of one call; `heard` also keeps those that came before an error."""
    parts: list[Part] = [] if heard is None else heard
    try:
        async for part in backend.stream(request):
            parts.append(part)  # noqa: PERF401 - a comprehension would lose them
    finally:
        await backend.aclose()
    return parts


async def reply_of(
    backend: Backend, request: ModelRequest, *, deadline: float = 30.0, retries: list[BackendError] | None = None
) -> ModelReply:
    """A call with the real policy but without its waits."""

    class Retries(CallHooks):
        def on_retry(self, attempt: int, error: BackendError, wait_seconds: float) -> None:
            if retries is not None:
                assert attempt == len(retries) + 1
                assert wait_seconds >= 0
                retries.append(error)

    try:
        return await call_model(
            backend,
            request,
            Retries(),
            policy=RetryPolicy(first_wait=0.0),
            deadline_seconds=deadline,
        )
    finally:
        await backend.aclose()


def text_in(parts: list[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def calls_in(parts: list[Part]) -> list[ToolCall]:
    return [part.call for part in parts if isinstance(part, ToolCallPart)]


def stop_of(parts: list[Part]) -> StopPart:
    assert isinstance(parts[-1], StopPart)
    return parts[-1]
