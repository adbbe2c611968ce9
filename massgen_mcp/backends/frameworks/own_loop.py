"""Agents that have a loop of their own, behind the seam of a model: a conversation is a session, warm over its steps.

What such an agent says comes as parts, up to its calls of the team's tools. These are held: the next request of the
same conversation brings their results, or else the next prompt, and the agent goes on. Any other request is another
session. Both the wire and the process are the agent's own matter. See docs/decisions.md.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio

from massgen_mcp.backends.base import (
    AssistantMessage,
    JsonObject,
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
from massgen_mcp.backends.frameworks.agent_cli import tool_result
from massgen_mcp.backends.frameworks.agent_process import Running
from massgen_mcp.backends.wire_values import clean
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.json_rpc import JsonLines, WireBroken
from massgen_mcp.redaction import Redactor
from massgen_mcp.sandbox import SandboxFailed

CANCEL_SECONDS = 2.0
MAX_QUEUED = 8 * 1024 * 1024
"""Characters that may come while nobody listens."""
LAST_WORDS_BYTES = 2000
MAX_DETAIL = 500


@dataclass(slots=True, eq=False)
class HeldCall:
    """A call that waits for its result, which `answer` hands over as MCP has it. `gone`: nobody waits any more."""

    call_id: str
    answer: Callable[[JsonObject], Awaitable[None]]
    gone: bool = False


class Session:
    """One conversation. `coming`: what the agent says and wants, in order, and how its turns end."""

    def __init__(self, request: ModelRequest) -> None:
        self.coming: asyncio.Queue[Part | BackendError] = asyncio.Queue()
        self.tools = request.tools
        self.answered = 0
        """Calls of this turn."""
        self._queued = 0
        self._handed_over: list[str] = []
        """Ids of the calls whose results the next request has to bring."""
        self._held: dict[str, HeldCall] = {}
        self._results: dict[str, JsonObject] = {}
        self._take(request)

    def _take(self, request: ModelRequest) -> None:
        self._system, self._messages = request.system, request.messages

    def say(self, part: Part) -> None:
        """Raises `WireBroken`."""
        self._queued += len(part.text) if isinstance(part, TextPart | ReasoningPart) else 0
        if self._queued > MAX_QUEUED:
            raise WireBroken("it says more than anybody reads")
        self.coming.put_nowait(part)

    async def next_part(self) -> Part:
        """Raises `BackendError` where the turn failed."""
        came = await self.coming.get()
        if isinstance(came, BackendError):
            raise came
        if isinstance(came, TextPart | ReasoningPart):
            self._queued -= len(came.text)
        if isinstance(came, ToolCallPart):
            self._handed_over.append(came.call.id)
        return came

    def hand_over(self, calls: Sequence[ToolCall]) -> None:
        """The agent waits for the results of these calls, and does nothing else."""
        for call in calls:
            self.say(ToolCallPart(call))
        self.say(StopPart("tool_calls"))

    def expect(self, call_id: str) -> None:
        """A call will be held under this id, which an earlier one may have had."""
        self._held.pop(call_id, None)
        self._results.pop(call_id, None)

    async def hold(self, held: HeldCall) -> None:
        """The agent waits for the result of this call, which may be there."""
        self._held[held.call_id] = held
        if (result := self._results.get(held.call_id)) is not None:
            await held.answer(result)

    async def go_on(self, request: ModelRequest) -> str | None:
        """The next prompt of a request that goes on with this conversation, "" where it answers what is held; None: it
        is another one, or nobody waits any more.
        """
        if (said := self._said_next(request)) is None:
            return None
        results, words = said
        self._take(request)
        self._handed_over.clear()
        if not results:
            self.answered = 0
            return words or None
        self.answered += len(results)
        for place, one in enumerate(results, start=1):
            text = "\n\n".join(filter(None, (one.text, words))) if place == len(results) else one.text
            answer = self._results[one.call_id] = tool_result(text, is_error=one.is_error)
            if (held := self._held.get(one.call_id)) is not None:
                await held.answer(answer)
        return ""

    def _said_next(self, request: ModelRequest) -> tuple[list[ToolResultMessage], str] | None:
        """The results, and the further words."""
        known, offered = 0, {tool.name for tool in self.tools}
        while known < len(self._messages) and request.messages[known : known + 1] == self._messages[known : known + 1]:
            known += 1
        for_one_call = self._messages[known:]
        reply, *rest = request.messages[known:] or (None,)
        if request.system != self._system or not offered.issuperset(tool.name for tool in request.tools):
            return None
        if not isinstance(reply, AssistantMessage) or any(isinstance(one, AssistantMessage) for one in rest):
            return None
        results = [one for one in rest if isinstance(one, ToolResultMessage)]
        if [one.call_id for one in results] != self._handed_over:
            return None
        waits = not any((held := self._held.get(one.call_id)) and held.gone for one in results)
        if not waits or any(not isinstance(one, UserMessage) for one in for_one_call):
            return None
        return results, "\n\n".join(one.text for one in rest if isinstance(one, UserMessage))


S = TypeVar("S", bound=Session)
L = TypeVar("L", bound=JsonLines)


class OwnLoop(Generic[S, L]):
    """One agent, whose process may live for several conversations. `name`: as people know it."""

    def __init__(self, name: str, redactor: Redactor) -> None:
        self._name, self._redactor = name, redactor
        self._process = AsyncExitStack()
        self._lines: L | None = None
        """What is said to it, once it can be talked to."""
        self._session: S | None = None
        """The one that is talked to."""
        self._last_words = bytearray()

    # -- what every agent does its own way ----------------------------------------------------------------------------

    async def _begin(self, request: ModelRequest) -> S:
        """A session that has been told the conversation; it is `_session` as soon as there is anything to end."""
        raise NotImplementedError

    async def _prompt(self, session: S, text: str) -> None:
        raise NotImplementedError

    async def _end(self, session: S) -> None:
        """The conversation is over, whatever its turn was doing."""
        raise NotImplementedError

    # -- conversations ------------------------------------------------------------------------------------------------

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        whole = False
        try:
            session = await self._going_on(request)
            while not whole:
                part = await session.next_part()
                whole = isinstance(part, StopPart)
                yield part
        except (WireBroken, SandboxFailed, OSError) as error:
            raise self.fault(error) from None
        finally:
            if not whole:
                await self.rest()

    async def _going_on(self, request: ModelRequest) -> S:
        """The session in which the reply to this request is coming."""
        session, lines = self._session, self._lines
        if session is not None and lines is not None and lines.broken is None:
            words = await session.go_on(request)
            if words:
                await self._prompt(session, words)
            if words is not None:
                return session
        await self.rest()
        return await self._begin(request)

    async def rest(self) -> None:
        """Nobody goes on with the conversation."""
        session, self._session = self._session, None
        if session is not None:
            await self._end(session)

    # -- the process --------------------------------------------------------------------------------------------------

    async def _run(self, cli: AbstractAsyncContextManager[Running], speak: Callable[[Running], L]) -> L:
        running = await self._process.enter_async_context(cli)
        lines = speak(running)
        self._last_words.clear()
        words = asyncio.create_task(self._listen(running))
        reading = asyncio.create_task(self._read(lines, running, words))
        self._process.push_async_callback(_ended, reading, words)
        return lines

    async def _stop(self) -> None:
        self._lines = None
        with anyio.CancelScope(shield=True):
            await self._process.aclose()

    async def _read(self, lines: L, running: Running, words: asyncio.Task[None]) -> None:
        why = "it ended"
        try:
            await lines.read()
            with anyio.move_on_after(CANCEL_SECONDS):
                await asyncio.shield(words)
        except WireBroken as error:
            why = str(error)
            await running.end()
        finally:
            lines.end(why)

    async def _listen(self, running: Running) -> None:
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while True:
                self._last_words += await running.stderr.receive()
                del self._last_words[:-LAST_WORDS_BYTES]

    # -- what goes wrong ----------------------------------------------------------------------------------------------

    def fault(self, error: Exception) -> BackendError:
        if isinstance(error, SandboxFailed | OSError):
            return self._failed("provider_error", f"cannot be started: {error}")
        words = self._last_words.decode(errors="replace").strip()
        last = f"; its last words: {words}" if words else ""
        return self._failed("provider_error", f"broke off: {error}{last}", retryable=True)

    def _failed(self, reason: DropReason, what: str, *, retryable: bool = False) -> BackendError:
        """An error whose message holds no secret and has an end."""
        message = self._redactor.text(clean(f"{self._name} {what}"))
        return BackendError(reason, message[:MAX_DETAIL], retryable=retryable)


async def _ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
