"""Our programs as processes of their own that cost little to start: most are copies (see `command_server`)."""

import atexit
import locale
import os
import secrets
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from coverage.config import CoverageConfig

from tests.launch import launch

if TYPE_CHECKING:
    from tests.harness import TempHome

ROOT = Path(__file__).parent.parent
STANDING_IN = "-IS"
"""The options by which an interpreter is told that only stands in for a copy."""
LONGEST_INTERPRETER = 240
"""Characters that the first line of a script has room for."""
ROOM = "x" * 100_000
"""For the arguments, and once more for the variables, that a copy shows."""
COUNTED = "COVERAGE_PROCESS_CONFIG"
"""The variable by which coverage counts a process."""


def _count_in_children() -> None:
    """Have processes that start from here on write down only what they ran. Counted like this one, each would look up
    every file of the package at its end, to name those that nobody imported; this one does it for all.
    """
    if COUNTED in os.environ:
        config = CoverageConfig.deserialize(os.environ[COUNTED])
        config.source, config.run_include = None, [str(ROOT / "massgen_mcp" / "*")]
        os.environ[COUNTED] = config.serialize()


_count_in_children()
_OURS = dict(os.environ)
"""What this process was started with: a test may have others in their place, not be counted, and end what has them."""


def run_command(
    home: "TempHome", module: str, *arguments: str, seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a command's module in the home's working directory; fails the test if it does not end in time."""
    command = [home.python, "-m", module, *arguments]
    ended = None if home.starts_anew else _run_copy(command, home, seconds)
    return ended or subprocess.run(
        command,
        cwd=home.work,
        env=home.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


def _run_copy(command: list[str], home: "TempHome", seconds: float) -> subprocess.CompletedProcess[str] | None:
    """Run the command without an interpreter that stands in for the copy; None if there can be no copy."""
    address = address_of(command[0])
    if address is None:
        return None
    nothing = os.open(os.devnull, os.O_RDONLY)
    pipes = [os.pipe(), os.pipe()]
    ours = {0: nothing, 1: pipes[0][1], 2: pipes[1][1]}

    def close_ours(_pid: int = 0) -> None:
        while ours:
            os.close(ours.popitem()[1])

    with ThreadPoolExecutor(2) as readers:
        texts = [readers.submit(_read_all, reader) for reader, _ in pipes]
        try:
            code = launch(address, command[1:], str(home.work), home.environ, {**ours}, close_ours, seconds)
        except TimeoutError as error:
            raise subprocess.TimeoutExpired(command, seconds) from error
        finally:
            close_ours()
    if code is None:
        return None
    output, errors = (text.result() for text in texts)
    return subprocess.CompletedProcess(command, code, output, errors)


def address_of(interpreter: str) -> str | None:
    """Where the command server of an interpreter that `python` made listens; None for another interpreter."""
    return _ADDRESSES.get(interpreter)


def _read_all(descriptor: int) -> str:
    with open(descriptor, encoding=locale.getpreferredencoding(False)) as file:
        return file.read()


_ADDRESSES: dict[str, str] = {}


@cache
def python() -> str:
    """A command like `sys.executable` for which `[-P] -m MODULE` costs a fork and no imports. Whatever else it is given
    starts in the usual way, and so does what has variables for the start of an interpreter, such as `PYTHONPATH`.
    """
    standing_in = os.path.realpath(sys.executable)  # not in this clone, whose path may have a space
    if " " in standing_in or len(standing_in) > LONGEST_INTERPRETER:
        return sys.executable
    directory = Path(mkdtemp(prefix="massgen-tests-"))
    address, command = f"massgen-tests-{secrets.token_hex(8)}", directory / "python"
    start = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!a}); from launch import main"
    command.write_text(f"#!{standing_in} {STANDING_IN}\n{start}\nmain({address!a}, {sys.executable!a})\n")
    command.chmod(0o700)
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.command_server", address, str(command), ROOM],
        cwd=ROOT,
        env={**_OURS, "ROOM": ROOM},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout
    assert server.stdout.readline() == "listening\n", "the command server did not start"

    _ADDRESSES[str(command)] = address

    def leave() -> None:
        server.communicate()
        command.unlink()
        directory.rmdir()

    atexit.register(leave)
    return str(command)


@contextmanager
def starting_by(interpreter: str) -> Generator[None]:
    """What the package starts by its own interpreter, as a runner for a service in this process, is started by this."""
    own, sys.executable = sys.executable, interpreter
    try:
        yield
    finally:
        sys.executable = own
