"""Clients that look right and are wrong: what the fault matrix must catch.

Each speaks Chat Completions, one decision of ours taken differently.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx2

from massgen_mcp.backends.base import ModelRequest, Part, StopPart, TextPart, ToolCall, ToolCallPart
from massgen_mcp.backends.chatcompletion import request_body
from massgen_mcp.backends.http import Endpoint
from massgen_mcp.certificates import trusted
from massgen_mcp.errors import BackendError
from tests.wires.rows import KEY, MODEL


class NaiveBackend:
    """Reads whatever comes until nothing comes any more; what has come is the reply."""

    model = MODEL

    def __init__(self, url: str, *, key_header: str = "authorization", follow_redirects: bool = False) -> None:
        self._url = f"{url}/chat/completions"
        self._headers = {key_header: KEY}
        self._follow_redirects = follow_redirects

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        endpoint = Endpoint(MODEL, KEY)
        async with (
            httpx2.AsyncClient(
                verify=trusted(), headers=self._headers, follow_redirects=self._follow_redirects
            ) as client,
            client.stream("POST", self._url, json=request_body(endpoint, request)) as reply,
        ):
            if not reply.is_success:
                raise BackendError("provider_error", f"answered {reply.status_code}")
            calls: dict[int, dict[str, Any]] = {}
            async for choice in self._choices(reply):
                delta = choice["delta"]
                if text := delta.get("content"):
                    yield TextPart(text)
                for fragment in delta.get("tool_calls", ()):
                    call = calls.setdefault(fragment.get("index", 0), {"name": "", "arguments": ""})
                    call["name"] += fragment["function"].get("name") or ""
                    call["arguments"] += fragment["function"].get("arguments") or ""
        for place, call in calls.items():
            yield ToolCallPart(ToolCall(f"call_{place}", call["name"], call["arguments"]))
        yield StopPart("tool_calls" if calls else "end")

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _choices(self, reply: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
        async for data in self._data(reply):
            for choice in data.get("choices", ()):
                yield choice

    async def _data(self, reply: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
        async for line in reply.aiter_lines():
            if line.startswith("data: {"):
                yield json.loads(line.removeprefix("data: "))


class HoardingBackend(NaiveBackend):
    """Reads the whole reply, as large as it may become, before it looks at it."""

    async def _data(self, reply: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
        for line in (await reply.aread()).splitlines():
            if line.startswith(b"data: {"):
                yield json.loads(line.removeprefix(b"data: "))
