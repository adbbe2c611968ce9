"""`events.jsonl`: the append-only truth about one run. One writer; any number of readers in any process.

A line is an event only when it ends in a newline: a torn last line never happened. Every line ends in a checksum of
what stands before it, so that a damaged one is never taken for the truth. Must not know what events mean.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import anyio
import anyio.to_thread
from pydantic import ValidationError

from massgen_mcp.errors import MassgenError, storage_error
from massgen_mcp.events import Event, LogRecord

SEAL_BYTES = 18


class DamagedJournal(MassgenError):
    """A line in the middle of a journal is not what was written. `intact`: the new records before it."""

    def __init__(self, seq: int, intact: list[LogRecord]) -> None:
        super().__init__("run_damaged", f"the run's journal is damaged from event {seq} on")
        self.intact = intact


class JournalWriter:
    """The run's journal, for the process that runs it.

    `record` fixes an event's place at once and hands it to the listeners; it is on disk after `settle`, and most likely
    soon anyway. Concurrent `settle` calls share one write.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._clock = clock
        self._pending: list[bytes] = []
        self._size, self._recorded = self._repair()
        self._torn = False
        self._settled = self._recorded
        self._writing = anyio.Lock()
        self._listeners: list[Callable[[LogRecord], None]] = []

    def listen(self, listener: Callable[[LogRecord], None]) -> None:
        """Call `listener` with every record from now on, in order, before anything else happens."""
        self._listeners.append(listener)

    def record(self, event: Event) -> None:
        self._recorded += 1
        record = LogRecord.model_construct(seq=self._recorded, time=self._clock(), event=event)
        self._pending.append(_sealed(record.model_dump_json(warnings=False).encode("utf-8", "replace")))
        for listener in self._listeners:
            listener(record)

    async def settle(self) -> None:
        """Everything recorded before this call survives a power cut.

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


class JournalReader:
    """Reads a journal from its beginning on; each `read` gives what is new since the last one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._seq = 0

    def read(self) -> list[LogRecord]:
        """New whole records. A missing file has none.

        Raises `DamagedJournal` (run_damaged), again at every call, or `MassgenError` store_unavailable.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise storage_error("cannot read the run's journal", error) from error
        records: list[LogRecord] = []
        for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            record = _unsealed(line[:-1])
            if record is None or record.seq != self._seq + 1:
                raise DamagedJournal(self._seq + 1, records)
            records.append(record)
            self._seq = record.seq
            self._offset += len(line)
        return records


def _sealed(record: bytes) -> bytes:
    """A line of the journal: the record's JSON object with the checksum of that object as its last member."""
    return b'%b,"crc":"%08x"}\n' % (record[:-1], crc32(record))


def _unsealed(line: bytes) -> LogRecord | None:
    """The record in a line; None if the line is not exactly what was written."""
    record, seal = line[:-SEAL_BYTES] + b"}", line[-SEAL_BYTES:]
    if seal != b',"crc":"%08x"}' % crc32(record):
        return None
    try:
        return LogRecord.model_validate_json(record)
    except ValidationError:
        return None
