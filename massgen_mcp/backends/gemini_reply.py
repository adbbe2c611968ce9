"""One reply of Gemini's own API, put together out of its events.

Every event holds the parts that are new, and everything that was counted so far. Must not know requests.
"""

import json
from collections.abc import Iterator
from itertools import chain
from typing import cast

from massgen_mcp.backends.base import (
    Citation,
    CitationsPart,
    DraftPart,
    JsonObject,
    ModelRequest,
    Part,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    UsagePart,
)
from massgen_mcp.backends.ends import GEMINI, stop_of
from massgen_mcp.backends.event_stream import ServerEvent
from massgen_mcp.backends.failures import broken_off, cut_off, failure, of_event
from massgen_mcp.backends.fields import (
    Fields,
    fields_of,
    json_object,
    needed_text,
    objects_in,
    parsed,
    text_in,
)
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.backends.streamed import WireReply
from massgen_mcp.backends.usage import count, member, usage_part, written_tokens
from massgen_mcp.backends.wiretext import arguments_object, citation, clean, clean_object


class GeminiReply(WireReply):
    def __init__(self, endpoint: Endpoint, base_url: str, request: ModelRequest) -> None:
        super().__init__(endpoint, base_url, request)
        self._parts: list[JsonObject] = []
        """To be sent back."""
        self._signed = False
        """There is something in them that the plain messages do not tell as well."""
        self._called: list[str] = []
        """The arguments of the calls."""
        self._finish: object = None
        self._finish_message: object = None
        self._usage: object = None
        self._model: object = ""
        self._sources: object = None
        self._queries: object = None

    def read(self, sent: ServerEvent) -> Iterator[Part]:
        event = fields_of(parsed(sent.data), "an event")
        if event.get("error"):
            raise of_event(event, "an error event", self._endpoint, self._base_url)
        self._model = event.get("modelVersion") or self._model
        self._usage = event.get("usageMetadata") or self._usage
        for candidate in objects_in(event, "candidates"):
            yield from self._candidate(candidate)
        if blocked := member(event, "promptFeedback", "blockReason"):
            yield from self._counted()
            message = f"{self._base_url} blocked the request: {blocked}"
            raise failure("content_filter", message, self._endpoint)

    def finish(self) -> Iterator[Part]:
        if not self._finish:
            raise cut_off(self._endpoint, self._base_url)
        stop = stop_of(GEMINI, self._finish, self._called)
        if stop is None:
            why = f": {self._finish_message}" if isinstance(self._finish_message, str) else ""
            raise broken_off(f"finishReason {self._finish}{why}", self._endpoint, self._base_url)
        if citations := tuple(self._citations()):
            yield CitationsPart(citations)
        yield from self._counted()
        yield StopPart(stop, tuple(self._parts) if self._signed else (), provider_word=str(self._finish))

    def _candidate(self, candidate: Fields) -> Iterator[Part]:
        self._finish = candidate.get("finishReason") or self._finish
        self._finish_message = candidate.get("finishMessage") or self._finish_message
        grounding = candidate.get("groundingMetadata")
        if member(grounding, "groundingChunks"):
            self._sources = grounding
        self._queries = member(grounding, "webSearchQueries") or self._queries
        content = candidate.get("content")
        if content is not None:
            for part in objects_in(fields_of(content, "content"), "parts"):
                yield from self._part(part)

    def _part(self, part: Fields) -> Iterator[Part]:
        if (call := part.get("functionCall")) is not None:
            yield from self._call(part, fields_of(call, "functionCall"))
        elif "text" in part:
            yield from self._text(part)
        else:
            # Code that ran there, what it came to, searches, and whatever there will be.
            self._signed = True
            self._parts.append(clean_object(json_object(part)))

    def _text(self, part: Fields) -> Iterator[Part]:
        text, thought = clean(text_in(part, "text")), part.get("thought") is True
        if text:
            yield ReasoningPart(text) if thought else TextPart(text)
        if part.get("thoughtSignature"):
            # A signature belongs to its part, and to no other text.
            self._signed = True
            self._parts.append(clean_object(json_object(part)))
            return
        last: JsonObject = self._parts[-1] if self._parts else {}
        goes_on = last.keys() == ({"text", "thought"} if thought else {"text"})
        if goes_on:
            last["text"] = f"{last['text']}{text}"
        elif text:
            self._parts.append({"text": text, "thought": True} if thought else {"text": text})

    def _call(self, part: Fields, call: Fields) -> Iterator[Part]:
        self._signed = True
        given, name, args = text_in(call, "id"), clean(needed_text(call, "name")), call.get("args")
        arguments = clean(json.dumps({} if args is None else args, ensure_ascii=False))
        self._called.append(arguments)
        made = ToolCall(self._ids.take(given), name, arguments)
        sent: JsonObject = json_object(call)
        if not isinstance(args, dict):
            sent = {**sent, "args": arguments_object(arguments)}  # anything else would not be taken back
        if given:
            sent = {**sent, "id": made.id}
        self._parts.append(clean_object({**json_object(part), "functionCall": sent}))
        if (draft := self._drafts.begin(name)) and (shown := draft.add(arguments)):
            yield DraftPart(shown)
        yield ToolCallPart(made)

    def _counted(self) -> Iterator[UsagePart]:
        usage = self._usage
        if usage is None:
            return
        asked, looked_up = count(member(usage, "promptTokenCount")), count(member(usage, "toolUsePromptTokenCount"))
        answered, thought = count(member(usage, "candidatesTokenCount")), count(member(usage, "thoughtsTokenCount"))
        # What its own tools came to is input as well, thoughts are output; the API counts them apart.
        read = None if asked is None else asked + (looked_up or 0)
        written = None if answered is None and thought is None else (answered or 0) + (thought or 0)
        yield usage_part(
            self._model,
            read=read,
            written=written_tokens(read, written, count(member(usage, "totalTokenCount")), thought),
            cached=count(member(usage, "cachedContentTokenCount")),
            reasoning=thought,
            searches=self._searches(),
        )

    def _searches(self) -> int:
        """What is billed: every query, by Gemini 2 every request that searched."""
        made = len(_as_list(self._queries))
        return min(made, 1) if self._endpoint.model.rpartition("/")[2].startswith("gemini-2") else made

    def _citations(self) -> Iterator[Citation]:
        """The pages that the reply rests on; all that were found, if the API does not say on which."""
        found = _as_list(member(self._sources, "groundingChunks"))
        supports = _as_list(member(self._sources, "groundingSupports"))
        named = chain.from_iterable(_as_list(member(support, "groundingChunkIndices")) for support in supports)
        places = [place for place in dict.fromkeys(map(count, named)) if place is not None and place < len(found)]
        for place in places or range(len(found)):
            if cited := citation(member(found[place], "web", "uri"), member(found[place], "web", "title")):
                yield cited


def _as_list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
