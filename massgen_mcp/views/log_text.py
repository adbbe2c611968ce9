"""`massgen.log`: one plain line per event that a person following a run wants to read. No control characters."""

from datetime import UTC, datetime

from massgen_mcp.events.record import LogRecord
from massgen_mcp.views.plain_text import plain, preview
from massgen_mcp.views.sentences import sentence_of


def log_line(record: LogRecord, *, debug: bool = True) -> str | None:
    """The line for a record; None for events that only matter to live displays, or (without `debug`) to debugging."""
    sentence = sentence_of(record.event)
    if sentence.level is None or (sentence.level == "DEBUG" and not debug):
        return None
    agent = getattr(record.event, "agent", None)
    who = f"{agent}: " if agent else ""
    detail = f": {preview(sentence.detail)}" if sentence.detail else ""
    return line(record.time, sentence.level, f"{who}{sentence.text}{detail}")


def line(moment: float, level: str, text: str) -> str:
    """`moment` in seconds since 1970."""
    shown = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return plain(f"{shown} | {level} | {text}")
