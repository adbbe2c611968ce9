"""Where a moment of a run lies on a line from 0 to 1, with stretches in which nobody worked drawn shorter."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from massgen_mcp.page.data import TimeLine, TimeLinePlace

LONGEST_IDLE = 0.04
"""Of the time in which somebody worked: a longer stretch without work is drawn as long as this."""
SHORTEST_IDLE = 2.0
"""Seconds. A shorter stretch is drawn as it was."""


def time_line(work: Iterable[tuple[float, float]], end: float) -> TimeLine:
    """`work`: from when to when somebody worked, or something happened; `end`: of the run, or now."""
    spans = _joined([(0.0, 0.0), *work, (end, end)])
    worked = sum(until - since for since, until in spans)
    longest = max(SHORTEST_IDLE, LONGEST_IDLE * worked)
    idle = [(before, after) for (_, before), (after, _) in pairwise(spans)]
    idle = [(before, after) for before, after in idle if after - before > longest]
    stops, drawn, last = [(0.0, 0.0)], 0.0, 0.0
    for before, after in idle:
        drawn += before - last
        stops.append((before, drawn))
        drawn += longest
        stops.append((after, drawn))
        last = after
    drawn += end - last
    stops.append((end, drawn))
    whole = drawn or 1.0
    return TimeLine(
        end=end, places=tuple(TimeLinePlace(at=at, place=place / whole) for at, place in stops), idle=tuple(idle)
    )


def _joined(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    joined: list[tuple[float, float]] = []
    for since, until in sorted(spans):
        if joined and since <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], until))
        else:
            joined.append((since, until))
    return joined
