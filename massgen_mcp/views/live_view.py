"""What a person sees of a run while it goes on: a small frame that is drawn again and again, and lines that stay.

Pure: from a snapshot, a size and a time to styled lines. Must not know terminals.
"""

from massgen_mcp.events import (
    AgentDropped,
    AnswerEvaluated,
    AnswerSubmitted,
    AskerSaid,
    AttemptStarted,
    FirstAnswersClosed,
    InputGiven,
    InputRequired,
    LogRecord,
    ModelCallRetried,
    PresentationFailed,
    PresentationStarted,
    RuleViolated,
    VoteCast,
    WinnerChosen,
)
from massgen_mcp.views.activity import Activities
from massgen_mcp.views.log_text import plain, preview
from massgen_mcp.views.snapshot import AgentView, RunSnapshot
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
_TAIL = 6
MAX_EVENT = 4000
"""Characters of a line that stays; a question to the person is that long at most."""


def live_view(
    run: RunSnapshot, doing: Activities, *, width: int, height: int, now: float, typed: str | None = None
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


# -- the frame --------------------------------------------------------------------------------------------------------


def _phase(run: RunSnapshot) -> Line:
    again = f"Attempt {run.attempt} · " if run.attempt > 1 else ""
    return (Span(again + phase_name(run), "title"),)


def phase_name(run: RunSnapshot) -> str:
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


def _title(run: RunSnapshot, now: float, width: int) -> Line:
    """The phase, and as many of the figures as there is room for."""
    figures = _figures(run, now)
    while True:
        title = (*_phase(run), Span(" ── ", "frame"), Span(" · ".join(figures), "dim"))
        if len(figures) == 1 or width_of(text_of(title)) <= width:
            return title
        figures.pop()


def _figures(run: RunSnapshot, now: float) -> list[str]:
    """Time, votes and costs, the most important first."""
    figures = [clock(run.elapsed(now))]
    if len(run.agents) > 1:
        figures.append(f"{len(run.votes)}/{_live(run)} voted")
    if spent := run.spent.input_tokens + run.spent.output_tokens:
        figures.append(f"{count(spent)} tokens")
    return figures


def _live(run: RunSnapshot) -> int:
    return sum(1 for view in run.agents.values() if view.dropped is None)


def _foot(run: RunSnapshot, typed: str | None, width: int) -> Line:
    """What is being typed, the end of it if it is long; else the keys that there are."""
    if typed is not None:
        label = "Your answer: " if run.input_required is not None else "To the team: "
        return (Span(label, "accent"), Span(f"{clip_start(plain(typed), width - width_of(label) - 1)}▏"))
    keys = (("r", " coordination history · "), ("s", " say something · "), ("Ctrl+C", " cancel"))
    return tuple(span for key, what in keys for span in (Span(key, "strong"), Span(what, "dim")))


def _widths(run: RunSnapshot, width: int) -> tuple[int, int, int, int, int]:
    """Of name, status, answer, vote and what is written last; 0 for what there is no room for."""
    name = min(_MAX_NAME, max([5, *(width_of(view.info.id) for view in run.agents.values())]))
    rest = width - name - 1 - _STATUS
    if rest < 0:
        return max(1, width - _STATUS - 1), _STATUS, 0, 0, 0
    answer = _ANSWER if rest > _ANSWER else 0
    rest -= answer + 1 if answer else 0
    vote = _VOTE if rest > _VOTE else 0
    rest -= vote + 1 if vote else 0
    return name, _STATUS, answer, vote, rest - 1 if rest > _MIN_LATEST else 0


def _cells(widths: tuple[int, ...], cells: tuple[Span, ...]) -> Line:
    return columns([(cell, width) for cell, width in zip(cells, widths, strict=True) if width])


def _head(run: RunSnapshot, width: int) -> Line:
    titles = ("Agent", "Status", "Answer", "Vote", "Latest")
    return _cells(_widths(run, width), tuple(Span(title, "dim") for title in titles))


def _row(run: RunSnapshot, view: AgentView, doing: Activities, width: int) -> Line:
    word, style = status_of(run, view)
    return _cells(
        _widths(run, width),
        (
            Span(view.info.id, "strong"),
            Span(word, style),
            Span(view.latest_label or "-"),
            Span(_vote(run, view)),
            Span(_latest(view, doing), "dim"),
        ),
    )


def status_of(run: RunSnapshot, view: AgentView) -> tuple[str, Style]:
    """What an agent is at, in a word."""
    if view.dropped is not None:
        return (f"Failed ✗ {view.dropped.reason}" if view.status == "error" else "Timed out ✗"), "bad"
    if run.winner is not None:
        return _status_after_the_vote(run, view)
    match view.status:
        case "streaming":
            return ("Voting…" if view.answers or run.phase == "voting" else "Generating…"), "busy"
        case "answered":
            return "Complete ✓", "good"
        case "voted":
            return "Voted ✓", "good"
        case "restarting":
            return "Restarting ↻", "busy"
        case _:
            return "Waiting", "dim"


def _status_after_the_vote(run: RunSnapshot, view: AgentView) -> tuple[str, Style]:
    if run.winner is not None and run.winner.agent == view.info.name:
        if view.status == "streaming":
            return ("Evaluating…" if run.phase == "evaluating" else "Presenting…"), "busy"
        return "Winner ★", "good"
    vote = run.votes.get(view.info.name)
    if vote and run.winner and vote.label == run.winner.label:
        return "Converged ✓", "good"
    return ("Voted ✓" if vote else "Complete ✓"), "dim"


def _vote(run: RunSnapshot, view: AgentView) -> str:
    vote = run.votes.get(view.info.name)
    if vote is None:
        return "-"
    author = next(answer.agent for answer in run.current_answers if answer.label == vote.label)
    return "Self" if author == view.info.name else run.agents[author].info.id


def _latest(view: AgentView, doing: Activities) -> str:
    """The last words it wrote, else what it is doing, else its answer."""
    now = doing.of(view.info.name)
    if view.dropped is not None:
        return preview(view.dropped.message)
    if now.doing in ("", "writing") and now.writing:
        return preview(now.writing[-200:].lstrip())
    if view.status == "streaming" and now.doing:
        return now.doing
    return preview(view.answers[-1].content) if view.answers else ""


def _tail(run: RunSnapshot, doing: Activities, width: int, most: int) -> list[Line]:
    """The end of the final answer while it is being written."""
    text = doing.of(run.winner.agent).writing if run.winner else ""
    if run.phase != "presenting" or most < 2 or not text.strip():
        return []
    lines = [part for written in text.splitlines() for part in wrap(written, width)]
    return [line(Span("─" * width, "frame")), *(line(part) for part in lines[1 - most :])]


# -- lines that stay --------------------------------------------------------------------------------------------------


def event_line(record: LogRecord, run: RunSnapshot) -> Line | None:
    """What a person who follows the run wants to keep; `run` is the snapshot with `record` folded in. None: nothing."""
    told = _told(record)
    if told is None:
        return None
    label, style, text = told
    name = getattr(record.event, "agent", None)
    who = run.agents[name].info.id if name in run.agents else ""
    width = min(_MAX_NAME, max((width_of(view.info.id) for view in run.agents.values()), default=0))
    moment = clock(max(0.0, record.time - (run.started_at or record.time)))
    row = columns([(Span(moment, "dim"), 5), (Span(who, "strong"), width)]) if width else (Span(moment, "dim"),)
    colon = ": " if text else ""
    return line(*row, Span(" "), Span(label, style), Span(f"{colon}{preview(text, MAX_EVENT)}"))


def _told(record: LogRecord) -> tuple[str, Style, str] | None:  # noqa: C901 - one line per event
    """What happened, how that looks, and the words that belong to it."""
    match record.event:
        case AttemptStarted() as event if event.attempt > 1:
            return f"attempt {event.attempt} begins", "busy", event.reason
        case AnswerSubmitted() as event:
            return f"◆ answer {event.label}", "accent", event.content
        case VoteCast() as event:
            return f"✓ votes for {event.label}", "good", event.reason
        case RuleViolated() as event if event.counts:
            return f"! {event.code}", "dim", event.message
        case ModelCallRetried() as event:
            return f"! {event.reason}, tried again in {event.wait_seconds:.0f} s", "busy", event.message
        case FirstAnswersClosed() as event:
            return "no longer waiting for the first answers", "busy", ", ".join(event.awaited)
        case AgentDropped() as event:
            return f"✗ falls out ({event.reason})", "bad", event.message
        case WinnerChosen() as event:
            return f"★ wins with {event.label} ({event.outcome}), {event.votes.get(event.label, 0)} votes", "title", ""
        case PresentationStarted():
            return "writes the final answer", "", ""
        case PresentationFailed() as event:
            return f"✗ could not write the final answer ({event.reason})", "bad", event.message
        case AnswerEvaluated() as event if not event.sufficient:
            return "judges it insufficient", "busy", event.reason
        case InputRequired() as event:
            return "? asks you", "accent", event.text
        case InputGiven() as event:
            return f"you decided ({event.kind})", "accent", event.text
        case AskerSaid() as event:
            return "you said", "accent", event.message
        case _:
            return None


# -- figures ----------------------------------------------------------------------------------------------------------


def clock(seconds: float) -> str:
    """01:15, or 1:02:03 from an hour on."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def count(number: int) -> str:
    """850, 3.1k, 37k, 1.2M."""
    if number < 1000:
        return str(number)
    thousands = number / 1000
    if thousands < 1000:
        return f"{thousands:.1f}k" if thousands < 10 else f"{thousands:.0f}k"
    return f"{thousands / 1000:.1f}M"
