"""A known-bad twin: a journal that takes what it wrote for written, whatever the storage said."""

# pyright: reportPrivateUsage=false

import os
from contextlib import suppress

from massgen_mcp.runs.engine import journal


def _write_out(self: journal.JournalWriter, lines: bytes) -> None:
    with suppress(OSError):
        os.write(self._fd, lines)


journal.JournalWriter._write_out = _write_out
