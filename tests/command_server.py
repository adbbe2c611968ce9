"""Runs our programs each in a process of its own that has imported them already: a fork costs a twentieth of a start.

`python -m tests.command_server ADDRESS PYTHON PADDING` listens at ADDRESS, an abstract UNIX socket, until its standard
input ends. A connection is one program: a dictionary, as Python writes it, and its descriptors come in (`launch.launch`
sends them), the id of its process and its exit code go back, one a line; 0 in place of the id says that it has to be
started in the usual way. A copy whose connection ends is killed. PYTHON is what a copy takes for its interpreter, so
what it starts comes here, too. To everybody who looks into `/proc` a copy shows the arguments and variables that it was
started with, for which PADDING and the variables of this process make room.

What a program imports by itself is measured elsewhere, on processes of its own.
"""

import ast
import ctypes
import fcntl
import gc
import inspect
import os
import re
import runpy
import selectors
import signal
import socket
import sys
import termios
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn, cast

from coverage import Coverage
from pydantic import BaseModel

from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.server.results import ToolReply
from massgen_mcp.server.schemas import reply_schema
from tests.commands import COUNTED
from tests.launch import MAX_DESCRIPTORS
from tests.planted import PLANTED

PRELOADED = (
    "anyio._backends._asyncio",
    "anyio._core._signals",
    "encodings.utf_16_le",
    "genai_prices.data",
    "httpcore2",
    "importlib.resources.readers",
    "massgen_mcp.backends.agent_types.local_servers",
    "massgen_mcp.backends.agent_types.provider_models",
    "massgen_mcp.backends.agent_types.scripted",
    "massgen_mcp.backends.chatcompletion",
    "massgen_mcp.backends.scripted",
    "massgen_mcp.cli.boundary",
    "massgen_mcp.cli.massgen_mcp.install",
    "massgen_mcp.cli.massgen_mcp.main",
    "massgen_mcp.cli.commands.ask",
    "massgen_mcp.cli.commands.decide",
    "massgen_mcp.cli.commands.look",
    "massgen_mcp.cli.commands.operate",
    "massgen_mcp.cli.live.terminal",
    "massgen_mcp.cli.manual",
    "massgen_mcp.cli.massgen.chat",
    "massgen_mcp.cli.massgen.command",
    "massgen_mcp.cli.massgen.main",
    "massgen_mcp.cli.massgen.one_run",
    "massgen_mcp.cli.massgen.reporting",
    "massgen_mcp.cli.massgen_mcp.early_start",
    "massgen_mcp.cli.massgen_mcp.http_options",
    "massgen_mcp.cli.massgen_mcp.verbs.controls",
    "massgen_mcp.cli.massgen_mcp.verbs.doctor",
    "massgen_mcp.cli.massgen_mcp.verbs.result",
    "massgen_mcp.cli.massgen_mcp.verbs.serve",
    "massgen_mcp.cli.massgen_mcp.verbs.status",
    "massgen_mcp.cli.massgen_mcp.verbs.watch",
    "massgen_mcp.config.loader",
    "massgen_mcp.runs.host.capacity",
    "massgen_mcp.runs.host.execute",
    "massgen_mcp.runs.service",
    "massgen_mcp.runs.store.retention",
    "massgen_mcp.runs.view.reporting",
    "massgen_mcp.server.http.serving",
    "massgen_mcp.server.results",
    "massgen_mcp.server.stdio",
    "massgen_mcp.views.markdown",
    "openai.resources.chat",
    "rich.console",
    "rich.logging",
    "wcwidth",
)
FOR_INTERPRETERS = re.compile(r"PYTHON|LC_|LANG")
"""Names of variables that change an interpreter when it starts."""


@dataclass
class Copy:
    """A program that runs, and the connection of whoever waits for it."""

    pid: int
    pidfd: int
    waiting: socket.socket


class CommandServer:
    def __init__(self, address: str, python: str) -> None:
        self._python = python
        self._copies: list[Copy] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"\0{address}")
        self._listener.listen(64)
        self._selector = selectors.DefaultSelector()
        self._selector.register(0, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fd == 0:
                    return
                if key.fileobj is self._listener:
                    self._take(self._listener.accept()[0])
                    continue
                copy: Copy = key.data
                if key.fd == copy.pidfd:
                    self._tell_the_end(copy)
                    break  # its other descriptor may be among those that are ready
                self._selector.unregister(copy.waiting)
                signal.pidfd_send_signal(copy.pidfd, signal.SIGKILL)

    def _take(self, connection: socket.socket) -> None:
        data, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, MAX_DESCRIPTORS)
        while data and not data.endswith(b"\n"):
            more = connection.recv(1 << 16)
            data = data + more if more else b""
        if not data:  # whoever asks has gone before the end of its words
            for descriptor in descriptors:
                os.close(descriptor)
            connection.close()
            return
        program = ast.literal_eval(data.decode())
        pid = 0
        if fits(program):
            _count_as(program["environ"])
            pid = os.fork()
            if pid == 0:
                self._leave_it_to_the_parent(connection)
                become(program, descriptors, self._python)
            copy = Copy(pid, os.pidfd_open(pid), connection)
            self._copies.append(copy)
            self._selector.register(copy.pidfd, selectors.EVENT_READ, copy)
            self._selector.register(copy.waiting, selectors.EVENT_READ, copy)
        for descriptor in descriptors:
            os.close(descriptor)
        with suppress(OSError):  # whoever asked may be gone just now: then its connection ends, and the copy with it
            connection.sendall(f"{pid}\n".encode())
        if not pid:
            connection.close()

    def _tell_the_end(self, copy: Copy) -> None:
        _, status = os.waitpid(copy.pid, 0)
        self._copies.remove(copy)
        self._selector.unregister(copy.pidfd)
        os.close(copy.pidfd)
        if copy.waiting in self._selector.get_map():
            self._selector.unregister(copy.waiting)
            with suppress(OSError):  # whoever waited may be gone just now
                copy.waiting.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        copy.waiting.close()

    def _leave_it_to_the_parent(self, connection: socket.socket) -> None:
        self._selector.close()
        self._listener.close()
        connection.close()
        for copy in self._copies:
            os.close(copy.pidfd)
            copy.waiting.close()


def fits(program: dict[str, Any]) -> bool:
    """Whether a copy of this process does what `python` would do with these arguments and variables."""
    arguments: list[str] = program["arguments"]
    plain = arguments[1:] if arguments[:1] == ["-P"] else arguments
    own = {name: value for name, value in os.environ.items() if FOR_INTERPRETERS.match(name)}
    its = {name: value for name, value in program["environ"].items() if FOR_INTERPRETERS.match(name)}
    return plain[:1] == ["-m"] and own == its


def _count_as(environ: dict[str, str]) -> None:
    """A copy is counted for the coverage if the program itself would be."""
    os.environ.pop(COUNTED, None)
    if COUNTED in environ:
        os.environ[COUNTED] = environ[COUNTED]


def become(program: dict[str, Any], descriptors: list[int], python: str) -> NoReturn:
    """Be that program."""
    code = 1
    try:
        _take_over(descriptors, program["numbers"])
        if program["leads_session"]:
            os.setsid()
            _take_terminal()
        flags, (module, *arguments) = _split(program["arguments"])
        os.chdir(program["cwd"])
        os.environ.clear()
        os.environ.update(program["environ"])
        time.tzset()
        _show([sys.executable, *program["arguments"]], program["environ"])
        sys.executable = python
        sys.path[:1] = [] if "-P" in flags else [program["cwd"]]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv[1:] = arguments
        if (known := sys.modules.get(module)) is not None:
            sys.argv[0] = str(known.__file__)
            known.main()
        else:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does it at the end of a process
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _take_terminal() -> None:
    """Let the terminal on our descriptors control this session, if there is one, and write to it line by line."""
    if os.isatty(0):
        with suppress(OSError):  # whoever stands in for us has it already
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    cast("TextIOWrapper", sys.stdout).reconfigure(line_buffering=os.isatty(1))


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    place = arguments.index("-m")
    return arguments[:place], arguments[place + 1 :]


def _take_over(descriptors: list[int], numbers: list[int]) -> None:
    """Give the descriptors the numbers that they had where they come from."""
    beyond = 1 + max(numbers)
    aside = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, beyond) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for descriptor, number in zip(aside, numbers, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)


def _show(arguments: list[str], environ: dict[str, str]) -> None:
    """Write the arguments and variables where the kernel reads them for `/proc`; what is too long is cut off."""
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    from_, to, environ_from, environ_to = map(int, stat[45:49])
    variables = [f"{name}={value}" for name, value in environ.items()]
    for start, end, texts in ((from_, to, arguments), (environ_from, environ_to, variables)):
        told = "".join(f"{text}\0" for text in texts).encode(errors="surrogateescape")[: end - start - 1]
        ctypes.memmove(start, told.ljust(end - start, b"\0"), end - start)


def _work_once() -> None:
    """Do what most copies would do: compute the schemas of tools' replies and the keys that all tests plant, and build
    pydantic's models, which otherwise happens when they are first used.

    No more of a server is made: it would set up the logging of whatever a copy becomes.
    """
    redactor_for({**os.environ, **PLANTED})
    for reply in ToolReply.__subclasses__():
        reply_schema(reply)
    for model in _below(BaseModel):
        if model.__module__.startswith("massgen_mcp."):
            model.model_rebuild()


def _below(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


def main() -> None:
    for name in PRELOADED:
        import_module(name)
    _work_once()
    if counting := Coverage.current():  # what the imports ran through is written once, and not by every copy at its end
        counting.stop()
        counting.save()
        inspect.stack()  # looks up where all modules come from, and so would every copy whose counting begins
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = CommandServer(sys.argv[1], sys.argv[2])
    sys.argv[1:] = []
    print("listening", flush=True)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)
    gc.freeze()
    server.serve()


if __name__ == "__main__":
    main()
