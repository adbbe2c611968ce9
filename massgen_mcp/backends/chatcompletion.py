"""OpenAI's Chat Completions, as many servers speak it.

Everything that differs between such servers and matters here is decided in this file.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from json import JSONDecodeError
from typing import TYPE_CHECKING, cast

from massgen_mcp.backends.base import (
    AssistantMessage,
    DraftPart,
    JsonObject,
    JsonValue,
    Message,
    ModelRequest,
    Part,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultMessage,
    UserMessage,
)
from massgen_mcp.backends.ends import CHAT
from massgen_mcp.backends.failures import of_event, report_empty_reply, stop_part
from massgen_mcp.backends.http import TIMEOUT, Endpoint, LazyClient, drain, events_in, http_client, posted
from massgen_mcp.backends.prompt_cache import (
    BREAKPOINT,
    MAX_MARKS,
    ONLY_BREAKPOINTS,
    CacheForm,
    choose_cache_form,
    find_marked_messages,
    has_next_step,
    is_narrowed,
    make_cache_key,
    mark_text,
    select_tools,
)
from massgen_mcp.backends.streamed import Draft, HttpBackend, WireReply
from massgen_mcp.backends.thoughts import ThoughtsApart
from massgen_mcp.backends.wire_values import (
    Fields,
    arguments_text,
    chat_usage,
    clean,
    clean_object,
    fields_of,
    fields_or_none,
    is_cut_json,
    is_object,
    member,
    objects_in,
    parse_leniently,
    parsed,
    read_call_arguments,
    split_content,
    text_in,
    tool_name,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI


OPENAI = "https://api.openai.com/v1"

_SDK = "openai"
"""What is imported before the first call."""

FINISH = "finish_reason"
"""The API's name of why a reply ended."""

_LAST = "[DONE]"
"""What a stream may end with, after its last event."""


class OpenAIBackend(HttpBackend["AsyncOpenAI", WireReply]):
    """One path of the API: a wire says what is sent there, and how a reply is read."""

    def __init__(
        self,
        endpoint: Endpoint,
        path: str,
        request_body: Callable[[Endpoint, ModelRequest], JsonObject],
        reply: Callable[[Endpoint, ModelRequest], WireReply],
    ) -> None:
        endpoint = replace(endpoint, base_url=endpoint.base_url or OPENAI)
        super().__init__(endpoint, LazyClient(lambda: _connect(endpoint), _SDK), reply)
        self._path = path
        self._request_body = request_body

    async def _events(
        self, client: "AsyncOpenAI", request: ModelRequest, reply: WireReply, /
    ) -> AsyncGenerator[object]:
        """Yield the JSON of each event. Raises `BackendError` for an error in place of an event."""
        body = self._request_body(self._endpoint, request)
        held = ""
        async with posted(client, self._path, body) as chunks, aclosing(events_in(chunks)) as events:
            async for event in events:
                if event.data.strip().startswith(_LAST):
                    reply.told_end = True
                    await drain(chunks)
                    return
                if event.name == "error":
                    raise of_event(parse_leniently(event.data), "an error event", self._endpoint)
                held += event.data
                try:
                    value, held = parsed(held), ""
                except JSONDecodeError as error:
                    if not is_cut_json(held, error):
                        raise
                    continue  # some proxies end an event in the middle of its JSON
                if member(value, "error"):
                    raise of_event(value, "an error event", self._endpoint)
                yield value
        if held:
            parsed(held)


def _connect(endpoint: Endpoint) -> "AsyncOpenAI":
    """Build the SDK's client; slow at first, so for a thread."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        api_key=endpoint.api_key,
        base_url=endpoint.base_url,
        timeout=TIMEOUT,
        max_retries=0,
        default_query=dict(endpoint.query),
        http_client=http_client(endpoint, endpoint.key_header),
    )


class ChatCompletionBackend(OpenAIBackend):
    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint, "/chat/completions", request_body, _Reply)


def request_body(endpoint: Endpoint, request: ModelRequest) -> JsonObject:
    """The whole body of the HTTP request."""
    form, offered = choose_cache_form(endpoint), select_tools(endpoint, request)
    body: JsonObject = {
        "model": endpoint.deployment or endpoint.model,
        "messages": list(_messages(request, form)),
        "stream": True,
    }
    if "stream_options" not in request.left_out:
        body["stream_options"] = {"include_usage": True}
    if offered:
        body["tools"] = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in offered
        ]
        if request.must_call_tool:  # "auto" is every server's default, and some refuse the word
            body["tool_choice"] = "required"
        if is_narrowed(endpoint, request):
            mode = body.get("tool_choice", "auto")
            allowed: list[JsonValue] = [{"type": "function", "function": {"name": t.name}} for t in request.tools]
            narrowed: JsonObject = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": allowed}}
            body["tool_choice"] = narrowed
        if not request.tools and is_narrowed(endpoint, request):
            body["tool_choice"] = "none"
    if form in ("key", "key_and_breakpoints") and request.cache_scope and not endpoint.of_xai:
        body["prompt_cache_key"] = make_cache_key(endpoint, request)
    if form == "key_and_breakpoints" and not has_next_step(request):
        body["prompt_cache_options"] = {**ONLY_BREAKPOINTS}
    if request.reply_schema is not None and "schema" not in request.left_out:
        schema: JsonObject = {"name": "call", "schema": request.reply_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    settings: dict[str, JsonValue] = {
        "temperature": endpoint.temperature,
        "top_p": endpoint.top_p,
        output_limit(endpoint): request.max_output_tokens or endpoint.max_output_tokens,
        **_effort(endpoint),
        "verbosity": endpoint.verbosity,
    }
    body.update({name: value for name, value in settings.items() if value is not None})
    if "web_search" in endpoint.native_tools:
        body["plugins"] = [{"id": "web"}]  # OpenRouter's; no other provider of this wire has tools of its own
    return clean_object({**body, **endpoint.extra_body})


def output_limit(endpoint: Endpoint) -> str:
    """What a server calls the most tokens of a reply: OpenAI's reasoning models refuse the old name, many other servers
    do not know the new one.
    """
    at_openai = endpoint.base_url in (None, OPENAI) or endpoint.key_header == "api-key"
    return "max_completion_tokens" if at_openai else "max_tokens"


def _effort(endpoint: Endpoint) -> JsonObject:
    if endpoint.effort_field == "reasoning_effort" or endpoint.reasoning_effort is None:
        return {"reasoning_effort": endpoint.reasoning_effort}
    return {endpoint.effort_field: {"effort": endpoint.reasoning_effort}}


def _messages(request: ModelRequest, form: CacheForm | None) -> Iterator[JsonObject]:
    """All messages, with marks where the provider's cache wants them."""
    if request.system:
        system = request.system if form != "marks" else mark_text(request.system)
        yield {"role": "system", "content": system}
    marked: tuple[int, ...] = ()
    if form == "marks":
        marked = find_marked_messages(request)[-MAX_MARKS + 1 :]
    for place, message in enumerate(map(_message, request.messages)):
        if place in marked:
            yield {**message, "content": mark_text(message.get("content"))}
        elif form == "key_and_breakpoints" and place in request.shared_ends:
            part: JsonObject = {"type": "text", "text": message["content"], "prompt_cache_breakpoint": BREAKPOINT}
            yield {**message, "content": [part]}
        else:
            yield message


def _message(message: Message) -> JsonObject:
    match message:
        case UserMessage():
            return {"role": "user", "content": message.text}
        case ToolResultMessage():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
        case AssistantMessage(replay=(replayed, *_)):
            return replayed
        case AssistantMessage(tool_calls=()):
            return {"role": "assistant", "content": message.text}
        case AssistantMessage():
            return {
                "role": "assistant",
                "content": message.text or None,
                "tool_calls": [_tool_call(call) for call in message.tool_calls],
            }


def _tool_call(call: ToolCall) -> JsonObject:
    function: JsonObject = {"name": tool_name(call.name), "arguments": arguments_text(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


@dataclass(slots=True)
class _OpenCall:
    given_id: str = ""
    name: str = ""
    fragments: list[str] = field(default_factory=list[str])
    """Of the arguments. Pieces are put together once: a sum of strings would be copied for every one of them."""
    draft: Draft | None = None
    extra: JsonObject = field(default_factory=dict[str, JsonValue])
    """Gemini's `extra_content`: the signature of its thoughts, without which it refuses the call's result."""

    @property
    def arguments(self) -> str:
        return "".join(self.fragments)

    def goes_on_with(self, call_id: str, name: str) -> bool:
        """Whether a fragment with this id and name is of this call. Some servers send every call under index 0, or
        without an index: a new id is a new call, and so is a name after arguments that are whole.
        """
        if call_id and self.given_id and call_id != self.given_id:
            return False
        return not (name and self.fragments and self.fragments[-1].endswith("}") and is_object(self.arguments))


class _Reply(WireReply):
    """Puts the chunks of one reply together."""

    def __init__(self, endpoint: Endpoint, request: ModelRequest) -> None:
        super().__init__(endpoint, request)
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        """What was streamed as `reasoning_content`."""
        self._details: list[JsonObject] = []
        """OpenRouter's `reasoning_details`."""
        self._extra: JsonObject = {}
        """Gemini's `extra_content` of the text."""
        self._calls: list[_OpenCall] = []
        self._by_index: dict[object, _OpenCall] = {}
        self._apart = ThoughtsApart()
        self._finish: object = None
        self._refused = False
        self._usage: object = None
        self._model: object = ""

    def read(self, event: object) -> Iterator[Part]:
        chunk = fields_or_none(event)
        self._model = chunk.get("model") or self._model
        self._usage = chunk.get("usage") or self._usage
        for choice in objects_in(chunk, "choices"):
            yield from self._choice(choice)

    def finish(self) -> Iterator[Part]:
        called = [call.arguments for call in self._calls]
        if self._finish is None and self.told_end and called and all(map(is_object, called)):
            self._finish = "tool_calls"  # the stream says that it is whole, and so are its calls; a text may be cut
        if self._finish is None and self.told_end and not self._texts and not called and not self._thoughts:
            raise report_empty_reply(self._usage, self._endpoint)
        stop = stop_part(CHAT, FINISH, self._finish, called, self._endpoint)
        if self._refused:
            stop = StopPart("refusal", provider_word="refusal")
        calls = [
            ToolCall(self._ids.take(call.given_id), clean(call.name), clean(call.arguments)) for call in self._calls
        ]
        yield from self._apart.end()
        yield from map(ToolCallPart, calls)
        if self._usage is not None:
            yield chat_usage(self._usage, self._model, self._endpoint.cost_field)
        yield replace(stop, replay=self._replay(calls))

    def _replay(self, calls: list[ToolCall]) -> tuple[JsonObject, ...]:
        """The reply with its thoughts, for the servers that want them back; empty when there is nothing that the plain
        messages do not tell as well.
        """
        message: JsonObject = {"role": "assistant", "content": "".join(self._texts) or (None if calls else "")}
        if calls:
            message["tool_calls"] = [
                {**_tool_call(call), "extra_content": opened.extra} if opened.extra else _tool_call(call)
                for call, opened in zip(calls, self._calls, strict=True)
            ]
        thoughts: dict[str, JsonValue] = {
            "extra_content": self._extra,
            "reasoning_details": list(self._details),
            # DeepSeek refuses a conversation in which it is missing.
            "reasoning_content": "".join(self._thoughts),
        }
        signed = {name: value for name, value in thoughts.items() if value}
        if not signed and not any(call.extra for call in self._calls):
            return ()
        return (clean_object({**message, **signed}),)

    def _choice(self, choice: Fields) -> Iterator[Part]:
        self._finish = _read_finish(choice) or self._finish
        if fault := member(choice, "error"):
            raise of_event({"error": fault}, "the reply contains an error", self._endpoint)
        if (raw := choice.get("delta") or choice.get("message")) is None:
            return
        delta = fields_of(raw, "delta")
        if reasoning := self._reasoning(delta):
            yield ReasoningPart(clean(reasoning))
        thought, content = split_content(delta.get("content"))
        if thought:
            yield ReasoningPart(clean(thought))
        if content:
            self._texts.append(content)
            yield from self._apart.add(clean(content))
        if refusal := text_in(delta, "refusal"):
            self._refused = True
            yield TextPart(clean(refusal))
        for fragment in objects_in(delta, "tool_calls"):
            if draft := self._fragment(fragment):
                yield DraftPart(draft)

    def _reasoning(self, extra: Fields) -> str:
        """Reasoning has no field in OpenAI's format; servers that stream it use one of two. What is to be sent back is
        kept.
        """
        if isinstance(signature := extra.get("extra_content"), dict):
            self._extra = cast("JsonObject", signature)
        if isinstance(details := extra.get("reasoning_details"), list):
            for detail in cast("list[object]", details):
                _add_detail(self._details, detail)
        if isinstance(text := extra.get("reasoning_content"), str):
            self._thoughts.append(text)
            return text
        return text if isinstance(text := extra.get("reasoning"), str) else ""

    def _fragment(self, fragment: Fields) -> str:
        """Returns what it adds to a text that is shown."""
        raw = fragment.get("function")
        function: Fields = {} if raw is None else fields_of(raw, "function")
        index, call_id, name = fragment.get("index"), text_in(fragment, "id"), text_in(function, "name")
        call = self._by_index.get(index)
        if call is None or not call.goes_on_with(call_id, name):
            call = self._by_index[index] = _OpenCall()
            self._calls.append(call)
        call.given_id = call.given_id or call_id
        if isinstance(extra := fragment.get("extra_content"), dict):
            call.extra = cast("JsonObject", extra)
        if name and not call.name:
            call.name, call.draft = name, self._drafts.begin(name)
        if arguments := read_call_arguments(function):
            call.fragments.append(arguments)
            return call.draft.add(arguments) if call.draft else ""
        return ""


def _read_finish(choice: Fields) -> object:
    """Return why a choice ended; None while it goes on. Some servers say so in every chunk, in words."""
    given = choice.get(FINISH) or choice.get("finishReason")
    if isinstance(given, str) and given.strip().lower() in ("", "null", "none"):
        return None
    return given


def _add_detail(details: list[JsonObject], piece: object) -> None:
    """Put a streamed piece of OpenRouter's `reasoning_details` to the one that it goes on with."""
    if not isinstance(piece, dict):
        return
    new = cast("JsonObject", piece)
    open_one = details[-1] if details else {}
    same = all(open_one.get(name) == new.get(name) for name in ("type", "index"))
    if not same or new.get("type") not in ("reasoning.text", "reasoning.summary"):
        details.append(dict(new))
        return
    for name, value in new.items():
        so_far = open_one.get(name)
        joins = name in ("text", "summary") and isinstance(so_far, str) and isinstance(value, str)
        open_one[name] = f"{so_far}{value}" if joins else (value if value is not None else so_far)
