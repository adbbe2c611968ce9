"""A model that takes no time, or so long as it is told: Chat Completions over server-sent events, on 127.0.0.1.

It is a process of its own. It votes for the first name that it may vote for, else submits a new answer, else writes
text; every text differs from all earlier ones. `GET /record` tells the requests since the last `POST /reset`. Must not
know what is measured.
"""

import asyncio
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parent.parent
NAME = "local"
_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


class LocalModel:
    """The model's process, from outside. A context: the process ends with it."""

    def __init__(self, delay_seconds: float = 0.0) -> None:
        command = [sys.executable, "-m", "benchmarks.local_model", str(delay_seconds)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.communicate(timeout=10)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

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
        connection = HTTPConnection("127.0.0.1", self._port, timeout=10)
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
        match method, path:
            case "POST", "/v1/chat/completions":
                played, events = self._play(json.loads(body))
                digest = hashlib.sha256(body).hexdigest()
                self.requests.append({"time": arrived, "body": digest, "played": played})
                return _stream(events)
            case "GET", "/record":
                return _whole("200 OK", {"requests": self.requests})
            case "POST", "/reset":
                self.requests.clear()
                return _whole("200 OK", {})
            case _:
                return _whole("404 Not Found", {"error": {"message": f"no route {method} {path}"}})

    def _play(self, request: Mapping[str, Any]) -> tuple[str, Iterator[Mapping[str, object]]]:
        """What is played, and the events that play it."""
        self.played += 1
        text = f"Answer number {self.played}: forty-two, because six times seven is forty-two."
        tools: dict[str, Any] = {tool["function"]["name"]: tool["function"] for tool in request.get("tools", ())}
        if "vote" in tools:
            choice: str = tools["vote"]["parameters"]["properties"]["agent_id"]["enum"][0]
            return "vote", self._call("vote", {"agent_id": choice, "reason": "It is right and complete."})
        if "new_answer" in tools:
            return "new_answer", self._call("new_answer", {"content": text})
        return "text", _events([{"content": text[:20]}, {"content": text[20:]}], "stop")

    def _call(self, name: str, arguments: Mapping[str, str]) -> Iterator[Mapping[str, object]]:
        written = json.dumps(arguments)
        opening = {"index": 0, "id": f"call_{self.played}", "type": "function"}
        deltas: list[Mapping[str, object]] = [
            {"tool_calls": [{**opening, "function": {"name": name, "arguments": ""}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": written[:10]}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": written[10:]}}]},
        ]
        return _events(deltas, "tool_calls")


def _read_head(head: bytes) -> tuple[str, str, int]:
    """Method, path and length of the body in bytes."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return method, path, int(headers.get("content-length", "0"))


def _events(deltas: list[Mapping[str, object]], finish: str) -> Iterator[Mapping[str, object]]:
    """The chunks of one reply, usage at the end."""
    frame = {"id": "chatcmpl-local", "object": "chat.completion.chunk", "created": int(time.time()), "model": NAME}
    for delta in ({"role": "assistant", "content": None}, *deltas):
        yield {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    yield {**frame, "choices": [], "usage": _USAGE}


def _stream(events: Iterator[Mapping[str, object]]) -> bytes:
    """Server-sent events, each a chunk of the transfer."""
    lines = [*(json.dumps(event) for event in events), "[DONE]"]
    chunks = [f"data: {line}\n\n".encode() for line in lines]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def _whole(status: str, document: Mapping[str, object]) -> bytes:
    body = json.dumps(document).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _main(delay_seconds: float) -> None:
    server = await asyncio.start_server(_Server(delay_seconds).serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(float(sys.argv[1])))
