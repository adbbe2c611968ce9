"""A backend whose replies and errors hold no keys: what models, providers and servers say is cleaned as it comes in.

So every agent, view and journal sees the same text, and a resumed run sees it again.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import assert_never

from massgen_mcp.backends.base import (
    Backend,
    Citation,
    CitationsPart,
    DraftPart,
    ModelRequest,
    Part,
    PastCall,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    UsagePart,
    fast_forward,
    prepare,
    rest,
    window,
)
from massgen_mcp.errors import BackendError
from massgen_mcp.redaction import RedactedText, Redactor

_Words = TextPart | ReasoningPart | DraftPart


class RedactedBackend:
    """The same backend behind a redactor."""

    def __init__(self, backend: Backend, redactor: Redactor) -> None:
        self.model = backend.model
        self._backend = backend
        self._redactor = redactor

    async def prepare(self) -> None:
        try:
            await prepare(self._backend)
        except BackendError as error:
            raise _clean_error(error, self._redactor) from None

    def fast_forward(self, past: Sequence[PastCall]) -> None:
        fast_forward(self._backend, past)

    async def window(self) -> int | None:
        return await window(self._backend)

    async def rest(self) -> None:
        await rest(self._backend)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        reply = _Reply(self._redactor)
        try:
            async with aclosing(self._backend.stream(request)) as parts:
                async for part in parts:
                    for cleaned in reply.clean(part):
                        yield cleaned
        except BackendError as error:
            raise _clean_error(error, self._redactor) from None

    async def aclose(self) -> None:
        await self._backend.aclose()


class _Reply:
    """One reply on its way in. Text and reasoning are held back where a key may begin, up to the reply's end; a draft
    up to the end of its call.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._streams: dict[type[_Words], RedactedText] = {
            kind: redactor.stream() for kind in (TextPart, ReasoningPart, DraftPart)
        }

    def clean(self, part: Part) -> Iterator[Part]:
        match part:
            case TextPart(text) | ReasoningPart(text) | DraftPart(text):
                if ready := self._streams[type(part)].add(text):
                    yield type(part)(ready)
            case ToolCallPart(call):
                yield from self._rest(DraftPart)
                yield ToolCallPart(self._clean_call(call))
            case CitationsPart(citations):
                clean = self._redactor.text
                yield CitationsPart(tuple(Citation(clean(cited.url), clean(cited.title)) for cited in citations))
            case UsagePart():
                yield replace(part, model=self._redactor.text(part.model))
            case StopPart():
                yield from self._rest(ReasoningPart)
                yield from self._rest(TextPart)
                yield self._clean_stop(part)
            case _:
                assert_never(part)

    def _rest(self, kind: type[_Words]) -> Iterator[Part]:
        """What was held back."""
        if rest := self._streams[kind].end():
            yield kind(rest)

    def _clean_call(self, call: ToolCall) -> ToolCall:
        clean = self._redactor.text
        return ToolCall(clean(call.id), clean(call.name), self._redactor.json(call.arguments))

    def _clean_stop(self, stop: StopPart) -> StopPart:
        """Items to be sent back verbatim are left out where one holds a key: a provider refuses signed items that were
        altered, and takes a history without them.
        """
        return stop if self._redactor.value(stop.replay) == stop.replay else replace(stop, replay=())


def _clean_error(error: BackendError, redactor: Redactor) -> BackendError:
    return replace(error, message=redactor.text(error.message))
