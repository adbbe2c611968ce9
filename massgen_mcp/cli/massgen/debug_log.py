"""`massgen_debug.log` of `--debug`: everything that happened in a run, whole, for a person to read."""

from datetime import UTC, datetime
from pathlib import Path
from textwrap import indent
from typing import TextIO

from massgen_mcp.events.agent_work import TextDelta
from massgen_mcp.events.record import LogRecord
from massgen_mcp.views.plain_text import plain_lines

NAME = "massgen_debug.log"


class DebugLog:
    """Appends to the file in a run directory; every line is plain text."""

    def __init__(self, directory: Path) -> None:
        self._file: TextIO = (directory / NAME).open("a", encoding="utf-8", errors="replace")

    def record(self, record: LogRecord) -> None:
        """Texts stand in full; streamed pieces are left out, because the whole reply follows them."""
        if isinstance(record.event, TextDelta):
            return
        moment = datetime.fromtimestamp(record.time, UTC).isoformat(sep=" ", timespec="milliseconds")
        lines = [f"{moment} {record.seq} {record.event.type}"]
        for name, value in record.event.model_dump(mode="json", exclude={"type"}, exclude_defaults=True).items():
            text = str(value)
            lines.append(f"    {name}:\n{indent(text, '      ')}" if "\n" in text else f"    {name}: {text}")
        self._file.writelines(plain_lines(lines))
        self._file.flush()

    def close(self) -> None:
        self._file.close()
