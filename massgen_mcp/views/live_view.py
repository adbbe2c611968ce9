"""What a person sees of a run while it goes on: a small frame that is drawn again and again.

Pure: from a state, a size and a time to styled lines.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from massgen_mcp.events.run import InputKind
from massgen_mcp.run_state.agents import AgentState
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.activity import Activities, story
from massgen_mcp.views.names import format_ordinal
from massgen_mcp.views.plain_text import end_of, newest_line, plain, preview, unmarked
from massgen_mcp.views.spent import clock, cost_of, count, spent_figures
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

KEYS = "1234567890"
"""Of the first ten agents, in their order."""
_NUMBER, _STATUS = 1, 13
_MAX_NAME, _MIN_NOW = 20, 16
_OPTIONAL = (("Cost", 9, 0), ("Tokens", 6, 0), ("1st token", 9, 0), ("Vote", 12, 0), ("Answer", 9, 36))
"""Columns, their widths and how much room what is written has to have beside them; the most important first."""
_ORDER = ("Answer", "Vote", "1st token", "Tokens", "Cost")
_TAIL = 6
"""Rows of the final answer while it is written."""

Rendering = Callable[[str, int], Sequence[Line]]
"""A text in lines of at most so many columns."""


@dataclass(frozen=True, slots=True)
class Controls:
    """What the person at the keys is doing."""

    typed: str | None = None
    """What has been typed for the team so far; None while nothing is being typed."""
    question: str = ""
    """What the next key answers, in place of the list of keys."""
    followed: str | None = None
    """The agent whose words are shown at length."""
    leaves: bool = False
    """Whether Ctrl+C leaves the run alone."""


def in_rows(text: str, width: int) -> list[Line]:
    """A text as it was written, broken at words."""
    return [line(part) for written in text.splitlines() for part in wrap(written, width)]


@dataclass(frozen=True, slots=True)
class Screen:
    """The window of a terminal, as a frame is drawn for it."""

    width: int
    height: int
    rendering: Rendering = in_rows
    """Draws the words of an agent that is followed."""


def live_view(
    run: RunState,
    doing: Activities,
    screen: Screen,
    *,
    now: float,
    controls: Controls | None = None,
    usual_time: str = "",
) -> list[Line]:
    """Return the frame, one line less than the screen has, so that it never outgrows it.

    `now` is in seconds since the epoch; `usual_time`: what runs of the team usually take, where that is known.
    """
    width, height = screen.width, screen.height
    controls = controls or Controls()
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        return [clip_line((*_phase(run), Span(f" · {' · '.join(_figures(run, now))}", "dim")), max(1, width - 1))]
    inner = width - 4
    head = [line(Span(part, "strong")) for part in wrap(story(run, doing), inner)[: 2 if height > MIN_HEIGHT else 1]]
    room = height - 4 - len(head)  # the frame's edges, the head of the table, a line that stays free
    rows = [_row(run, view, doing, inner, now) for view in run.agents.values()]
    if len(rows) > room:
        rows = [*rows[: room - 1], line(Span(f"… and {len(rows) - room + 1} more agents", "dim"))]
    table = [_head(run, inner), *rows] if rows else []
    body = [*head, *table, *_growing_text(run, doing, controls, inner, room - len(rows), screen.rendering)]
    return box(_title(run, now, width - 6, usual_time), body, _foot(run, controls, width - 6), width)


_LABELS: dict[InputKind | None, str] = {
    None: "To the team: ",
    "question": "Your answer: ",
    "permission": "Your answer: ",
    "budget_reached": "New limit in $ (leave empty to finish): ",
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
            return f"Coordination Round {max(1, *(view.rounds for view in run.agents.values()))}"
        case "presenting":
            return "Final Presentation"
        case "evaluating":
            return "Evaluation"


def _title(run: RunState, now: float, width: int, usual_time: str) -> Line:
    """The phase, and as many of the figures as there is room for."""
    figures = [*_figures(run, now), *([f"usually {usual_time}"] if usual_time else [])]
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


def _foot(run: RunState, controls: Controls, width: int) -> Line:
    """What is being typed, the end of it if it is long; else the keys that there are."""
    if controls.typed is not None:
        asked = run.input_required
        label = _LABELS[asked.kind if asked else None]
        if asked is not None and asked.proposed_usd is not None:
            label = f"New limit in $, such as {asked.proposed_usd:g} (leave empty to finish): "
        return (Span(label, "accent"), Span(f"{clip_start(plain(controls.typed), width - width_of(label) - 1)}▏"))
    if controls.question:
        return (Span(controls.question, "accent"),)
    keys = _keys(run, controls)
    for between in (" · ", "  "):
        spans = [*_joined_lines([(Span(key, "strong"), Span(f" {what}", "dim")) for key, what in keys], between)]
        if width_of(text_of(tuple(spans))) <= width:
            return tuple(spans)
    meanings = {"?": (Span(" keys", "dim"),)}  # which tells the rest
    return tuple(_joined_lines([(Span(key, "strong"), *meanings.get(key, ())) for key, _ in keys], " "))


def _keys(run: RunState, controls: Controls) -> list[tuple[str, str]]:
    size = len(run.agents)
    numbers = "1" if size < 2 else f"1-{size}" if size < len(KEYS) else "0-9"
    team = [("v", "votes"), ("c", "compare")] if size > 1 else []
    leave = ("Ctrl+C", "leave" if controls.leaves else "cancel")
    return [(numbers, "follow"), *team, ("s", "say"), ("f", "finish"), ("?", "keys"), leave]


def keys_help(run: RunState, *, leaves: bool) -> list[Line]:
    """What each key does, a line each."""
    meanings = {
        "follow": "follow an agent's text and tool calls; press the key again, or Esc, to stop",
        "votes": "show the votes so far, with reasons",
        "compare": "compare two agents' answers",
        "say": "send a message to the team; each agent reads it at its next step",
        "finish": "finish now with the existing answers",
        "history": "show the whole history as a table",
        "let go": "return to the shell; the run continues in the background",
        "keys": "these lines",
        "leave": "stop watching; the run continues",
        "cancel": "cancel the run and keep its best answer; press twice to stop at once",
    }
    keys = [*_keys(run, Controls(leaves=leaves)), ("r", "history"), ("d", "let go"), ("Ctrl+Z", "suspend")]
    meanings["suspend"] = "suspend this program; `fg` resumes it" + ("" if leaves else " and the run")
    return [(Span(f"{key:>7}  ", "strong"), Span(meanings[what], "dim")) for key, what in keys]


def _joined_lines(parts: Sequence[Line], between: str) -> list[Span]:
    spans: list[Span] = []
    for place, part in enumerate(parts):
        spans += [*([Span(between, "dim")] if place else []), *part]
    return spans


def _columns(run: RunState, width: int) -> list[tuple[str, int]]:
    """Titles and widths from left to right: always name and status, then as many as leave room for what is written."""
    name = min(_MAX_NAME, max([5, *(width_of(view.info.id) for view in run.agents.values())]))
    name = max(5, min(name, width - _NUMBER - _STATUS - 2))
    rest = width - _NUMBER - name - _STATUS - 3
    chosen: dict[str, int] = {}
    for title, wide, beside in _OPTIONAL:
        if rest - wide - 1 >= max(_MIN_NOW, beside):
            chosen[title] = wide
            rest -= wide + 1
    between = [(title, chosen[title]) for title in _ORDER if title in chosen]
    return [("", _NUMBER), ("Agent", name), ("Status", _STATUS), *between, *([("Now", rest)] if rest > 0 else [])]


def _head(run: RunState, width: int) -> Line:
    return columns([(Span(title, "dim"), wide) for title, wide in _columns(run, width)])


def _row(run: RunState, view: AgentState, doing: Activities, width: int, now: float) -> Line:
    cells = _columns(run, width)
    return columns([(_cell(run, view, doing, title, wide, now), wide) for title, wide in cells])


def _cell(run: RunState, view: AgentState, doing: Activities, title: str, width: int, now: float) -> Span:
    match title:
        case "":
            place = [*run.agents].index(view.info.name)
            return Span(KEYS[place] if place < len(KEYS) else "", "dim")
        case "Agent":
            return Span(view.info.id, "strong")
        case "Status":
            return Span(*status_of(run, view))
        case "Answer":
            return Span(_newest_answer(view))
        case "Vote":
            return Span(_vote(run, view))
        case "1st token":
            seconds = doing.of(view.info.name).first_token_seconds
            return Span("-" if seconds is None else f"{seconds:.1f} s", "dim")
        case "Tokens":
            spent = run.budget.spending.by_agent.get(view.info.name)
            return Span(count(spent.tokens) if spent else "-", "dim")
        case "Cost":
            return Span(_cost(run, view), "dim")
        case _:
            return Span(newest_words(run, view, doing, width, now), "" if view.status == "streaming" else "dim")


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
            fails = checked is not None and any(outcome.speaks_against for outcome in checked.outcomes)
            return ("Checks fail ✗", "bad") if fails else ("Complete ✓", "good")
        case "voted":
            return "Voted ✓", "good"
        case "restarting":
            return "Restarting ↻", "busy"
        case "error" | "timeout":
            return "Cut short", "dim"
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


def _newest_answer(view: AgentState) -> str:
    if not view.latest_label:
        return "-"
    return format_ordinal(int(view.latest_label.rpartition(".")[2]))


def _vote(run: RunState, view: AgentState) -> str:
    vote = run.votes.get(view.info.name)
    if vote is None:
        return "-"
    author = run.coordination.author(vote.label)
    return "Self" if author == view.info.name else run.agents[author].info.id


def _cost(run: RunState, view: AgentState) -> str:
    spent = run.budget.spending.by_agent.get(view.info.name)
    return cost_of(spent).removeprefix("cost ") if spent else "-"


def newest_words(run: RunState, view: AgentState, doing: Activities, width: int, now: float = 0.0) -> str:
    """The end of what it writes, else what it is doing, else what it said last. `now`: to tell how long it thinks."""
    at = doing.of(view.info.name)
    if view.dropped is not None:
        return preview(view.dropped.message)
    if view.status == "streaming":
        if at.doing in ("", "writing") and at.writing.strip():
            return _ending(end_of(at.writing, width), width)
        seconds = now - at.sent_at if at.doing == "thinking" and at.sent_at is not None else 0.0
        return f"{at.doing}, {seconds:.0f} s" if seconds >= 1 else at.doing
    if (vote := run.votes.get(view.info.name)) is not None:
        return unmarked(vote.reason)
    return newest_line(view.answers[-1].content) if view.answers else ""


def _ending(text: str, width: int) -> str:
    return text if width_of(text) <= width else f"…{clip_start(text, width - 1)}"


# -- one agent at length ----------------------------------------------------------------------------------------------


def _growing_text(
    run: RunState, doing: Activities, controls: Controls, width: int, room: int, rendering: Rendering
) -> list[Line]:
    """The end of what the followed agent writes; of the final answer while it is written, where nobody is followed."""
    name, most = controls.followed, room
    if name is None and run.winner is not None and run.phase == "presenting" and doing.of(run.winner.agent).writing:
        name, most = run.winner.agent, min(room, _TAIL)
    if name not in run.agents or most < 2:
        return []
    view = run.agents[name]
    text = doing.of(name).writing.strip() or (view.answers[-1].content if view.answers else "")
    calls = [line(Span(preview(call, width), "dim")) for call in doing.of(name).tools] if controls.followed else []
    rows = [row for row in rendering(text, width) if text_of(row).strip()]
    rows = [*calls[-(most // 2) :], *rows[-(most - 1) + min(len(calls), most // 2) :]] if calls else rows
    rows = rows or [line(Span("nothing yet", "dim"))]
    title = f"── {view.info.id} "
    rule: Line = (Span(title, "frame"), Span("─" * max(0, width - width_of(title)), "frame"))
    return [rule, *(clip_line(row, width) for row in rows[1 - most :])]
