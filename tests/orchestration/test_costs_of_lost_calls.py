"""A call that brought no reply may still have to be paid for: then it is in the sums, by our estimate."""

import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from massgen_mcp.backends.base import Backend, ModelRequest, Part, StopPart, TextPart, ToolCall, ToolCallPart, UsagePart
from massgen_mcp.backends.calling import RetryPolicy
from massgen_mcp.config.models.common import Price
from massgen_mcp.coordination.state import Rules
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.events.agent_work import (
    ModelCallAborted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelReplied,
)
from massgen_mcp.events.parts import AgentInfo, Event
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunCancelled, RunFailed, RunResumed, RunStarted
from massgen_mcp.money.tariff import Tariff
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from massgen_mcp.run_state.state import RunState, folded
from tests.backends.wires import WIRES, Wire
from tests.harness import wait_until
from tests.in_memory import EventList, NullAnswerStore
from tests.raw_double import Flow, answering

PRICE = Price(input_usd_per_million=1000, output_usd_per_million=10_000)
BEGUN = RunStarted(
    run_id="r", question="q?", agents=(AgentInfo(name="agent_a", id="a", backend="scripted", model="faulty"),)
)
SYN_SENT = "02"
"""In `/proc/net/tcp`."""
ANSWER = ToolCallPart(ToolCall("c", "new_answer", '{"content": "42"}'))


@dataclass
class Faulty:
    """A model whose tries end as told: parts, then an error, a stop, or nothing ever."""

    tries: list[tuple[tuple[Part, ...], BackendError | float | None]]
    model: str = "faulty"
    done: int = field(default=0)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        del request
        parts, end = self.tries[min(self.done, len(self.tries) - 1)]
        self.done += 1
        for part in parts:
            yield part
        if isinstance(end, BackendError):
            raise end
        if end is not None:
            await anyio.sleep_forever()

    async def aclose(self) -> None:
        """Nothing is open."""


async def alone(model: Faulty, *, call_seconds: float = 30) -> tuple[list[Event], RunState]:
    member = Member("agent_a", model, tariff=Tariff("faulty", PRICE))
    limits = TeamLimits(call_seconds=call_seconds, retry=RetryPolicy(attempts=3, first_wait=0))
    journal = EventList()
    await Conductor(RunSpec("q?", (member,), Rules(seed="s"), limits, NullAnswerStore()), journal).conduct()
    return journal.events, folded(journaled([BEGUN, *journal.events]))


def journaled(events: list[Event]) -> list[LogRecord]:
    return [LogRecord.model_construct(seq=n, time=float(n), event=event) for n, event in enumerate(events, start=1)]


def broken(reason: DropReason, *, retryable: bool = True) -> BackendError:
    return BackendError(reason, "broken", retryable=retryable)


GOOD: tuple[Part, ...] = (ANSWER, UsagePart(100, 0, 10, 0, "faulty"), StopPart("tool_calls"))
GOOD_USD = 0.1 + 0.1


async def test_a_reply_that_broke_in_the_middle_is_paid_for_and_so_is_the_next_try() -> None:
    events, run = await alone(Faulty([((TextPart("x" * 2000),), broken("provider_error")), (GOOD, None)]))
    (retried,) = [event for event in events if isinstance(event, ModelCallRetried)]
    assert retried.usage is not None
    assert retried.usage.estimated
    assert retried.usage.output_tokens >= 500
    assert retried.cost is not None
    assert retried.cost.usd is not None
    assert retried.cost.usd > 500 * 10_000 / 1e6
    assert (run.spent.calls, run.spent.lost_calls, run.spent.unpriced_calls) == (1, 1, 0)
    assert run.spent.usd == pytest.approx(GOOD_USD + retried.cost.usd)
    assert run.budget.spending.by_agent["agent_a"].usd == run.budget.spending.by_model["faulty"].usd == run.spent.usd


@pytest.mark.parametrize("reason", ["rate_limited", "provider_error", "unreachable"])
async def test_a_call_that_was_refused_costs_nothing(reason: DropReason) -> None:
    events, run = await alone(Faulty([((), broken(reason)), (GOOD, None)]))
    assert [(event.usage, event.cost) for event in events if isinstance(event, ModelCallRetried)] == [(None, None)]
    assert (run.spent.lost_calls, run.spent.usd) == (0, pytest.approx(GOOD_USD))


async def test_a_call_that_never_ends_is_taken_to_have_been_read() -> None:
    events, run = await alone(Faulty([((), 1.0)]), call_seconds=0.05)
    (failed,) = [event for event in events if isinstance(event, ModelCallFailed)]
    assert failed.usage is not None
    assert failed.usage.input_tokens > 100
    assert failed.usage.estimated
    assert run.spent.lost_calls == 1
    assert run.spent.usd > 0


async def test_a_reply_without_numbers_is_estimated_and_marked() -> None:
    events, run = await alone(Faulty([((ANSWER, StopPart("tool_calls")), None)]))
    (replied,) = [event for event in events if isinstance(event, ModelReplied)]
    assert replied.usage is not None
    assert replied.usage.estimated
    assert replied.usage.input_tokens > 100
    assert replied.usage.output_tokens > 5
    assert (run.spent.calls, run.spent.calls_without_usage, run.spent.unpriced_calls) == (1, 1, 0)
    assert run.spent.usd > 0


async def test_numbers_that_cannot_be_are_no_numbers() -> None:
    nothing = (ANSWER, UsagePart(0, 0, 0, 0, "faulty"), StopPart("tool_calls"))
    _, run = await alone(Faulty([(nothing, None)]))
    assert run.spent.calls_without_usage == 1
    assert run.spent.usd > 0


async def test_a_call_that_is_cut_off_is_paid_for() -> None:
    model = Faulty([((TextPart("half an ans"),), 1.0)])
    member = Member("agent_a", model, tariff=Tariff("faulty", PRICE))
    journal = EventList()
    conductor = Conductor(RunSpec("q?", (member,), Rules(seed="s"), TeamLimits(), NullAnswerStore()), journal)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(conductor.conduct)
        while not model.done:
            await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        conductor.cancel()
    (aborted,) = [event for event in journal.events if isinstance(event, ModelCallAborted)]
    assert aborted.usage is not None
    assert aborted.usage.output_tokens >= 5
    assert aborted.cost is not None
    assert aborted.cost.usd is not None
    assert aborted.cost.usd > 0


def connecting(port: int) -> int:
    """How many wait on this machine for a connection to this port."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == SYN_SENT for row in rows)


@contextmanager
def full() -> Generator[int]:
    """The port of a server to which no further connection comes about."""
    with ExitStack() as sockets:
        server = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            other = sockets.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(server.getsockname())
        yield server.getsockname()[1]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_a_call_that_is_cut_off_while_its_connection_is_made_costs_nothing(wire: Wire) -> None:
    with full() as port:
        before = connecting(port)
        assert before > 0
        aborted = await cut_off(wire.backend(f"http://127.0.0.1:{port}"), lambda: connecting(port) > before)
    assert (aborted.usage, aborted.cost) == (None, None)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_a_call_that_is_cut_off_when_it_was_sent_is_paid_for(wire: Wire) -> None:
    async with answering(lambda _, number: Flow(tuple, silence_seconds=1000 + number)) as double:
        aborted = await cut_off(wire.backend(double.url), lambda: bool(double.requests))
    assert aborted.usage is not None


async def cut_off(backend: Backend, when: Callable[[], bool]) -> ModelCallAborted:
    member = Member("agent_a", backend, tariff=Tariff("some-model", PRICE))
    journal = EventList()
    limits = TeamLimits(call_seconds=100_000)  # a machine that stood still does not end the call
    conductor = Conductor(RunSpec("q?", (member,), Rules(seed="s"), limits, NullAnswerStore()), journal)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(conductor.conduct)
        await wait_until(when)
        conductor.cancel()
    await backend.aclose()
    (aborted,) = [event for event in journal.events if isinstance(event, ModelCallAborted)]
    return aborted


@dataclass
class Lost:
    """A run of one agent whose process was lost while its first call was in flight."""

    past: list[Event]
    call: ModelCallStarted

    async def continued(self) -> list[Event]:
        """All events, when another process has gone on with it."""
        member = Member("agent_a", Faulty([(GOOD, None)]), tariff=Tariff("faulty", PRICE))
        journal = EventList()
        conductor = Conductor(
            RunSpec("q?", (member,), Rules(seed="s"), TeamLimits(), NullAnswerStore()), journal, journaled(self.past)
        )
        await conductor.resume()
        await conductor.conduct()
        return [*self.past, *journal.events]


async def lost_in_flight() -> Lost:
    member = Member("agent_a", Faulty([((), 1.0)]), tariff=Tariff("faulty", PRICE))
    journal, past = EventList(), list[Event]([BEGUN])
    conductor = Conductor(RunSpec("q?", (member,), Rules(seed="s"), TeamLimits(), NullAnswerStore()), journal)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(conductor.conduct)
        await anyio.wait_all_tasks_blocked()
        past += journal.events
        conductor.cancel()
    return Lost(past, next(event for event in past if isinstance(event, ModelCallStarted)))


async def test_a_call_that_was_lost_with_its_process_is_charged_once_beside_the_one_that_repeats_it() -> None:
    lost = await lost_in_flight()
    spent = folded(journaled(await lost.continued())).spent
    assert (spent.calls, spent.lost_calls) == (1, 1)
    assert lost.call.cost_if_lost is not None
    assert spent.usd == pytest.approx(GOOD_USD + (lost.call.cost_if_lost.usd or 0))


async def test_a_call_that_was_lost_is_charged_where_nobody_makes_it_again() -> None:
    lost = await lost_in_flight()
    cancelled: list[Event] = [RunResumed(in_flight=(lost.call.call_id,)), RunCancelled()]
    for end in (cancelled, [RunFailed(reason="runner_lost", message="lost")]):
        spent = folded(journaled([*lost.past, *end])).spent
        assert (spent.calls, spent.lost_calls) == (0, 1)
        assert lost.call.cost_if_lost is not None
        assert spent.usd == lost.call.cost_if_lost.usd
        assert spent.usd


async def test_a_process_that_is_lost_before_it_repeats_a_lost_call_costs_nothing_more() -> None:
    lost = await lost_in_flight()
    again = RunResumed(in_flight=(lost.call.call_id,))
    spent = folded(journaled([*lost.past, again, again, again])).spent
    assert spent.lost_calls == 1
    twice = [*lost.past, again, lost.call.model_copy(update={"repeated": True}), again]
    assert folded(journaled(twice)).spent.lost_calls == 2


async def test_a_call_that_is_cut_off_before_it_is_sent_costs_nothing() -> None:
    class Unsettled(EventList):
        async def settle(self) -> None:
            if any(isinstance(event, ModelCallStarted) for event in self.events):
                conductor.cancel()
                await anyio.lowlevel.checkpoint()

    model = Faulty([(GOOD, None)])
    member, journal = Member("agent_a", model, tariff=Tariff("faulty", PRICE)), Unsettled()
    conductor = Conductor(RunSpec("q?", (member,), Rules(seed="s"), TeamLimits(), NullAnswerStore()), journal)
    with anyio.CancelScope():
        await conductor.conduct()
    assert folded(journaled([BEGUN, *journal.events])).spent.lost_calls == model.done == 0
