"""JSON-RPC with a program, a line of JSON for each message: how the Agent Client Protocol is spoken, by a member of a
team to its CLI and by the team to an editor. Knows no methods of it.
"""

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream

UNKNOWN_METHOD = -32601
MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_PARTS = 500_000
"""Of one message: values and members, counted without reading it; small ones take a hundred times their bytes."""
MAX_STRAY_LINES = 100
"""Lines that are no messages, as of a program that warns on its output."""


def fields(value: object) -> Mapping[str, Any]:
    """The members of an object; none of what is no object."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def has_too_many_parts(line: bytes) -> bool:
    """Return whether a message would take very much more memory than it has bytes. Quick: it is not read."""
    return sum(map(line.count, (b",", b"[", b"{"))) > MAX_PARTS


def read_message(line: bytes) -> object:
    """Read one message. Raises `ValueError`, also for one of too many parts, and `RecursionError`."""
    if has_too_many_parts(line):
        raise ValueError(f"a message has more than {MAX_PARTS} parts")
    return json.loads(line)


class ConnectionBroken(Exception):
    """The conversation cannot go on; the message says why."""


class JsonLines:
    """`hear` is told of each message. `read` has to be running."""

    def __init__(self, stdin: ByteSendStream, stdout: ByteReceiveStream) -> None:
        self._stdin, self._stdout = stdin, stdout
        self._sending = asyncio.Lock()
        self.broken: str | None = None

    async def hear(self, message: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def end(self, why: str) -> None:
        """The other side says nothing more."""
        self.broken = self.broken or why

    async def send(self, message: Mapping[str, Any]) -> None:
        """Raises `ConnectionBroken`."""
        line = f"{json.dumps(message)}\n".encode()
        async with self._sending:
            if self.broken is not None:
                raise ConnectionBroken(self.broken)
            whole = False
            try:
                await self._stdin.send(line)
                whole = True
            except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise ConnectionBroken("it no longer reads messages") from error
            finally:
                if not whole:  # half a line may be there
                    self.broken = "it no longer reads messages"

    async def read(self) -> None:
        """Until the other side says nothing more, or nothing of use. Raises `ConnectionBroken` for the latter."""
        pending, stray = bytearray(), 0
        while True:
            try:
                chunk = await self._stdout.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                pending += line
                if pending.lstrip().startswith(b"{"):
                    await self._hear_line(bytes(pending))
                elif pending.strip() and (stray := stray + 1) > MAX_STRAY_LINES:
                    raise ConnectionBroken("it sends lines that aren't messages")
                pending.clear()
            pending += rest
            if len(pending) > MAX_LINE_BYTES:
                raise ConnectionBroken(f"a message is larger than {MAX_LINE_BYTES} bytes")

    async def _hear_line(self, line: bytes) -> None:
        try:
            message = read_message(line)
        except (ValueError, RecursionError):
            await self.misheard()
        else:
            await self.hear(fields(message))

    async def misheard(self) -> None:
        """A line is no JSON."""
        raise ConnectionBroken("it sends lines that aren't JSON")


class AgentRefused(ConnectionBroken):
    """The other side answered a request with an error."""

    def __init__(self, code: object, message: str) -> None:
        super().__init__(message)
        self.code = code


class JsonRpcConnection(JsonLines):
    """`answer` says what becomes of a request of the other side, None for one that is not known; `heard` is told of
    its notifications. Neither waits.
    """

    def __init__(
        self,
        stdin: ByteSendStream,
        stdout: ByteReceiveStream,
        answer: Callable[[str, Mapping[str, Any]], dict[str, Any] | None],
        heard: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        super().__init__(stdin, stdout)
        self._answer, self._heard = answer, heard
        self._numbers = itertools.count(1)
        self._asked: dict[object, asyncio.Future[object]] = {}

    async def ask(self, method: str, params: dict[str, Any]) -> Mapping[str, Any]:
        """What is answered; empty where that is no object. Raises `ConnectionBroken`, `AgentRefused`."""
        number = next(self._numbers)
        answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._asked[number] = answered
        try:
            await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            found = await answered
        finally:
            self._asked.pop(number, None)
        return fields(found)

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        """Raises `ConnectionBroken`."""
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def hear(self, message: Mapping[str, Any]) -> None:
        params = fields(message.get("params"))
        match message:
            case {"id": number, "method": str(method)}:
                await self.asked_for(number, method, params)
            case {"method": str(method)}:
                self._heard(method, params)
            case {"id": int() | str() as number} if (asked := self._asked.pop(number, None)) and not asked.done():
                if "error" in message:
                    asked.set_exception(_refusal_in(message["error"]))
                else:
                    asked.set_result(message.get("result"))
            case _:
                pass

    async def asked_for(self, number: object, method: str, params: Mapping[str, Any]) -> None:
        """A request of the other side."""
        found = self._answer(method, params)
        error: dict[str, Any] = {"code": UNKNOWN_METHOD, "message": "not supported"}
        await self.reply(number, {"error": error} if found is None else {"result": found})

    async def reply(self, number: object, outcome: Mapping[str, Any]) -> None:
        await self.send({"jsonrpc": "2.0", "id": number, **outcome})

    def end(self, why: str) -> None:
        """Whoever waits for an answer hears that there will be none."""
        super().end(why)
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(ConnectionBroken(why))


def _refusal_in(error: object) -> AgentRefused:
    details = fields(error)
    detail = f" ({json.dumps(details['data'])})" if details.get("data") else ""
    return AgentRefused(details.get("code"), f"{details.get('message')}{detail}")
