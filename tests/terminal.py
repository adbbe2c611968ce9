"""Our commands in a real pseudo-terminal: what a person sees on the screen and above it, and what a person types.

The screen is pyte's. What terminals do when their window changes is here in two kinds: `crop` (xterm) cuts lines off,
`push` (tmux) breaks them and pushes the topmost rows out of the window. Waits for what is to be seen, never for a time.
"""

import locale
import os
import signal
import sys
import termios
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import pexpect
import pyte
import pytest
from ptyprocess import PtyProcess  # pyright: ignore[reportMissingTypeStubs] - as pexpect uses it
from pyte.screens import Char

from tests.commands import address_of, python
from tests.harness import COMMAND_MODULE, PATIENCE_SECONDS, TempHome
from tests.launch import launch

Resizing = Literal["crop", "push"]
Row = dict[int, Char]


class Screen(pyte.Screen):
    """The window, and the rows that have left it at its upper edge."""

    def __init__(self, columns: int, rows: int, answer: Callable[[str], object]) -> None:
        self.above: list[Row] = []
        self._answer = answer
        super().__init__(columns, rows)

    def write_process_input(self, data: str) -> None:
        self._answer(data)

    def index(self) -> None:
        if self.cursor.y == self.lines - 1:
            self.above.append(dict(self.buffer[0]))
        super().index()

    def become(self, columns: int, rows: int, resizing: Resizing) -> None:
        """The window has another size now."""
        window = [dict(self.buffer[y]) for y in range(self.lines)]
        while len(window) > max(rows, self.cursor.y + 1):
            window.pop()
        lines, cursor = [*self.above, *window], len(self.above) + self.cursor.y
        if resizing == "push":
            broken = [_broken(line, columns) for line in lines]
            cursor = sum(map(len, broken[:cursor]))
            lines = [row for parts in broken for row in parts]
        first = max(0, len(lines) - rows)
        self.above = lines[:first]
        self.lines, self.columns = rows, columns
        self.buffer.clear()
        for y, row in enumerate(lines[first:]):
            self.buffer[y].update({x: cell for x, cell in row.items() if x < columns})
        self.cursor.x, self.cursor.y = (min(self.cursor.x, columns - 1), cursor - first) if cursor >= first else (0, 0)


def _broken(line: Row, columns: int) -> list[Row]:
    used = max((x for x, cell in line.items() if cell.data != " "), default=-1) + 1
    return [
        {x - start: line[x] for x in range(start, min(used, start + columns)) if x in line}
        for start in range(0, max(1, used), columns)
    ]


class _Copy(PtyProcess):
    """A copy of the command server with a terminal of its own; another process is its parent."""

    def __init__(self, pid: int, fd: int, code: "Future[int | None]") -> None:
        super().__init__(pid, fd)
        self._code = code

    def isalive(self) -> bool:
        if not self._code.done():
            return True
        self.wait()
        return False

    def wait(self) -> int | None:
        code = self._code.result() or 0
        self.terminated = True
        self.exitstatus, self.signalstatus = (code, None) if code >= 0 else (None, -code)
        return self.exitstatus


class _SpawnedCopy(pexpect.spawn):  # pyright: ignore[reportMissingTypeArgument]
    """`python -m MODULE`, as `pexpect.spawn` starts it, without the imports."""

    def _spawnpty(self, args: list[str], **given: Any) -> PtyProcess:
        address = address_of(python())
        assert address
        ours, its = os.openpty()
        termios.tcsetwinsize(its, given["dimensions"])
        pid, code = Future[int](), Future[int | None]()

        def run() -> None:
            try:
                descriptors = dict.fromkeys(range(3), its)
                ended = launch(address, args[1:], given["cwd"], given["env"], descriptors, pid.set_result, leads=True)
                code.set_result(ended)
            except OSError as error:
                code.set_exception(error)
            if not pid.done():
                pid.set_result(0)

        Thread(target=run, daemon=True).start()
        started = pid.result(PATIENCE_SECONDS)
        os.close(its)
        assert started, "its variables are not those of the command server"
        return _Copy(started, ours, code)


class Terminal:
    """One command in one window."""

    def __init__(self, command: list[str], home: TempHome, columns: int, rows: int, **variables: str) -> None:
        inherited = {k: v for k, v in home.environ.items() if k not in ("CI", "COLUMNS", "LINES", "TMUX", "EDITOR")}
        utf8 = {} if locale.getpreferredencoding(False) == "UTF-8" else {"LANG": "C.UTF-8"}
        environ = {**inherited, "TERM": "xterm-256color", **utf8, **variables}
        self._resizing: Resizing = "push" if "TMUX" in variables else "crop"
        is_copy = command[:2] == [sys.executable, "-m"] and address_of(python()) is not None
        spawn = _SpawnedCopy if is_copy else pexpect.spawn
        self.child: Any = spawn(
            command[0], command[1:], cwd=str(home.work), env=environ, dimensions=(rows, columns), timeout=None
        )
        self.screen = Screen(columns, rows, self.child.send)
        self._stream: Any = pyte.ByteStream(self.screen)
        self.bytes = b""
        """Everything that came so far."""

    # -- seeing -------------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> list[str]:
        self.pump(0)
        return [row.rstrip() for row in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.rows).rstrip()

    @property
    def everything(self) -> str:
        """The window and all that is above it."""
        above = ["".join(row[x].data for x in sorted(row)).rstrip() for row in self.screen.above]
        return "\n".join([*above, self.text])

    def wait_for(self, *wanted: str, absent: str | None = None) -> str:
        """The window's text once all of `wanted` and nothing of `absent` is in it."""
        return self.wait_until(
            lambda text: all(one in text for one in wanted) and (absent is None or absent not in text)
        )

    def wait_until(self, seen: Callable[[str], bool]) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not seen(self.text):
            if time.monotonic() > deadline:
                pytest.fail(f"it was not to be seen in {PATIENCE_SECONDS:g} s:\n{self.everything}")
            self.pump(0.05)
        return self.text

    def pump(self, seconds: float) -> bool:
        """Take in what has come, waiting for it at most so long; False once the command has ended."""
        with suppress(pexpect.TIMEOUT):
            try:
                while data := self.child.read_nonblocking(65536, timeout=seconds):
                    self.bytes += data
                    self._stream.feed(data)
                    seconds = 0
            except pexpect.EOF:
                return False
        return True

    # -- doing --------------------------------------------------------------------------------------------------------

    def type(self, keys: str) -> None:
        self.child.send(keys)

    def say(self, line: str) -> None:
        """Type a line at the prompt, see it there, send it."""
        self.wait_for("You: ")
        self.type(line)
        self.wait_until(lambda _: f"You: {line}"[: self.screen.columns - 1] in self.text)
        self.type("\r")

    def resize(self, columns: int, rows: int) -> None:
        self.screen.become(columns, rows, self._resizing)
        self.child.setwinsize(rows, columns)

    def kill(self) -> None:
        os.kill(self.child.pid, signal.SIGKILL)
        self.leave()

    def leave(self) -> int:
        """The exit code, once the command has ended by itself."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.pump(0.05):
            if time.monotonic() > deadline:
                pytest.fail(f"it did not end in {PATIENCE_SECONDS:g} s:\n{self.everything}")
        self.child.wait()
        return self.child.exitstatus if self.child.exitstatus is not None else -self.child.signalstatus

    @property
    def echoes(self) -> bool:
        """Whether the terminal is as a shell wants it."""
        return bool(termios.tcgetattr(self.child.child_fd)[3] & termios.ECHO)


@contextmanager
def terminal(
    home: TempHome, *arguments: str, size: tuple[int, int] = (80, 24), python: str | None = None, **variables: str
) -> Generator[Terminal]:
    """`massgen` (or a Python program) in a window of `size` columns and rows; gone at the end of the block."""
    command = [sys.executable, *(["-c", python] if python else ["-m", COMMAND_MODULE]), *arguments]
    window = Terminal(command, home, *size, **variables)
    try:
        yield window
    finally:
        window.child.close(force=True)


def only_child(directory: Path) -> Path:
    """The one entry of a directory whose name does not begin with a dot."""
    (found,) = [path for path in directory.iterdir() if not path.name.startswith(".")]
    return found


def newest(directory: Path) -> Path:
    """The entry of a directory whose name, which begins with a time, is the last one."""
    return max(path for path in directory.iterdir() if not path.name.startswith("."))
