"""Runs beside an agent CLI, in its sandbox, as its MCP server: carries bytes between it and the team's Unix socket.

`relay.py team SOCKET WORD`: standard input and output are the connection, after the line WORD. Run by its path, with
the standard library only.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress


def main() -> None:
    _, place, word = sys.argv[1:]
    connection = _connect(place)
    connection.sendall(f"{word}\n".encode())
    threading.Thread(target=_forward, args=(lambda: os.read(0, 1 << 16), connection.sendall), daemon=True).start()
    _forward(lambda: connection.recv(1 << 16), _print)


def _connect(place: str) -> socket.socket:
    """A path of a socket has an end; that of its directory has none."""
    directory, name = os.path.split(place)
    os.chdir(directory)
    made = socket.socket(socket.AF_UNIX)
    made.connect(name)
    return made


def _print(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _forward(read: Callable[[], bytes], write: Callable[[bytes], object]) -> None:
    with suppress(OSError):
        while data := read():
            write(data)


if __name__ == "__main__":
    main()
