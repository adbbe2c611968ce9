"""What a server process has to say about itself: whole in a file, with the stack traces of its own faults, and in one
line each on standard error, which some clients show to people.

Nothing of it goes to a client as an MCP message.
"""

import json
import logging.handlers
from contextlib import suppress
from pathlib import Path

from massgen_mcp.people import OPERATOR, current_user

NAME = "server.log"
MOST_BYTES = 2 * 1024 * 1024
"""A longer file becomes `server.log.1`, in place of an earlier one."""


def start_log(directory: Path, *, as_json: bool = False) -> None:
    """Log warnings and errors of this process to `server.log` in `directory` and, shortened or as JSON, to standard
    error.

    A file that cannot be written fails nothing.
    """
    file = _File(directory / NAME)
    file.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    lines = logging.StreamHandler()
    lines.setFormatter(JsonLog() if as_json else _OneLine())
    logging.basicConfig(level=logging.WARNING, handlers=[file, lines])


class _File(logging.handlers.WatchedFileHandler):
    """Shared by all servers of a state directory: each line is appended whole."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8", errors="backslashreplace", delay=True)
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):
            if self._path.exists() and self._path.stat().st_size > MOST_BYTES:
                self._path.replace(self._path.with_name(f"{NAME}.1"))
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name of the base class
        """The line on standard error has to do."""


class JsonLog(logging.Formatter):
    """A JSON object a line: time, level, logger, message, who asked, and the stack trace of a fault."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": round(record.created, 3),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (user := current_user()) is not None:
            entry["person"] = user.name or OPERATOR
        entry |= {"fault": self.formatException(record.exc_info)} if record.exc_info else {}
        return json.dumps(entry, ensure_ascii=False)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        message = f"{record.levelname} {record.name}: {record.getMessage()}"
        return " ".join(message.split())
