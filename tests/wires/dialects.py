"""How a provider streams a reply, event by event, so that a fault can be told once and played on every wire.

A dialect is a stack of events that grows: `text`, `call`, then `stop`. What is left out was never sent.
"""

import json
from typing import Any, ClassVar, Literal, Protocol, cast

from tests.raw_double import sse

Event = dict[str, Any]
Stop = Literal["end", "calls", "length", "refusal"]

BLOCKED = "Output blocked by content filtering policy"
"""Anthropic has no code for it."""
ABSENT: Any = object()
"""What is not sent at all."""

USAGE = {"input": 21, "cached": 8, "written": 3, "output": 7, "reasoning": 5}
"""What the doubles count for every reply: all input, of it from and into the cache; all output, of it reasoning."""


class Dialect(Protocol):
    thinks_aloud: bool
    """Whether thoughts can be read."""
    proof_of_thought: str
    """The field that carries thoughts back to the provider."""
    counts_kinds: bool
    """Whether its usage tells cached and reasoning tokens apart."""

    def text(self, *pieces: str) -> "Dialect":
        """Say something, in these pieces."""
        ...

    def reason(self, text: str) -> "Dialect":
        """Think aloud."""
        ...

    def call(self, name: str, *fragments: str, call_id: str = "call_1", place: int = 0, done: bool = True) -> "Dialect":
        """Call a tool, with the arguments in these fragments. `done` False: its end was not sent."""
        ...

    def stop(self, reason: Stop | None) -> "Dialect":
        """The model's own end with its usage. None: the end without the reason."""
        ...

    def stop_as(self, told: Any, usage: Any) -> "Dialect":
        """The end as a server may tell it, in this wire's own words, with anything for its usage (`ABSENT`: none)."""
        ...

    def error(self, kind: Literal["overloaded", "policy"]) -> "Dialect":
        """An error told inside the stream."""
        ...

    def body(self) -> bytes:
        """As server-sent events."""
        ...


class Chat:
    """OpenAI's Chat Completions."""

    finishes: ClassVar[dict[Stop, str]] = {
        "end": "stop",
        "calls": "tool_calls",
        "length": "length",
        "refusal": "content_filter",
    }
    thinks_aloud = True
    counts_kinds = True
    proof_of_thought = "reasoning_content"

    def __init__(self) -> None:
        self._events: list[Event | str] = []
        self._ended = False

    def text(self, *pieces: str) -> "Chat":
        self._events += [self._chunk({"role": "assistant", "content": piece}) for piece in pieces]
        return self

    def reason(self, text: str) -> "Chat":
        self._events.append(self._chunk({"reasoning_content": text}))
        return self

    def call(self, name: str, *fragments: str, call_id: str = "call_1", place: int = 0, done: bool = True) -> "Chat":
        del done  # this wire does not tell
        first, *rest = fragments or ("",)
        function = {"name": name, "arguments": first}
        self._add_call({"index": place, "id": call_id, "type": "function", "function": function})
        for fragment in rest:
            self._add_call({"index": place, "function": {"arguments": fragment}})
        return self

    def stop(self, reason: Stop | None) -> "Chat":
        self._ended = reason is not None  # with [DONE] after them, whole calls count without a reason
        if reason is not None:
            self._events.append(self._chunk({}, self.finishes[reason]))
        visible = USAGE["output"] - (0 if self.thinks_aloud else USAGE["reasoning"])
        usage: Event = {
            "prompt_tokens": USAGE["input"],
            "completion_tokens": visible,
            "total_tokens": USAGE["input"] + USAGE["output"],
            "prompt_tokens_details": {"cached_tokens": USAGE["cached"], "cache_write_tokens": USAGE["written"]},
        }
        if self.thinks_aloud:
            usage["completion_tokens_details"] = {"reasoning_tokens": USAGE["reasoning"]}
        self._events.append({**self._chunk({}), "choices": [], "usage": usage})
        return self

    def stop_as(self, told: Any, usage: Any) -> "Chat":
        self._ended = True
        self._events.append(self._chunk({}, told))
        if usage is not ABSENT:
            self._events.append({**self._chunk({}), "choices": [], "usage": usage})
        return self

    def error(self, kind: Literal["overloaded", "policy"]) -> "Chat":
        told = {"overloaded": ("server_error", "Overloaded"), "policy": ("content_policy_violation", "Not allowed")}
        code, message = told[kind]
        self._events.append({"error": {"code": code, "type": code, "message": message}})
        return self

    def body(self) -> bytes:
        return sse(*self._events, "[DONE]") if self._ended else sse(*self._events)

    def _chunk(self, delta: Event, finish: Any = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "told-model", "choices": [choice]}

    def _add_call(self, call: Event) -> None:
        self._events.append(self._chunk({"tool_calls": [call]}))


class GeminiCompatible(Chat):
    """As Google's compatible endpoint differs: calls without an index, the first one signed; `stop` after calls;
    thoughts in the total only.
    """

    thinks_aloud = False
    proof_of_thought = "thought_signature"

    finishes: ClassVar[dict[Stop, str]] = {"end": "stop", "calls": "stop", "length": "length", "refusal": "SAFETY"}

    def __init__(self) -> None:
        super().__init__()
        self._thought = False

    def reason(self, text: str) -> "GeminiCompatible":
        del text
        self._thought = True
        return self

    def _add_call(self, call: Event) -> None:
        call = {name: value for name, value in call.items() if name != "index"}
        if self._thought:
            self._thought, call["extra_content"] = False, {"google": {"thought_signature": "SIGNED"}}
        super()._add_call(call)


class Azure(Chat):
    """As Azure differs: a first chunk about the prompt, without choices or a model."""

    def __init__(self) -> None:
        super().__init__()
        verdict = {"prompt_index": 0, "content_filter_results": {"hate": {"filtered": False, "severity": "safe"}}}
        self._events.append({"choices": [], "created": 0, "id": "", "model": "", "prompt_filter_results": [verdict]})


class OpenRouter(Chat):
    """As OpenRouter differs: comments between events, thoughts under `reasoning`, errors beside choices."""

    proof_of_thought = "reasoning_details"

    def reason(self, text: str) -> "OpenRouter":
        detail = {"type": "reasoning.text", "text": text, "signature": "S", "format": "f", "index": 0}
        self._events.append(self._chunk({"reasoning": text, "reasoning_details": [detail]}))
        return self

    def error(self, kind: Literal["overloaded", "policy"]) -> "OpenRouter":
        moderated = {"reasons": ["violence"], "flagged_input": "..."}
        told: dict[str, Event] = {
            "overloaded": {"code": 502, "message": "Provider disconnected"},
            "policy": {"code": 403, "message": "Your input was flagged", "metadata": moderated},
        }
        self._events.append({**self._chunk({"content": ""}, "error"), "error": told[kind]})
        return self

    def body(self) -> bytes:
        return b": OPENROUTER PROCESSING\n\n" + super().body()


class Ollama:
    """Ollama's own chat: a line of JSON after the other, calls whole and with their arguments as an object."""

    finishes: ClassVar[dict[Stop, str]] = {
        "end": "stop",
        "calls": "stop",
        "length": "length",
        "refusal": "content_filter",  # it has none; a proxy in front of it may
    }
    thinks_aloud = True
    counts_kinds = False
    proof_of_thought = "thinking"

    def __init__(self) -> None:
        self._lines: list[Event] = []

    def text(self, *pieces: str) -> "Ollama":
        for piece in pieces:
            self._add({"content": piece})
        return self

    def reason(self, text: str) -> "Ollama":
        self._add({"content": "", "thinking": text})
        return self

    def call(self, name: str, *fragments: str, call_id: str = "call_1", place: int = 0, done: bool = True) -> "Ollama":
        del done  # this wire tells whole calls only
        written = "".join(fragments)
        try:
            arguments = json.loads(written)
        except (ValueError, RecursionError):
            arguments = written
        function = {"index": place, "name": name, "arguments": arguments}
        self._add({"content": "", "tool_calls": [{"id": call_id, "function": function}]})
        return self

    def stop(self, reason: Stop | None) -> "Ollama":
        usage = {"prompt_eval_count": USAGE["input"], "eval_count": USAGE["output"]}
        return self.stop_as(ABSENT if reason is None else self.finishes[reason], usage)

    def stop_as(self, told: Any, usage: Any) -> "Ollama":
        counted = cast("Event", usage) if isinstance(usage, dict) else {}
        reason = {} if told is ABSENT else {"done_reason": told}
        self._add({"content": ""}, done=True, total_duration=5_000_000, load_duration=1_000_000, **reason, **counted)
        return self

    def error(self, kind: Literal["overloaded", "policy"]) -> "Ollama":
        policy = {"code": "content_policy_violation", "message": "Not allowed"}
        self._lines.append({"error": "llama runner process has terminated" if kind == "overloaded" else policy})
        return self

    def body(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self._lines)

    def _add(self, message: Event, *, done: bool = False, **more: Any) -> None:
        told = {"model": "told-model", "created_at": "2026-01-01T00:00:00Z"}
        self._lines.append({**told, "message": {"role": "assistant", **message}, "done": done, **more})


class Gemini:
    """Google's own API: calls come whole, what is no call is told by the end, everything is counted in every event."""

    finishes: ClassVar[dict[Stop, str]] = {
        "end": "STOP",
        "calls": "STOP",
        "length": "MAX_TOKENS",
        "refusal": "SAFETY",
    }
    thinks_aloud = True
    counts_kinds = True
    proof_of_thought = "thoughtSignature"
    usage: ClassVar[Event] = {
        "promptTokenCount": USAGE["input"] - 4,
        "toolUsePromptTokenCount": 4,
        "cachedContentTokenCount": USAGE["cached"],
        "candidatesTokenCount": USAGE["output"] - USAGE["reasoning"],
        "thoughtsTokenCount": USAGE["reasoning"],
        "totalTokenCount": USAGE["input"] + USAGE["output"],
    }

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._pages: list[Event] = []
        self._thought = False
        self._malformed = False

    def text(self, *pieces: str) -> "Gemini":
        for piece in pieces:
            self._tell({"text": piece})
        return self

    def reason(self, text: str) -> "Gemini":
        self._thought = True
        self._tell({"text": text, "thought": True})
        return self

    def call(self, name: str, *fragments: str, call_id: str = "call_1", place: int = 0, done: bool = True) -> "Gemini":
        del place  # this wire does not tell
        if not done:
            return self
        try:
            arguments = json.loads("".join(fragments) or "{}")
        except (ValueError, RecursionError):
            self._malformed = True
            return self
        signed = {"thoughtSignature": "SIGNED=="} if self._thought else {}
        self._thought = False
        self._tell({"functionCall": {"id": call_id, "name": name, "args": arguments}, **signed})
        return self

    def part(self, **part: Any) -> "Gemini":
        """Something else that a reply may hold."""
        self._tell(part)
        return self

    def cited(self, url: str, title: str) -> "Gemini":
        """Rest on a page that a search found."""
        self._pages.append({"web": {"uri": url, "title": title}})
        return self.grounded({"webSearchQueries": ["?"], "groundingChunks": [*self._pages]})

    def grounded(self, metadata: Event) -> "Gemini":
        """What a search found."""
        self._events.append({**self._chunk({"text": ""}), "usageMetadata": self.usage})
        self._events[-1]["candidates"][0]["groundingMetadata"] = metadata
        return self

    def stop(self, reason: Stop | None) -> "Gemini":
        told = "MALFORMED_FUNCTION_CALL" if self._malformed else self.finishes[reason] if reason else ABSENT
        return self.stop_as(told, self.usage)

    def stop_as(self, told: Any, usage: Any) -> "Gemini":
        event = self._chunk({"text": ""})
        if told is not ABSENT:
            event["candidates"][0]["finishReason"] = told
        self._events.append(event if usage is ABSENT else {**event, "usageMetadata": usage})
        return self

    def error(self, kind: Literal["overloaded", "policy"]) -> "Gemini":
        told: dict[str, Event] = {
            "overloaded": {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}},
            "policy": {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": self.usage},
        }
        self._events.append(told[kind])
        return self

    def body(self) -> bytes:
        return sse(*self._events)

    def _chunk(self, part: Event) -> Event:
        candidate: Event = {"content": {"role": "model", "parts": [part]}, "index": 0}
        return {"candidates": [candidate], "modelVersion": "told-model", "responseId": "r"}

    def _tell(self, part: Event) -> None:
        self._events.append(self._chunk(part))


class Responses:
    """OpenAI's Responses."""

    thinks_aloud = True
    counts_kinds = True
    proof_of_thought = "encrypted_content"

    def __init__(self) -> None:
        self._events: list[Event] = [self._event("response.created", response=self._response("in_progress"))]
        self._notes: list[Event] = []

    def text(self, *pieces: str) -> "Responses":
        for piece in pieces:
            told: Event = {"item_id": "i", "output_index": 0, "content_index": 0, "delta": piece, "logprobs": []}
            self._events.append(self._event("response.output_text.delta", **told))
        return self

    def reason(self, text: str) -> "Responses":
        told = {"item_id": "rs_1", "output_index": 0, "summary_index": 0, "delta": text}
        self._events.append(self._event("response.reasoning_summary_text.delta", **told))
        summary = [{"type": "summary_text", "text": text}]
        self._done({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "SEALED"}, 0)
        return self

    def cited(self, url: str, title: str) -> "Responses":
        """Rest on a page that a search found."""
        self._notes.append({"type": "url_citation", "url": url, "title": title, "start_index": 0, "end_index": 0})
        return self

    def call(
        self, name: str, *fragments: str, call_id: str = "call_1", place: int = 0, done: bool = True
    ) -> "Responses":
        item = {"type": "function_call", "id": f"fc_{place}", "call_id": call_id, "name": name, "arguments": ""}
        self._events.append(self._event("response.output_item.added", output_index=place, item=item))
        for fragment in fragments:
            told = {"item_id": f"fc_{place}", "output_index": place, "delta": fragment}
            self._events.append(self._event("response.function_call_arguments.delta", **told))
        if done:
            self._done({**item, "arguments": "".join(fragments)}, place)
        return self

    def stop(self, reason: Stop | None) -> "Responses":
        if reason is None:
            return self  # on this wire the end is the reason
        details = {"length": "max_output_tokens", "refusal": "content_filter"}.get(reason)
        status = "completed" if details is None else "incomplete"
        response = self._response(status)
        response["incomplete_details"] = None if details is None else {"reason": details}
        if self._notes:
            said = {"type": "output_text", "text": "", "annotations": self._notes}
            response["output"] = [{"type": "message", "id": "m", "role": "assistant", "content": [said]}]
        response["usage"] = {
            "input_tokens": USAGE["input"],
            "input_tokens_details": {"cached_tokens": USAGE["cached"], "cache_write_tokens": USAGE["written"]},
            "output_tokens": USAGE["output"],
            "output_tokens_details": {"reasoning_tokens": USAGE["reasoning"]},
            "total_tokens": USAGE["input"] + USAGE["output"],
        }
        self._events.append(self._event(f"response.{status}", response=response))
        return self

    def stop_as(self, told: Any, usage: Any) -> "Responses":
        """`told`: the event that ends the stream, the response's status, and why it is incomplete. None: no event."""
        if told is None:
            return self
        event, status, details = told
        response = {**self._response(status), "incomplete_details": details and {"reason": details}}
        told_usage = {} if usage is ABSENT else {"usage": usage}
        self._events.append(self._event(f"response.{event}", response={**response, **told_usage}))
        return self

    def error(self, kind: Literal["overloaded", "policy"]) -> "Responses":
        told = {"overloaded": ("server_error", "Overloaded"), "policy": ("bio_policy", "Not allowed")}
        code, message = told[kind]
        response = {**self._response("failed"), "error": {"code": code, "message": message}}
        self._events.append(self._event("response.failed", response=response))
        return self

    def body(self) -> bytes:
        return sse(*self._events)

    def _done(self, item: Event, place: int) -> None:
        self._events.append(self._event("response.output_item.done", output_index=place, item=item))

    def _event(self, kind: str, **members: Any) -> Event:
        return {"type": kind, "sequence_number": len(getattr(self, "_events", ())), **members}

    def _response(self, status: Any) -> Event:
        return {
            "id": "r", "object": "response", "created_at": 1, "model": "told-model", "output": [], "status": status,
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        }  # fmt: skip


class Grok(Responses):
    """As xAI differs: it tells what the call cost, and how often it searched."""

    def stop(self, reason: Stop | None) -> "Grok":
        super().stop(reason)
        if reason is not None:
            searched = {"web_search_calls": 1, "x_search_calls": 2, "code_interpreter_calls": 0}
            told = {"cost_in_usd_ticks": 37_756_000, "server_side_tool_usage_details": searched}
            self._events[-1]["response"]["usage"] |= told
        return self


class Messages:
    """Anthropic's Messages."""

    thinks_aloud = True
    counts_kinds = True
    proof_of_thought = "signature"

    _stops: ClassVar[dict[Stop, str]] = {
        "end": "end_turn",
        "calls": "tool_use",
        "length": "max_tokens",
        "refusal": "refusal",
    }

    def __init__(self) -> None:
        uncached = USAGE["input"] - USAGE["cached"] - USAGE["written"]
        usage = {
            "input_tokens": uncached,
            "cache_read_input_tokens": USAGE["cached"],
            "cache_creation_input_tokens": USAGE["written"],
            "output_tokens": 1,
        }
        message: Event = {
            "id": "m", "type": "message", "role": "assistant", "model": "told-model", "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        self._events: list[Event] = [{"type": "message_start", "message": message}, {"type": "ping"}]
        self._blocks = 0

    def text(self, *pieces: str) -> "Messages":
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        self._block(self._next(), {"type": "text", "text": ""}, deltas)
        return self

    def reason(self, text: str) -> "Messages":
        deltas = [{"type": "thinking_delta", "thinking": text}, {"type": "signature_delta", "signature": "SIGNED"}]
        self._block(self._next(), {"type": "thinking", "thinking": "", "signature": ""}, deltas)
        return self

    def cited(self, url: str, title: str) -> "Messages":
        """Rest on a page that a search found."""
        found = {"type": "web_search_result_location", "url": url, "title": title, "encrypted_index": "E"}
        deltas = [{"type": "citations_delta", "citation": {**found, "cited_text": "so"}}]
        self._block(self._next(), {"type": "text", "text": "", "citations": []}, deltas)
        return self

    def call(
        self, name: str, *fragments: str, call_id: str = "call_1", place: int = 0, done: bool = True
    ) -> "Messages":
        deltas = [{"type": "input_json_delta", "partial_json": fragment} for fragment in fragments]
        index = max(place, self._next())
        self._blocks = index + 1
        self._block(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}}, deltas, done=done)
        return self

    def stop(self, reason: Stop | None) -> "Messages":
        usage = {
            "output_tokens": USAGE["output"],
            "output_tokens_details": {"thinking_tokens": USAGE["reasoning"]},
        }
        told = None if reason is None else self._stops[reason]
        delta = {"stop_reason": told, "stop_sequence": None}
        self._events += [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]
        return self

    def stop_as(self, told: Any, usage: Any) -> "Messages":
        """`told`: the reason, and the stop sequence."""
        reason, sequence = told
        start: Event = self._events[0]["message"]
        last: Event = {"type": "message_delta"}
        start.pop("usage")
        delta = {"stop_reason": reason, "stop_sequence": sequence}
        if usage is not ABSENT:
            start["usage"] = last["usage"] = usage
        self._events += [{**last, "delta": delta}, {"type": "message_stop"}]
        return self

    def error(self, kind: Literal["overloaded", "policy"]) -> "Messages":
        told = {"overloaded": ("overloaded_error", "Overloaded"), "policy": ("invalid_request_error", BLOCKED)}
        code, message = told[kind]
        self._events.append({"type": "error", "error": {"type": code, "message": message}})
        return self

    def body(self) -> bytes:
        return sse(*self._events)

    def _next(self) -> int:
        self._blocks += 1
        return self._blocks - 1

    def _block(self, index: int, start: Event, deltas: list[Event], *, done: bool = True) -> None:
        self._events.append({"type": "content_block_start", "index": index, "content_block": start})
        self._events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        if done:
            self._events.append({"type": "content_block_stop", "index": index})
