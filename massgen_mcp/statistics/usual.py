"""How long a team usually takes, from its runs that have ended well. Pure."""

from collections.abc import Iterable, Sequence
from statistics import quantiles

from massgen_mcp.statistics.sums import CountedRun

FEWEST = 5
"""From fewer runs nothing is said."""
NEWEST = 50
"""Older runs say nothing of how long it takes now."""
IN_SECONDS = 90
"""Up to here seconds are told, and then minutes."""


def usual_time(runs: Sequence[CountedRun], models: Iterable[str]) -> str:
    """`2 to 4 minutes`: half of the newest completed runs of a team with these models took so long. Empty where there
    are too few. `runs`: in the order of their starts.
    """
    team = sorted(models)
    seconds = [
        run.digest.seconds
        for run in runs
        if run.state == "completed" and sorted(agent.model for agent in run.digest.agents) == team
    ][-NEWEST:]
    if len(seconds) < FEWEST:
        return ""
    low, _, high = quantiles(seconds, method="inclusive")
    unit, size = ("seconds", 1) if high <= IN_SECONDS else ("minutes", 60)
    first, last = (max(1, round(bound / size)) for bound in (low, high))
    return f"{first} to {last} {unit}" if first < last else f"about {last} {unit if last > 1 else unit[:-1]}"
