"""A run never costs more than its cap, but for what providers charge beyond the worst that a call may cost."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import anyio
import pytest

from massgen_mcp.backends.base import ModelRequest, Part, TextPart, UsagePart
from massgen_mcp.backends.calling import RetryPolicy
from massgen_mcp.backends.scripted import ScriptedBackend
from massgen_mcp.config.models.backends import ScriptedBackendConfig
from massgen_mcp.config.models.common import Price
from massgen_mcp.config.models.orchestrator import BudgetConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.errors import BackendError
from massgen_mcp.events.agent_work import ModelCallStarted, ModelReplied
from massgen_mcp.events.coordination import AgentDropped, AnswerPresented, AnswerSubmitted, PresentationFailed, VoteCast
from massgen_mcp.events.parts import Event, Spent, public_agent_name
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import (
    BudgetMark,
    BudgetRaised,
    BudgetReached,
    InputGiven,
    InputRequired,
    NestedRunStarted,
    ReservationExceeded,
    RunCompleted,
    RunFailed,
)
from massgen_mcp.money.budget import Budget, Spending
from massgen_mcp.money.reservations import LEAST_OUTPUT, THRIFTY_OUTPUT, Reservations
from massgen_mcp.money.tariff import Tariff
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from massgen_mcp.run_state.state import RunState
from tests.in_memory import EventList, NullAnswerStore

PRICE = Price(input_usd_per_million=3, output_usd_per_million=15)


@dataclass
class Provider:
    """A model that bills what it likes. `billed_usd` is what it really charges: what runs are held against."""

    random: Random
    lies: float = 0.0
    """How likely a reply's numbers are far beyond what was asked for."""
    breaks: float = 0.0
    """How likely a try breaks off in the middle."""
    output: tuple[int, int] = (100, 3_000)
    caches: bool = False
    """All that it reads is billed as written to its cache."""
    inner: ScriptedBackend = field(
        default_factory=lambda: ScriptedBackend(ScriptedBackendConfig(type="scripted", model="m"))
    )
    billed_usd: float = 0.0
    limits: list[int | None] = field(default_factory=list[int | None])
    model: str = "m"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        self.limits.append(request.max_output_tokens)
        for _ in range(self.random.randrange(6)):
            await anyio.lowlevel.checkpoint()
        if self.random.random() < self.breaks:
            yield TextPart("half a")
            raise BackendError("provider_error", "broken", retryable=True)
        async for part in self.inner.stream(request):
            yield self._billed(part, request) if isinstance(part, UsagePart) else part

    def _billed(self, told: UsagePart, request: ModelRequest) -> UsagePart:
        most = request.max_output_tokens or 20_000
        written = min(most, self.random.randint(*self.output))
        read = told.input_tokens or 0
        if self.random.random() < self.lies:
            read, written = self.random.choice([(10**6, 10**5), (read, most * 20), (0, 0)])
        usage = UsagePart(read, 0, written, 0, "m", cache_write_tokens=read if self.caches else 0)
        self.billed_usd += (3 * read + 15 * written) / 1e6
        return usage

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass
class Trial:
    events: list[Event]
    providers: list[Provider]
    cap: float

    @property
    def billed(self) -> float:
        return sum(provider.billed_usd for provider in self.providers)

    def of(self, *kinds: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]

    @property
    def counted(self) -> RunState:
        """What the events alone tell."""
        config = BudgetConfig(max_usd=self.cap)
        return conductor_of(self.providers, config, EventList(), journaled(self.events)).state

    @property
    def bound(self) -> float:
        """The cap, and for each agent one call in flight that cost more than was set aside for it."""
        excess = sorted((event.usd - event.reserved_usd for event in self.of(ReservationExceeded)), reverse=True)
        return self.cap + sum(max(0.0, usd) for usd in excess[: len(self.providers)])


def journaled(events: list[Event]) -> list[LogRecord]:
    return [LogRecord.model_construct(seq=n, time=0.0, event=event) for n, event in enumerate(events, start=1)]


def conductor_of(
    providers: list[Provider], budget: BudgetConfig, journal: EventList, past: Sequence[LogRecord] = (), **tariff: Any
) -> Conductor:
    settings: dict[str, Any] = {"price": PRICE, **tariff}
    team = tuple(
        Member(public_agent_name(place), provider, tariff=Tariff("m", **settings))
        for place, provider in enumerate(providers)
    )
    limits = TeamLimits(retry=RetryPolicy(attempts=3, first_wait=0.0))
    rules = Rules(seed="s", early_decision="off")
    run_spec = RunSpec("What is six times seven?", team, rules, limits, NullAnswerStore(), budget=budget)
    return Conductor(run_spec, journal, past)


async def trial(
    seed: int, *, agents: int = 10, cap: float = 1.0, max_tokens: int = 10**9, tariff: dict[str, Any] | None = None,
    **provider: Any,
) -> Trial:  # fmt: skip
    random = Random(seed)
    providers = [Provider(Random(random.random()), **provider) for _ in range(agents)]
    journal = EventList()
    budget = BudgetConfig(max_usd=cap, max_tokens=max_tokens)
    await conductor_of(providers, budget, journal, **(tariff or {})).conduct()
    return Trial(journal.events, providers, cap)


def caps(seed: int) -> float:
    return Random(f"cap {seed}").choice([0.05, 0.2, 0.5, 1.0, 3.0, 50.0])


# -- the bound --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lies", [0.0, 0.3], ids=["honest", "lying"])
async def test_a_run_of_ten_agents_never_ends_above_the_stated_bound(lies: float) -> None:
    reached = 0
    for seed in range(100):
        ended = await trial(seed, cap=caps(seed), lies=lies, breaks=0.05, output=(100, 12_000))
        assert ended.billed <= ended.bound + 1e-9, f"seed {seed}"
        assert ended.counted.spent.usd >= ended.billed - 1e-9, "what was not told is estimated, upwards"
        if not lies:
            assert ended.counted.spent.usd <= ended.cap, f"seed {seed}"
        reached += bool(ended.of(BudgetReached))
        (end,) = ended.of(RunCompleted, RunFailed)
        if ended.of(AnswerSubmitted):
            assert isinstance(end, RunCompleted)
            assert end.answer
        else:
            assert end.reason == "budget"
    assert 20 < reached < 100, "the trials are on both sides of the cap"


async def test_without_setting_aside_a_run_would_go_far_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    """The known-bad twin: it looks at what is spent, and forgets what is in flight."""

    def fits(reservations: Reservations, *_: object, **__: object) -> bool:
        return reservations.budget.spent.usd < reservations.budget.max_usd

    monkeypatch.setattr(Reservations, "_fits", fits)
    worst = [await trial(seed, cap=0.2, output=(8_000, 12_000)) for seed in range(10)]
    assert all(ended.billed > ended.bound * 2 for ended in worst)


async def test_a_call_that_costs_more_than_was_set_aside_is_found_and_recorded() -> None:
    ended = await trial(1, agents=3, cap=2.0, lies=1.0)
    over = ended.of(ReservationExceeded)
    assert over
    for event in over:
        assert event.usd > event.reserved_usd or event.tokens > event.reserved_tokens
    spent = {event.call_id: event.cost.usd for event in ended.of(ModelReplied)}
    assert all(spent[event.call_id] == event.usd for event in over)


# -- on the way -------------------------------------------------------------------------------------------------------


async def test_at_50_75_and_90_percent_the_run_says_so_once() -> None:
    ended = await trial(3, agents=6, cap=0.1, output=(300, 300))
    assert ended.of(RunCompleted)
    told = [event.percent for event in ended.of(BudgetMark)]
    assert told == sorted(set(told))
    assert set(told) <= {50, 75, 90}
    assert 50 in told
    first = ended.events.index(ended.of(BudgetMark)[0])
    assert any(isinstance(event, ModelReplied) for event in ended.events[first:]), "nothing could have said it again"
    for event in ended.of(BudgetMark):
        assert event.usd * 100 >= event.percent * ended.cap - 1e-9


async def test_a_cap_with_room_for_all_changes_nothing() -> None:
    ended = await trial(5, agents=3, cap=100.0)
    assert ended.of(BudgetReached, BudgetMark, ReservationExceeded, AgentDropped) == []
    assert {limit for provider in ended.providers for limit in provider.limits} == {None}
    assert len(ended.of(ModelReplied)) == 7


async def test_a_tight_cap_is_kept_by_a_limit_that_is_sent_with_the_request() -> None:
    ended = await trial(7, agents=1, cap=0.1, output=(100_000, 100_000))
    (limit,) = ended.providers[0].limits
    assert limit is not None
    assert LEAST_OUTPUT <= limit < 0.1 / 15 * 1e6
    assert ended.of(RunCompleted)
    assert ended.billed <= 0.1


async def test_the_configs_own_limit_is_never_exceeded() -> None:
    ended = await trial(7, agents=1, cap=100, tariff={"output_limit": 5_000}, output=(100, 100))
    (started,) = ended.of(ModelCallStarted)
    assert started
    assert ended.providers[0].limits == [None], "the config's own limit stands in the request anyway"


async def test_a_call_waits_for_those_in_flight_before_it_is_made_with_less_room_than_usual() -> None:
    """Beside the first call there is room for a short reply, and after it for a usual one."""
    ended = await trial(5, agents=2, cap=0.4, output=(100, 100))
    assert {provider.limits[0] for provider in ended.providers} == {THRIFTY_OUTPUT}
    assert ended.of(BudgetReached, AgentDropped) == []


async def test_the_worst_of_a_call_counts_its_input_at_the_dearest_price_that_it_may_have() -> None:
    """Here a provider bills all that it reads as written to its cache."""
    dear = PRICE.model_copy(update={"cache_write_usd_per_million": 300.0})
    tariff = {"price": dear, "output_limit": 200}
    ended = await trial(5, agents=3, cap=3.0, tariff=tariff, caches=True, output=(100, 100))
    assert max(event.cost.usd for event in ended.of(ModelReplied)) > 0.05
    assert ended.of(ReservationExceeded) == []


async def test_calls_in_flight_that_all_cost_the_most_that_they_may_stay_below_the_cap() -> None:
    """Here each reply is as long as its model may write: nothing that was set aside is left over for another one."""
    for seed in range(5):
        ended = await trial(seed, cap=1.0, tariff={"output_limit": 10_000}, output=(10_000, 10_000))
        assert 0.7 < ended.billed <= ended.cap, f"seed {seed}"
        assert ended.of(ReservationExceeded) == [], f"seed {seed}"


# -- at the cap -------------------------------------------------------------------------------------------------------


async def test_at_the_cap_the_answers_in_hand_are_voted_on_and_the_last_part_is_for_the_end() -> None:
    ended = await trial(11, agents=6, cap=0.3, output=(2_500, 2_500))
    assert ended.of(BudgetReached)
    place = next(number for number, event in enumerate(ended.events) if isinstance(event, BudgetReached))
    in_flight = {event.call_id for event in ended.events[:place] if isinstance(event, ModelCallStarted)}
    later = [event for event in ended.events[place:] if isinstance(event, ModelCallStarted)]
    assert any(isinstance(event, VoteCast) for event in ended.events[place:])
    votes = {event.agent for event in ended.events[place:] if isinstance(event, VoteCast)}
    assert {event.agent for event in later if event.purpose == "coordinate"} <= votes | {
        event.agent for event in ended.of(AgentDropped)
    }
    assert not {event.call_id for event in later} & in_flight
    (end,) = ended.of(RunCompleted)
    assert end.answer
    for drop in ended.of(AgentDropped):
        assert drop.reason == "budget"
        assert "max_usd" in drop.message


async def test_no_vote_takes_what_is_kept_for_the_final_answer() -> None:
    beyond = 0
    for seed in range(10):
        ended = await trial(seed, agents=2, cap=0.6, output=(100_000, 100_000))
        replies: list[ModelReplied] = ended.of(ModelReplied)
        before = sum(event.cost.usd or 0 for event in replies if event.purpose == "coordinate")
        assert before <= 0.9 * ended.cap, f"seed {seed}"
        beyond += before > 0.8 * ended.cap
        assert any(event.purpose == "present" for event in replies), f"seed {seed}"
    assert beyond, "votes may take more than answers"


async def test_when_nothing_is_left_for_the_final_answer_the_winners_own_answer_is_it() -> None:
    """Here a reply that cost more than it could has eaten what was kept for the end."""
    trials = [await trial(seed, agents=3, cap=0.5, lies=0.4) for seed in range(20)]
    ended = next(ended for ended in trials if ended.of(PresentationFailed))
    (failed,) = ended.of(PresentationFailed)
    assert failed.reason == "budget"
    (presented,) = ended.of(AnswerPresented)
    assert presented.reused
    assert ended.of(RunCompleted)


async def test_a_cap_too_small_for_any_answer_fails_the_run_and_says_why() -> None:
    ended = await trial(17, agents=3, cap=0.001)
    (end,) = ended.of(RunFailed)
    assert end.reason == "budget"
    assert "max_usd" in end.message
    assert ended.of(ModelCallStarted) == [], "nothing was spent in vain"


async def test_tokens_are_a_cap_of_their_own_where_no_price_is_known() -> None:
    for seed in range(20):
        ended = await trial(seed, max_tokens=60_000, tariff={"price": None}, output=(1_000, 5_000))
        tokens = sum(event.usage.tokens for event in ended.of(ModelReplied))
        assert tokens <= 60_000
        assert ended.of(BudgetReached)
        assert {event.cost.usd for event in ended.of(ModelReplied)} == {None}


# -- asking -----------------------------------------------------------------------------------------------------------


async def asked(*orders: str) -> tuple[Trial, list[Event]]:
    """A run that asks at its cap, and gets these orders, one each time that it asks."""
    random = Random(23)
    providers = [Provider(Random(random.random()), output=(2_500, 2_500)) for _ in range(4)]
    journal = EventList()
    conductor = conductor_of(providers, BudgetConfig(max_usd=0.1, at_cap="ask"), journal)
    left = list(orders)
    async with anyio.create_task_group() as tasks:

        async def give() -> None:
            given = 0
            while left:
                asks = [event for event in journal.events if isinstance(event, InputRequired)]
                if len(asks) > given:
                    given += 1
                    order = left.pop(0)
                    if order == "finish_now":
                        conductor.finish_now()
                    else:
                        conductor.raise_budget(given, float(order))
                        conductor.raise_budget(given, float(order) * 2)  # the same order once more
                await anyio.lowlevel.checkpoint()

        tasks.start_soon(give)
        await conductor.conduct()
        tasks.cancel_scope.cancel()
    return Trial(journal.events, providers, 0.1), journal.events


async def test_a_run_that_asks_waits_and_goes_on_with_the_raised_budget() -> None:
    ended, events = await asked("5")
    (question,) = ended.of(InputRequired)
    assert question.kind == "budget_reached"
    assert "would do for short replies" in question.text
    assert [event.max_usd for event in ended.of(BudgetRaised)] == [5.0]
    assert [event.kind for event in ended.of(InputGiven)] == ["budget_reached"]
    assert ended.of(RunCompleted)
    assert ended.of(BudgetReached, AgentDropped) == []
    assert len(ended.of(ModelReplied)) == 9
    between = events[events.index(question) : events.index(ended.of(BudgetRaised)[0])]
    assert not [event for event in between if isinstance(event, ModelCallStarted)]


async def test_a_run_that_asks_may_be_told_to_finish() -> None:
    ended, _ = await asked("finish_now")
    assert [event.kind for event in ended.of(InputGiven)] == ["budget_reached"]
    (end,) = ended.of(RunCompleted)
    assert end.outcome == "best_so_far"
    assert ended.billed <= 0.1


@dataclass
class Patient(Provider):
    """Replies to a request that lets it only vote when the budget has been raised."""

    raised: anyio.Event = field(default_factory=anyio.Event)
    offered: list[set[str]] = field(default_factory=list[set[str]])
    """The tools of every request that came after the raise."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        tools = {tool.name for tool in request.tools}
        if self.raised.is_set():
            self.offered.append(tools)
        if tools == {"vote"}:
            await self.raised.wait()
        async for part in super().stream(request):
            yield part


async def test_a_budget_that_is_raised_after_it_was_reached_lets_agents_answer_again() -> None:
    raised = anyio.Event()
    scripts = ([{"answer": "one"}, {"answer": "one, but better"}], [{"answer": "two"}])
    providers = [
        Patient(
            Random(1),
            output=(100_000, 100_000),
            inner=ScriptedBackend(ScriptedBackendConfig.model_validate({"type": "scripted", "script": script})),
            raised=raised,
        )
        for script in scripts
    ]
    journal = EventList()
    conductor = conductor_of([*providers], BudgetConfig(max_usd=0.6), journal)

    async def give() -> None:
        while not any(isinstance(event, BudgetReached) for event in journal.events):
            await anyio.lowlevel.checkpoint()
        conductor.raise_budget(1, 500)
        raised.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(give)
        await conductor.conduct()
    assert isinstance(journal.events[-1], RunCompleted)
    answers = [event.label for event in journal.events if isinstance(event, AnswerSubmitted)]
    assert answers == ["agent1.1", "agent2.1", "agent1.2"]
    assert {"new_answer", "vote"} in providers[0].offered


async def test_a_raise_that_raises_nothing_is_no_raise() -> None:
    journal = EventList()
    conductor = conductor_of([Provider(Random(1))], BudgetConfig(max_usd=5), journal)
    conductor.raise_budget(1, 4.0)
    assert journal.events == []


# -- the fold ---------------------------------------------------------------------------------------------------------


async def test_what_is_spent_is_known_from_the_events_alone() -> None:
    ended = await trial(29, agents=4, cap=1.0, lies=0.2)
    assert ended.counted.spent.usd == pytest.approx(sum(event.cost.usd or 0 for event in ended.of(ModelReplied)))
    assert ended.counted.budget_reached == bool(ended.of(BudgetReached))


async def test_a_resumed_run_counts_what_was_spent_before_and_the_call_that_was_lost() -> None:
    begun = await trial(37, agents=3, cap=0.4, output=(2_000, 2_000))
    cut = next(n for n, event in enumerate(begun.events) if isinstance(event, AnswerSubmitted)) + 1
    past = begun.events[:cut]
    spent = sum(event.cost.usd or 0 for event in past if isinstance(event, ModelReplied))
    replied = {event.call_id for event in past if isinstance(event, ModelReplied)}
    lost = {event.call_id for event in past if isinstance(event, ModelCallStarted)} - replied
    assert spent
    assert lost
    random = Random(41)
    providers = [Provider(Random(random.random()), output=(2_000, 2_000)) for _ in range(3)]
    journal = EventList()
    cap = spent + 0.05
    conductor = conductor_of(providers, BudgetConfig(max_usd=cap), journal, journaled(past))
    await conductor.resume()
    await conductor.conduct()
    ended = Trial([*past, *journal.events], providers, cap)
    again = [event for event in ended.of(ModelCallStarted) if event.repeated]
    assert {event.call_id for event in again} <= lost
    assert all(event.usage_if_lost.estimated and event.cost_if_lost.usd > 0 for event in again)
    assert ended.counted.spent.lost_calls == len(lost)
    assert spent < ended.counted.spent.usd <= cap
    assert spent + ended.billed <= cap
    assert ended.of(RunCompleted)


@pytest.mark.parametrize("seed", range(10))
async def test_what_nested_runs_may_still_spend_is_left_to_them(seed: int) -> None:
    """The team waits for their end before it spends any of that."""
    aside = Random(seed).choice([0.1, 0.4, 0.6])
    nested = NestedRunStarted(key="k", run_id="r", question="q", source="s", max_usd=aside, max_tokens=1_000)
    providers = [Provider(Random(f"{seed}/{n}"), output=(20_000, 128_000)) for n in range(3)]
    conductor = conductor_of(providers, BudgetConfig(max_usd=1.0), EventList(), journaled([nested]))
    async with anyio.create_task_group() as tasks:
        await conductor.resume()
        tasks.start_soon(conductor.conduct)
        await anyio.wait_all_tasks_blocked()
        conductor.cancel()
    assert 0 < sum(provider.billed_usd for provider in providers) <= 1.0 - aside


@pytest.mark.parametrize(("max_usd", "announced", "due"), [(2.05, 90, ()), (2.4, 75, (90,)), (3.0, 50, (75, 90))])
def test_a_mark_that_is_still_passed_after_a_raise_is_not_announced_again(
    max_usd: float, announced: int, due: tuple[int, ...]
) -> None:
    budget = Budget(max_usd=2.0, spending=Spending(Spent(usd=1.9)), announced=90)
    budget.apply(BudgetRaised(control=1, max_usd=max_usd))
    assert (budget.due_marks, budget.announced) == ((), announced)
    budget.spending = Spending(Spent(usd=max_usd))
    assert budget.due_marks == due, "what is passed only now"


def test_tokens_grow_with_the_money() -> None:
    budget = Budget(max_usd=2.0, max_tokens=1_000, spending=Spending(Spent(usd=1.9)), announced=90)
    budget.apply(BudgetRaised(control=1, max_usd=8.0))
    assert (budget.max_usd, budget.max_tokens) == (8.0, 4_000)
    assert (budget.due_marks, budget.announced) == ((), 0)


async def test_the_end_of_a_reply_is_part_of_the_try_that_brought_it() -> None:
    """A reply is billed once, however many parts it had."""
    one = Provider(Random(31), output=(500, 500))
    journal = EventList()
    await conductor_of([one], BudgetConfig(), journal).conduct()
    (replied,) = [event for event in journal.events if isinstance(event, ModelReplied)]
    assert replied.cost.usd == pytest.approx(one.billed_usd)
