"""What a run will probably cost and take, told before it starts. docs/costs.md tells how.

A range, because nobody knows how much agents will write; where a price is unknown it says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from massgen_mcp.config.access.fallbacks import get_fallback
from massgen_mcp.config.models.config import AgentSettings, Config
from massgen_mcp.events.parts import CHECK_WRITERS, CONFIRM, FIRST_ASKED, STRATEGIES, PriceBound, Usage, most_asked
from massgen_mcp.money.budget import format_bound_note
from massgen_mcp.money.reservations import CallEstimate
from massgen_mcp.money.tariff import Tariff, tariff_of

CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class _Course:
    """How a run goes: tokens of the framing, of an answer, of a vote; answers and tool calls; speed in seconds."""

    frame: int
    answer: int
    vote: int
    answers: int
    tool_calls: int
    seconds_per_call: float
    tokens_per_second: float


WorkKind = Literal["question", "code"]
"""Whether a run works on files of the caller's."""
_COURSES: Mapping[WorkKind, tuple[_Course, _Course]] = {
    "question": (_Course(1_200, 500, 150, 1, 0, 4.0, 60.0), _Course(2_000, 3_000, 500, 1, 2, 4.0, 60.0)),
    "code": (_Course(1_500, 500, 200, 1, 4, 2.5, 80.0), _Course(3_000, 3_000, 1_000, 1, 25, 5.0, 60.0)),
}
"""A short and a long run of each kind of work.

Set so that they enclose nine of ten runs of the doubles of `benchmarks.estimates`, over five seeds, and no more than
needed: the habits of those doubles are assumptions about models.
"""
TOOL_TOKENS = 1_000
"""What a tool call and its result add to what the model reads and writes."""


@dataclass(frozen=True, slots=True)
class TeamPrices:
    """What is known of a team's prices before its run; agents by their names as PROVIDER/MODEL."""

    bounded: Mapping[str, PriceBound] = field(default_factory=dict[str, PriceBound])
    """Models whose prices are unknown, and at which their calls are counted."""
    by_tokens: tuple[str, ...] = ()
    """Models whose prices are unknown, and whose calls count with their tokens only."""
    free: tuple[str, ...] = ()
    """Models in a private network."""
    waiting: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of these models, US dollars that a call reserves: so much that it has to wait for the calls of others."""
    max_tokens: int = 0
    max_calls: int = 0

    @property
    def is_free(self) -> bool:
        """Whether every model without a price is free."""
        return bool(self.free) and not (self.bounded or self.by_tokens)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a person should know before the run."""
        counted = [format_bound_note(model, bound) for model, bound in self.bounded.items()]
        counted += [
            f"Each call to {model} reserves up to ${usd:.2g}, so other agents' calls may delay it."
            for model, usd in self.waiting.items()
        ]
        if self.by_tokens:
            models = ", ".join(self.by_tokens)
            counted.append(
                f"The price of {models} is unknown, so its calls are limited by `max_calls` ({self.max_calls:,}) and "
                f"`max_tokens` ({self.max_tokens:,}), not by `max_usd`."
            )
        return tuple(counted)

    def __str__(self) -> str:
        return " ".join(self.notes)


def has_models(config: Config) -> bool:
    """Return whether the team has an agent that is not scripted."""
    return any(agent.backend.type != "scripted" for agent in config.agents)


def get_team_prices(config: Config, environ: Mapping[str, str]) -> TeamPrices:
    """Look the prices up. The list is loaded if it has to be: not for an event loop."""
    return _collect_prices(config, _load_tariffs(config, environ), environ)


def _load_tariffs(config: Config, environ: Mapping[str, str]) -> list[Tariff]:
    tariffs = [tariff_of(agent.backend, environ, bounded=config.budget.bounds_prices) for agent in config.agents]
    for tariff in tariffs:
        tariff.load()
    return tariffs


def _is_priced(tariff: Tariff) -> bool:
    cost = tariff.cost(Usage())
    return cost.usd is not None and cost.source != "free"


def _choose_dearer(tariff: Tariff, agent: AgentSettings, environ: Mapping[str, str]) -> Tariff:
    """Return the agent's own tariff or that of its fallback, whichever costs more."""
    if (fallback := get_fallback(agent.backend)) is None:
        return tariff
    both = [tariff, tariff_of(fallback, environ)]
    both[1].load()
    return max(both, key=lambda one: one.worst_usd(1_000, 1_000) or 0.0)


def _collect_prices(config: Config, tariffs: Sequence[Tariff], environ: Mapping[str, str]) -> TeamPrices:
    bounded: dict[str, PriceBound] = {}
    by_tokens: dict[str, None] = {}
    free: dict[str, None] = {}
    waiting: dict[str, float] = {}
    for agent, tariff in zip(config.agents, tariffs, strict=True):
        if (fallback := get_fallback(agent.backend)) is not None:
            other = tariff_of(fallback, environ, bounded=config.budget.bounds_prices)
            other.load()
            bounded.update(other.bounds)
        if bounds := tariff.bounds:
            several = len(bounds) > 1
            bounded.update({model if several else agent.asked: bound for model, bound in bounds.items()})
            reserved = CallEstimate(tariff, 0).smallest.usd
            if reserved * len(config.agents) > config.budget.max_usd:
                waiting[agent.asked] = reserved
        elif not _is_priced(tariff) and agent.backend.type != "scripted":
            (free if tariff.cost(Usage()).source == "free" else by_tokens)[agent.asked] = None
    return TeamPrices(bounded, (*by_tokens,), (*free,), waiting, config.budget.most_tokens, config.budget.max_calls)


@dataclass(frozen=True, slots=True)
class Usual:
    """The cost and time of most of so many earlier runs. `usd` None: the price of some was unknown."""

    runs: int
    usd: tuple[float, float] | None
    seconds: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Estimate:
    """From a brief run to a long one. `usd` None: no price is known; `unpriced` counts the agents without one."""

    calls: tuple[int, int]
    seconds: tuple[float, float]
    usd: tuple[float, float] | None
    unpriced: int
    max_usd: float
    guessed: bool = False
    """Some prices are the models' own providers', and not those of the gateways that are asked."""
    nested_usd: float | None = None
    """What runs that agents start may cost besides, within `max_usd`; None: they start none."""
    usual: Usual | None = None
    """What the user's own runs of such a team came to. None: too few have ended."""
    prices: TeamPrices = field(default_factory=TeamPrices)
    """Of which agents the price is unknown, and what that means."""

    def __str__(self) -> str:
        """Return `usually $0.10 to $0.60 (max_usd 10), 1 to 4 minutes, 7 to 22 model calls`, and notes on prices."""
        time = format_time_range(*(self.seconds if self.usual is None else self.usual.seconds))
        money = self._format_money()
        text = f"{money}, usually {time}, " if self._usd is None else f"usually {money}, {time}, "
        if self.usual is None:
            text += f"{self.calls[0]} to {self.calls[1]} model calls"
        else:
            text += f"based on {self.usual.runs} earlier runs of this team"
        if self.nested_usd is not None:
            text += f"; nested runs may cost up to ${self.nested_usd:.2g} more"
        return f"{text}. {self.prices}" if self.prices.notes else text

    @property
    def _usd(self) -> tuple[float, float] | None:
        """The range to show. None: the run is free, or no price is known."""
        if self.usd is None and self.prices.is_free:
            return None
        if self.usual is not None and self.usual.usd is not None:
            return self.usual.usd
        return self.usd

    def _format_money(self) -> str:
        """Return the range of money with its cap."""
        usd = self._usd
        if usd is None and self.prices.is_free:
            return "free"
        if usd is None:
            return "price unknown"
        agents = "one agent" if self.unpriced == 1 else f"{self.unpriced} agents"
        unknown = f", with {agents} {'free' if self.prices.is_free else 'of unknown price'}" if self.unpriced else ""
        guessed = " at the model makers' list prices" if self.guessed and self.usual is None else ""
        return f"${usd[0]:.2g} to ${usd[1]:.2g}{guessed}{unknown} (max_usd {self.max_usd:g})"


IN_SECONDS = 90
"""Shorter times are told in seconds."""


def format_time_range(low: float, high: float) -> str:
    """Return `2 to 4 minutes`."""
    unit, size = ("seconds", 1) if high <= IN_SECONDS else ("minutes", 60)
    first, last = (max(1, round(bound / size)) for bound in (low, high))
    return f"{first} to {last} {unit}" if first < last else f"about {last} {unit if last > 1 else unit[:-1]}"


def classify_work(config: Config) -> WorkKind:
    """Return which kind of work a run of this config is."""
    orchestrator = config.orchestrator
    return "code" if orchestrator.enable_filesystem and orchestrator.context_paths else "question"


def estimate(config: Config, question: str, environ: Mapping[str, str]) -> Estimate:
    """The estimate for one run of this question. Prices are loaded and looked up: not for an event loop."""
    tariffs = _load_tariffs(config, environ)
    asked = len(question) // CHARACTERS_PER_TOKEN
    courses = _COURSES[classify_work(config)]
    brief, long = _plan(courses[0], config, asked, few=True), _plan(courses[1], config, asked, few=False)
    cap, limit = config.budget.max_usd, config.timeout_settings.orchestrator_timeout_seconds
    nothing = [tariff.cost(Usage()) for tariff in tariffs]
    priced = [tariff for tariff in tariffs if _is_priced(tariff)]
    dearer = [_choose_dearer(tariff, agent, environ) for tariff, agent in zip(tariffs, config.agents, strict=True)]
    low, high = _usd(brief, priced, len(tariffs)), _usd(long, [one for one in dearer if _is_priced(one)], len(tariffs))
    return Estimate(
        calls=(brief.calls, long.calls),
        seconds=(min(limit, _seconds(courses[0], brief)), min(limit, _seconds(courses[1], long))),
        usd=None if low is None or high is None else (min(cap, low), min(cap, high)),
        unpriced=len(tariffs) - len(priced),
        max_usd=cap,
        guessed=any(cost.source == "estimate" for cost in nothing),
        prices=_collect_prices(config, tariffs, environ),
        nested_usd=cap * config.nested.share_of_budget if config.nested else None,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """The calls of each of the agents that are asked, one after the other; those of one that compares, and the final
    answer.
    """

    agents: int
    each: tuple[Usage, ...]
    final: tuple[Usage, ...]

    @property
    def calls(self) -> int:
        return self.agents * len(self.each) + len(self.final)


def _fewest(config: Config) -> int | None:
    """So many agents are asked at least; None: all that may be."""
    orchestrator, size = config.orchestrator, len(config.agents)
    first = FIRST_ASKED[orchestrator.effort]
    if first is None or size == 1:
        return None
    first = 1 if orchestrator.checks else first
    return first if first < most_asked(orchestrator.effort, orchestrator.max_agents, size) else None


def _plan(course: _Course, config: Config, asked: int, *, few: bool) -> _Plan:
    """`few`: no more agents are asked than have to be. `auto` is planned as a vote, where it can become one: tests in
    its place take about as many calls.
    """
    orchestrator, fewest = config.orchestrator, _fewest(config)
    can_run = orchestrator.enable_filesystem and orchestrator.run_scripts
    stage = STRATEGIES[orchestrator.choose_strategy(len(config.agents), can_run=can_run)].stage
    authors = len(config.agents) - (stage == "compare")
    most = most_asked(orchestrator.effort, orchestrator.max_agents, authors)
    size = fewest if few and fewest is not None else most
    several = fewest is None and stage == "vote" and not orchestrator.write_check
    answers = min(course.answers, orchestrator.max_new_answers_per_agent or course.answers) if several else 1
    tools = course.tool_calls if orchestrator.enable_filesystem else 0
    first = course.frame + asked
    ballot = first + size * course.answer
    failing_test = [*_round(first, course.vote, tools), *_round(first, course.vote, 0) * CONFIRM]
    if few and orchestrator.write_check:
        return _Plan(1, tuple(_round(first, course.answer, tools)), tuple(failing_test))
    if size == 1:
        return _Plan(1, tuple(_round(first, course.answer, tools)), ())
    each = _round(first, course.answer, tools)
    for _ in range(answers - 1):
        each += _round(ballot, course.answer, tools)
    vote = _round(ballot, course.vote, 0)
    written = _round(ballot, course.answer, tools)
    reuses = orchestrator.final_answer_strategy == "winner_reuse"
    final = [] if reuses else _round(ballot + size * course.vote, course.answer, tools)
    if few and fewest is not None:
        return _Plan(size, tuple(each), (*vote, *final))
    match stage:
        case "test":
            each += [*written, *([] if few else vote)]
            final = []
        case "synthesise":
            final = written
        case "compare":
            each += [] if few else vote
            final = [*vote * 2 * (size - 1), *final]
        case _:
            each += vote
    before = failing_test * CHECK_WRITERS if orchestrator.write_check else []
    return _Plan(size, tuple(each), (*before, *([] if fewest is None else vote), *final))


def _round(reads: int, writes: int, tools: int) -> list[Usage]:
    """The calls of a round: each reads what the one before read from the provider's cache, where that has a price."""
    inputs = [reads + done * TOOL_TOKENS for done in range(tools + 1)]
    outputs = [*[TOOL_TOKENS] * tools, writes]
    return [
        Usage(input_tokens=size, cached_input_tokens=known, output_tokens=written)
        for size, known, written in zip(inputs, [0, *inputs], outputs, strict=False)
    ]


def _usd(plan: _Plan, priced: Sequence[Tariff], agents: int) -> float | None:
    """Of the agents whose price is known, of so many; the final answer at the mean of their prices."""
    each, final = ([_sum(calls, tariff) for tariff in priced] for calls in (plan.each, plan.final))
    known, finals = ([usd for usd in costs if usd is not None] for costs in (each, final))
    return sum(known) * plan.agents / agents + sum(finals) / len(finals) if known and finals else None


def _sum(calls: Sequence[Usage], tariff: Tariff) -> float | None:
    costs = [tariff.find_usd(usage) for usage in calls]
    known = [usd for usd in costs if usd is not None]
    return sum(known) if len(known) == len(costs) else None


def _seconds(course: _Course, plan: _Plan) -> float:
    """Agents work at the same time, their calls follow each other."""
    calls = (*plan.each, *plan.final)
    written = sum(usage.output_tokens for usage in calls)
    return course.seconds_per_call * len(calls) + written / course.tokens_per_second
