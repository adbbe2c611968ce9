"""Beside the live view's frame: one line for each event that a person who follows a run wants to keep."""

from massgen_mcp.events import LogRecord
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.plain_text import preview
from massgen_mcp.views.sentences import Tone, sentence_of
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
    said = sentence_of(record.event)
    if said.live is None:
        return None
    name = getattr(record.event, "agent", None)
    who = run.agents[name].info.id if name in run.agents else ""
    width = min(_MAX_NAME, max((width_of(view.info.id) for view in run.agents.values()), default=0))
    moment = clock(max(0.0, record.time - (run.started_at or record.time)))
    row = columns([(Span(moment, "dim"), 5), (Span(who, "strong"), width)]) if width else (Span(moment, "dim"),)
    text = f"{said.mark} {said.text}" if said.mark else said.text
    detail = f": {preview(said.detail, _MAX_TEXT)}" if said.detail else ""
    return line(*row, Span(" "), Span(text, _STYLES[said.live]), Span(detail))
