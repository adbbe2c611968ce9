"""OpenAI's Responses API, and xAI's, used without server-side state: reasoning comes encrypted and is sent back."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from massgen_mcp.backends.base import (
    AssistantMessage,
    Citation,
    CitationsPart,
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
    ToolSpec,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.chatcompletion import OpenAIBackend
from massgen_mcp.backends.ends import RESPONSES, RESPONSES_INCOMPLETE
from massgen_mcp.backends.failures import cut_off, of_event, stop_part
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.backends.prompt_cache import (
    BREAKPOINT,
    ONLY_BREAKPOINTS,
    choose_cache_form,
    has_next_step,
    is_narrowed,
    make_cache_key,
    select_tools,
)
from massgen_mcp.backends.streamed import Draft, WireReply
from massgen_mcp.backends.wire_values import (
    Fields,
    arguments_text,
    as_list,
    citation,
    clean,
    clean_object,
    complete_usage,
    count,
    fields_of,
    json_object,
    member,
    needed_text,
    objects_in,
    reported_usd,
    text_in,
    tool_name,
)

_DO_NOT_REASON = ("gpt-3", "gpt-4", "gpt-5-chat", "chatgpt-")
"""These models answer 400 when they are asked for encrypted reasoning."""


_NATIVE_TOOLS: dict[str, JsonObject] = {
    "web_search": {"type": "web_search"},
    "code_interpreter": {"type": "code_interpreter", "container": {"type": "auto"}},
}
_XAI_TOOLS: dict[str, JsonObject] = {
    "web_search": {"type": "web_search"},
    "x_search": {"type": "x_search"},
    "code_interpreter": {"type": "code_interpreter"},
}


class ResponsesBackend(OpenAIBackend):
    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint, "/responses", request_body, _Reply)


def request_body(endpoint: Endpoint, request: ModelRequest) -> JsonObject:
    """The whole body of the HTTP request."""
    form, offered = choose_cache_form(endpoint), select_tools(endpoint, request)
    shared: tuple[int, ...] = ()
    if form == "key_and_breakpoints":
        shared = request.shared_ends
    body: JsonObject = {
        "model": endpoint.model,
        "instructions": request.system,
        "input": list(_input(request.messages, shared)),
        "stream": True,
        "store": False,
    }
    if not endpoint.model.startswith(_DO_NOT_REASON):
        body["include"] = ["reasoning.encrypted_content"]
    native = _XAI_TOOLS if endpoint.of_xai else _NATIVE_TOOLS
    of_provider = [native[tool] for tool in endpoint.native_tools]
    tools: list[JsonValue] = [*map(_function_tool, offered), *of_provider]
    if tools:
        body["tools"] = tools
    if request.tools:
        body["tool_choice"] = "required" if request.must_call_tool else "auto"
    if is_narrowed(endpoint, request):
        named: list[JsonValue] = [{"type": "function", "name": tool.name} for tool in request.tools]
        allowed: list[JsonValue] = [*named, *({"type": tool["type"]} for tool in of_provider)]
        choice: JsonObject = {"type": "allowed_tools", "mode": body.get("tool_choice", "auto"), "tools": allowed}
        body["tool_choice"] = choice
        if not allowed:
            body["tool_choice"] = "none"
    if form is not None and request.cache_scope:
        body["prompt_cache_key"] = make_cache_key(endpoint, request)
    if form == "key_and_breakpoints" and not has_next_step(request):
        body["prompt_cache_options"] = {**ONLY_BREAKPOINTS}
    settings: dict[str, JsonValue] = {
        "temperature": endpoint.temperature,
        "top_p": endpoint.top_p,
        "max_output_tokens": request.max_output_tokens or endpoint.max_output_tokens,
        "reasoning": {"effort": endpoint.reasoning_effort} if endpoint.reasoning_effort else None,
        "text": {"verbosity": endpoint.verbosity} if endpoint.verbosity else None,
    }
    body.update({name: value for name, value in settings.items() if value is not None})
    return clean_object({**body, **endpoint.extra_body})


def _function_tool(tool: ToolSpec) -> JsonObject:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def _input(messages: Iterable[Message], marked: Collection[int]) -> Iterator[JsonValue]:
    """All items; the messages at the `marked` places end what agents share."""
    for place, message in enumerate(messages):
        if place in marked:
            yield from _make_marked_items(message)
        else:
            yield from _items(message)


def _make_marked_items(message: Message) -> Iterator[JsonValue]:
    """A user's message as the end of what agents share."""
    part: JsonObject = {"type": "input_text", "text": message.text, "prompt_cache_breakpoint": BREAKPOINT}
    yield {"role": "user", "content": [part]}


def _items(message: Message) -> Iterator[JsonValue]:
    match message:
        case UserMessage():
            yield {"role": "user", "content": message.text}
        case ToolResultMessage():
            yield {"type": "function_call_output", "call_id": message.call_id, "output": message.text}
        case AssistantMessage(replay=()):
            if message.text:
                yield {"role": "assistant", "content": message.text}
            yield from map(_call_item, message.tool_calls)
        case AssistantMessage():
            yield from message.replay


def _call_item(call: ToolCall) -> JsonObject:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": tool_name(call.name),
        "arguments": arguments_text(call.arguments),
    }


class _Reply(WireReply):
    """Puts the events of one reply together."""

    def __init__(self, endpoint: Endpoint, request: ModelRequest) -> None:
        super().__init__(endpoint, request)
        self._open: dict[object, Draft] = {}
        """Calls that are being written and shown, by the place of their items in the output."""
        self._items: list[JsonObject] = []
        self._reasoned = False
        self._refused = False
        self._end: Fields | None = None
        self._status: object = None

    def read(self, sent: object) -> Iterator[Part]:
        event = fields_of(sent, "an event")
        match event.get("type"):
            case "response.output_text.delta":
                yield TextPart(clean(needed_text(event, "delta")))
            case "response.refusal.delta":
                self._refused = True
                yield TextPart(clean(needed_text(event, "delta")))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield ReasoningPart(clean(needed_text(event, "delta")))
            case "response.output_item.added":
                self._begin(event)
            case "response.function_call_arguments.delta":
                if draft := self._draft(event):
                    yield DraftPart(draft)
            case "response.output_item.done":
                yield from self._item(fields_of(event.get("item"), "item"))
            case "response.completed" | "response.incomplete" | "response.failed":
                self._ended(event)
            case "error":
                raise of_event(event, "an error event", self._endpoint)
            case _:
                pass

    def finish(self) -> Iterator[Part]:
        if self._end is None:
            raise cut_off(self._endpoint)
        if citations := tuple(_citations(self._end)):
            yield CitationsPart(citations)
        if (usage := _usage(self._end, self._endpoint)) is not None:
            yield usage
        # Without reasoning there is nothing that the plain messages do not tell as well.
        yield replace(self._stop(self._end), replay=tuple(self._items) if self._reasoned else ())

    def _stop(self, end: Fields) -> StopPart:
        """By the response's own status, which may contradict the event: vLLM completes what was cancelled."""
        if self._status == "incomplete":
            reason = str(member(end, "incomplete_details", "reason"))
            return stop_part(RESPONSES_INCOMPLETE, "incomplete_details", reason, (), self._endpoint)
        stop = stop_part(RESPONSES, "status", self._status, self._called, self._endpoint)
        return StopPart("refusal", provider_word="refusal") if self._refused else stop

    def _ended(self, event: Fields) -> None:
        if (raw := event.get("response")) is None:
            return
        response = fields_of(raw, "response")
        match event["type"]:
            case "response.failed":
                raise of_event(response.get("error"), "the response failed", self._endpoint)
            case "response.incomplete":
                self._status = "incomplete"
            case _:
                # A server that leaves the status out has told it by the event.
                self._status = response.get("status") or "completed"
        self._end = response

    def _begin(self, event: Fields) -> None:
        """A call begins; if it is to be shown, its arguments are decoded as they come."""
        name, place = member(event, "item", "name"), event.get("output_index")
        if isinstance(name, str) and isinstance(place, int) and (draft := self._drafts.begin(name)):
            self._open[place] = draft

    def _draft(self, event: Fields) -> str:
        draft, piece = self._open.get(event.get("output_index")), event.get("delta")
        return draft.add(piece) if draft and isinstance(piece, str) else ""

    def _item(self, item: Fields) -> Iterator[Part]:
        match item.get("type"):
            case "function_call":
                call = self._item_call(item)
                self._items.append(_call_item(call))
                yield ToolCallPart(call)
            case "message":
                self._items.append(_message_item(item))
            case "reasoning" if encrypted := text_in(item, "encrypted_content"):
                self._reasoned = True
                self._items.append(_reasoning_item(item, encrypted))
            case "web_search_call" | "code_interpreter_call" if not self._endpoint.of_xai:
                # OpenAI refuses reasoning without the item that followed it; xAI does not say that it takes the item.
                self._items.append(clean_object(json_object(item)))
            case _:
                pass

    def _item_call(self, item: Fields) -> ToolCall:
        name, arguments = needed_text(item, "name"), needed_text(item, "arguments")
        self._called.append(arguments)
        return ToolCall(self._ids.take(text_in(item, "call_id")), clean(name), clean(arguments))


def _message_item(item: Fields) -> JsonObject:
    texts = [
        needed_text(part, "text" if part.get("type") == "output_text" else "refusal")
        for part in objects_in(item, "content")
    ]
    message: JsonObject = {"role": "assistant", "content": "".join(texts)}
    phase = text_in(item, "phase")
    return clean_object({**message, "phase": phase} if phase else message)


def _reasoning_item(item: Fields, encrypted: str) -> JsonObject:
    summary: list[JsonValue] = [
        {"type": "summary_text", "text": needed_text(part, "text")} for part in objects_in(item, "summary")
    ]
    identity = needed_text(item, "id")
    return clean_object({"type": "reasoning", "id": identity, "summary": summary, "encrypted_content": encrypted})


def _is_search(item: object) -> bool:
    """Searches are billed; opening a page or looking into it is not."""
    return member(item, "type") == "web_search_call" and member(item, "action", "type") in (None, "search")


def _citations(end: Fields) -> Iterator[Citation]:
    for item in as_list(end.get("output")):
        for part in as_list(member(item, "content")):
            for note in as_list(member(part, "annotations")):
                if cited := citation(member(note, "url"), member(note, "title")):
                    yield cited


def _usage(end: Fields, endpoint: Endpoint) -> UsagePart | None:
    usage = end.get("usage")
    if usage is None:
        return None
    counted = UsagePart(
        input_tokens=count(member(usage, "input_tokens")),
        output_tokens=count(member(usage, "output_tokens")),
        cached_input_tokens=count(member(usage, "input_tokens_details", "cached_tokens")) or 0,
        cache_write_tokens=count(member(usage, "input_tokens_details", "cache_write_tokens")) or 0,
        reasoning_tokens=count(member(usage, "output_tokens_details", "reasoning_tokens")) or 0,
        web_searches=_searches_at_xai(usage) if endpoint.of_xai else sum(map(_is_search, as_list(end.get("output")))),
        cost_usd=reported_usd(usage, endpoint.cost_field),
    )
    return complete_usage(end.get("model"), counted)


def _searches_at_xai(usage: object) -> int:
    made = member(usage, "server_side_tool_usage_details")
    return sum(count(member(made, name)) or 0 for name in ("web_search_calls", "x_search_calls"))
