"""Ollama's own chat API. Only here a request can say how large a context its model is loaded with, and that a prompt
which does not fit is to be refused instead of being cut.
"""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace

import anyio

from massgen_mcp.backends.base import (
    AssistantMessage,
    DraftPart,
    JsonObject,
    JsonValue,
    Message,
    ModelRequest,
    Part,
    ReasoningPart,
    ToolCall,
    ToolCallPart,
    ToolResultMessage,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.ends import CHAT
from massgen_mcp.backends.failures import of_event, stop_part
from massgen_mcp.backends.http import Endpoint, LazyClient, PlainClient, json_lines, listing_client
from massgen_mcp.backends.streamed import HttpBackend, WireReply
from massgen_mcp.backends.thoughts import ThoughtsApart
from massgen_mcp.backends.wire_values import (
    Fields,
    arguments_object,
    clean,
    clean_object,
    complete_usage,
    count,
    fields_of,
    fields_or_none,
    objects_in,
    text_in,
    tool_name,
)
from massgen_mcp.config.access.local_servers import api_root, read_reply
from massgen_mcp.config.access.model_lists import ListedModel, loaded_by_ollama, shown_by_ollama

CONTEXT = 16_384
"""Tokens of context that are asked for where nobody says how many: room for a ballot of several long answers, and for
2 GiB of memory with a model of 8 billion parameters. Ollama's own default is 4,096 on most machines.
"""

_EFFORTS: dict[str, str | bool] = {"none": False, "minimal": "low", "xhigh": "high"}
"""Efforts that Ollama calls otherwise; it knows low, medium, high and max."""


@dataclass(frozen=True, slots=True)
class OllamaSettings:
    """What Ollama alone is told. None: see `OllamaBackendConfig`."""

    context_length: int | None = None
    keep_alive: str | None = None


class OllamaBackend(HttpBackend[PlainClient, "_Reply"]):
    def __init__(self, endpoint: Endpoint, settings: OllamaSettings) -> None:
        client = LazyClient(lambda: PlainClient(endpoint))
        super().__init__(replace(endpoint, base_url=api_root(endpoint.base_url or "")), client, _Reply)
        self._settings = settings
        self._lock = anyio.Lock()
        self._context: int | None = None

    async def _events(self, client: PlainClient, request: ModelRequest, reply: "_Reply", /) -> AsyncGenerator[object]:
        context = await self._context_length()
        body = request_body(self._endpoint, self._settings, request, context)
        async with (
            client.posted(f"{self._endpoint.base_url}/api/chat", body) as chunks,
            aclosing(json_lines(chunks)) as lines,
        ):
            async for line in lines:
                yield line
                if reply.is_whole:
                    return

    async def window(self) -> int | None:
        """What it will be loaded with."""
        context = await self._context_length()
        asked = request_body(self._endpoint, self._settings, ModelRequest("", (), ()), context)["options"]
        asked_context = asked.get("num_ctx") if isinstance(asked, dict) else None
        return asked_context if isinstance(asked_context, int) else context

    async def _context_length(self) -> int:
        """Asked for once: the model is not loaded anew while we use it."""
        async with self._lock:
            if self._context is None:
                self._context = await self._asked_context()
            return self._context

    async def _asked_context(self) -> int:
        """What the config says, else ours or what the model is loaded with; never more than the model has."""
        async with listing_client(self._endpoint) as client:
            shown = await read_reply(client, "POST", f"{self._endpoint.base_url}/api/show", {"model": self.model})
            most = shown_by_ollama(ListedModel(self.model), shown).context
            wanted = self._settings.context_length
            if wanted is None:
                loaded = loaded_by_ollama(await read_reply(client, "GET", f"{self._endpoint.base_url}/api/ps"))
                wanted = max(CONTEXT, loaded.get(self.model, 0), loaded.get(f"{self.model}:latest", 0))
        return min(wanted, most or wanted)


def request_body(endpoint: Endpoint, settings: OllamaSettings, request: ModelRequest, context: int) -> JsonObject:
    """The whole body of the HTTP request. `must_call_tool` is nothing that Ollama knows."""
    options: dict[str, JsonValue] = {
        "num_ctx": context,
        "num_predict": request.max_output_tokens or endpoint.max_output_tokens,
        "temperature": endpoint.temperature,
        "top_p": endpoint.top_p,
    }
    system: list[JsonValue] = [{"role": "system", "content": request.system}] if request.system else []
    body: JsonObject = {
        "model": endpoint.model,
        "messages": [*system, *map(_message, request.messages)],
        "stream": True,
        # Otherwise the oldest messages of a prompt that is too long, and of a reply that becomes so, are thrown away.
        "truncate": False,
        "shift": False,
    }
    if request.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in request.tools
        ]
    if request.reply_schema is not None:
        body["format"] = request.reply_schema
    if settings.keep_alive is not None:
        body["keep_alive"] = -1 if settings.keep_alive == "-1" else settings.keep_alive
    if (effort := endpoint.reasoning_effort) is not None:
        body["think"] = _EFFORTS.get(effort, effort)
    extra = dict(endpoint.extra_body)
    if isinstance(further := extra.pop("options", None), dict):
        options.update(further)
    body["options"] = {name: value for name, value in options.items() if value is not None}
    return clean_object({**body, **extra})


def _message(message: Message) -> JsonObject:
    match message:
        case UserMessage():
            return {"role": "user", "content": message.text}
        case ToolResultMessage():
            return {
                "role": "tool",
                "content": message.text,
                "tool_name": tool_name(message.name),
                "tool_call_id": message.call_id,
            }
        case AssistantMessage(replay=(replayed, *_)):
            return replayed
        case AssistantMessage(tool_calls=()):
            return {"role": "assistant", "content": message.text}
        case AssistantMessage():
            calls: list[JsonValue] = list(map(_tool_call, message.tool_calls))
            return {"role": "assistant", "content": message.text, "tool_calls": calls}


def _tool_call(call: ToolCall) -> JsonObject:
    return {"id": call.id, "function": {"name": tool_name(call.name), "arguments": arguments_object(call.arguments)}}


class _Reply(WireReply):
    """Puts the lines of one reply together."""

    def __init__(self, endpoint: Endpoint, request: ModelRequest) -> None:
        super().__init__(endpoint, request)
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[ToolCall] = []
        self._apart = ThoughtsApart()
        self._last: Fields = {}
        """The line that says that the reply is whole."""

    @property
    def is_whole(self) -> bool:
        return bool(self._last)

    def read(self, line: object) -> Iterator[Part]:
        """Raises `BackendError` for an error that is told in place of a line."""
        fields = fields_of(line, "a line")
        if error := fields.get("error"):
            raise of_event(fields, str(error), self._endpoint)
        message = fields_or_none(fields.get("message"))
        if thought := text_in(message, "thinking"):
            self._thoughts.append(thought)
            yield ReasoningPart(clean(thought))
        if text := text_in(message, "content"):
            self._texts.append(text)
            yield from self._apart.add(clean(text))
        for raw in objects_in(message, "tool_calls"):
            function = fields_of(raw.get("function"), "function")
            arguments = function.get("arguments")
            written = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
            call = ToolCall(self._ids.take(text_in(raw, "id")), clean(text_in(function, "name")), clean(written))
            self._calls.append(call)
            self._called.append(call.arguments)
            draft = self._drafts.begin(call.name)
            if draft and (shown := draft.add(call.arguments)):  # at once: calls come whole
                yield DraftPart(shown)
        if fields.get("done") is True:
            self._last = fields

    def finish(self) -> Iterator[Part]:
        """Raises `BackendError` if the model did not come to an end."""
        reason = self._last.get("done_reason")
        stop = stop_part(CHAT, "done_reason", reason, self._called, self._endpoint)
        yield from self._apart.end()
        yield from map(ToolCallPart, self._calls)
        read, written = count(self._last.get("prompt_eval_count")), count(self._last.get("eval_count"))
        yield complete_usage(self._last.get("model"), UsagePart(read, output_tokens=written))
        yield replace(stop, replay=self._replay())

    def _replay(self) -> tuple[JsonObject, ...]:
        """The reply with its thoughts, which some models read again; empty when there are none."""
        if not self._thoughts:
            return ()
        message: JsonObject = {
            "role": "assistant",
            "content": "".join(self._texts),
            "thinking": "".join(self._thoughts),
        }
        if self._calls:
            message["tool_calls"] = list(map(_tool_call, self._calls))
        return (clean_object(message),)
