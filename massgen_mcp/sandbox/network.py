"""The network of commands in bubblewrap: a namespace of its own, with relays to the pairs of host and port that a
config lists, and no other way out.

Each pair has a listening socket on a loopback address inside, to which `/etc/hosts` leads. Connections are accepted
here, outside, and carried to the host byte by byte, so TLS is between the program and the host. Programs that look
names up by themselves find a proxy for HTTP in their variables. Commands with the same `Network` reach each other's
ports.
"""

import asyncio
import json
import os
import socket
import struct
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit, urlunsplit

import anyio

from massgen_mcp.sandbox import bubblewrap, levels, network_namespace
from massgen_mcp.sandbox.network_layout import PROXY, ListedPair, list_pairs

MAX_CONNECTIONS = 128
"""Of one network at once; the next ones are closed."""
MAX_HEAD_BYTES = 64 * 1024
CONNECT_SECONDS = 30.0
_START_SECONDS = 30.0
_SCRIPT = Path(network_namespace.__file__)
_RESET = struct.pack("ii", 1, 0)
"""Of SO_LINGER: the other side reads that the connection was refused, not that all was said."""

SocketStreams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class NetworkFailed(Exception):
    """There can be no such namespace on this machine; the message says why."""


class Network:
    """An open network namespace. `close` it after the last command in it has ended."""

    def __init__(self, namespaces: tuple[int, int], pairs: tuple[ListedPair, ...]) -> None:
        self.namespaces = namespaces
        """Descriptors, of the namespace for users and of that for the network."""
        self._listed = frozenset(map(str, pairs))
        self._servers: list[asyncio.Server] = []
        self._carrying: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, endpoints: Sequence[str] = ()) -> Self:
        """Make a namespace that reaches these pairs. Raises `NetworkFailed`."""
        pairs = list_pairs(endpoints)
        relays = {(pair.address, pair.port): pair for pair in pairs}  # `localhost` and 127.0.0.1 are one
        addresses = [*relays, *([PROXY] if pairs else [])]
        descriptors = await _make_namespace(addresses)
        network = cls((descriptors[0], descriptors[1]), pairs)
        listeners = [socket.socket(fileno=descriptor) for descriptor in descriptors[2:]]
        try:
            for listener, pair in zip_longest(listeners, relays.values()):
                await network.serve(listener, pair)
        except BaseException:
            await network.close()
            raise
        return network

    async def close(self) -> None:
        """End every connection, and forget the namespace."""
        for server in self._servers:
            server.close()
        for task in self._carrying:
            task.cancel()
        with anyio.CancelScope(shield=True):  # anyio doesn't recognize its own cancellation in what `gather` raises
            await asyncio.gather(*self._carrying, return_exceptions=True)
        _close_all(self.namespaces)

    async def serve(self, listener: socket.socket, pair: ListedPair | None) -> None:
        """Carry what is accepted to this pair; without one be the proxy."""
        carry = self._serve_proxy if pair is None else partial(_relay, pair)

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(self._carrying) >= MAX_CONNECTIONS:
                _reset(writer)
                return
            task = asyncio.ensure_future(_serve_connection(carry, (reader, writer)))
            self._carrying.add(task)
            task.add_done_callback(self._carrying.discard)

        self._servers.append(await asyncio.start_server(accept, sock=listener, limit=MAX_HEAD_BYTES))

    async def _serve_proxy(self, near: SocketStreams) -> None:
        reader, writer = near
        async with asyncio.timeout(CONNECT_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        method, address, *_ = line.decode("latin-1").split(" ", 2)
        url = urlsplit(f"//{address}" if method == "CONNECT" else address)
        host, port = url.hostname or "", url.port or 80
        if f"{host}:{port}" not in self._listed:
            said = f"{host}:{port} is not in `network:`, so nothing in the sandbox can reach it\n".encode()
            writer.write(b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\n")
            writer.write(f"Content-Type: text/plain\r\nContent-Length: {len(said)}\r\n\r\n".encode() + said)
            await writer.drain()
            return
        try:
            far = await _connect(host, port)
        except OSError:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 SocketStreams established\r\n\r\n")
        else:  # one request for each connection, as its server is used to read it
            path = urlunsplit(("", "", url.path or "/", url.query, ""))
            far[1].write(f"{method} {path} HTTP/1.1\r\nConnection: close\r\n".encode("latin-1"))
            far[1].write(_strip_connection(rest))
        await _forward_both(near, far)


async def _make_namespace(addresses: list[tuple[str, int]]) -> list[int]:
    """The descriptors of a new namespace, and those of the sockets that listen on these addresses."""
    program = bubblewrap.program()
    if program is None:
        raise NetworkFailed("bwrap isn't installed")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        argv = [levels.interpreter(), "-I", "-S", str(_SCRIPT), str(theirs.fileno())]
        ours.sendall(json.dumps([program, *addresses]).encode() + b"\n")
        with anyio.move_on_after(_START_SECONDS, shield=True):
            done = await anyio.run_process(
                argv,
                stderr=subprocess.STDOUT,
                env=levels.supervisor_environ(),
                pass_fds=(theirs.fileno(),),
                check=False,
            )
            theirs.close()
            said, descriptors, _, _ = socket.recv_fds(ours, network_namespace.MAX_FAULT, 2 + len(addresses))
            if said == b"+" and len(descriptors) == 2 + len(addresses):
                return descriptors
            _close_all(descriptors)
            raise NetworkFailed(
                f"cannot create a network namespace: {(said[1:] or done.stdout).decode(errors='replace')}"
            )
    raise NetworkFailed("creating a network namespace took too long")


async def _relay(pair: ListedPair, near: SocketStreams) -> None:
    await _forward_both(near, await _connect(pair.host, pair.port))


async def _serve_connection(carry: Callable[[SocketStreams], Awaitable[None]], near: SocketStreams) -> None:
    """Carry one connection to its end. Where that goes wrong, the program inside sees it reset."""
    _, writer = near
    try:
        await carry(near)
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ExceptionGroup):
        _reset(writer)
    finally:
        writer.close()


async def _connect(host: str, port: int) -> SocketStreams:
    async with asyncio.timeout(CONNECT_SECONDS):
        return await asyncio.open_connection(host, port, limit=MAX_HEAD_BYTES)


async def _forward_both(near: SocketStreams, far: SocketStreams) -> None:
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_forward(near[0], far[1]))
            tasks.create_task(_forward(far[0], near[1]))
    finally:
        far[1].close()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(MAX_HEAD_BYTES):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def _strip_connection(head: bytes) -> bytes:
    """The lines of a head, without what they say of the connection."""
    lines = [
        line for line in head.split(b"\r\n") if not line.lower().startswith((b"connection:", b"proxy-connection:"))
    ]
    return b"\r\n".join(lines)


def _reset(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


def _close_all(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
