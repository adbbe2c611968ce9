"""An agent of the AG2 framework as a model: one step of an agent is one turn of the AG2 agent, up to its first reply.

AG2 1.x is asynchronous to the bottom: a turn is a task on this event loop and needs no thread, so one that is cancelled
or out of time ends at once, with its connection. Only AG2's import, a second or two, happens on a thread. Its cache and
telemetry are middleware that nobody adds here; its retries are the SDK's and off.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import TYPE_CHECKING

import anyio

from massgen_mcp.backends.base import ModelRequest, Part, StopPart, ToolCall, ToolCallPart, UsagePart
from massgen_mcp.backends.chatcompletion import OPENAI, stop_reason
from massgen_mcp.backends.failures import translated
from massgen_mcp.backends.http import Endpoint, LazyClient
from massgen_mcp.backends.usage import count, usage_part, written_tokens
from massgen_mcp.backends.wiretext import CallIds, clean

if TYPE_CHECKING:
    from ag2.events import ModelResponse, Usage

    from massgen_mcp.backends.frameworks.ag2_turn import Turns


class Ag2Backend:
    def __init__(self, endpoint: Endpoint, name: str, system_message: str | None) -> None:
        self._endpoint = endpoint
        self._base_url = endpoint.base_url or OPENAI
        self._turns = LazyClient(
            lambda: _load(endpoint, name, system_message), "massgen_mcp.backends.frameworks.ag2_turn"
        )

    @property
    def model(self) -> str:
        return self._endpoint.model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        heard: asyncio.Queue[Part | None] = asyncio.Queue()
        with translated(self._endpoint, self._base_url):
            turns = await self._turns.get()
            turn = asyncio.create_task(turns.take(request, heard.put_nowait))
            turn.add_done_callback(lambda _: heard.put_nowait(None))
            try:
                while (part := await heard.get()) is not None:
                    yield part
                response = turn.result()
            finally:
                await _end(turn)
            for part in self._rest(response, CallIds(request.messages)):
                yield part

    async def aclose(self) -> None:
        await self._turns.aclose()

    def _rest(self, response: "ModelResponse", ids: CallIds) -> Iterator[Part]:
        """What follows the text, which was passed on as it came."""
        made = response.tool_calls.calls
        stop = stop_reason(response.finish_reason, self._endpoint, self._base_url, called=bool(made))
        for call in made:
            yield ToolCallPart(ToolCall(ids.take(call.id), clean(call.name), clean(call.arguments)))
        if response.usage:
            yield _usage(response.usage, response.model or "")
        yield StopPart(stop)


async def _end(turn: "asyncio.Task[ModelResponse]") -> None:
    """Nothing of a turn outlives its call, nor does its error."""
    turn.cancel()
    with anyio.move_on_after(5, shield=True):
        await asyncio.wait({turn})
    if turn.done() and not turn.cancelled():
        turn.exception()


def _usage(usage: "Usage", model: str) -> UsagePart:
    read, reasoning = count(usage.prompt_tokens), count(usage.thinking_tokens)
    return usage_part(
        model,
        read=read,
        written=written_tokens(read, count(usage.completion_tokens), count(usage.total_tokens), reasoning),
        cached=count(usage.cache_read_input_tokens),
        reasoning=reasoning,
    )


def _load(endpoint: Endpoint, name: str, system_message: str | None) -> "Turns":
    """AG2's side of the agent. What imports AG2 is imported only when it is needed."""
    from massgen_mcp.backends.frameworks.ag2_turn import Turns

    return Turns(endpoint, name, system_message)
