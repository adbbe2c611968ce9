"""`massgen.log`: what happened in a run line by line, and the stack traces of errors of our own.

A trace passes the redactor as everything does.
"""

import secrets
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from massgen_mcp.errors import root_causes, storage_fault
from massgen_mcp.events.record import LogRecord
from massgen_mcp.redaction import Redactor
from massgen_mcp.views.log_text import line, log_line
from massgen_mcp.views.plain_text import plain, plain_lines, preview

MESSAGE_CHARACTERS = 300
NOTE_CHARACTERS = 2000


class RunLog:
    def __init__(self, file: TextIO, redactor: Redactor) -> None:
        self._file = file
        self._redactor = redactor

    @classmethod
    @contextmanager
    def open(cls, path: Path, redactor: Redactor) -> Generator["RunLog"]:
        with path.open("a", encoding="utf-8", errors="replace") as file:
            yield cls(file, redactor)

    def heard(self, record: LogRecord) -> None:
        if line := log_line(record):
            self._file.write(f"{line}\n")

    def note(self, text: str) -> None:
        """Write down what is no event, on one line. Never raises."""
        with suppress(OSError, ValueError):
            self._file.write(f"{line(time.time(), 'WARNING', preview(self._redactor.text(text), NOTE_CHARACTERS))}\n")
            self._file.flush()

    def report(self, error: BaseException) -> str:
        """Write down an error with its trace; returns what may be said of it elsewhere: its kind, its message, and
        under which name the trace stands here. Never raises.
        """
        name = f"fault {secrets.token_hex(4)}"
        trace = self._redactor.text("".join(traceback.format_exception(error)))
        with suppress(OSError, ValueError):  # a log that cannot be written is no reason to lose the run
            self._file.writelines([f"{name}\n", *plain_lines([trace])])
            self._file.flush()
        message = "".join(traceback.format_exception_only(root_causes(error)[0]))
        return f"{preview(plain(self._redactor.text(message)), MESSAGE_CHARACTERS)} (massgen.log has the trace: {name})"


def guarded(listener: Callable[[LogRecord], None], log: RunLog) -> Callable[[LogRecord], None]:
    """A listener whose failure is nobody's but its own; the first one is told."""
    failed = False

    def heard(record: LogRecord) -> None:
        nonlocal failed
        try:
            listener(record)
        except Exception as error:  # noqa: BLE001 - what only looks at a run must not end it
            if not failed:
                log.report(error)
            failed = True

    return heard


@contextmanager
def logged_in(log: RunLog) -> Generator[None]:
    """What fails inside is told in the log and ends nothing, but for a failure of the storage."""
    try:
        yield
    except Exception as error:
        if storage_fault(error) is not None:
            raise
        log.report(error)
