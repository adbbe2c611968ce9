"""What a person sees of a run while it goes on: a small frame that is drawn again and again.

Pure: from a snapshot, a size and a time to styled lines.
"""

from massgen_mcp.events import InputKind
from massgen_mcp.run_state.agents import AgentState
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.activity import Activities
from massgen_mcp.views.plain_text import plain, preview
from massgen_mcp.views.spent import clock, cost_of, spent_figures
from massgen_mcp.views.styled import (
    Line,
    Span,
    Style,
    box,
    clip_line,
    clip_start,
    columns,
    line,
    text_of,
    width_of,
    wrap,
)

MIN_WIDTH = 24
MIN_HEIGHT = 8
"""In a smaller window the frame is one line."""

_STATUS, _ANSWER, _VOTE = 13, 9, 14
_MAX_NAME, _MIN_LATEST = 20, 12
_COST = 9
_COST_FROM = 100
"""Columns from which there is room for what each agent costs."""
_TAIL = 6


def live_view(
    run: RunState, doing: Activities, *, width: int, height: int, now: float, typed: str | None = None
) -> list[Line]:
    """The frame, at most `width` columns and `height` - 1 lines, so that it never outgrows the window.

    `now` is in seconds since the epoch; `typed` is what the person has typed for the team so far, None while nothing is
    being typed.
    """
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        return [clip_line((*_phase(run), Span(f" · {' · '.join(_figures(run, now))}", "dim")), max(1, width - 1))]
    room = height - 4  # the frame's edges, the head of the table, and a line that stays free
    rows = [_row(run, view, doing, width - 4) for view in run.agents.values()]
    if len(rows) > room:
        rows = [*rows[: room - 1], line(Span(f"… and {len(rows) - room + 1} more agents", "dim"))]
    body = [_head(run, width - 4), *rows]
    body += _tail(run, doing, width - 4, min(_TAIL, room - len(rows) - 1))
    return box(_title(run, now, width - 6), body, _foot(run, typed, width - 6), width)


_LABELS: dict[InputKind | None, str] = {
    None: "To the team: ",
    "question": "Your answer: ",
    "permission": "Your answer: ",
    "budget_reached": "New limit in $ (nothing: finish): ",
}


# -- the frame --------------------------------------------------------------------------------------------------------


def _phase(run: RunState) -> Line:
    again = f"Attempt {run.attempt} · " if run.attempt > 1 else ""
    return (Span(again + phase_name(run), "title"),)


def phase_name(run: RunState) -> str:
    """What is going on, in the words of the interactive mode."""
    if run.state == "input_required":
        return "Waiting for you"
    match run.phase:
        case "answering":
            return "Initial Answer Generation"
        case "voting":
            return f"Coordination Round {max(1, *(view.rounds - 1 for view in run.agents.values()))}"
        case "presenting":
            return "Final Presentation"
        case "evaluating":
            return "Evaluation"


def _title(run: RunState, now: float, width: int) -> Line:
    """The phase, and as many of the figures as there is room for."""
    figures = _figures(run, now)
    while True:
        title = (*_phase(run), Span(" ── ", "frame"), Span(" · ".join(figures), "dim"))
        if len(figures) == 1 or width_of(text_of(title)) <= width:
            return title
        figures.pop()


def _figures(run: RunState, now: float) -> list[str]:
    """Time, votes and costs, the most important first."""
    figures = [clock(run.elapsed(now))]
    if len(run.agents) > 1:
        figures.append(f"{len(run.votes)}/{len(run.coordination.live)} voted")
    return [*figures, *spent_figures(run.spent)]


def _foot(run: RunState, typed: str | None, width: int) -> Line:
    """What is being typed, the end of it if it is long; else the keys that there are."""
    if typed is not None:
        label = _LABELS[run.input_required.kind if run.input_required else None]
        return (Span(label, "accent"), Span(f"{clip_start(plain(typed), width - width_of(label) - 1)}▏"))
    keys = (("r", " coordination history · "), ("s", " say something · "), ("Ctrl+C", " cancel"))
    return tuple(span for key, what in keys for span in (Span(key, "strong"), Span(what, "dim")))


def _widths(run: RunState, width: int) -> tuple[int, int, int, int, int, int]:
    """Of name, status, answer, vote, cost and what is written last; 0 for what there is no room for."""
    name = min(_MAX_NAME, max([5, *(width_of(view.info.id) for view in run.agents.values())]))
    rest = width - name - 1 - _STATUS
    if rest < 0:
        return max(1, width - _STATUS - 1), _STATUS, 0, 0, 0, 0
    answer = _ANSWER if rest > _ANSWER else 0
    rest -= answer + 1 if answer else 0
    vote = _VOTE if rest > _VOTE else 0
    rest -= vote + 1 if vote else 0
    cost = _COST if width >= _COST_FROM and rest > _COST else 0
    rest -= cost + 1 if cost else 0
    return name, _STATUS, answer, vote, cost, rest - 1 if rest > _MIN_LATEST else 0


def _cells(widths: tuple[int, ...], cells: tuple[Span, ...]) -> Line:
    return columns([(cell, width) for cell, width in zip(cells, widths, strict=True) if width])


def _head(run: RunState, width: int) -> Line:
    titles = ("Agent", "Status", "Answer", "Vote", "Cost", "Latest")
    return _cells(_widths(run, width), tuple(Span(title, "dim") for title in titles))


def _row(run: RunState, view: AgentState, doing: Activities, width: int) -> Line:
    word, style = status_of(run, view)
    return _cells(
        _widths(run, width),
        (
            Span(view.info.id, "strong"),
            Span(word, style),
            Span(view.latest_label or "-"),
            Span(_vote(run, view)),
            Span(_cost(run, view), "dim"),
            Span(_latest(view, doing), "dim"),
        ),
    )


def status_of(run: RunState, view: AgentState) -> tuple[str, Style]:
    """What an agent is at, in a word."""
    if view.dropped is not None:
        return (f"Failed ✗ {view.dropped.reason}" if view.status == "error" else "Timed out ✗"), "bad"
    if run.winner is not None:
        return _status_after_the_vote(run, view)
    match view.status:
        case "streaming":
            return ("Voting…" if view.answers or run.phase == "voting" else "Generating…"), "busy"
        case "answered":
            checked = run.coordination.evidence.get(view.latest_label or "")
            fails = checked is not None and any(outcome.result == "failed" for outcome in checked.outcomes)
            return ("Checks fail ✗", "bad") if fails else ("Complete ✓", "good")
        case "voted":
            return "Voted ✓", "good"
        case "restarting":
            return "Restarting ↻", "busy"
        case _:
            return "Waiting", "dim"


def _status_after_the_vote(run: RunState, view: AgentState) -> tuple[str, Style]:
    if run.winner is not None and run.winner.agent == view.info.name:
        if view.status == "streaming":
            return ("Evaluating…" if run.phase == "evaluating" else "Presenting…"), "busy"
        return "Winner ★", "good"
    vote = run.votes.get(view.info.name)
    if vote and run.winner and vote.label == run.winner.label:
        return "Converged ✓", "good"
    return ("Voted ✓" if vote else "Complete ✓"), "dim"


def _vote(run: RunState, view: AgentState) -> str:
    vote = run.votes.get(view.info.name)
    if vote is None:
        return "-"
    author = run.coordination.author(vote.label)
    return "Self" if author == view.info.name else run.agents[author].info.id


def _cost(run: RunState, view: AgentState) -> str:
    spent = run.budget.spending.by_agent.get(view.info.name)
    return cost_of(spent).removeprefix("cost ") if spent else "-"


def _latest(view: AgentState, doing: Activities) -> str:
    """The last words it wrote, else what it is doing, else its answer."""
    now = doing.of(view.info.name)
    if view.dropped is not None:
        return preview(view.dropped.message)
    if now.doing in ("", "writing") and now.writing:
        return preview(now.writing[-200:].lstrip())
    if view.status == "streaming" and now.doing:
        return now.doing
    return preview(view.answers[-1].content) if view.answers else ""


def _tail(run: RunState, doing: Activities, width: int, most: int) -> list[Line]:
    """The end of the final answer while it is being written."""
    text = doing.of(run.winner.agent).writing if run.winner else ""
    if run.phase != "presenting" or most < 2 or not text.strip():
        return []
    lines = [part for written in text.splitlines() for part in wrap(written, width)]
    return [line(Span("─" * width, "frame")), *(line(part) for part in lines[1 - most :])]
