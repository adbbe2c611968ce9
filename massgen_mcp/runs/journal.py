"""`events.jsonl`: the append-only truth about one run. One writer; any number of readers in any process.

A line is an event only when it ends in a newline: a torn last line never happened. Must not know what events mean.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
from pydantic import ValidationError

from massgen_mcp.errors import MassgenError
from massgen_mcp.events import Event, LogRecord

MAX_LINE_BYTES = 64 * 1024 * 1024


class JournalWriter:
    """The run's journal, for the process that runs it.

    `record` fixes an event's place at once and hands it to the listeners; it is on disk after `settle`, and most likely
    soon anyway. Concurrent `settle` calls share one write.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._clock = clock
        self._pending: list[bytes] = []
        self._recorded = self._repair()
        self._settled = self._recorded
        self._writing = anyio.Lock()
        self._listeners: list[Callable[[LogRecord], None]] = []

    def listen(self, listener: Callable[[LogRecord], None]) -> None:
        """Call `listener` with every record from now on, in order, before anything else happens."""
        self._listeners.append(listener)

    def record(self, event: Event) -> None:
        self._recorded += 1
        record = LogRecord.model_construct(seq=self._recorded, time=self._clock(), event=event)
        self._pending.append(record.model_dump_json(warnings=False).encode("utf-8", "replace") + b"\n")
        for listener in self._listeners:
            listener(record)

    async def settle(self) -> None:
        """Everything recorded before this call survives a power cut. Raises `MassgenError` store_unavailable."""
        wanted = self._recorded
        async with self._writing:
            if self._settled >= wanted:
                return
            lines, self._pending, last = b"".join(self._pending), [], self._recorded
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._write, lines)
            self._settled = last

    async def drain(self) -> None:
        """Write what is pending, for readers in other processes."""
        if self._pending:
            await self.settle()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, lines: bytes) -> None:
        view = memoryview(lines)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
            os.fdatasync(self._fd) if hasattr(os, "fdatasync") else os.fsync(self._fd)
        except OSError as error:
            raise MassgenError("store_unavailable", f"cannot write the run's journal: {error.strerror}") from error

    def _repair(self) -> int:
        """Cut off a torn last line; returns the number of events that are there."""
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
        return count


class JournalReader:
    """Reads a journal from its beginning on; each `read` gives what is new since the last one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def read(self) -> list[LogRecord]:
        """New whole records. A missing file has none. Raises `MassgenError` store_unavailable for a damaged journal."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise MassgenError("store_unavailable", f"cannot read the run's journal: {error.strerror}") from error
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        try:
            return [LogRecord.model_validate_json(line) for line in lines]
        except ValidationError as error:
            raise MassgenError(
                "store_unavailable", "the run's journal is damaged; its record cannot be read"
            ) from error
