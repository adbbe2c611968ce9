"""What whoever reads an event log does, wherever the log is kept."""

from collections.abc import Generator
from contextlib import closing
from typing import Protocol

from massgen_mcp.errors import JournalNewer
from massgen_mcp.events.record import LogRecord
from massgen_mcp.runs.engine import DamagedJournal
from massgen_mcp.runs.store.journal_line import seq_of_text, unsealed


class LogReader:
    """Follows a log that others write; each `read` gives what is new since the last one.

    Also what is not given is read, and must be whole.
    """

    def __init__(self, after: int, *, text: bool) -> None:
        self._after = after
        self._text = text
        self._left_out: bytes | None = None
        """The line that was read last, if it was left out."""
        self._bytes = 0
        """So long are the lines that were read, with their ends."""
        self._seq = 0
        self.newer: JournalNewer | None = None
        """Why nobody here may go on with the run, once a record of a newer version was read."""

    def _lines(self) -> Generator[bytes]:
        """Whole lines without their ends, from the first that was not read. Raises `MassgenError` store_unavailable."""
        raise NotImplementedError

    def read(self, most: int | None = None) -> list[LogRecord]:
        """New whole records, at most that many. A log that is not there yet has none.

        Raises `DamagedJournal` (run_damaged), again at every call, or `MassgenError` store_unavailable.
        """
        records: list[LogRecord] = []
        with closing(self._lines()) as lines:
            while (most is None or len(records) < most) and (line := next(lines, None)) is not None:
                if self._text or not self._leave_out(line):
                    self._take(line, records)
        self._give_last(records)
        return records

    def _leave_out(self, line: bytes) -> bool:
        """Whether the line is whole, in its place, and holds streamed text."""
        if (seq := seq_of_text(line)) is None or seq != self._seq + 1:
            return False
        self._left_out = line if seq > self._after else None
        self._seq = seq
        self._bytes += len(line) + 1
        return True

    def _give_last(self, records: list[LogRecord]) -> None:
        """What was read last is given even if it is text: so it is known how far the log goes."""
        if self._left_out is not None and (last := unsealed(self._left_out)) is not None:
            records.append(last)
        self._left_out = None

    def _take(self, line: bytes, records: list[LogRecord]) -> None:
        record = unsealed(line)
        if record is None or record.seq != self._seq + 1:
            self._give_last(records)
            raise DamagedJournal(self._seq + 1, records)
        if record.newer and self.newer is None:
            self.newer = JournalNewer(f"event {record.seq} ({getattr(record.event, 'type', '')})")
        if record.seq > self._after:
            records.append(record)
        self._left_out = None
        self._seq = record.seq
        self._bytes += len(line) + 1


class ReadableLog(Protocol):
    """A log of which all can be read at once, because it can be followed."""

    def follow(self, after: int = 0, *, text: bool = True) -> LogReader: ...

    def read(self, *, text: bool = True) -> list[LogRecord]:
        """Every record there is now; `text` as in `follow`. Raises as `EventReader.read` does."""
        return self.follow(text=text).read()

    def read_to_continue(self) -> list[LogRecord]:
        """Every record, for whoever continues or ends the run; streamed text is left out as in `follow`. Raises as
        `EventReader.read` does, and `JournalNewer` where a newer version wrote a part.
        """
        reader = self.follow(text=False)
        records = reader.read()
        if reader.newer is not None:
            raise reader.newer
        return records
