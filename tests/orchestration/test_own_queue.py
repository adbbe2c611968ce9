"""Time in which a call waits in our own queue to a provider is nobody's: no agent and no run is ended because of it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from massgen_mcp.backends.base import ModelRequest, Part, StopPart, ToolCall, ToolCallPart
from massgen_mcp.backends.limiter import Destination, ProviderLimiter, ProviderLimiters
from massgen_mcp.config.access.limits import RateLimits
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import ModelCallAborted, ModelCallAdmitted, ModelReplied
from massgen_mcp.events.coordination import FirstAnswersClosed
from massgen_mcp.events.record import LogRecord
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from massgen_mcp.run_state.state import RunState
from tests.in_memory import EventList, NullAnswerStore
from tests.virtual_time import VIRTUAL_TIME

PROVIDER = Destination("http://provider.test/v1")
TIGHT = TeamLimits(run_seconds=10, round_seconds=10, call_seconds=10, first_answer_wait_seconds=10)
ALONE = OrchestratorConfig(final_answer_strategy="winner_reuse")


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return VIRTUAL_TIME


@dataclass
class Slow:
    """A model that takes its time and then answers; what it says is another answer each time."""

    seconds: float
    model: str = "slow"
    calls: int = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        self.calls += 1
        name, arguments = "new_answer", f'{{"content": "{self.model} {self.calls}"}}'
        if "new_answer" not in {tool.name for tool in request.tools}:
            name, arguments = "vote", '{"agent_id": "agent1", "reason": "good"}'
        await anyio.sleep(self.seconds)
        yield ToolCallPart(ToolCall(f"c{self.calls}", name, arguments))
        yield StopPart("tool_calls")

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass
class Clocked:
    """What a run wrote down, with the times of the event loop."""

    records: list[LogRecord] = field(default_factory=list[LogRecord])

    def heard(self, record: LogRecord) -> None:
        self.records.append(record.model_copy(update={"time": anyio.current_time()}))


def conductor_of(
    limiter: ProviderLimiter,
    *seconds: float,
    limits: TeamLimits = TIGHT,
    past: Sequence[LogRecord] = (),
    clocked: Clocked | None = None,
) -> Conductor:
    team = tuple(Member(f"agent_{'abcdef'[n]}", Slow(each), limiter=limiter) for n, each in enumerate(seconds))
    journal = EventList()
    conductor = Conductor(RunSpec("?", team, Rules(seed="q"), limits, NullAnswerStore(), ALONE), journal, past)
    if clocked is not None:
        journal.listen(clocked.heard)
    return conductor


async def test_forty_runs_behind_a_narrow_limit_all_complete_however_long_they_queue() -> None:
    ended: list[RunState] = []
    with ExitStack() as stack:
        limiter = stack.enter_context(ProviderLimiters().limiter(PROVIDER, RateLimits(concurrency=2)))

        async def one() -> None:
            conductor = conductor_of(limiter, 1.0)
            await conductor.conduct()
            ended.append(conductor.state)

        async with anyio.create_task_group() as tasks:
            for _ in range(40):
                tasks.start_soon(one)
        assert anyio.current_time() == pytest.approx(20, abs=1)
    assert [run.state for run in ended] == ["completed"] * 40


async def hold(limiter: ProviderLimiter, seconds: float) -> None:
    """Somebody else's call is under way."""
    async with limiter.slot(lambda _: None):
        await anyio.sleep(seconds)


async def test_what_an_agent_did_before_and_after_it_queued_still_has_its_limit() -> None:
    limits = TeamLimits(run_seconds=100, round_seconds=3, call_seconds=3)
    with ExitStack() as stack:
        limiter = stack.enter_context(ProviderLimiters().limiter(PROVIDER, RateLimits(concurrency=1)))
        conductor = conductor_of(limiter, 4.0, limits=limits)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hold, limiter, 50)
            await anyio.sleep(1)
            await conductor.conduct()
        assert anyio.current_time() == pytest.approx(53, abs=0.1)
    assert conductor.state.state == "failed"
    assert conductor.state.dropped[0].reason == "timeout"


async def test_the_time_of_a_run_passes_while_another_agent_of_it_works() -> None:
    """The second agent calls a provider of its own, and hangs."""
    limits = TeamLimits(run_seconds=5, round_seconds=100, call_seconds=100)
    with ExitStack() as stack:
        limiters = ProviderLimiters()
        busy = stack.enter_context(limiters.limiter(PROVIDER, RateLimits(concurrency=1)))
        free = stack.enter_context(limiters.limiter(Destination("http://other.test/v1"), RateLimits()))
        team = (Member("agent_a", Slow(1), limiter=busy), Member("agent_b", Slow(90), limiter=free))
        conductor = Conductor(RunSpec("?", team, Rules(seed="q"), limits, NullAnswerStore(), ALONE), EventList())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hold, busy, 50)
            await anyio.sleep(1)
            await conductor.conduct()
            assert anyio.current_time() == pytest.approx(6, abs=0.1)
            tasks.cancel_scope.cancel()
    assert conductor.state.state == "timed_out"


async def test_stragglers_that_queue_are_waited_for() -> None:
    limits = TeamLimits(run_seconds=100, round_seconds=100, call_seconds=100, first_answer_wait_seconds=6)
    with ExitStack() as stack:
        limiter = stack.enter_context(ProviderLimiters().limiter(PROVIDER, RateLimits(concurrency=1)))
        clocked = Clocked()
        conductor = conductor_of(limiter, 5.0, 5.0, 5.0, limits=limits, clocked=clocked)
        await conductor.conduct()
    assert not [record for record in clocked.records if isinstance(record.event, FirstAnswersClosed)]
    assert all(agent.answers for agent in conductor.state.agents.values())


async def test_a_run_that_goes_on_elsewhere_has_the_time_left_that_it_did_not_queue() -> None:
    limits = TeamLimits(run_seconds=10, round_seconds=100, call_seconds=100)
    with ExitStack() as stack:
        limiter = stack.enter_context(ProviderLimiters().limiter(PROVIDER, RateLimits(concurrency=1)))
        clocked = Clocked()
        lost = conductor_of(limiter, 5.0, limits=limits, clocked=clocked)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hold, limiter, 50)
            await anyio.sleep(1)
            with anyio.move_on_after(53):  # its process is lost 4 s after the call was sent
                await lost.conduct()
            tasks.cancel_scope.cancel()
        (admitted,) = [record.event for record in clocked.records if isinstance(record.event, ModelCallAdmitted)]
        assert admitted.queued_seconds == pytest.approx(49, abs=0.1)
        assert lost.state.end is None
        before = conductor_of(limiter, 5.0, limits=limits, past=clocked.records).state.resume_point.seconds
        assert before == pytest.approx(4, abs=0.1)
        resumed = conductor_of(limiter, 5.5, limits=limits, past=clocked.records)
        await resumed.resume()
        await resumed.conduct()
    assert resumed.state.state == "completed"


async def test_how_long_a_model_took_is_told_without_the_time_in_our_own_queue() -> None:
    with ExitStack() as stack:
        limiter = stack.enter_context(ProviderLimiters().limiter(PROVIDER, RateLimits(concurrency=1)))
        clocked = Clocked()
        conductor = conductor_of(limiter, 4.0, 4.0, clocked=clocked)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hold, limiter, 50)
            await anyio.sleep(1)
            await conductor.conduct()
        took = [record.event.seconds for record in clocked.records if isinstance(record.event, ModelReplied)]
        assert took == pytest.approx([4.0] * len(took))
        spent = conductor.state.budget.spending.by_agent
        assert sum(agent.seconds for agent in spent.values()) == pytest.approx(4.0 * len(took))
        resumed = conductor_of(limiter, 4.0, 4.0, past=clocked.records)
        assert resumed.state.budget.spending.by_agent == spent, "who goes on with it says the same"


async def test_a_call_that_is_stopped_while_it_queues_took_no_time() -> None:
    with ExitStack() as stack:
        limiter = stack.enter_context(ProviderLimiters().limiter(PROVIDER, RateLimits(concurrency=1)))
        clocked = Clocked()
        conductor = conductor_of(limiter, 4.0, clocked=clocked)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hold, limiter, 50)
            tasks.start_soon(conductor.conduct)
            await anyio.sleep(20)
            conductor.cancel()
    (stopped,) = [record.event for record in clocked.records if isinstance(record.event, ModelCallAborted)]
    assert stopped.seconds == pytest.approx(0)
