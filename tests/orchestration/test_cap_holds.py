"""The caps hold whatever is known of prices: 300 random runs of teams with known, listed and unknown prices and with
subscriptions, with lost tries, fallbacks, nested runs and losses of their process, against what their models take.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from massgen_mcp.backends.base import ModelRequest, Part, UsagePart
from massgen_mcp.backends.calling import RetryPolicy
from massgen_mcp.config.access.prices import UnknownPrice
from massgen_mcp.config.models.common import Price
from massgen_mcp.config.models.orchestrator import BudgetConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.errors import BackendError
from massgen_mcp.events.agent_work import ModelCallStarted, ModelReplied
from massgen_mcp.events.coordination import ModelReplaced
from massgen_mcp.events.parts import Event, Spent, public_agent_name
from massgen_mcp.events.run import BudgetReached, NestedRunEnded, NestedRunStarted
from massgen_mcp.money import price_list
from massgen_mcp.money.tariff import Tariff
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, ModelAccess, RunSpec, TeamLimits
from tests.in_memory import EventList, NullAnswerStore
from tests.orchestration.test_budget import Provider, caps, journaled

RUNS = 300
OPENAI = "https://api.openai.com/v1"
SUBSCRIPTION = (0.0, 0.0)
"""Its calls take no money, and count for `max_calls`."""


@dataclass(frozen=True)
class Model:
    """What is known of a model, and what it takes: US dollars per million tokens in and out."""

    tariff: Tariff
    takes: tuple[float, float]


def models(random: Random) -> Model:
    own = Price(input_usd_per_million=3, output_usd_per_million=15)
    anything = random.uniform(0.1, 150), random.uniform(0.1, 600)
    return random.choice(
        [
            Model(Tariff("own", own), (3, 15)),
            Model(Tariff("gpt-6.1-sol", listed_at=OPENAI), (2, 10)),
            Model(Tariff("gpt-6.2-sol", listed_at=OPENAI, unknown=UnknownPrice(OPENAI)), (2, 10)),
            Model(Tariff("gpt-9-sol", listed_at=OPENAI, unknown=UnknownPrice(OPENAI), output_limit=9_000), (4, 20)),
            Model(Tariff("our-own-model", unknown=UnknownPrice()), anything),
            Model(Tariff("default", limitable=False, output_limit=64_000), SUBSCRIPTION),
            Model(Tariff("sonnet", limitable=False), SUBSCRIPTION),
        ]
    )


@dataclass
class Biller(Provider):
    """Charges what the model takes, and may run out of quota for good."""

    takes: tuple[float, float] = (3, 15)
    calls_left: int = 1_000

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        self.calls_left -= 1
        if self.calls_left < 0:
            raise BackendError("quota_exhausted", "the quota is used up")
        async for part in super().stream(request):
            yield part

    def _billed(self, told: UsagePart, request: ModelRequest) -> UsagePart:
        usage = super()._billed(told, request)
        self.billed_usd -= (3 * (usage.input_tokens or 0) + 15 * (usage.output_tokens or 0)) / 1e6
        self.billed_usd += self.charge(usage.input_tokens or 0, usage.output_tokens or 0)
        return usage

    def charge(self, read: int, written: int) -> float:
        return (self.takes[0] * read + self.takes[1] * written) / 1e6


@dataclass
class Stage:
    """A random team with what its models take."""

    random: Random
    cap: float
    calls: int
    billers: dict[str, Biller] = field(default_factory=dict[str, Biller])
    """Of each agent, and of its fallback as NAME+."""

    def access(self, name: str, calls_left: int) -> ModelAccess:
        model = models(self.random)
        quiet = Random(self.random.random())
        output = (100, model.tariff.output_limit or 12_000)
        biller = Biller(quiet, breaks=0.05, output=output, takes=model.takes, calls_left=calls_left)
        self.billers[name] = biller
        return ModelAccess(biller, tariff=model.tariff)

    def team(self) -> tuple[Member, ...]:
        members: list[Member] = []
        for place in range(self.random.randint(1, 6)):
            name = public_agent_name(place)
            falls = self.random.random() < 0.3
            own = self.access(name, self.random.randint(0, 2) if falls else 1_000)
            member = Member(name, own.backend, tariff=own.tariff)
            if falls:
                member = replace(member, fallback=member.with_model(self.access(f"{name}+", 1_000)))
            members.append(member)
        return tuple(members)

    def conductor(self, team: tuple[Member, ...], journal: EventList, past: Sequence[Event] = ()) -> Conductor:
        limits = TeamLimits(retry=RetryPolicy(attempts=3, first_wait=0.0))
        budget = BudgetConfig(max_usd=self.cap, max_tokens=10**9, max_calls=self.calls)
        spec = RunSpec("?", team, Rules(seed="s", early_decision="off"), limits, NullAnswerStore(), budget=budget)
        return Conductor(spec, journal, journaled([*past]))

    def billed(self, events: Sequence[Event]) -> float:
        """What the models take for the replies that are in these events."""
        replies = [event for event in events if isinstance(event, ModelReplied) and event.usage is not None]
        return sum(
            self.billers[f"{reply.agent}{'+' if reply.by_fallback else ''}"].charge(
                reply.usage.input_tokens if reply.usage else 0, reply.usage.output_tokens if reply.usage else 0
            )
            for reply in replies
        )


@dataclass
class Outcome:
    events: list[Event]
    billed: float
    spent: Spent
    """By the books."""


async def run(stage: Stage, past: Sequence[Event] = ()) -> Outcome:
    """A whole run; every second one is cut off at a random event, and goes on in another process."""
    team, journal = stage.team(), EventList()
    conductor = stage.conductor(team, journal, past)
    if past:
        await conductor.resume()
    await conductor.conduct()
    events, state = [*past, *journal.events], conductor.state
    if stage.random.random() < 0.5:
        cut = stage.random.randint(len(past) + 1, len(events) - 1)
        again = EventList()
        conductor = stage.conductor(team, again, events[:cut])
        await conductor.resume()
        await conductor.conduct()
        events, state = [*events[:cut], *again.events], conductor.state
    return Outcome(events, stage.billed(events), state.spent)


@pytest.mark.long
async def test_no_run_costs_more_than_its_cap_whatever_is_known_of_its_prices() -> None:
    price_list.load(None)
    reached = replaced = nested = bounded = by_calls = 0
    for seed in range(RUNS):
        random = Random(f"holds {seed}")
        stage, past, inner = Stage(random, caps(seed), random.randint(0, 9)), list[Event](), 0.0
        if random.random() < 0.3:
            aside, calls = stage.cap / 2, stage.calls // 2
            child = await run(Stage(random, aside, calls))
            assert child.spent.unpriced_calls <= calls, f"seed {seed}"
            started = NestedRunStarted(
                key="k", run_id="r", question="q", source="s", max_usd=aside, max_tokens=10**8, max_calls=calls
            )
            past = [started, NestedRunEnded(run_id="r", state="completed", spent=child.spent)]
            inner, nested = child.billed, nested + 1
            assert child.billed <= aside + 1e-9, f"seed {seed}"
        ended = await run(stage, past)
        assert ended.billed + inner <= ended.spent.usd + 1e-9, f"seed {seed}: the books tell less than is paid"
        assert ended.spent.usd <= stage.cap + 1e-9, f"seed {seed}"
        assert ended.spent.unpriced_calls <= stage.calls, f"seed {seed}"
        by_calls += any(isinstance(event, BudgetReached) and event.cap == "max_calls" for event in ended.events)
        reached += any(isinstance(event, BudgetReached) for event in ended.events)
        replaced += any(isinstance(event, ModelReplaced) for event in ended.events)
        sources = {
            event.cost_if_lost.source
            for event in ended.events
            if isinstance(event, ModelCallStarted) and event.cost_if_lost
        }
        bounded += "bound" in sources
    figures = reached, replaced, nested, bounded, by_calls
    assert min(figures) > RUNS / 10, figures
