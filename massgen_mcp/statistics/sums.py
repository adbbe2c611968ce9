"""What many runs come to together, and of which runs that is asked. Pure.

A share is always told with the number that it stands on, and money of which nobody knows the amount is told as unknown.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from statistics import median, quantiles
from typing import Literal

from pydantic import BaseModel, ConfigDict

from massgen_mcp.money.estimate import Usual, WorkKind, format_time_range
from massgen_mcp.request.kind import ListedKind
from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.statistics.digest import AgentDigest, Mark, RunDigest, SpentDigest

_Z = 1.959964
"""Of the normal distribution, for an interval of 95 %."""


class StatisticsPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


@dataclass(frozen=True, slots=True)
class CountedRun:
    """A run that has ended, as the statistics count it. `config`: where its team came from; empty once it is expired.

    `marks`: what the user said of it, by the id of the agent; the empty id stands for the run's own answer.
    """

    run_id: str
    state: RunStatus
    config: str
    created: float
    digest: RunDigest
    marks: dict[str, Mark]


@dataclass(frozen=True, slots=True)
class StatisticsFilter:
    """`since`: started then or later, in seconds since the epoch; `config`: where the team came from, in the words of
    `list_runs`; `team`: its agents have these models and no others; `model`: an agent with it took part; `kind`: see
    `RunKind`.
    """

    since: float | None = None
    config: str | None = None
    team: frozenset[str] | None = None
    model: str | None = None
    kind: ListedKind = "single"

    def fits(self, run: CountedRun) -> bool:
        """As far as the run's digest tells it."""
        models = frozenset(agent.model for agent in run.digest.agents)
        return (self.team is None or models == self.team) and (self.model is None or self.model in models)

    @property
    def filters(self) -> tuple[str, ...]:
        """In words."""
        since = None if self.since is None else datetime.fromtimestamp(self.since, UTC).strftime("%Y-%m-%d %H:%M UTC")
        kind = None
        if self.kind != "single":
            kind = self.kind
        return tuple(
            f"{name} {value}"
            for name, value in (
                ("since", since),
                ("config", self.config),
                ("team", None if self.team is None else ", ".join(sorted(self.team))),
                ("model", self.model),
                ("kind", kind),
            )
            if value is not None
        )


class Share(StatisticsPart):
    """`count` of `of`, and between which shares it lies in truth with 95 % (Wilson); None where there is nothing."""

    count: int
    of: int
    low: float | None
    high: float | None


class Money(StatisticsPart):
    """`usd`: what is known, None where nothing is. `unknown`: how many runs made calls that nobody knows a price of;
    `estimated`: how many made calls at prices that are estimates.
    """

    usd: float | None
    unknown: int
    estimated: int


class Figures(StatisticsPart):
    """Of some runs. `seconds`: of all together."""

    runs: int
    states: dict[str, int]
    outcomes: dict[str, int]
    """How good the agreement was, of completed runs."""
    weak: int
    """How many of them have a weak decision."""
    invalid: int
    """How many of them are no success: no agent was left to vote, or a required check is unproven."""
    money: Money
    calls: int
    tokens: int
    seconds: float
    median_seconds: float
    first_answer: Share
    """What won the vote was the first answer of its author: of the runs in which several agents took part."""
    first_ballot: Share
    """The first vote decided, without newer answers, a run-off or a further attempt: of the same runs."""


class DayFigures(StatisticsPart):
    """Of the runs that were started on one day, in UTC."""

    day: str
    states: dict[str, int]
    money: Money


class TeamFigures(StatisticsPart):
    """`models`: those of its agents, sorted; `name`: the same in words."""

    models: tuple[str, ...]
    name: str
    figures: Figures


class ModelFigures(StatisticsPart):
    """Of the agents with one model, which may be several in a run."""

    model: str
    runs: int
    agents: int
    answered: int
    """Agents that gave an answer."""
    dropped: int
    wins: Share
    """Runs that are completed with the answer of such an agent: of the completed ones with another model, too."""
    with_winner: Share
    """Votes for what won, or what says the same: of their votes in the end."""
    dissent_right: Share
    """Votes for something else of agents that are marked as right: of those of which a mark tells."""
    outcomes: dict[str, int]
    money: Money
    tokens: int


class Agreement(StatisticsPart):
    """How often two agents with these models voted for the same, of the times that both voted in one run."""

    models: tuple[str, str]
    agreed: Share


class Alone(StatisticsPart):
    """What agents with this model said in their only answer, beside their teams, in runs whose mark tells of it."""

    model: str
    right: Share
    """Such answers that say what proved right."""
    team_right: Share
    """Runs of these whose answer is marked as right."""
    money: Money
    """What the agents spent, with their votes."""
    team_money: Money


class Way(StatisticsPart):
    """Runs whose answer is marked: those of one strategy or of one team. `usd_per_right`: what all of them cost, for
    each that is marked as right; None where some of that is unknown, or none is right.
    """

    kind: Literal["procedure", "team"]
    """`procedure`: the strategy; programs that read statistics know it by this word."""
    name: str
    right: Share
    usd_per_right: float | None


class Marked(StatisticsPart):
    """What the user has said of answers."""

    answers: Share
    """Runs whose answer is marked as right: of those where it is marked."""
    by_outcome: dict[str, Share]
    dissent: Share
    """Runs with a vote for something else than what won: of those in which several agents voted."""
    dissent_right: Share
    """Runs in which somebody who dissented is marked as right: of those with dissent of which a mark tells. An answer
    that is marked as right tells that its dissenters were not, as long as they are not marked themselves.
    """
    alone: tuple[Alone, ...] = ()
    """What one agent would have said without its team, as far as its only answer tells."""
    ways: tuple[Way, ...] = ()
    """Of several agents, by strategy and by team; a single agent is a team, too."""


class Statistics(StatisticsPart):
    """`filters`: what was asked for, in words. `unread`: so many further runs have ended of which no record is left."""

    filters: tuple[str, ...]
    figures: Figures
    unread: int
    days: tuple[DayFigures, ...]
    teams: tuple[TeamFigures, ...]
    models: tuple[ModelFigures, ...]
    agreement: tuple[Agreement, ...]
    """Every pair of models that met in a vote, one with itself, too."""
    marked: Marked


def share(count: int, of: int) -> Share:
    if not of:
        return Share(count=0, of=0, low=None, high=None)
    p, z2 = count / of, _Z * _Z
    middle = (p + z2 / (2 * of)) / (1 + z2 / of)
    half = _Z / (1 + z2 / of) * math.sqrt(p * (1 - p) / of + z2 / (4 * of * of))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return Share(count=count, of=of, low=round(low, 4), high=round(high, 4))


def statistics_of(runs: Sequence[CountedRun], *, filters: Sequence[str] = (), unread: int = 0) -> Statistics:
    teams: dict[tuple[str, ...], list[CountedRun]] = {}
    for run in runs:
        teams.setdefault(tuple(sorted(agent.model for agent in run.digest.agents)), []).append(run)
    models = sorted({agent.model for run in runs for agent in run.digest.agents})
    return Statistics(
        filters=tuple(filters),
        figures=_figures(runs),
        unread=unread,
        days=tuple(_days(runs)),
        teams=tuple(
            TeamFigures(models=team, name=_counted_models(team), figures=_figures(of_team))
            for team, of_team in sorted(teams.items(), key=lambda item: (-len(item[1]), item[0]))
        ),
        models=_model_figures(models, runs),
        agreement=_agreement(runs),
        marked=_marked(runs),
    )


def _counted_models(models: Sequence[str]) -> str:
    return ", ".join(f"{many} x {model}" if many > 1 else model for model, many in Counter(models).items())


def _figures(runs: Sequence[CountedRun]) -> Figures:
    voted = [run.digest for run in runs if _is_vote(run)]
    seconds = [run.digest.seconds for run in runs]
    completed = [run for run in runs if run.state == "completed"]
    return Figures(
        runs=len(runs),
        states=dict(Counter(run.state for run in runs)),
        outcomes=_outcomes(runs),
        weak=sum(bool(run.digest.weak) for run in completed),
        invalid=sum(run.digest.failure is not None for run in completed),
        money=money_of([[run.digest.spent] for run in runs]),
        calls=sum(run.digest.spent.calls for run in runs),
        tokens=sum(run.digest.spent.tokens for run in runs),
        seconds=round(sum(seconds), 3),
        median_seconds=round(median(seconds), 3) if seconds else 0.0,
        first_answer=share(sum(digest.first_answer for digest in voted), len(voted)),
        first_ballot=share(sum(digest.first_ballot for digest in voted), len(voted)),
    )


def _is_vote(run: CountedRun) -> bool:
    """Whether several agents took part, and something won."""
    return len(run.digest.agents) > 1 and run.digest.camp is not None


def _outcomes(runs: Iterable[CountedRun]) -> dict[str, int]:
    return dict(Counter(str(run.digest.outcome) for run in runs if run.state == "completed"))


def money_of(spent: Sequence[Sequence[SpentDigest]]) -> Money:
    """`spent`: of each run, what is counted of it."""
    called = [one for parts in spent for one in parts if one.calls]
    known = [one.usd for one in called if one.usd is not None]
    return Money(
        usd=round(sum(known), 9) if known or not called else None,
        unknown=sum(any(one.unpriced_calls for one in parts) for parts in spent),
        estimated=sum(any(one.estimated_calls for one in parts) for parts in spent),
    )


def _days(runs: Iterable[CountedRun]) -> Iterable[DayFigures]:
    days: dict[str, list[CountedRun]] = {}
    for run in runs:
        days.setdefault(datetime.fromtimestamp(run.created, UTC).date().isoformat(), []).append(run)
    for day, started in sorted(days.items()):
        states = dict(Counter(run.state for run in started))
        yield DayFigures(day=day, states=states, money=money_of([[run.digest.spent] for run in started]))


# -- models -----------------------------------------------------------------------------------------------------------


def _model_figures(models: Sequence[str], runs: Sequence[CountedRun]) -> tuple[ModelFigures, ...]:
    took_part: dict[str, list[CountedRun]] = {model: [] for model in models}
    for run in runs:
        for model in {agent.model for agent in run.digest.agents}:
            took_part[model].append(run)
    found = [_model(model, of_model) for model, of_model in took_part.items()]
    return tuple(sorted(found, key=lambda one: (-one.runs, one.model)))


def _model(model: str, runs: Sequence[CountedRun]) -> ModelFigures:
    agents = [[agent for agent in run.digest.agents if agent.model == model] for run in runs]
    flat = [agent for of_run in agents for agent in of_run]
    contested = [
        run for run in runs if run.digest.winner is not None and len({agent.model for agent in run.digest.agents}) > 1
    ]
    won = sum(_winner(run).model == model for run in contested)
    votes = [
        (run, agent)
        for run, of_run in zip(runs, agents, strict=True)
        for agent in of_run
        if _is_vote(run) and agent.voted is not None
    ]
    dissent = [(run, agent) for run, agent in votes if agent.voted != run.digest.camp and _is_known(run, agent)]
    return ModelFigures(
        model=model,
        runs=len(runs),
        agents=len(flat),
        answered=sum(agent.answers > 0 for agent in flat),
        dropped=sum(agent.dropped is not None for agent in flat),
        wins=share(won, len(contested)),
        with_winner=share(sum(agent.voted == run.digest.camp for run, agent in votes), len(votes)),
        dissent_right=share(sum(_is_right(run, agent) for run, agent in dissent), len(dissent)),
        outcomes=_outcomes(runs),
        money=money_of([[agent.spent for agent in of_run] for of_run in agents]),
        tokens=sum(agent.spent.tokens for agent in flat),
    )


def _winner(run: CountedRun) -> AgentDigest:
    return next(agent for agent in run.digest.agents if agent.id == run.digest.winner)


def _agreement(runs: Iterable[CountedRun]) -> tuple[Agreement, ...]:
    met, agreed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for run in runs:
        voters = [agent for agent in run.digest.agents if agent.voted is not None]
        for one, other in combinations(voters, 2):
            pair = (one.model, other.model) if one.model <= other.model else (other.model, one.model)
            met[pair] += 1
            agreed[pair] += one.voted == other.voted
    return tuple(Agreement(models=pair, agreed=share(agreed[pair], of)) for pair, of in sorted(met.items()))


# -- marks ------------------------------------------------------------------------------------------------------------


def _marked(runs: Sequence[CountedRun]) -> Marked:
    answers = [run for run in runs if "" in run.marks]
    outcomes = sorted({str(run.digest.outcome) for run in answers})
    voted = [run for run in runs if _is_vote(run) and any(agent.voted is not None for agent in run.digest.agents)]
    dissent = [run for run in voted if run.digest.dissenters]
    marked = [run for run in dissent if any(_is_known(run, agent) for agent in run.digest.dissenters)]
    return Marked(
        answers=_right(answers),
        by_outcome={
            outcome: _right([run for run in answers if str(run.digest.outcome) == outcome]) for outcome in outcomes
        },
        dissent=share(len(dissent), len(voted)),
        dissent_right=share(
            sum(any(_is_right(run, agent) for agent in run.digest.dissenters) for run in marked), len(marked)
        ),
        alone=tuple(_alone(answers)),
        ways=(
            *_ways("procedure", answers, lambda run: run.digest.decide if len(run.digest.agents) > 1 else ""),
            *_ways("team", answers, lambda run: _counted_models(sorted(agent.model for agent in run.digest.agents))),
        ),
    )


def _ways(
    kind: Literal["procedure", "team"], runs: Sequence[CountedRun], name_of: Callable[[CountedRun], str]
) -> Iterable[Way]:
    found: dict[str, list[CountedRun]] = {}
    for run in runs:
        found.setdefault(name_of(run), []).append(run)
    for name, of in sorted((name, of) for name, of in found.items() if name):
        right, money = _right(of), money_of([[run.digest.spent] for run in of])
        known = money.usd is not None and not money.unknown and right.count > 0
        yield Way(
            kind=kind,
            name=name,
            right=right,
            usd_per_right=round((money.usd or 0.0) / right.count, 9) if known else None,
        )


def _alone(runs: Sequence[CountedRun]) -> Iterable[Alone]:
    """Of marked runs of several agents. Who says something else than what proved wrong may be right: not counted."""
    found: dict[str, list[tuple[CountedRun, AgentDigest]]] = {}
    for run in filter(_is_vote, runs):
        team_right = run.marks[""].verdict == "right"
        for agent in run.digest.agents:
            if agent.answers == 1 and (team_right or agent.wrote == run.digest.camp):
                found.setdefault(agent.model, []).append((run, agent))
    for model, answered in sorted(found.items()):
        of_runs = list({run.run_id: run for run, _ in answered}.values())
        right = sum(run.marks[""].verdict == "right" and agent.wrote == run.digest.camp for run, agent in answered)
        yield Alone(
            model=model,
            right=share(right, len(answered)),
            team_right=_right(of_runs),
            money=money_of([[agent.spent] for _, agent in answered]),
            team_money=money_of([[run.digest.spent] for run in of_runs]),
        )


def _right(runs: Sequence[CountedRun]) -> Share:
    return share(sum(run.marks[""].verdict == "right" for run in runs), len(runs))


def _is_known(run: CountedRun, dissenter: AgentDigest) -> bool:
    """Whether a mark tells if it was right to dissent."""
    answer = run.marks.get("")
    return dissenter.id in run.marks or (answer is not None and answer.verdict == "right")


def _is_right(run: CountedRun, agent: AgentDigest) -> bool:
    mark = run.marks.get(agent.id)
    return mark is not None and mark.verdict == "right"


# ---------------------------------------------------------------------------------------------------------------------
# How long a team usually takes, from its runs that have ended well. Pure.


FEWEST = 5
"""From fewer runs nothing is said."""
NEWEST = 20
"""Older runs say nothing of how long it takes now, and to read them takes time at every start."""
FEWEST_USUAL = 10
"""From fewer runs no estimate is made."""


def usual_time(runs: Sequence[CountedRun], models: Iterable[str]) -> str:
    """Return `2 to 4 minutes`: half of the completed runs of a team with these models took so long. Empty where there
    are too few. `runs`: the `NEWEST`.
    """
    seconds = [digest.seconds for digest in _select_completed(runs, models)]
    if len(seconds) < FEWEST:
        return ""
    low, _, high = quantiles(seconds, method="inclusive")
    return format_time_range(low, high)


def usual_runs(runs: Sequence[CountedRun], models: Iterable[str], kind: WorkKind) -> Usual | None:
    """Return what eight of ten completed runs of a team with these models, on this kind of work, came to. None where
    there are too few. `runs`: the `NEWEST`.
    """
    digests = [digest for digest in _select_completed(runs, models) if digest.kind in ("", kind)]
    if len(digests) < FEWEST_USUAL:
        return None
    known = [digest.spent.usd for digest in digests if digest.spent.usd is not None and not digest.spent.unpriced_calls]
    usd = _compute_bounds(known) if len(known) == len(digests) else None
    return Usual(len(digests), usd, _compute_bounds([digest.seconds for digest in digests]))


def compute_first_answer_medians(runs: Sequence[CountedRun], kind: WorkKind) -> dict[str, float]:
    """Return how many seconds models take for a first answer on this kind of work: the median, by model, of those with
    enough answers. `runs`: the `NEWEST`.
    """
    seconds: dict[str, list[float]] = {}
    for digest in (run.digest for run in runs if run.digest.kind == kind):
        for agent in digest.agents:
            if agent.first_answer_seconds is not None:
                seconds.setdefault(agent.model, []).append(agent.first_answer_seconds)
    return {model: median(times) for model, times in seconds.items() if len(times) >= FEWEST}


def _compute_bounds(amounts: Sequence[float]) -> tuple[float, float]:
    """Return the bounds between which eight of ten further amounts are to be expected."""
    tenths = quantiles(amounts, n=10, method="exclusive")
    return tenths[0], tenths[-1]


def _select_completed(runs: Sequence[CountedRun], models: Iterable[str]) -> list[RunDigest]:
    team = sorted(models)
    completed = (run.digest for run in runs if run.state == "completed")
    return [digest for digest in completed if sorted(agent.model for agent in digest.agents) == team]
