"""Starts one of our programs as a copy of a process that has imported it already, and stands in for it.

`main(ADDRESS, PYTHON)` in a script is meant to be taken for `python` by whoever starts it with `[-P] -m MODULE` and its
arguments: `command_server` at ADDRESS forks, the copy gets our descriptors, our directory and our variables, signals to
us go to the copy, and we end as it ends. PYTHON starts in our place what the server cannot be a copy of. Imports next
to nothing, so that it costs next to nothing.
"""

from __future__ import annotations

# The modules `socket`, `signal`, `json` and `contextlib` would take longer to import than all the rest.
import _signal as signal  # pyright: ignore[reportMissingImports]
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET
from _socket import socket as Socket  # noqa: N812 - as above

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal  # noqa: TC004 - its types are those of `_signal`
    from collections.abc import Callable, Mapping, Sequence

MAX_DESCRIPTORS = 64
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def launch(
    address: str,
    arguments: Sequence[str],
    cwd: str,
    environ: Mapping[str, str],
    descriptors: Mapping[int, int],
    on_start: Callable[[int], object],
    seconds: float | None = None,
    *,
    leads: bool | None = None,
) -> int | None:
    """The exit code, negative for a signal, of `python ARGUMENTS`; None if it has to be started in the usual way.
    `descriptors` are ours by their number in the copy, `on_start` gets its process id. Raises `TimeoutError` after
    `seconds` without an end; the copy is killed then. `leads`: whether it leads a session, as we do if it is None.
    """
    server = Socket(AF_UNIX)
    try:
        server.settimeout(seconds)
        server.connect(f"\0{address}")
        leads = os.getsid(0) == os.getpid() if leads is None else leads
        asked = {"arguments": [*arguments], "cwd": cwd, "environ": {**environ}, "numbers": [*descriptors]}
        line = (ascii({**asked, "leads_session": leads}) + "\n").encode()
        numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors.values())
        sent = server.sendmsg([line], [(SOL_SOCKET, SCM_RIGHTS, numbers)])
        if rest := line[sent:]:  # whoever sends nothing may still be told that nobody listens any more
            server.sendall(rest)
        pid, told = _line(server, b"")
        if not pid:
            return None
        on_start(pid)
        return _line(server, told)[0]
    finally:
        server.close()


def _line(server: Socket, told: bytes) -> tuple[int, bytes]:
    """Read on from what was `told` already; return the number on the next line, and what was read beyond it."""
    while b"\n" not in told:
        more = server.recv(64)
        if not more:
            raise EOFError("the command server has gone")
        told += more
    line, _, rest = told.partition(b"\n")
    return int(line), rest


def main(address: str, python: str) -> None:
    arguments = sys.argv[1:]
    numbers = [number for number in map(int, os.listdir("/proc/self/fd")) if _is_handed_on(number)]  # noqa: PTH208 - no pathlib here

    def stand_in(pid: int) -> None:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in numbers:
            os.dup2(nothing, number)  # the copy alone has them now

        def pass_on(number: int, _: object) -> None:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return

        for sign in PASSED_ON:
            signal.signal(sign, pass_on)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)

    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # what comes before there is a copy waits for it
    code = launch(address, arguments, os.getcwd(), os.environ, dict(zip(numbers, numbers, strict=True)), stand_in)  # noqa: PTH109 - as above
    if code is None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        os.execv(python, [python, *arguments])  # noqa: S606 - as whoever started us meant it
    if code < 0:
        if -code != signal.SIGKILL:  # which has its default always
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _is_handed_on(number: int) -> bool:
    try:
        return os.get_inheritable(number)
    except OSError:  # the one with which the directory was read
        return False
