"""The second seam between a run and who takes part, beside `base.Backend`: an agent that has a loop of its own.

It gets a task and works at a desk: it says things, uses the desk's tools, which hold each call until its verdict is
there, and hears between its turns what is new. `AgentBackend` is one behind the seam of a model, so that a run asks
both alike: a request that goes on with the conversation answers what is held, any other one is another task. See
docs/decisions.md.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol, runtime_checkable

import anyio

from massgen_mcp.backends.base import (
    AssistantMessage,
    Backend,
    DraftPart,
    JsonObject,
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
    prepare,
)
from massgen_mcp.errors import BackendError
from massgen_mcp.json_rpc import fields

END_SECONDS = 5.0
MAX_QUEUED = 8 * 1024 * 1024
"""Characters that may come while nobody listens."""

FINAL = ToolSpec(
    "final_answer",
    "Hand over your reply: its whole text. Nothing else that you say is part of it, and your work ends with it.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
"""Among the tools where the text is the reply, for an agent that has `own_words`."""


class Desk(Protocol):
    """Where an agent works on one task. That is over when the agent's `work` is cancelled, wherever it waits: an action
    that was accepted gets no answer.
    """

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The same from first to last: what may be done at the moment is told in words."""
        ...

    @property
    def task(self) -> ModelRequest:
        """As it stands now: with the conversation up to here, and what may be called at the moment."""
        ...

    def say(self, part: TextPart | ReasoningPart | DraftPart | UsagePart) -> None:
        """What the agent says, and what its model calls took. Raises `BackendError` where nobody reads so much."""
        ...

    async def use(self, *calls: ToolCall, replay: tuple[JsonObject, ...] = ()) -> tuple[ToolResultMessage, ...]:
        """What came of these calls, which are one step of the agent. `replay`: as `StopPart` has it."""
        ...

    async def news(self, end: StopPart) -> str:
        """The agent's turn has ended so; what it is told next."""
        ...


@runtime_checkable
class Agent(Protocol):
    """An agent with a loop of its own, bound to its settings."""

    @property
    def model(self) -> str:
        """As `Backend` has it."""
        ...

    @property
    def own_words(self) -> bool:
        """Whether it has words of its own between those of its model. Then its reply is what it hands over by the tool
        `final_answer`, or else all that it has said.
        """
        ...

    async def work(self, task: ModelRequest, desk: Desk) -> None:
        """Work on `task`, whose conversation may have begun before: in a resumed run, or with a session that was lost.
        That it returns ends its turn and the conversation. Raises `BackendError`.
        """
        ...

    async def aclose(self) -> None:
        """As `Backend` has it."""
        ...


class AgentBackend:
    """An agent behind the seam of a model."""

    def __init__(self, agent: Agent) -> None:
        self.model = agent.model
        self._agent = agent
        self._work: _Work | None = None

    async def prepare(self) -> None:
        await prepare(self._agent)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        whole = False
        try:
            work = self._work
            if work is None or not work.goes_on(request):
                await self.rest()
                work = self._work = _Work(self._agent, request)
            while not whole:
                part = await work.next_part()
                whole = isinstance(part, StopPart)
                yield part
        finally:
            if not whole:
                await self.rest()

    async def rest(self) -> None:
        """Nobody goes on with the conversation."""
        work, self._work = self._work, None
        if work is not None:
            await work.leave()

    async def aclose(self) -> None:
        await self.rest()
        await self._agent.aclose()


def as_backend(made: Backend | Agent) -> Backend:
    """Either seam as the one of a model."""
    return AgentBackend(made) if isinstance(made, Agent) else made


class _Work:
    """One conversation: the agent's task, and its desk."""

    def __init__(self, agent: Agent, request: ModelRequest) -> None:
        self._request = request
        self._text: list[str] | None = None
        """What is said, where another thing may be the reply."""
        if agent.own_words and not (request.ends_with_call or request.must_call_tool):
            self._text = []
        self.tools = request.tools if self._text is None else (*request.tools, FINAL)
        self._coming: asyncio.Queue[Part | Exception] = asyncio.Queue()
        self._queued = 0
        self._handed_over: list[str] = []
        """Ids of the calls whose results the next request has to bring."""
        self._held: dict[str, asyncio.Future[ToolResultMessage]] = {}
        self._waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """For what is new after a turn."""
        self._over = False
        self._task = asyncio.create_task(self._run(agent, request))

    async def _run(self, agent: Agent, task: ModelRequest) -> None:
        try:
            await agent.work(task, self)
            self._end(StopPart("end"))
        except Exception as error:  # noqa: BLE001 - whoever reads hears of it
            self._coming.put_nowait(error)
        self._over = True

    async def leave(self) -> None:
        """Nothing of the work outlives it."""
        self._over = True
        self._task.cancel()
        for held in (*self._held.values(), self._waiting):
            held.cancel()
        with anyio.move_on_after(END_SECONDS, shield=True):
            await asyncio.wait({self._task})

    # -- the agent's side ---------------------------------------------------------------------------------------------

    @property
    def task(self) -> ModelRequest:
        return self._request

    def say(self, part: TextPart | ReasoningPart | DraftPart | UsagePart) -> None:
        if not isinstance(part, UsagePart):
            self._queued += len(part.text)
            if self._queued > MAX_QUEUED:
                raise BackendError("bad_reply", "it says more than anybody reads")
        if self._text is not None and isinstance(part, TextPart):
            self._text.append(part.text)
        else:
            self._coming.put_nowait(part)

    async def use(self, *calls: ToolCall, replay: tuple[JsonObject, ...] = ()) -> tuple[ToolResultMessage, ...]:
        if self._text is not None and (handed := [call for call in calls if call.name == FINAL.name]):
            return await self._take_reply(handed[0])
        waiting = [asyncio.get_running_loop().create_future() for _ in calls]
        for call, held in zip(calls, waiting, strict=True):
            self._held[call.id] = held
            self._coming.put_nowait(ToolCallPart(call))
        self._coming.put_nowait(StopPart("tool_calls", replay))
        try:
            return tuple([await held for held in waiting])
        finally:
            for held in waiting:
                held.cancel()

    async def _take_reply(self, call: ToolCall) -> tuple[ToolResultMessage, ...]:
        """That the call is never answered saves a request of the model."""
        text = None
        with suppress(ValueError):
            text = fields(json.loads(call.arguments)).get("text")
        if not isinstance(text, str) or not text.strip():
            return (ToolResultMessage(call.id, call.name, "text: the whole reply is missing", is_error=True),)
        self._text, self._over = [text], True
        self._end(StopPart("end"))
        await self._waiting
        return ()

    async def news(self, end: StopPart) -> str:
        self._waiting = asyncio.get_running_loop().create_future()
        self._end(end)
        return await self._waiting

    def _end(self, end: StopPart) -> None:
        if self._text:
            self._coming.put_nowait(TextPart("".join(self._text)))
            self._text = []
        self._coming.put_nowait(end)

    # -- the run's side -----------------------------------------------------------------------------------------------

    async def next_part(self) -> Part:
        """Raises what the agent's work raised."""
        came = await self._coming.get()
        if isinstance(came, Exception):
            raise came
        if isinstance(came, TextPart | ReasoningPart | DraftPart):
            self._queued -= len(came.text)
        if isinstance(came, ToolCallPart):
            self._handed_over.append(came.call.id)
        return came

    def goes_on(self, request: ModelRequest) -> bool:
        """Whether this request goes on with the conversation; then the agent does. Otherwise it is another one, or the
        agent does not wait any more.
        """
        further = None if self._over else self._further(request)
        if further is None:
            return False
        results, words = further
        if results:
            *_, last = results
            results = [*results[:-1], replace(last, text="\n\n".join(filter(None, (last.text, words))))]
        elif not words or self._waiting.done():
            return False
        self._request = request
        self._handed_over.clear()
        for one in results:
            self._held.pop(one.call_id).set_result(one)
        if not results:
            self._waiting.set_result(words)
        return True

    def _further(self, request: ModelRequest) -> tuple[list[ToolResultMessage], str] | None:
        """The results, and the further words."""
        known, messages = 0, self._request.messages
        while known < len(messages) and request.messages[known : known + 1] == messages[known : known + 1]:
            known += 1
        for_one_call = messages[known:]
        reply, *rest = request.messages[known:] or (None,)
        offered = {tool.name for tool in self.tools}
        if request.system != self._request.system or not offered.issuperset(tool.name for tool in request.tools):
            return None
        if not isinstance(reply, AssistantMessage) or any(isinstance(one, AssistantMessage) for one in rest):
            return None
        results = [one for one in rest if isinstance(one, ToolResultMessage)]
        if [one.call_id for one in results] != self._handed_over or not self._all_wait(results):
            return None
        if any(not isinstance(one, UserMessage) for one in for_one_call):
            return None
        return results, "\n\n".join(one.text for one in rest if isinstance(one, UserMessage))

    def _all_wait(self, results: Sequence[ToolResultMessage]) -> bool:
        return all((held := self._held.get(one.call_id)) and not held.done() for one in results)
