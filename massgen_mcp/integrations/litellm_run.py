"""The final answer while it is being written, for LiteLLM's streams. Must not import LiteLLM.

What was sent of an answer cannot be taken back. So text is passed on as long as it can only be the final answer: not
while a further attempt is possible, and no more once a call of the presentation was repeated or led to tools and began
otherwise. What is missing comes in one piece at the end; if it does not continue what was sent, after a line that says
so.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from typing import Any, assert_never

from massgen_mcp.api.performing import perform
from massgen_mcp.api.request import PreparedRequest
from massgen_mcp.events.agent_work import (
    CallEvent,
    ModelCallAborted,
    ModelCallAdmitted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from massgen_mcp.events.record import AnyEvent, LogRecord, UnknownEvent
from massgen_mcp.events.run import AttemptStarted

BEGUN_AGAIN = "\n\n[the answer was begun again]\n\n"


class FinalText:
    """Turns events into the text that may be sent."""

    def __init__(self, attempts: int) -> None:
        self._attempts = attempts
        self._last_attempt = attempts == 1
        self._call = ""
        self._written = ""
        self._diverged = False
        self.sent = ""

    def take(self, event: AnyEvent | UnknownEvent) -> str:
        """What this event adds to the text; often nothing."""
        if isinstance(event, AttemptStarted):
            self._last_attempt = event.attempt >= self._attempts
        if not isinstance(event, CallEvent):
            return ""
        match event:
            case ModelCallStarted(purpose="present"):
                self._call, self._written = event.call_id, ""
            case ModelCallRetried(call_id=self._call):
                self._written = ""
            case TextDelta(call_id=self._call) if self._last_attempt:
                return self._add(event.text)
            case ModelCallStarted() | ModelCallRetried() | TextDelta() | ModelCallWaiting() | ModelCallAdmitted():
                pass
            case ModelReplied() | ModelCallFailed() | ModelCallAborted() | ToolStarted() | ToolFinished():
                pass
            case _:
                assert_never(event)
        return ""

    def rest(self, answer: str) -> str:
        """What is still to be sent when this is the final answer."""
        if answer.startswith(self.sent):
            return answer[len(self.sent) :]
        return BEGUN_AGAIN + answer

    def _add(self, text: str) -> str:
        self._written += text
        if self._diverged or self.sent.startswith(self._written):
            return ""
        if not self._written.startswith(self.sent):
            self._diverged = True
            return ""
        new, self.sent = self._written[len(self.sent) :], self._written
        return new


async def pieces(run: PreparedRequest) -> AsyncGenerator[str | dict[str, Any]]:
    """Pieces of the final answer, then the result as `perform` returns it. Raises as `perform`.

    Closing it cancels the run. An asyncio task and not a task group: whoever closes a generator may be another task
    than the one that opened it.
    """
    queue: asyncio.Queue[str | None] = asyncio.Queue()
    text = FinalText(run.request.config.orchestrator.coordination.max_orchestration_restarts + 1)

    def on_record(record: LogRecord) -> None:
        if piece := text.take(record.event):
            queue.put_nowait(piece)

    task = asyncio.create_task(perform(run, on_record))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (piece := await queue.get()) is not None:
            yield piece
        result = await task
        if rest := text.rest(result["final_answer"]):
            yield rest
        yield result
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def in_thread(source: AsyncGenerator[str | dict[str, Any]]) -> Generator[str | dict[str, Any]]:
    """The same for callers without `await`, whether or not an event loop runs in their thread."""
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal() as portal:
        try:
            with suppress(StopAsyncIteration):
                while True:
                    yield portal.call(anext, source)
        finally:
            portal.call(source.aclose)
