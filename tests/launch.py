"""Starts one of our programs as a copy of a process that has imported it already, and stands in for it.

`main(ADDRESS)` in a script is meant to be taken for `python` by whoever starts the script with `[-P] -m MODULE ...`:
`command_server` at ADDRESS forks, the copy gets our descriptors, our directory and our variables, signals to us go to
the copy, and we end as it ends. What the server cannot be a copy of starts anew in our place. Imports next to nothing,
so that it costs next to nothing.
"""

import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from json import dumps

MAX_DESCRIPTORS = 64
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def launch(
    address: str,
    arguments: Sequence[str],
    cwd: str,
    environ: Mapping[str, str],
    descriptors: Mapping[int, int],
    on_start: Callable[[int], object],
) -> int | None:
    """The exit code, negative for a signal, of `python ARGUMENTS`; None if it has to be started in the usual way.
    `descriptors` are ours by their number in the copy, `on_start` gets its process id.
    """
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(f"\0{address}")
        leads = os.getsid(0) == os.getpid()
        asked = {"arguments": arguments, "cwd": cwd, "environ": dict(environ), "numbers": list(descriptors)}
        line = f"{dumps({**asked, 'leads_session': leads})}\n".encode()
        sent = socket.send_fds(server, [line], list(descriptors.values()))
        if rest := line[sent:]:  # whoever sends nothing may still be told that nobody listens any more
            server.sendall(rest)
        with server.makefile() as replies:
            pid = int(replies.readline())
            if not pid:
                return None
            on_start(pid)
            return int(replies.readline())


def main(address: str) -> None:
    arguments = sys.argv[1:]
    numbers = [number for number in map(int, os.listdir("/proc/self/fd")) if _is_handed_on(number)]  # noqa: PTH208 - no pathlib here

    def stand_in(pid: int) -> None:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in numbers:
            os.dup2(nothing, number)  # the copy alone has them now

        def pass_on(number: int, _: object) -> None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

        for sign in PASSED_ON:
            signal.signal(sign, pass_on)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)

    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # what comes before there is a copy waits for it
    code = launch(address, arguments, os.getcwd(), os.environ, dict(zip(numbers, numbers, strict=True)), stand_in)  # noqa: PTH109 - as above
    if code is None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - as whoever started us meant it
    if code < 0:
        with suppress(OSError):  # nobody can be deaf to a kill
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _is_handed_on(number: int) -> bool:
    try:
        return os.get_inheritable(number)
    except OSError:  # the one with which the directory was read
        return False
