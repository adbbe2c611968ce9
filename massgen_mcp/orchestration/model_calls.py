"""One model call of one agent, with everything about it in the journal."""

import time
from dataclasses import replace
from typing import TypedDict, TypeVar

import anyio

from massgen_mcp.backends.abilities import Abilities
from massgen_mcp.backends.base import ModelRequest, prepare
from massgen_mcp.backends.calling import ModelReply, call_model
from massgen_mcp.backends.metering import Meter
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
    Obstacle,
    TextDelta,
)
from massgen_mcp.events.parts import CitationRecord, Cost, ToolCallRecord, Usage
from massgen_mcp.money.reservations import CallEstimate
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.admission import admit, share_of
from massgen_mcp.orchestration.live_run import LiveRun
from massgen_mcp.orchestration.team import Member, TeamLimits
from massgen_mcp.orchestration.without_tools import fitted
from massgen_mcp.orchestration.written_calls import read_calls, shown_texts

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
    estimate = CallEstimate(member.tariff, meter.input_tokens)
    await prepare(member.backend)
    while True:
        reservation = await admit(live_run, member, estimate, purpose, call_id)
        limited = replace(request, max_output_tokens=reservation.limit)
        try:
            return await _ask(member, limited, meter, call_id, purpose, live_run, limits)
        except BackendError as error:
            if error.reason != "budget":
                raise  # else a further try did not fit any more, and there may be room again
        finally:
            live_run.reservations.release(call_id)


async def _ask(
    member: Member,
    request: ModelRequest,
    meter: Meter,
    call_id: str,
    purpose: CallPurpose,
    live_run: LiveRun,
    limits: TeamLimits,
) -> ModelReplied:
    abilities = member.limiter.abilities(member.backend.model, member.own_tools) if member.limiter else Abilities()
    repeated = live_run.state.resume_point.in_flight.get(member.name) == call_id
    lost = _estimate(member, meter)
    live_run.record(
        ModelCallStarted(
            agent=member.name,
            call_id=call_id,
            purpose=purpose,
            repeated=repeated,
            usage_if_lost=lost["usage"],
            cost_if_lost=lost["cost"],
        )
    )
    try:
        await live_run.settle()
    except anyio.get_cancelled_exc_class():
        live_run.record(ModelCallAborted(agent=member.name, call_id=call_id, seconds=0.0))  # it was not sent
        raise
    clock = _CallClock()
    deltas = _Deltas(member.name, call_id, live_run)

    def on_retry(attempt: int, error: BackendError, wait_seconds: float) -> None:
        deltas.drop()
        _record_bill(
            live_run,
            ModelCallRetried(
                agent=member.name,
                call_id=call_id,
                attempt=attempt,
                reason=error.reason,
                message=str(error),
                wait_seconds=wait_seconds,
                **_bill(member, meter, error),
            ),
        )
        meter.wait()
        if not live_run.reservations.holds(share_of(live_run, member, purpose)):
            raise BackendError("budget", "a further try does not fit into the budget")

    asked = request

    def fit(request: ModelRequest) -> ModelRequest:
        nonlocal asked
        asked = fitted(request, abilities)
        return asked

    def on_wait(obstacle: Obstacle | None) -> None:
        clock.wait(obstacle)
        if obstacle is not None:
            live_run.record(ModelCallWaiting(agent=member.name, call_id=call_id, obstacle=obstacle))
            return
        live_run.record(ModelCallAdmitted(agent=member.name, call_id=call_id, queued_seconds=clock.admit()))

    try:
        reply = await call_model(
            member.backend,
            request,
            policy=limits.retry,
            deadline_seconds=limits.call_seconds,
            on_text=deltas.add,
            on_retry=on_retry,
            limiter=member.limiter,
            on_wait=on_wait,
            on_try=meter.begin,
            on_part=meter.hear,
            fit=fit,
            refused=lambda error: abilities.learn(error, asked),
        )
    except Exception as error:  # noqa: BLE001 - whatever a wire raises, its call has ended
        fault = live_run.fault(error)
        _record_bill(
            live_run,
            ModelCallFailed(
                agent=member.name,
                call_id=call_id,
                reason=fault.reason,
                message=str(fault),
                seconds=clock.seconds,
                **_bill(member, meter, fault),
            ),
        )
        raise fault from None
    except anyio.get_cancelled_exc_class():
        bill = _bill(member, meter)
        _record_bill(live_run, ModelCallAborted(agent=member.name, call_id=call_id, seconds=clock.seconds, **bill))
        raise
    deltas.flush()
    replied = _replied(member, call_id, purpose, reply, meter, clock)
    if not replied.tool_calls:
        replied = _with_written_calls(replied, request, as_text=asked.tools != request.tools)
    event = _record_bill(live_run, replied)
    await live_run.settle()
    return event


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


def _replied(
    member: Member, call_id: str, purpose: CallPurpose, reply: ModelReply, meter: Meter, clock: "_CallClock"
) -> ModelReplied:
    usage, reported = meter.usage(), reply.usage and reply.usage.cost_usd
    return ModelReplied(
        agent=member.name,
        call_id=call_id,
        purpose=purpose,
        model=reply.model,
        text=reply.text,
        reasoning=reply.reasoning,
        tool_calls=tuple(
            ToolCallRecord(id=call.id, name=call.name, arguments=call.arguments) for call in reply.tool_calls
        ),
        citations=tuple(CitationRecord(url=cited.url, title=cited.title) for cited in reply.citations),
        stop=reply.stop,
        replay=reply.replay,
        usage=usage,
        cost=member.tariff.cost(usage, reported_usd=reported, model=reply.model),
        seconds=clock.seconds,
    )


def _with_written_calls(replied: ModelReplied, request: ModelRequest, *, as_text: bool) -> ModelReplied:
    """The reply with the calls that its text ends with, unless it was cut off: then it may end anywhere."""
    if replied.stop in ("length", "refusal"):
        return replied.model_copy(update={"tools_as_text": as_text})
    names = {tool.name for tool in request.tools}
    if replied.purpose == "present":
        names.add(prompts.NEW_ANSWER.name)  # some models go on as before
    written = read_calls(replied.text, names, shown_texts(request.messages))
    calls = tuple(
        ToolCallRecord(id=f"written_{place}", name=call.name, arguments=call.arguments, form=call.form)
        for place, call in enumerate(written.calls, start=1)
    )
    told = {"tool_calls": calls, "unreadable_call": written.unreadable, "tools_as_text": as_text}
    return replied.model_copy(update=told)


class _CallClock:
    """How long a call takes, retries and pauses included, and how long it waits in our own queue, which is no part of
    that. Seconds.
    """

    def __init__(self) -> None:
        self._began = anyio.current_time()
        self._queued = 0.0
        self._told = 0.0
        """So much of it was told already."""
        self._since: float | None = None
        """When it came into our own queue; None while it is not there."""

    @property
    def seconds(self) -> float:
        now = anyio.current_time()
        return now - self._began - self._queued - (now - self._since if self._since is not None else 0.0)

    def wait(self, obstacle: Obstacle | None) -> None:
        now = anyio.current_time()
        if self._since is not None:
            self._queued += now - self._since
        self._since = now if obstacle in OWN_QUEUE else None

    def admit(self) -> float:
        """How long it waited in our own queue since it was admitted the last time."""
        waited, self._told = self._queued - self._told, self._queued
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
