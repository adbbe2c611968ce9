"""`events.jsonl`: the append-only truth about one run. One writer; any number of readers in any process.

A line is an event only when it ends in a newline: a torn last line never happened. A line with a wrong checksum, or one
that is missing, is damage; what a newer version wrote is not (see `engine.event_log`).
"""

import os
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path

import anyio.to_thread

from massgen_mcp.errors import storage_error
from massgen_mcp.home import sync_directory
from massgen_mcp.redaction import NO_KEYS, Redactor
from massgen_mcp.runs.engine.event_log import EventLog, EventReader, EventWriter

JOURNAL = "events.jsonl"
READ_BYTES = 256 * 1024


class JournalLog(EventLog):
    """See `EventLog`. `directory`: the run's."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / JOURNAL

    def append(self, *, redactor: Redactor = NO_KEYS) -> "JournalWriter":
        return JournalWriter(self._path, redactor)

    def follow(self, after: int = 0, *, text: bool = True) -> "JournalReader":
        return JournalReader(self._path, after, text=text)

    def begun(self) -> bool:
        with suppress(FileNotFoundError):
            return self._path.stat().st_size > 0
        return False

    def make(self) -> None:
        """An empty log, so that whoever begins it need not make it durable; the directory is synced by the caller."""
        os.close(_open_file(self._path)[0])


class JournalWriter(EventWriter):
    """Appends to the file. See `EventWriter`."""

    def __init__(self, path: Path, redactor: Redactor = NO_KEYS) -> None:
        self._fd, made = _open_file(path)
        try:
            if made:
                sync_directory(path.parent)
            self._size, recorded = self._repair()
        except OSError:
            os.close(self._fd)
            raise
        super().__init__(redactor, recorded)
        self._torn = False

    async def _write(self, lines: Sequence[bytes]) -> None:
        await anyio.to_thread.run_sync(self._write_out, b"".join(lines))

    def close(self) -> None:
        if self._fd >= 0:
            with suppress(OSError):
                self._forget_failed_write()
            os.close(self._fd)
            self._fd = -1

    def _write_out(self, lines: bytes) -> None:
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


def _open_file(path: Path) -> tuple[int, bool]:
    """The file's descriptor, and whether it had to be made."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
    try:
        return os.open(path, flags), False
    except FileNotFoundError:
        return os.open(path, flags | os.O_CREAT, 0o600), True


class JournalReader(EventReader):
    """Follows the file. See `EventReader`."""

    def __init__(self, path: Path, after: int = 0, *, text: bool = True) -> None:
        super().__init__(after, text=text)
        self._path = path

    def lines(self) -> Generator[bytes]:
        try:
            with self._path.open("rb", buffering=READ_BYTES) as file:
                file.seek(self._bytes)
                while (line := file.readline()).endswith(b"\n"):
                    yield line[:-1]
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error("cannot read the run's journal", error) from error
