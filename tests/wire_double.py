"""aimock as the model providers: a real HTTP server that speaks their wires, for tests through the front door.

aimock's own journal holds requests in one normalised form. What was really sent stands in `Aimock.requests`, which a
byte-for-byte relay in front of the server writes.
"""

import json
import re
import socket
import socketserver
import subprocess
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import httpx2
import pytest

from massgen_mcp.certificates import trusted
from tests.needs import node, npm_tool


@dataclass(frozen=True)
class WireRequest:
    """A request as it went over the wire. Header names are lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Provider(Protocol):
    """A double of a provider, as the checks of a wire use it; fixtures in aimock's own format."""

    url: str

    @property
    def requests(self) -> Sequence[WireRequest]: ...

    def load(self, *fixtures: dict[str, Any]) -> None: ...


class Aimock:
    """A running server. `url` is the root that clients are given."""

    def __init__(self, upstream: tuple[str, int], relay: "_Relay") -> None:
        self._control = f"http://{upstream[0]}:{upstream[1]}/__aimock"
        self._relay = relay
        self.url = f"http://127.0.0.1:{relay.server_address[1]}"

    @property
    def requests(self) -> list[WireRequest]:
        """The calls of models since the last reset, in order."""
        return [request for request in self._relay.requests if request.method != "GET"]

    @property
    def lists(self) -> list[WireRequest]:
        """What clients asked for which models there are since the last reset, in order."""
        return [request for request in self._relay.requests if request.method == "GET"]

    def load(self, *fixtures: dict[str, Any]) -> None:
        """Add fixtures in aimock's own format; the first match wins."""
        httpx2.post(f"{self._control}/fixtures", json={"fixtures": list(fixtures)}, verify=trusted()).raise_for_status()

    def journal(self) -> list[dict[str, Any]]:
        """What aimock made of the requests, with the status that it answered."""
        return cast(
            "list[dict[str, Any]]", httpx2.get(f"{self._control}/journal", verify=trusted()).raise_for_status().json()
        )

    def reset(self) -> None:
        httpx2.post(f"{self._control}/reset", verify=trusted()).raise_for_status()
        self._relay.requests.clear()


@contextmanager
def running_aimock(fixtures: Path) -> Generator[Aimock]:
    """aimock and the relay before it, until the context is left. `fixtures` is an empty directory."""
    command = [
        node(),
        npm_tool("@copilotkit/aimock/dist/cli.js"),
        "--port",
        "0",
        "--fixtures",
        str(fixtures),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            port = _port(process)
            with _Relay(("127.0.0.1", port)) as relay:
                thread = threading.Thread(target=relay.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
                thread.start()
                yield Aimock(("127.0.0.1", port), relay)
                relay.shutdown()
                thread.join()
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def aimock_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    with running_aimock(tmp_path_factory.mktemp("fixtures")) as aimock:
        yield aimock


@pytest.fixture
def aimock(aimock_server: Aimock) -> Aimock:
    """The server without fixtures and without memories."""
    aimock_server.reset()
    return aimock_server


def _port(process: "subprocess.Popen[str]") -> int:
    assert process.stdout is not None
    seen: list[str] = []
    for line in process.stdout:
        seen.append(line)
        if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)", line):
            # Whoever does not read a pipe stops its writer one day.
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return int(found.group(1))
    pytest.fail(f"aimock did not start: {''.join(seen)}")


class _Relay(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, upstream: tuple[str, int]) -> None:
        super().__init__(("127.0.0.1", 0), _RelayHandler)
        self.upstream = upstream
        self.requests: list[WireRequest] = []


class _RelayHandler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        relay = cast("_Relay", self.server)
        with socket.create_connection(relay.upstream) as upstream:
            back = threading.Thread(target=_pump, args=(upstream, self.request), daemon=True)
            back.start()
            buffer = b""
            while chunk := _receive(self.request):
                buffer = _take_requests(buffer + chunk, relay.requests)
                upstream.sendall(chunk)
            _shut(upstream)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := _receive(source):
            target.sendall(chunk)
    _shut(target)


def _receive(source: socket.socket) -> bytes:
    try:
        return source.recv(65536)
    except OSError:
        return b""


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


def _take_requests(buffer: bytes, found: list[WireRequest]) -> bytes:
    """Move whole requests out of `buffer`; the SDKs send their length with each."""
    while b"\r\n\r\n" in buffer:
        head, _, rest = buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            break
        method, path, _ = first.split(" ")
        found.append(WireRequest(method, path, headers, json.loads(rest[:length] or b"{}")))
        buffer = rest[length:]
    return buffer
