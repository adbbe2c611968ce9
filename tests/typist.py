"""A person at a terminal: a command on a pseudo-terminal, whose output is read as it comes and into which one types."""

import os
import pty
import select
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness import PATIENCE_SECONDS


class Typist:
    def __init__(self, process: "subprocess.Popen[bytes]", terminal: int) -> None:
        self.process = process
        self._terminal = terminal
        self._read_up_to = 0
        self.seen = ""
        """Everything that was on the terminal so far."""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def expect(self, text: str, seconds: float = PATIENCE_SECONDS) -> str:
        """Wait until `text` comes after what was expected before; returns what came up to there."""
        deadline = time.monotonic() + seconds
        while (at := self.seen.find(text, self._read_up_to)) < 0:
            if not self._read(deadline - time.monotonic()):
                pytest.fail(f"{text!r} did not come; there was:\n{self.seen[self._read_up_to :]}")
        part = self.seen[self._read_up_to : at]
        self._read_up_to = at + len(text)
        return part

    def answer(self, question: str, text: str) -> None:
        """Type a line when `question` stands there."""
        self.expect(question)
        self.type(f"{text}\n")

    def leave(self, seconds: float = PATIENCE_SECONDS) -> int:
        """The exit code of the command, which ends by itself; `seen` is whole then."""
        deadline = time.monotonic() + seconds
        while self._read(deadline - time.monotonic()):
            pass
        return self.process.wait(max(0.1, deadline - time.monotonic()))

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], max(0.0, seconds))
        try:
            data = os.read(self._terminal, 65_536) if ready else b""
        except OSError:  # the other end is closed
            data = b""
        self.seen += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


@contextmanager
def typist(command: Sequence[str], *, cwd: Path, environ: dict[str, str]) -> Generator[Typist]:
    """The command on a terminal of its own, gone at the end of the block."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, cwd=cwd, env=environ, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        yield Typist(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
