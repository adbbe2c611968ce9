"""`massgen.log`: what happened in a run line by line, and the stack traces of errors of our own.

A trace holds no key and no other secret of the environment. Must not know what an error means for the run.
"""

import re
import secrets
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from massgen_mcp.errors import root_causes
from massgen_mcp.events import LogRecord
from massgen_mcp.views.log_text import log_line, plain, plain_lines, preview

MESSAGE_CHARACTERS = 300
SHORTEST_SECRET = 8
_SECRET_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)


class RunLog:
    def __init__(self, file: TextIO, environ: Mapping[str, str]) -> None:
        self._file = file
        self._secrets = sorted(_secrets(environ), key=len, reverse=True)

    @classmethod
    @contextmanager
    def open(cls, path: Path, environ: Mapping[str, str]) -> Generator["RunLog"]:
        with path.open("a", encoding="utf-8", errors="replace") as file:
            yield cls(file, environ)

    def heard(self, record: LogRecord) -> None:
        if line := log_line(record):
            self._file.write(f"{line}\n")

    def report(self, error: BaseException) -> str:
        """Write down an error with its trace; returns what may be said of it elsewhere: its kind, its message, and
        under which name the trace stands here. Never raises.
        """
        name = f"fault {secrets.token_hex(4)}"
        trace = [self._without_secrets(text) for text in traceback.format_exception(error)]
        with suppress(OSError, ValueError):  # a log that cannot be written is no reason to lose the run
            self._file.writelines([f"{name}\n", *plain_lines(trace)])
            self._file.flush()
        told = "".join(traceback.format_exception_only(root_causes(error)[0]))
        return f"{preview(plain(self._without_secrets(told)), MESSAGE_CHARACTERS)} (massgen.log has the trace: {name})"

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


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


def _secrets(environ: Mapping[str, str]) -> Iterator[str]:
    """Values that may be secret, as they are and as a traceback quotes them."""
    for name, value in environ.items():
        if _SECRET_NAMES.search(name) and len(value) >= SHORTEST_SECRET:
            yield value
            if (quoted := repr(value)[1:-1]) != value:
                yield quoted
