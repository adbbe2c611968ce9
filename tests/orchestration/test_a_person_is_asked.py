"""While a person is asked, the team stands still: no round's time passes, nothing is decided, nothing more is spent."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from massgen_mcp.backends.base import ModelRequest, Part, StopPart, ToolCall, ToolCallPart, UsagePart
from massgen_mcp.config.models.common import Price
from massgen_mcp.config.models.orchestrator import BudgetConfig, OrchestratorConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import ModelCallStarted
from massgen_mcp.events.coordination import AgentDropped, AnswerSubmitted, FirstAnswersClosed, VoteCast, WinnerChosen
from massgen_mcp.events.parts import Event, public_agent_name
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import BudgetRaised, InputGiven, InputRequired, RunCompleted, RunTimedOut
from massgen_mcp.money.tariff import Tariff
from massgen_mcp.orchestration.ask_caller import CallerQuestions, question_tool
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from tests.in_memory import EventList, NullAnswerStore
from tests.virtual_time import VIRTUAL_TIME

PATIENT = TeamLimits(run_seconds=10_000, round_seconds=20, call_seconds=15, first_answer_wait_seconds=20)
THINKING = 500.0
"""Seconds that the person takes: longer than any round, shorter than the run."""
PRICE = Price(input_usd_per_million=3, output_usd_per_million=15)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return VIRTUAL_TIME


@dataclass
class Model:
    """Answers, then votes for the first; each call takes `seconds`, and writes `written` tokens."""

    seconds: float
    written: int = 2_500
    asks_at: int = 0
    """The number of the call with which it asks; 0: never."""
    model: str = "m"
    calls: int = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        self.calls += 1
        name, arguments = "new_answer", f'{{"content": "answer {self.seconds} {self.calls}"}}'
        if any(tool.name == "vote" for tool in request.tools):
            name, arguments = "vote", '{"agent_id": "agent1", "reason": "good"}'
        if self.calls == self.asks_at:
            name, arguments = "ask_the_asker", '{"question": "Which one?"}'
        await anyio.sleep(self.seconds)
        yield ToolCallPart(ToolCall(f"c{self.calls}", name, arguments))
        yield UsagePart(1_000, 0, self.written, 0, "m")
        yield StopPart("tool_calls")

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass
class Played:
    conductor: Conductor
    records: list[LogRecord] = field(default_factory=list[LogRecord])

    def of(self, *kinds: type[Event]) -> list[Any]:
        return [record.event for record in self.records if isinstance(record.event, kinds)]

    def while_asked(self) -> list[LogRecord]:
        """What happened between the question and the decision."""
        kinds = [type(record.event) for record in self.records]
        begin = kinds.index(InputRequired)
        return self.records[begin + 1 : kinds.index(InputGiven) if InputGiven in kinds else None]


async def played(
    models: list[Model],
    decide: Callable[[Conductor], None] | None,
    *,
    max_usd: float | None = None,
    past: Sequence[LogRecord] = (),
) -> Played:
    """A run whose person decides after `THINKING` seconds, or never. `past`: what happened before a kill."""
    questions = CallerQuestions()
    team = tuple(
        Member(name, model, tariff=Tariff("m", price=PRICE), tools=(question_tool(questions, name),))
        for name, model in ((public_agent_name(place), model) for place, model in enumerate(models))
    )
    budget = None if max_usd is None else BudgetConfig(max_usd=max_usd, at_cap="ask")
    policy = OrchestratorConfig(final_answer_strategy="winner_reuse")
    rules = Rules(seed="s", early_decision="majority")
    spec = RunSpec("?", team, rules, PATIENT, NullAnswerStore(), policy, budget=budget, caller_questions=questions)
    journal = EventList()
    run = Played(Conductor(spec, journal, past))
    journal.listen(lambda record: run.records.append(record.model_copy(update={"time": anyio.current_time()})))

    async def person() -> None:
        while not run.of(InputRequired):
            await anyio.sleep(0.5)
        await anyio.sleep(THINKING)
        if decide is not None:
            decide(run.conductor)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(person)
        if past:
            await run.conductor.resume()
        await run.conductor.conduct()
        tasks.cancel_scope.cancel()
    return run


MAX_USD = 0.2
TEAM = ((1.0, 2_500), (3.0, 2_500), (5.0, 2_500))


def team(*, asks_at: int = 0) -> list[Model]:
    """Who asks is the first one."""
    return [Model(seconds, written, asks_at if not place else 0) for place, (seconds, written) in enumerate(TEAM)]


def stood_still(run: Played) -> None:
    between = run.while_asked()
    assert run.of(InputGiven), "the person was waited for"
    kinds = {type(record.event) for record in between}
    assert not kinds & {ModelCallStarted, WinnerChosen, AgentDropped, FirstAnswersClosed}
    assert run.of(AgentDropped) == []


async def test_who_is_asked_for_a_larger_budget_may_think_longer_than_any_round() -> None:
    run = await played(team(), lambda conductor: conductor.raise_budget(1, 9.0), max_usd=MAX_USD)
    stood_still(run)
    assert run.of(RunCompleted)[0].outcome in ("consensus", "majority")
    assert not {AnswerSubmitted, VoteCast}.isdisjoint({type(r.event) for r in run.while_asked()}), (
        "calls that were under way came to their end"
    )


async def test_a_kill_just_after_the_budget_was_raised_leaves_nothing_to_decide() -> None:
    whole = await played(team(), lambda conductor: conductor.raise_budget(1, 9.0), max_usd=MAX_USD)
    kinds = [type(record.event) for record in whole.records]
    before_kill = whole.records[: kinds.index(BudgetRaised) + 1]
    rest = await played(team(), lambda conductor: conductor.raise_budget(1, 9.0), past=before_kill, max_usd=MAX_USD)
    assert rest.of(RunCompleted)
    assert not rest.of(InputRequired)


@pytest.mark.parametrize("asks_at", [1, 2])
async def test_who_is_asked_by_an_agent_may_think_longer_than_any_round(asks_at: int) -> None:
    """With its second call it asks on the way to its vote; the votes of the others would be a majority."""
    run = await played(team(asks_at=asks_at), lambda conductor: conductor.answer("The second one."))
    stood_still(run)
    assert run.of(RunCompleted)


@pytest.mark.parametrize("asks_at", [0, 1])
async def test_a_run_that_is_told_to_finish_does_so_whatever_it_asked(asks_at: int) -> None:
    run = await played(
        team(asks_at=asks_at), lambda conductor: conductor.finish_now(), max_usd=None if asks_at else MAX_USD
    )
    stood_still(run)
    assert run.of(RunCompleted)
    assert run.conductor.state.input_required is None


async def test_a_run_that_nobody_decides_waits_for_its_own_limit() -> None:
    run = await played(team(), None, max_usd=MAX_USD)
    assert run.of(RunTimedOut)
    assert run.records[-1].time == pytest.approx(PATIENT.run_seconds)
    assert not [record for record in run.while_asked() if isinstance(record.event, ModelCallStarted | WinnerChosen)]
