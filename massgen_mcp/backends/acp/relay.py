"""Runs beside an agent CLI, in its sandbox: carries bytes between it and the Unix sockets of whoever started it.

`relay.py team SOCKET WORD` is the CLI's MCP server: its standard input and output are the connection, after the line
WORD. `relay.py gateway SOCKET COMMAND...` runs COMMAND, whose proxy for HTTP is the socket. Run by its path, with the
standard library only.
"""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")


def main() -> None:
    what, place, *words = sys.argv[1:]
    if what == "team":
        _serve(place, words[0])
    else:
        os._exit(_run(place, words))


def _serve(place: str, word: str) -> None:
    connection = _connected(place)
    connection.sendall(f"{word}\n".encode())
    threading.Thread(target=_carry, args=(lambda: os.read(0, 1 << 16), connection.sendall), daemon=True).start()
    _carry(lambda: connection.recv(1 << 16), _print)


def _run(place: str, command: list[str]) -> int:
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    environ = {**os.environ, **dict.fromkeys(PROXIES, address), "NODE_USE_ENV_PROXY": "1"}
    threading.Thread(target=_accept, args=(listener, place), daemon=True).start()
    code = subprocess.Popen(command, env=environ).wait()  # noqa: S603 - the command of our own argument list
    return code if code >= 0 else 128 - code


def _accept(listener: socket.socket, place: str) -> None:
    while True:
        near, _ = listener.accept()
        far = _connected(place)
        for one, other in ((near, far), (far, near)):
            threading.Thread(target=_forward, args=(one, other), daemon=True).start()


def _forward(one: socket.socket, other: socket.socket) -> None:
    _carry(lambda: one.recv(1 << 16), other.sendall)
    with suppress(OSError):
        other.shutdown(socket.SHUT_WR)


def _connected(place: str) -> socket.socket:
    """A path of a socket has an end; that of its directory has none."""
    directory, name = os.path.split(place)
    there = os.open(directory, os.O_RDONLY)
    made = socket.socket(socket.AF_UNIX)
    before = os.open(".", os.O_RDONLY)
    with _MOVING:
        os.fchdir(there)
        made.connect(name)
        os.fchdir(before)
    os.close(there)
    os.close(before)
    return made


_MOVING = threading.Lock()


def _print(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _carry(read: Callable[[], bytes], write: Callable[[bytes], object]) -> None:
    with suppress(OSError):
        while data := read():
            write(data)


if __name__ == "__main__":
    main()
