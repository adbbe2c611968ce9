"""A process that stood still (a paused container, a snapshot of its machine) has that time back."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import anyio
import pytest

from massgen_mcp.backends.base import ModelRequest, Part
from massgen_mcp.coordination.state import Rules
from massgen_mcp.countdown import BEATS, Countdown
from massgen_mcp.events.coordination import AgentDropped
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunCancelled, RunResumed, RunStarted
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from massgen_mcp.run_state.state import folded
from tests.in_memory import EventList, NullAnswerStore
from tests.orchestration.test_own_queue import ALONE, Clocked, Slow
from tests.virtual_time import VIRTUAL_TIME, VirtualTimeLoop

LIMIT = 120.0
FROZEN = 180.0


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return VIRTUAL_TIME


class Steady(Slow):
    """Does nothing while the process is frozen."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        for _ in range(round(self.seconds)):
            await anyio.sleep(1)
        async for part in Slow(0, calls=self.calls).stream(request):
            yield part
        self.calls += 1


def freeze() -> None:
    """Nothing is done in the process, and the time passes."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop.pass_time(FROZEN)


@pytest.mark.parametrize("moment", [0.5, 5.0, 9.9])
@pytest.mark.parametrize("limit", ["run_seconds", "round_seconds", "call_seconds"])
async def test_a_limit_does_not_count_the_time_in_which_its_process_was_frozen(limit: str, moment: float) -> None:
    seconds = {"run_seconds": 10_000.0, "round_seconds": 10_000.0, "call_seconds": 10_000.0, limit: LIMIT}
    limits = TeamLimits(seconds["run_seconds"], seconds["round_seconds"], call_seconds=seconds["call_seconds"])
    team = (Member("agent_a", Steady(10)), Member("agent_b", Steady(10)))
    journal = EventList()
    conductor = Conductor(RunSpec("?", team, Rules(seed="q"), limits, NullAnswerStore(), ALONE), journal)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(conductor.conduct)
        await anyio.sleep(moment)
        freeze()
    assert conductor.state.state == "completed"
    assert not [event for event in journal.events if isinstance(event, AgentDropped)]


async def test_who_goes_on_with_a_run_does_not_count_the_time_in_which_the_process_before_was_frozen() -> None:
    limits = TeamLimits(LIMIT, 10_000.0, call_seconds=10_000.0)

    def conductor(past: Sequence[LogRecord] = ()) -> Conductor:
        team = (Member("agent_a", Steady(10)), Member("agent_b", Steady(10)))
        return Conductor(RunSpec("?", team, Rules(seed="q"), limits, NullAnswerStore(), ALONE), journal, past)

    journal, clocked = EventList(), Clocked()
    first = conductor()
    journal.listen(clocked.heard)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first.conduct)
        await anyio.sleep(9.5)
        freeze()
        await anyio.sleep(3)
        tasks.cancel_scope.cancel()  # the process is gone
    assert first.state.end is None
    journal = EventList()
    rest = conductor(clocked.records)
    assert rest.state.resume_point.seconds < 30, "it was noticed with the next look"
    assert rest.state.elapsed(0.0) < 30
    await rest.resume()
    await rest.conduct()
    assert rest.state.state == "completed"


@pytest.mark.parametrize("begins", [0.0, 1.0, 60.0, 119.0, 119.99])
async def test_a_frozen_process_loses_at_most_an_eighth_of_a_limit_and_no_limit_is_lost(begins: float) -> None:
    began = anyio.current_time()
    with Countdown(LIMIT) as limit:
        asyncio.get_running_loop().call_at(began + begins, freeze)
        await anyio.sleep_forever()
    assert limit.ended_early
    took = anyio.current_time() - began - FROZEN
    assert LIMIT * (1 - 1 / BEATS) - 0.01 <= took <= LIMIT + 0.01


async def test_a_limit_that_is_long_is_looked_at_rarely() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    waits: list[float] = []
    pass_time = loop.pass_time
    loop.pass_time = lambda seconds: (waits.append(seconds), pass_time(seconds))[1]
    with Countdown(3600):
        await anyio.sleep_forever()
    assert len(waits) < 80


def test_how_long_a_run_took_is_told_whatever_the_clock_was_set_to_and_without_the_time_in_which_nobody_had_it() -> (
    None
):
    day = 86_400.0
    begun = RunStarted.model_construct(run_id="r", question="?", agents=(), parent=None)
    told = [(0.0, 50.0, begun), (day + 4, 54.0, RunResumed(in_flight=())), (10.0, 60.0, RunResumed(in_flight=()))]
    told += [(0.0, 3.0, RunResumed(in_flight=())), (2 * day, 7.0, RunCancelled(winner=None, answer=None))]
    records = [
        LogRecord.model_construct(v=1, seq=seq, time=time, event=event, clock=clock)
        for seq, (time, clock, event) in enumerate(told, start=1)
    ]
    going = folded(records[:1])
    assert going.elapsed(going.now(59.0, 5 * day)) == pytest.approx(9.0)
    ended = folded(records)
    assert ended.elapsed(ended.now(1e6, 9 * day)) == pytest.approx(4.0), "the rest passed between two processes"
