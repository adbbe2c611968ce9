"""`events.jsonl`: the append-only truth about one run. One writer; any number of readers in any process.

A line is an event only when it ends in a newline: a torn last line never happened. A line with a wrong checksum, or one
that is missing, is damage; what a newer version wrote is not (see `journal_line`).
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio.to_thread

from massgen_mcp.errors import JournalNewer, MassgenError, storage_error
from massgen_mcp.events.parts import Event, EventT
from massgen_mcp.events.record import JOURNAL_VERSION, LogRecord
from massgen_mcp.home import sync_directory
from massgen_mcp.redaction import NO_KEYS, Redactor
from massgen_mcp.runs.engine import DamagedJournal
from massgen_mcp.runs.store.journal_line import sealed, seq_of_text, unsealed

JOURNAL = "events.jsonl"
READ_BYTES = 256 * 1024


class JournalLog:
    """The events of one run: one writer, any number of readers in any process. `seq` counts from 1 without a gap.

    An event that was not wholly written never happened; one that was changed or is missing is damage; what a newer
    version wrote is neither.

    `directory`: the run's.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / JOURNAL

    def append(self, *, redactor: Redactor = NO_KEYS) -> "JournalWriter":
        """Goes on after the last whole event. Raises `OSError`."""
        return JournalWriter(self._path, redactor)

    def follow(self, after: int = 0, *, text: bool = True) -> "JournalReader":
        """Gives the events whose `seq` is above `after`. Without `text` those of streamed text are left out, which are
        for display only, but for the last record of a read: how far the log goes is known.
        """
        return JournalReader(self._path, after, text=text)

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


class JournalWriter:
    """Appends to the log, for the process that executes the run.

    `record` fixes an event's place at once and hands it to the listeners; it is durable after `settle`, and most likely
    soon anyway. No key passes: what is recorded and what the listeners hear holds none.
    """

    def __init__(self, path: Path, redactor: Redactor = NO_KEYS) -> None:
        self._redactor = redactor
        self._fd, made = _opened(path)
        self._pending: list[bytes] = []
        try:
            if made:
                sync_directory(path.parent)
            self._size, self._recorded = self._repair()
        except OSError:
            os.close(self._fd)
            raise
        self._torn = False
        self._settled = self._recorded
        self._writing = anyio.Lock()
        self._listeners: list[Callable[[LogRecord], None]] = []

    def listen(self, listener: Callable[[LogRecord], None]) -> None:
        """Call `listener` with every record from now on, in order, before anything else happens."""
        self._listeners.append(listener)

    def record(self, event: EventT) -> EventT:
        """Returns the event as it is recorded: without keys."""
        record = self._next(event)
        line = record.model_dump_json(warnings=False)
        if self._redactor.finds(line):
            event = type(event).model_validate(self._redactor.value(event.model_dump()))
            record = self._next(event)
            line = record.model_dump_json(warnings=False)
        self._recorded = record.seq
        self._pending.append(sealed(line))
        for listener in self._listeners:
            listener(record)
        return event

    def _next(self, event: Event) -> LogRecord:
        return LogRecord.model_construct(
            v=JOURNAL_VERSION,
            seq=self._recorded + 1,
            time=time.time(),
            event=event,
            clock=round(time.monotonic(), 3),
        )

    async def settle(self) -> None:
        """Everything recorded before this call survives a power cut. Concurrent calls share one write.

        Raises `MassgenError` disk_full or store_unavailable; nothing is lost then, and the next call tries again.
        """
        wanted = self._recorded
        async with self._writing:
            if self._settled >= wanted:
                return
            lines, self._pending, last = b"".join(self._pending), [], self._recorded
            try:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self._write, lines)
            except MassgenError:
                self._pending.insert(0, lines)
                raise
            self._settled = last

    async def drain(self) -> None:
        """Write what is pending, for readers in other processes."""
        if self._pending:
            await self.settle()

    def close(self) -> None:
        """What was not settled may be lost."""
        if self._fd >= 0:
            with suppress(OSError):
                self._forget_failed_write()
            os.close(self._fd)
            self._fd = -1

    def _write(self, lines: bytes) -> None:
        view = memoryview(lines)
        try:
            self._forget_failed_write()
            self._torn = True
            while view:
                view = view[os.write(self._fd, view) :]
            os.fdatasync(self._fd) if hasattr(os, "fdatasync") else os.fsync(self._fd)
        except OSError as error:
            raise storage_error("cannot write the run's journal", error) from error
        self._size, self._torn = self._size + len(lines), False

    def _forget_failed_write(self) -> None:
        """What a failed write or sync left behind may be torn, or be gone after a power cut: it is written anew."""
        if self._torn:
            os.ftruncate(self._fd, self._size)
            self._torn = False

    def _repair(self) -> tuple[int, int]:
        """Cut off a torn last line; returns the size, and the number of events that are there."""
        size = os.fstat(self._fd).st_size
        whole, count, offset = 0, 0, 0
        while offset < size:
            chunk = os.pread(self._fd, 1 << 20, offset)
            count += chunk.count(b"\n")
            if b"\n" in chunk:
                whole = offset + chunk.rindex(b"\n") + 1
            offset += len(chunk)
        if whole < size:
            os.ftruncate(self._fd, whole)
        return whole, count


def make_journal(directory: Path) -> None:
    """An empty journal, so that whoever begins it need not make it durable; `directory` is synced by the caller."""
    os.close(_opened(directory / JOURNAL)[0])


def has_events(directory: Path) -> bool:
    """Whether a run was ever begun here."""
    with suppress(FileNotFoundError):
        return (directory / JOURNAL).stat().st_size > 0
    return False


def _opened(path: Path) -> tuple[int, bool]:
    """The file's descriptor, and whether it had to be made."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
    try:
        return os.open(path, flags), False
    except FileNotFoundError:
        return os.open(path, flags | os.O_CREAT, 0o600), True


class JournalReader:
    """Follows a log that others write; each `read` gives what is new since the last one.

    Also what is not given is read, and must be whole.
    """

    def __init__(self, path: Path, after: int = 0, *, text: bool = True) -> None:
        self._path = path
        self._after = after
        self._text = text
        self._left_out: bytes | None = None
        """The line that was read last, if it was left out."""
        self._offset = 0
        self._seq = 0
        self.newer: JournalNewer | None = None
        """Why nobody here may go on with the run, once a record of a newer version was read."""

    def read(self, most: int | None = None) -> list[LogRecord]:
        """New whole records, at most that many. A log that is not there yet has none.

        Raises `DamagedJournal` (run_damaged), again at every call, or `MassgenError` store_unavailable.
        """
        records: list[LogRecord] = []
        try:
            with self._path.open("rb", buffering=READ_BYTES) as file:
                file.seek(self._offset)
                while (most is None or len(records) < most) and (line := file.readline()).endswith(b"\n"):
                    if self._text or not self._leave_out(line):
                        self._take(line, records)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise storage_error("cannot read the run's journal", error) from error
        self._give_last(records)
        return records

    def _leave_out(self, line: bytes) -> bool:
        """Whether the line is whole, in its place, and holds streamed text."""
        if (seq := seq_of_text(line[:-1])) is None or seq != self._seq + 1:
            return False
        self._left_out = line[:-1] if seq > self._after else None
        self._seq = seq
        self._offset += len(line)
        return True

    def _give_last(self, records: list[LogRecord]) -> None:
        """What was read last is given even if it is text: so it is known how far the log goes."""
        if self._left_out is not None and (last := unsealed(self._left_out)) is not None:
            records.append(last)
        self._left_out = None

    def _take(self, line: bytes, records: list[LogRecord]) -> None:
        record = unsealed(line[:-1])
        if record is None or record.seq != self._seq + 1:
            self._give_last(records)
            raise DamagedJournal(self._seq + 1, records)
        if record.newer and self.newer is None:
            self.newer = JournalNewer(f"event {record.seq} ({getattr(record.event, 'type', '')})")
        if record.seq > self._after:
            records.append(record)
        self._left_out = None
        self._seq = record.seq
        self._offset += len(line)
