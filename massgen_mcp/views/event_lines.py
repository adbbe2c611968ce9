"""One line for each event that a person who follows a run wants to keep: in `massgen.log`, beside the frame of the live
view, and as a plain sentence.
"""

from datetime import UTC, datetime

from massgen_mcp.events.coordination import AnswerSubmitted, VoteCast
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.names import replace_names
from massgen_mcp.views.outcome import describe_outcome
from massgen_mcp.views.plain_text import plain, preview, unmarked
from massgen_mcp.views.sentences import Sentence, Tone, sentence_of
from massgen_mcp.views.spent import clock
from massgen_mcp.views.styled import Line, Span, Style, columns, line, width_of

_MAX_NAME = 20
_MAX_TEXT = 4000
"""Characters of a line; a question to the person is that long at most."""

_STYLES: dict[Tone, Style] = {
    "plain": "",
    "quiet": "dim",
    "busy": "busy",
    "good": "good",
    "bad": "bad",
    "notice": "accent",
    "headline": "title",
}


def event_line(record: LogRecord, run: RunState) -> Line | None:
    """What a person who follows the run wants to keep; `run` is the snapshot with `record` folded in. None: nothing."""
    sentence = sentence_of(record.event)
    if sentence.live is None:
        return None
    width = min(_MAX_NAME, max((width_of(view.info.id) for view in run.agents.values()), default=0))
    moment, who = _moment(record, run), _who(record, run)
    row = columns([(Span(moment, "dim"), 5), (Span(who, "strong"), width)]) if width else (Span(moment, "dim"),)
    text = f"{sentence.mark} {_describe_event(record, run, sentence)}".lstrip()
    detail = _detail(record, sentence)
    return line(*row, Span(" "), Span(text, _STYLES[sentence.live]), Span(f": {detail}" if detail else ""))


def spoken_line(record: LogRecord, run: RunState) -> str | None:
    """The same without signs and columns, for screen readers and logs."""
    sentence = sentence_of(record.event)
    if sentence.live is None:
        return None
    who, detail = _who(record, run), _detail(record, sentence)
    parts = [_moment(record, run), f"{who}:" if who else "", _describe_event(record, run, sentence)]
    return plain(" ".join(filter(None, parts)) + (f": {preview(detail)}" if detail else ""))


def _moment(record: LogRecord, run: RunState) -> str:
    return clock(max(0.0, record.time - (run.started_at or record.time)))


def _who(record: LogRecord, run: RunState) -> str:
    name = getattr(record.event, "agent", None)
    return run.agents[name].info.id if name in run.agents else ""


def _describe_event(record: LogRecord, run: RunState, sentence: Sentence) -> str:
    """Return the sentence with the names that people read; of the end of a run with its outcome."""
    text = replace_names(run, sentence.text)
    if isinstance(record.event, RunCompleted) and (outcome := describe_outcome(run)):
        return f"{text} ({outcome})"
    return text


def _detail(record: LogRecord, sentence: Sentence) -> str:
    """What somebody wrote, in one line."""
    written = isinstance(record.event, AnswerSubmitted | VoteCast)
    return preview(unmarked(sentence.detail) if written else sentence.detail, _MAX_TEXT)


def log_line(record: LogRecord, run: RunState, *, debug: bool = True) -> str | None:
    """Return the line for a record of this run in `massgen.log`; None for events that only matter to live displays, or
    (without `debug`) to debugging.
    """
    sentence = sentence_of(record.event)
    if sentence.level is None or (sentence.level == "DEBUG" and not debug):
        return None
    agent = getattr(record.event, "agent", None)
    who = replace_names(run, f"{agent}: ") if agent else ""
    detail = f": {preview(sentence.detail)}" if sentence.detail else ""
    return stamped(record.time, sentence.level, f"{who}{_describe_event(record, run, sentence)}{detail}")


def stamped(moment: float, level: str, text: str) -> str:
    """A line of `massgen.log`; `moment` in seconds since 1970."""
    shown = datetime.fromtimestamp(moment, UTC).replace(tzinfo=None).isoformat(" ", "milliseconds")
    return plain(f"{shown} | {level} | {text}")
