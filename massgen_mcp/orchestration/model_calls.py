"""One model call of one agent, with everything about it in the journal."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypedDict, TypeVar, assert_never

import anyio

from massgen_mcp.backends.abilities import Abilities
from massgen_mcp.backends.base import (
    VOTE,
    AssistantMessage,
    JsonObject,
    Message,
    ModelRequest,
    Part,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
    prepare,
)
from massgen_mcp.backends.calling import CallHooks, ModelReply, call_model
from massgen_mcp.backends.metering import Meter, count_long_tokens
from massgen_mcp.errors import BackendError
from massgen_mcp.events.agent_work import (
    OWN_QUEUE,
    CallPurpose,
    ModelCallAborted,
    ModelCallAdmitted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    TextDelta,
    WaitReason,
)
from massgen_mcp.events.parts import CitationRecord, Cost, ToolCallRecord, Usage
from massgen_mcp.money.reservations import CallEstimate
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.admission import admit, share_of
from massgen_mcp.orchestration.call_repair import repair_calls
from massgen_mcp.orchestration.live_run import LiveRun
from massgen_mcp.orchestration.team import Member, TeamLimits
from massgen_mcp.orchestration.window import abilities_of
from massgen_mcp.orchestration.written_actions import read_calls, shown_texts

DELTA_CHARACTERS = 400
DELTA_SECONDS = 0.1
"""Streamed text is journaled in pieces of at least this size or age; it is for display, the reply is the record."""


async def ask(
    member: Member, request: ModelRequest, *, call_id: str, purpose: CallPurpose, live_run: LiveRun, limits: TeamLimits
) -> ModelReplied:
    """Call the model. That the call is made is durable before it is, and the reply before it is returned. The call
    begins when its backend is prepared: importing an SDK is no silence of the model, and costs nothing.

    Raises `BackendError` when the call failed for good, retries included, or did not fit into the budget.
    """
    meter = Meter(request)
    estimate = CallEstimate(member.tariff, meter.input_tokens, count_long_tokens(request))
    await prepare(member.backend)
    while True:
        reservation = await admit(live_run, member, estimate, purpose, call_id)
        limited = replace(request, max_output_tokens=reservation.limit)
        try:
            return await _ModelCall(member, meter, call_id, purpose, live_run).make(limited, limits)
        except BackendError as error:
            if error.reason != "budget":
                raise  # else a further try did not fit any more, and there may be room again
        finally:
            live_run.reservations.release(call_id)


class _ModelCall(CallHooks):
    """One call, which it hears and journals."""

    def __init__(self, member: Member, meter: Meter, call_id: str, purpose: CallPurpose, live_run: LiveRun) -> None:
        self._member = member
        self._meter = meter
        self._call_id = call_id
        self._purpose: CallPurpose = purpose
        self._live_run = live_run
        self._abilities = abilities_of(member)
        self._deltas = _Deltas(member.name, call_id, live_run)
        self._clock = _CallClock()
        self._asked: ModelRequest | None = None
        """What was asked with the last try."""

    async def make(self, request: ModelRequest, limits: TeamLimits) -> ModelReplied:
        await self._begin()
        try:
            reply = await call_model(
                self._member.backend,
                request,
                self,
                policy=limits.retry,
                deadline_seconds=limits.call_seconds,
                limiter=self._member.limiter,
            )
        except Exception as error:  # noqa: BLE001 - whatever a wire raises, its call has ended
            fault = self._live_run.fault(error)
            self._record_failure(fault)
            raise fault from None
        except anyio.get_cancelled_exc_class():
            bill = _bill(self._member, self._meter)
            aborted = ModelCallAborted(
                agent=self._member.name, call_id=self._call_id, seconds=self._clock.seconds, **bill
            )
            _record_bill(self._live_run, aborted)
            raise
        self._deltas.flush()
        replied = self._replied(reply)
        if not replied.tool_calls:
            as_text = self._asked is not None and bool(request.tools) and not self._asked.tools
            replied = _with_written_calls(replied, request, as_text=as_text)
        if replied.stop not in ("length", "refusal"):
            calls = repair_calls(replied.tool_calls, request.tools)
            replied = replied.model_copy(update={"tool_calls": calls})
        event = _record_bill(self._live_run, replied)
        self._abilities.measure(self._meter.input_tokens, event.usage)
        await self._live_run.settle()
        return event

    async def _begin(self) -> None:
        """That the call is made is durable now, and its time runs."""
        member, live_run = self._member, self._live_run
        lost = _estimate(member, self._meter)
        live_run.record(
            ModelCallStarted(
                agent=member.name,
                call_id=self._call_id,
                purpose=self._purpose,
                repeated=live_run.state.resume_point.in_flight.get(member.name) == self._call_id,
                usage_if_lost=lost["usage"],
                cost_if_lost=lost["cost"],
            )
        )
        try:
            await live_run.settle()
        except anyio.get_cancelled_exc_class():
            live_run.record(ModelCallAborted(agent=member.name, call_id=self._call_id, seconds=0.0))  # it was not sent
            raise
        self._clock = _CallClock()

    def on_wait(self, obstacle: WaitReason | None) -> None:
        self._clock.wait(obstacle)
        name, call_id = self._member.name, self._call_id
        if obstacle is None:
            self._live_run.record(ModelCallAdmitted(agent=name, call_id=call_id, queued_seconds=self._clock.admit()))
        else:
            self._live_run.record(ModelCallWaiting(agent=name, call_id=call_id, obstacle=obstacle))

    def on_try(self) -> None:
        self._meter.begin()

    def on_part(self, part: Part) -> None:
        self._meter.hear(part)

    def on_text(self, text: str) -> None:
        self._deltas.add(text)

    def on_retry(self, attempt: int, error: BackendError, wait_seconds: float) -> None:
        self._deltas.drop()
        retried = ModelCallRetried(
            agent=self._member.name,
            call_id=self._call_id,
            attempt=attempt,
            reason=error.reason,
            message=str(error),
            wait_seconds=wait_seconds,
            **_bill(self._member, self._meter, error),
        )
        _record_bill(self._live_run, retried)
        self._meter.wait()
        share = share_of(self._live_run, self._member, self._purpose)
        if not self._live_run.reservations.has_room_for_retry(self._call_id, share):
            raise BackendError("budget", "a further try does not fit into the budget")

    def fit(self, request: ModelRequest) -> ModelRequest:
        self._asked = fitted(request, self._abilities)
        return self._asked

    def refused(self, error: BackendError) -> bool:
        return self._asked is not None and self._abilities.learn(error, self._asked)

    def _record_failure(self, fault: BackendError) -> None:
        failed = ModelCallFailed(
            agent=self._member.name,
            call_id=self._call_id,
            reason=fault.reason,
            message=str(fault),
            seconds=self._clock.seconds,
            **_bill(self._member, self._meter, fault),
        )
        _record_bill(self._live_run, failed)

    def _replied(self, reply: ModelReply) -> ModelReplied:
        usage, reported, asked = self._meter.usage(), reply.usage and reply.usage.cost_usd, self._asked
        return ModelReplied(
            agent=self._member.name,
            call_id=self._call_id,
            purpose=self._purpose,
            model=reply.model,
            text=reply.text,
            reasoning=reply.reasoning,
            tool_calls=tuple(
                ToolCallRecord(id=call.id, name=call.name, arguments=call.arguments) for call in reply.tool_calls
            ),
            citations=tuple(CitationRecord(url=cited.url, title=cited.title) for cited in reply.citations),
            stop=reply.stop,
            notice="" if asked is None else asked.notice,
            opening="" if asked is None else asked.opening,
            replay=reply.replay,
            usage=usage,
            cost=self._member.tariff.cost(usage, reported_usd=reported, model=reply.model),
            by_fallback=self._member.is_fallback,
            seconds=self._clock.seconds,
        )


BillT = TypeVar("BillT", ModelReplied, ModelCallRetried, ModelCallFailed, ModelCallAborted)


def _record_bill(live_run: LiveRun, event: BillT) -> BillT:
    """What a call came to, and what that means for the budget. Returns the event as it is recorded."""
    event = live_run.record(event)
    if event.usage is not None and event.cost is not None:
        if exceeded := live_run.reservations.exceeded(event.agent, event.call_id, event.usage, event.cost):
            live_run.record(exceeded)
        for mark in live_run.reservations.due():
            live_run.record(mark)
    return event


class _Bill(TypedDict):
    usage: Usage | None
    cost: Cost | None


_NOTHING: _Bill = {"usage": None, "cost": None}


def _bill(member: Member, meter: Meter, error: BackendError | None = None) -> _Bill:
    """What a try that brought no reply has to be paid for; both None where that is nothing."""
    if not meter.billed(error):
        return _NOTHING
    return _estimate(member, meter)


def _estimate(member: Member, meter: Meter) -> _Bill:
    usage, reported = meter.usage(), meter.reported and meter.reported.cost_usd
    return {"usage": usage, "cost": member.tariff.cost(usage, reported_usd=reported)}


def _with_written_calls(replied: ModelReplied, request: ModelRequest, *, as_text: bool) -> ModelReplied:
    """The reply with the calls that its text ends with, unless it was cut off: then it may end anywhere."""
    if replied.stop in ("length", "refusal"):
        return replied.model_copy(update={"tools_as_text": as_text})
    names = {tool.name for tool in request.tools}
    ending = [tool for tool in request.tools if tool.name in prompts.TOOLS_OF_ROUNDS]
    if replied.purpose == "present":
        ending = [prompts.NEW_ANSWER]  # some models go on as before
        names.add(prompts.NEW_ANSWER.name)
    shown = shown_texts(request.messages)
    asked = shown_texts(request.messages, of_caller=True)
    written = read_calls(replied.text, names, shown, ending=ending, asked=asked)
    calls = tuple(
        ToolCallRecord(id=f"written_{place}", name=call.name, arguments=call.arguments, form=call.form)
        for place, call in enumerate(written.calls, start=1)
    )
    found = {"tool_calls": calls, "unreadable_call": written.unreadable, "tools_as_text": as_text}
    return replied.model_copy(update=found)


class _CallClock:
    """How long a call takes, retries and pauses included, and how long it waits in our own queue, which is no part of
    that. Seconds.
    """

    def __init__(self) -> None:
        self._began = anyio.current_time()
        self._queued = 0.0
        self._counted = 0.0
        """So much of it was told already."""
        self._since: float | None = None
        """When it came into our own queue; None while it is not there."""

    @property
    def seconds(self) -> float:
        now = anyio.current_time()
        return now - self._began - self._queued - (now - self._since if self._since is not None else 0.0)

    def wait(self, obstacle: WaitReason | None) -> None:
        now = anyio.current_time()
        if self._since is not None:
            self._queued += now - self._since
        self._since = now if obstacle in OWN_QUEUE else None

    def admit(self) -> float:
        """How long it waited in our own queue since it was admitted the last time."""
        waited, self._counted = self._queued - self._counted, self._queued
        return waited


class _Deltas:
    """Puts a stream's small pieces of text together, so that a journal is not one line per token."""

    def __init__(self, agent: str, call_id: str, live_run: LiveRun) -> None:
        self._agent = agent
        self._call_id = call_id
        self._live_run = live_run
        self._pieces: list[str] = []
        self._size = 0
        self._flushed = time.monotonic()

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)
        if self._size >= DELTA_CHARACTERS or time.monotonic() - self._flushed >= DELTA_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._pieces:
            self._live_run.record(TextDelta(agent=self._agent, call_id=self._call_id, text="".join(self._pieces)))
        self.drop()

    def drop(self) -> None:
        self._pieces.clear()
        self._size = 0
        self._flushed = time.monotonic()


# ---------------------------------------------------------------------------------------------------------------------
# A request for a server that refuses tools: they are described in the text, and so are calls and results. Pure.


def fitted(request: ModelRequest, abilities: Abilities) -> ModelRequest:
    """The same request, as far as the model takes it."""
    request = replace(request, left_out=abilities.left_out)
    if request.tools and (request.calls_in_text or not abilities.takes_tools):
        request = _in_text(request)
    elif not abilities.can_be_forced:
        request = replace(request, must_call_tool=False)
    if "alternation" in abilities.left_out:
        request = replace(request, messages=tuple(_joined_turns(request.messages)), shared_ends=())
    if "system_role" in abilities.left_out:
        request = replace(request, system="", messages=_with_system_inside(request))
    return request


def _in_text(request: ModelRequest) -> ModelRequest:
    system, tools, messages = request.system, request.tools, request.messages
    if request.in_text is not None:
        system, tools = request.in_text.system, request.in_text.tools
        messages = request.in_text.messages or messages
    votes = [prompts.shorten_vote_tool(tool, choice_only=request.must_call_tool) for tool in tools if tool.name == VOTE]
    tools = (*(tool for tool in tools if tool.name != VOTE), *votes)
    return replace(
        request,
        system="\n\n".join([system, *([prompts.tools_as_text(tools)] * bool(tools))]),
        messages=tuple(_joined_turns(map(_write_out, messages))),
        tools=(),
        standing_tools=(),
        shared_ends=(),
        must_call_tool=False,
        reply_schema=_reply_schema(tools, forced=request.must_call_tool),
    )


def _reply_schema(tools: Sequence[ToolSpec], *, forced: bool) -> JsonObject | None:
    """Return the schema of the choice that is asked for: the arguments of the vote, else of the one tool that ends the
    turn. None where plain text is the answer, or where other tools may be called first and none is `forced`.
    """
    ending = [tool for tool in tools if tool.name in prompts.TOOLS_OF_ROUNDS]
    votes = [tool for tool in ending if tool.name == VOTE]
    if not ending or (len(ending) != len(tools) and not forced):
        return None
    chosen = votes or [tool for tool in ending if tool != prompts.NEW_ANSWER]
    if len(chosen) != 1:
        return None
    return chosen[0].parameters


def _joined_turns(messages: Iterable[Message]) -> Iterator[Message]:
    """Return the messages with those of one side put together: templates of small models want turns to alternate."""
    pending: UserMessage | ToolResultMessage | None = None
    for message in messages:
        if isinstance(message, UserMessage) and pending is not None:
            pending = replace(pending, text=f"{pending.text}\n\n{message.text}")
            continue
        if pending is not None:
            yield pending
        pending = None
        if isinstance(message, AssistantMessage):
            yield message
        else:
            pending = message
    if pending is not None:
        yield pending


def _with_system_inside(request: ModelRequest) -> tuple[Message, ...]:
    """Return the messages with the system message at the beginning of the first one of the user."""
    match request.messages:
        case (UserMessage(text=first), *rest) if request.system:
            return (UserMessage(f"{request.system}\n\n{first}"), *rest)
        case messages if request.system:
            return (UserMessage(request.system), *messages)
        case messages:
            return messages


def _write_out(message: Message) -> UserMessage | AssistantMessage:
    """Return a message with calls and results as a part of its text: templates of small models refuse others."""
    match message:
        case AssistantMessage():
            calls = [prompts.written_call(call.name, call.arguments) for call in message.tool_calls]
            return AssistantMessage("\n".join(filter(None, [message.text, *calls])))
        case ToolResultMessage():
            return UserMessage(prompts.written_result(message.name, message.text))
        case UserMessage():
            return message
        case _:
            assert_never(message)
