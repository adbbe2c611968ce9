"""What the list of runs says of each: the line of `list_runs`, and beside it what statistics know of the run."""

from collections.abc import Mapping, Sequence
from typing import Any

from massgen_mcp.changes.applied import applied_at
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results import run_list
from massgen_mcp.statistics.digest import RunDigest
from massgen_mcp.statistics.sums import money_of
from massgen_mcp.statistics.words import money_text


def rows(views: Sequence[RunView], digests: Mapping[str, RunDigest], limit: int) -> dict[str, Any]:
    """A page of the list; `digests` by id of the run. Reads which runs were applied."""
    page = run_list(views, limit, None)
    lines = [
        {
            **line.model_dump(exclude_none=True),
            **_known(digests.get(view.row.run_id)),
            "applied": applied_at(view.directory.changes),
        }
        for line, view in zip(page.runs, views, strict=True)
    ]
    return {**page.structured(), "runs": lines}


def _known(digest: RunDigest | None) -> dict[str, Any]:
    """`dissent` of `voted`: agents that voted for something else than what won."""
    if digest is None:
        return {}
    return {
        "seconds": digest.seconds,
        "cost": money_text(money_of([[digest.spent]])) if digest.spent.calls else None,
        "dissent": len(digest.dissenters) if digest.camp is not None else 0,
        "voted": sum(agent.voted is not None for agent in digest.agents),
    }
