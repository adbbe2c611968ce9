"""Anthropic's Messages API. Thinking is sent back as it came, with its signature."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from massgen_mcp.backends.base import (
    AssistantMessage,
    JsonObject,
    JsonValue,
    Message,
    ModelRequest,
    ToolResultMessage,
    UserMessage,
)
from massgen_mcp.backends.claude_reply import MAX_PAUSES, MessagesReply, tool_use
from massgen_mcp.backends.event_stream import ServerEvent
from massgen_mcp.backends.http import (
    TIMEOUT,
    Endpoint,
    KeyHeader,
    LazyClient,
    events_in,
    http_client,
    posted,
)
from massgen_mcp.backends.streamed import HttpBackend
from massgen_mcp.backends.wiretext import clean_object
from massgen_mcp.config.providers.catalog import MESSAGES_OUTPUT

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

ANTHROPIC = "https://api.anthropic.com"

_SDK = "anthropic"
"""What is imported before the first call."""

_NATIVE_TOOLS: dict[str, str] = {"web_search": "web_search_20250305", "code_execution": "code_execution_20250825"}
"""Versions that every current model has; later ones want further tools or newer models."""


class ClaudeBackend(HttpBackend["AsyncAnthropic", MessagesReply]):
    def __init__(self, endpoint: Endpoint) -> None:
        # The SDK adds the version to the path itself; users write it as for other APIs.
        base_url = (endpoint.base_url or ANTHROPIC).rstrip("/").removesuffix("/v1")
        super().__init__(endpoint, base_url, LazyClient(lambda: _connect(endpoint, base_url), _SDK), MessagesReply)

    async def _events(
        self, client: "AsyncAnthropic", request: ModelRequest, reply: MessagesReply, /
    ) -> AsyncGenerator[ServerEvent]:
        body = request_body(self._endpoint, request)
        for pauses in range(1 + MAX_PAUSES):
            async with posted(client, "/v1/messages", body) as chunks, aclosing(events_in(chunks)) as events:
                async for event in events:
                    yield event
            if not reply.paused or pauses == MAX_PAUSES:
                break
            body = request_body(self._endpoint, request, so_far=reply.resume())


def _connect(endpoint: Endpoint, base_url: str) -> "AsyncAnthropic":
    from anthropic import AsyncAnthropic

    # The SDK sends a bearer token; servers that only imitate the API look for its older header.
    key_header: KeyHeader = "authorization" if base_url == ANTHROPIC else "x-api-key"
    return AsyncAnthropic(
        api_key=endpoint.api_key,
        base_url=base_url,
        timeout=TIMEOUT,
        max_retries=0,
        http_client=http_client(endpoint.api_key, key_header),
    )


def request_body(endpoint: Endpoint, request: ModelRequest, *, so_far: Sequence[JsonObject] = ()) -> JsonObject:
    """The whole body of the HTTP request; `so_far` are the blocks of a reply that the API is to go on with."""
    begun: list[JsonValue] = [{"role": "assistant", "content": list(so_far)}] if so_far else []
    body: JsonObject = {
        "model": endpoint.model,
        "max_tokens": request.max_output_tokens or endpoint.max_output_tokens or MESSAGES_OUTPUT,
        "system": request.system,
        "messages": [*_turns(request.messages), *begun],
        "stream": True,
    }
    settings: dict[str, JsonValue] = {"temperature": endpoint.temperature, "top_p": endpoint.top_p}
    body.update({name: value for name, value in settings.items() if value is not None})
    body.update(_thinking(endpoint.reasoning_effort))
    body.update(endpoint.extra_body)
    tools: list[JsonValue] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in request.tools
    ]
    tools.extend({"type": _NATIVE_TOOLS[tool], "name": tool} for tool in endpoint.native_tools)
    if tools:
        body["tools"] = tools
    if request.tools:
        thinking = body.get("thinking")
        thinks = isinstance(thinking, dict) and thinking.get("type") != "disabled"
        # The API refuses to force a tool on a model that thinks.
        body["tool_choice"] = {"type": "any" if request.must_call_tool and not thinks else "auto"}
    return clean_object({**body, **endpoint.extra_body})


def _thinking(effort: str | None) -> JsonObject:
    if effort is None:
        return {}
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    return {
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "low" if effort == "minimal" else effort},
    }


def _turns(messages: tuple[Message, ...]) -> Iterator[JsonObject]:
    """Messages as alternating turns: the results of all calls and a user's message after them are one turn."""
    role = ""
    blocks: list[JsonValue] = []
    for message in messages:
        its_role = "assistant" if isinstance(message, AssistantMessage) else "user"
        its_blocks = list(_blocks(message))
        if its_role != role and its_blocks:
            if blocks:
                yield {"role": role, "content": blocks}
            role, blocks = its_role, []
        blocks = [*blocks, *its_blocks]
    if blocks:
        yield {"role": role, "content": blocks}


def _blocks(message: Message) -> Iterator[JsonValue]:
    match message:
        case UserMessage():
            yield {"type": "text", "text": message.text}
        case ToolResultMessage():
            yield {
                "type": "tool_result",
                "tool_use_id": message.call_id,
                "content": message.text,
                "is_error": message.is_error,
            }
        case AssistantMessage(replay=()):
            # The API refuses blank text.
            if message.text.strip():
                yield {"type": "text", "text": message.text}
            yield from map(tool_use, message.tool_calls)
        case AssistantMessage():
            yield from message.replay
