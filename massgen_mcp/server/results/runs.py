"""`list_runs`."""

import time
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.server.results.reply import MAX_BYTES, ResultPart, ToolReply, format_moment, lines, listed, name_value
from massgen_mcp.server.results.words import reason_of
from massgen_mcp.statistics.digest import RunDigest
from massgen_mcp.statistics.sums import money_of
from massgen_mcp.statistics.words import money_text
from massgen_mcp.views.firmness import shortly
from massgen_mcp.views.names import name_agent
from massgen_mcp.views.plain_text import preview

QUESTION_CHARACTERS = 100
SUMMARY_CHARACTERS = 250


class RunLine(ResultPart):
    run_id: str
    """Of this run."""
    status: RunStatus
    """Where it stands."""
    question: str
    """Its beginning."""
    source: str
    """Where its team came from."""
    started: str
    """When, as ISO 8601 in UTC."""
    age: str
    """How long ago that was, such as `3 h`."""
    reason: str | None = None
    """Of a queued run that a provider's limit holds back, or of one that was moved to another store."""
    winner: str | None = None
    """Id of the agent that won."""
    outcome: str | None = None
    """Of a completed run: how its winner was found."""
    summary: str | None = None
    """The same as a sentence."""
    weak: str | None = None
    """Why that is a weak decision, in a few words; absent where nothing is known to speak against it."""
    cost: str | None = None
    """What it cost so far: `~` before an estimate, `+` after it where some calls have no known price."""
    unapplied: bool | None = None
    """True where it changed files and apply_result has not brought them in yet."""
    expired: bool | None = None
    """True where its files have been deleted."""
    parent: str | None = None
    """Of a nested run: the run in which it was started."""

    def text(self) -> str:
        facts = listed(
            f"{self.run_id}: {self.status}",
            self.outcome,
            self.summary,
            name_value("won by", self.winner),
            name_value("weak:", self.weak),
            self.cost,
            "not yet applied" if self.unapplied else None,
            "expired" if self.expired else None,
            name_value("nested in", self.parent),
        )
        why = f" ({self.reason})" if self.reason is not None else ""
        return f"{facts}, {self.source}, {self.started} ({self.age} ago): {self.question}{why}"


class RunList(ToolReply):
    runs: list[RunLine]
    """Newest first."""
    next_cursor: int | None = None
    """`cursor` of the next page. Absent on the last one."""

    def text(self) -> str:
        runs = [line.text() for line in self.runs] or ["no runs"]
        return lines(*runs, name_value("next_cursor", self.next_cursor))


def run_list(
    views: Sequence[RunView],
    limit: int,
    most_bytes: int | None = MAX_BYTES,
    *,
    digests: Mapping[str, RunDigest] = MappingProxyType({}),
    unapplied: Collection[str] = (),
) -> RunList:
    """Return a page of at most `limit` runs, which is full if there are so many, and of at most so many bytes.
    `digests`: what statistics know of runs, by id; `unapplied`: ids of the runs whose changes wait to be applied.
    """
    rows = [_run_line(view, digests.get(view.row.run_id), view.row.run_id in unapplied) for view in views]
    more = len(views) == limit
    for count in range(len(rows), 0, -1):
        cursor = views[count - 1].row.number if more or count < len(rows) else None
        page = RunList(runs=rows[:count], next_cursor=cursor)
        if most_bytes is None or page.size <= most_bytes:
            return page
    return RunList(runs=[])


def _run_line(view: RunView, digest: RunDigest | None, unapplied: bool) -> RunLine:
    return RunLine(
        run_id=view.row.run_id,
        status=view.state,
        question=preview(view.row.question, QUESTION_CHARACTERS),
        source=preview(view.row.config, QUESTION_CHARACTERS),
        started=format_moment(view.row.created),
        age=_age(time.time() - view.row.created),
        reason=reason_of(view, QUESTION_CHARACTERS) if view.state == "queued" or view.row.moved else None,
        winner=_winner(view),
        outcome=view.row.outcome if view.state == "completed" else None,
        summary=preview(view.row.summary, SUMMARY_CHARACTERS) or None,
        weak=shortly(view.row.weak.split()) or None if view.state == "completed" else None,
        cost=_format_cost(digest),
        unapplied=unapplied or None,
        expired=view.row.expired or None,
        parent=view.row.parent,
    )


def _format_cost(digest: RunDigest | None) -> str | None:
    if digest is None or not digest.spent.calls:
        return None
    return money_text(money_of([[digest.spent]]))


_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def _age(seconds: float) -> str:
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def _winner(view: RunView) -> str | None:
    chosen = view.snapshot.winner
    return name_agent(view.snapshot, chosen.agent) if chosen is not None else view.row.winner
