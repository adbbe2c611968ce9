"""How figures of many runs are told: money of which something is unknown, shares of few, and all of them as lines for a
terminal.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from pydantic import BaseModel

from massgen_mcp.run_state.status import TERMINAL_STATES, RunStatus
from massgen_mcp.statistics.paired import FEWEST
from massgen_mcp.statistics.sums import Alone, Money, Share, Statistics, Way
from massgen_mcp.views.plain_text import counted, plain, preview
from massgen_mcp.views.spent import clock, count, dollars
from massgen_mcp.views.styled import fit, width_of

NAME = 44
"""Columns for a name."""


def statistics_lines(statistics: Statistics) -> Iterator[str]:
    figures = statistics.figures
    yield ", ".join([f"{counted(figures.runs, 'run')} ended", *statistics.filters])
    if statistics.unread:
        yield f"(no readable record of {counted(statistics.unread, 'other run')})"
    if not figures.runs:
        return
    yield counts_text(figures.states)
    if figures.outcomes:
        yield f"agreement in completed runs: {counts_text(figures.outcomes)}"
    if figures.weak:
        yield (f"{counted(figures.weak, 'completed run')} with a weak decision, {figures.invalid} of them unsuccessful")
    yield f"{money_text(figures.money)}, {count(figures.tokens)} tokens, {counted(figures.calls, 'call')}"
    yield f"{clock(figures.seconds)} of work; median duration {clock(figures.median_seconds)}"
    if figures.first_answer.of:
        yield f"the winning answer was its agent's first one in {share_text(figures.first_answer, 'runs')}"
        yield f"the first vote decided the outcome in {share_text(figures.first_ballot, 'runs')}"
    yield from _teams(statistics)
    yield from _model_table(statistics)
    yield from _agreement(statistics)
    yield from _marked(statistics)


def _teams(statistics: Statistics) -> Iterator[str]:
    rows = [
        (
            team.name,
            str(of.runs),
            counts_text(of.states),
            money_text(of.money),
            clock(of.median_seconds),
            counts_text(of.outcomes),
        )
        for team in statistics.teams
        for of in (team.figures,)
    ]
    yield from table("TEAM", ("RUNS", "ENDED", "COST", "TIME", "AGREEMENT"), rows)


def _model_table(statistics: Statistics) -> Iterator[str]:
    rows = [
        (
            one.model,
            str(one.runs),
            f"{one.answered} of {one.agents}",
            str(one.dropped),
            share_text(one.wins),
            share_text(one.with_winner),
            money_text(one.money),
        )
        for one in statistics.models
    ]
    yield from table("MODEL", ("RUNS", "ANSWERED", "DROPPED", "WON", "VOTED FOR WINNER", "COST"), rows)


def _agreement(statistics: Statistics) -> Iterator[str]:
    rows = [
        (" and ".join(preview(model, NAME // 2 - 3) for model in one.models), share_text(one.agreed))
        for one in statistics.agreement
    ]
    yield from table("VOTED ALIKE", ("TIMES",), rows)


_KINDS = {"procedure": "strategy", "team": "team"}
"""Kinds of `Way`, in words."""


def _marked(statistics: Statistics) -> Iterator[str]:
    marked = statistics.marked
    if marked.dissent.of:
        yield ""
        yield f"an agent dissented in {share_text(marked.dissent, 'votes')}"
    if marked.answers.of:
        yield f"marked right: {share_text(marked.answers, 'marked answers')}"
        for outcome, of in marked.by_outcome.items():
            yield f"  after {outcome.replace('_', ' ')}: {share_text(of)}"
    for one in marked.alone:
        yield (
            f"{preview(plain(one.model), NAME)}'s first answer was right in {share_text(one.right)}, at a cost of "
            f"{money_text(one.money)}; teams with it were right in {share_text(one.team_right)}, at a cost of "
            f"{money_text(one.team_money)}{_cheaper(one)}"
        )
    for kind in _KINDS:
        yield from _cheapest([way for way in marked.ways if way.kind == kind])
    if marked.dissent_right.of:
        yield f"dissent was right in {share_text(marked.dissent_right, 'marked runs with dissent')}"


def _cheaper(one: Alone) -> str:
    """Where what is known says so."""
    as_right = one.right.count * one.team_right.of >= one.team_right.count * one.right.of
    known = one.money.usd is not None and not one.team_money.unknown and not one.money.unknown
    cheaper = known and (one.money.usd or 0.0) < (one.team_money.usd or 0.0)
    few = f" (too few marked runs for a conclusion; at least {FEWEST} are needed)" if one.right.of < FEWEST else ""
    return f"; this model alone would have been right as often, at a lower cost{few}" if as_right and cheaper else ""


def _cheapest(ways: Sequence[Way]) -> Iterator[str]:
    """Which of them had the cheapest right answers, if that is another one than is taken most, and not one that is
    shown to be right less often. Nothing where there is too little.
    """
    known = [way for way in ways if way.right.of >= SMALL and way.usd_per_right is not None]
    if len(known) < 2:
        return
    usual = max(known, key=lambda way: way.right.of)
    best = min(known, key=lambda way: way.usd_per_right or 0.0)
    if best is usual or (best.right.high or 0.0) < (usual.right.low or 0.0):
        return
    cheap, most = (
        f"{dollars(way.usd_per_right or 0.0)} with {preview(plain(way.name), NAME)} ({share_text(way.right)} right)"
        for way in (best, usual)
    )
    few = f"too few marked runs to compare them: each needs at least {FEWEST}"
    claim = "they answered different questions; to ask both the same ones, run `massgen eval --from runs`"
    enough = min(best.right.of, usual.right.of) >= FEWEST
    yield f"cheapest {_KINDS[best.kind]} per right answer: {cheap}; most used: {most}; {(claim if enough else few)}"


# -- words ------------------------------------------------------------------------------------------------------------


def table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    cells = [[name, *heads], *([preview(plain(first), NAME), *rest] for first, *rest in rows)]
    widths = [max(width_of(row[place]) for row in cells) for place in range(len(cells[0]))]
    yield ""
    for row in cells:
        yield "  ".join(fit(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()


SMALL = 5
"""A share of fewer is told without percents."""


def share_text(share: Share, what: str = "") -> str:
    """`3 of 10 votes (11 to 60 %)`: the interval in which it lies in truth, with 95 %."""
    text = f"{share.count:,} of {share.of:,}" + (f" {what}" if what else "")
    if share.of < SMALL or share.low is None or share.high is None:
        return text
    return f"{text} ({100 * share.low:.0f} to {100 * share.high:.0f} %)"


def money_text(money: Money) -> str:
    """`$12.40+`: with `~` where some of it is an estimate, with a plus where some of it is unknown."""
    if money.usd is None:
        return "cost n/a"
    return f"{'~' if money.estimated else ''}{dollars(money.usd)}{'+' if money.unknown else ''}"


def counts_text(counts: Mapping[str, int]) -> str:
    """`30 completed, 2 timed out`, the most first."""
    ordered = sorted(counts.items(), key=lambda one: -one[1])
    return ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in ordered)


def as_worded(statistics: Statistics) -> dict[str, Any]:
    """The statistics as data for a page: every share and every amount of money has its words (`told`) with it.
    `states`: those in which a run can end, in the order in which they are shown.
    """
    worded: dict[str, Any] = _worded(statistics)
    return {**worded, "states": [state for state in get_args(RunStatus) if state in TERMINAL_STATES]}


def _worded(value: object) -> Any:  # noqa: ANN401 - JSON
    match value:
        case Share():
            return {**value.model_dump(mode="json"), "told": share_text(value)}
        case Money():
            return {**value.model_dump(mode="json"), "told": money_text(value)}
        case BaseModel():
            return {name: _worded(getattr(value, name)) for name in type(value).model_fields}
        case tuple():
            return [_worded(one) for one in cast("tuple[object, ...]", value)]
        case dict():
            return {key: _worded(one) for key, one in cast("dict[str, object]", value).items()}
        case _:
            return value
