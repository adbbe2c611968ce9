"""A call that brought no reply may still have to be paid for: then it is in the sums, by our estimate."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import anyio
import pytest

from massgen_mcp.backends.base import ModelRequest, Part, StopPart, TextPart, ToolCall, ToolCallPart, UsagePart
from massgen_mcp.backends.calling import RetryPolicy
from massgen_mcp.config.models.backend_base import Price
from massgen_mcp.coordination.state import Rules
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.events.agent_work import ModelCallAborted, ModelCallFailed, ModelCallRetried, ModelReplied
from massgen_mcp.events.parts import AgentInfo, Event
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunStarted
from massgen_mcp.money.tariff import Tariff
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.in_memory import EventList, NullAnswerStore
from massgen_mcp.orchestration.team import Limits, Member, RunSpec
from massgen_mcp.run_state.state import RunState

PRICE = Price(input_usd_per_million=1000, output_usd_per_million=10_000)
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
    limits = Limits(call_seconds=call_seconds, retry=RetryPolicy(attempts=3, first_wait=0))
    journal = EventList()
    await Conductor(RunSpec("q?", (member,), Rules(seed="s"), limits, NullAnswerStore()), journal).conduct()
    run = RunState()
    begin = RunStarted(
        run_id="r", question="q?", agents=(AgentInfo(name="agent_a", id="a", backend="scripted", model="faulty"),)
    )
    for number, event in enumerate([begin, *journal.events], start=1):
        run.apply(LogRecord.model_construct(seq=number, time=float(number), event=event))
    return journal.events, run


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
    conductor = Conductor(RunSpec("q?", (member,), Rules(seed="s"), Limits(), NullAnswerStore()), journal)
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
