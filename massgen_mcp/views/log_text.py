"""`massgen.log`: one plain line per event that a person following a run wants to read. No control characters."""

from datetime import UTC, datetime

from massgen_mcp.events.record import LogRecord
from massgen_mcp.views.plain_text import plain, preview
from massgen_mcp.views.sentences import sentence_of


def log_line(record: LogRecord, *, debug: bool = True) -> str | None:
    """The line for a record; None for events that only matter to live displays, or (without `debug`) to debugging."""
    said = sentence_of(record.event)
    if said.level is None or (said.level == "DEBUG" and not debug):
        return None
    agent = getattr(record.event, "agent", None)
    who = f"{agent}: " if agent else ""
    detail = f": {preview(said.detail)}" if said.detail else ""
    return line(record.time, said.level, f"{who}{said.text}{detail}")


def line(moment: float, level: str, text: str) -> str:
    """`moment` in seconds since 1970."""
    shown = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return plain(f"{shown} | {level} | {text}")
