"""A model that takes no time, or so long as it is told: three wires over server-sent events, on 127.0.0.1.

It is a process of its own. Shown an answer, it votes for the first name that it may vote for; else it submits a new
answer, else writes text; every text differs from all earlier ones. `GET /record` tells the requests since the last
`POST /reset`. Must not know what is measured.
"""

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any, cast

from benchmarks.dialects import DIALECTS, NAME, Dialect, Played
from benchmarks.model_process import ModelProcess

__all__ = ["NAME", "LocalModel"]


class LocalModel(ModelProcess):
    """The model's process."""

    def __init__(self, delay_seconds: float = 0.0, host: str = "127.0.0.1") -> None:
        super().__init__("benchmarks.local_model", str(delay_seconds), host, host=host)

    @property
    def base_url(self) -> str:
        return f"{self.root}/v1"

    def reset(self) -> None:
        """Forget all requests so far."""
        self._control("POST", "/reset")

    def arrivals(self) -> list[float]:
        """When each model request since the last reset arrived: seconds since the epoch."""
        return [float(request["time"]) for request in self._control("GET", "/record")["requests"]]

    def bodies(self) -> list[str]:
        """A digest of each model request since the last reset: equal for equal requests."""
        return [str(request["body"]) for request in self._control("GET", "/record")["requests"]]

    def _control(self, method: str, path: str) -> dict[str, Any]:
        connection = HTTPConnection(self.host, self.port, timeout=10)
        try:
            connection.request(method, path)
            document: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return document


@dataclass(slots=True)
class _Server:
    """`requests` is the record: when each request arrived, its digest, and what was played."""

    delay_seconds: float = 0.0

    requests: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    played: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One kept-alive connection, request after request, until the client leaves."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                arrived = time.time()
                method, path, length = _read_head(head)
                reply = self._reply(method, path, await reader.readexactly(length), arrived)
                if method == "POST" and self.delay_seconds:
                    await asyncio.sleep(self.delay_seconds)
                writer.write(reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _reply(self, method: str, path: str, body: bytes, arrived: float) -> bytes:
        for ending, dialect in DIALECTS.items():
            if method == "POST" and path.endswith(ending):
                played = self._play(dialect, body)
                digest = hashlib.sha256(body).hexdigest()
                self.requests.append({"time": arrived, "body": digest, "played": played.tool or "text"})
                return dialect.stream(played)
        match method, path:
            case "GET", "/record":
                return _whole("200 OK", {"requests": self.requests})
            case "POST", "/reset":
                self.requests.clear()
                return _whole("200 OK", {})
            case _:
                return _whole("404 Not Found", {"error": {"message": f"no route {method} {path}"}})

    def _play(self, dialect: Dialect, body: bytes) -> Played:
        """What is replied. Nobody votes who was shown no answer."""
        self.played += 1
        tools = dialect.tools(json.loads(body))
        letters = "".join(chr(ord("a") + int(digit)) for digit in str(self.played))  # other numbers would be a dissent
        text = f"Answer number {letters}: forty-two, because six times seven is forty-two."
        if "vote" in tools and ("new_answer" not in tools or b"Answer number" in body):
            known = tools["vote"]["properties"]
            choice, *others = cast("list[str]", known["agent_id"]["enum"])
            vote = {"agent_id": choice, "reason": "It is right and complete."}
            if "same_as" in known:  # else the votes might tie, and a run-off would be measured, too
                vote |= {"same_as": others}
            return Played(self.played, json.dumps(vote), "vote")
        if "new_answer" in tools:
            return Played(self.played, json.dumps({"content": text}), "new_answer")
        return Played(self.played, text)


def _read_head(head: bytes) -> tuple[str, str, int]:
    """Method, path and length of the body in bytes."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return method, path, int(headers.get("content-length", "0"))


def _whole(status: str, document: Mapping[str, object]) -> bytes:
    body = json.dumps(document).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _main(delay_seconds: float, host: str) -> None:
    server = await asyncio.start_server(_Server(delay_seconds).serve, host, 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(float(sys.argv[1]), sys.argv[2]))
