"""JSON-RPC with a program: how the Agent Client Protocol is spoken. Knows no methods of it."""

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any

from massgen_mcp.backends.base import JsonObject
from massgen_mcp.backends.frameworks.agent_cli import UNKNOWN_METHOD, fields
from massgen_mcp.backends.frameworks.agent_process import JsonLines, Running, WireBroken


class AgentRefused(WireBroken):
    """The other side answered a request with an error."""

    def __init__(self, code: object, message: str) -> None:
        super().__init__(message)
        self.code = code


class Wire(JsonLines):
    """`answer` says what becomes of a request of the other side, None for one that is not known; `heard` is told of
    its notifications. Neither waits.
    """

    def __init__(
        self,
        running: Running,
        answer: Callable[[str, Mapping[str, Any]], JsonObject | None],
        heard: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        super().__init__(running)
        self._answer, self._heard = answer, heard
        self._numbers = itertools.count(1)
        self._asked: dict[object, asyncio.Future[object]] = {}

    async def ask(self, method: str, params: JsonObject) -> Mapping[str, Any]:
        """What is answered; empty where that is no object. Raises `WireBroken`, `AgentRefused`."""
        number = next(self._numbers)
        answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._asked[number] = answered
        try:
            await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            found = await answered
        finally:
            self._asked.pop(number, None)
        return fields(found)

    async def tell(self, method: str, params: JsonObject) -> None:
        """Raises `WireBroken`."""
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def hear(self, message: Mapping[str, Any]) -> None:
        params = fields(message.get("params"))
        match message:
            case {"id": number, "method": str(method)}:
                found = self._answer(method, params)
                error: JsonObject = {"code": UNKNOWN_METHOD, "message": "not supported"}
                told = {"error": error} if found is None else {"result": found}
                await self.send({"jsonrpc": "2.0", "id": number, **told})
            case {"method": str(method)}:
                self._heard(method, params)
            case {"id": int() | str() as number} if (asked := self._asked.pop(number, None)) and not asked.done():
                if "error" in message:
                    asked.set_exception(_refused(message["error"]))
                else:
                    asked.set_result(message.get("result"))
            case _:
                pass

    def end(self, why: str) -> None:
        """Whoever waits for an answer hears that there will be none."""
        super().end(why)
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(WireBroken(why))


def _refused(error: object) -> AgentRefused:
    told = fields(error)
    detail = f" ({json.dumps(told['data'])})" if told.get("data") else ""
    return AgentRefused(told.get("code"), f"{told.get('message')}{detail}")
