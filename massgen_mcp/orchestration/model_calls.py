"""One model call of one agent, with everything about it in the journal.

Must not know what the reply means.
"""

import time

import anyio

from massgen_mcp.backends.base import ModelRequest
from massgen_mcp.backends.calling import Reply, call_model
from massgen_mcp.errors import BackendError
from massgen_mcp.events import (
    CallPurpose,
    ModelCallAborted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    Obstacle,
    TextDelta,
    ToolCallRecord,
    Usage,
)
from massgen_mcp.orchestration.floor import Floor
from massgen_mcp.orchestration.team import Limits, Member

DELTA_CHARACTERS = 400
DELTA_SECONDS = 0.1
"""Streamed text is journaled in pieces of at least this size or age; it is for display, the reply is the record."""


async def ask(
    member: Member, request: ModelRequest, *, call_id: str, purpose: CallPurpose, floor: Floor, limits: Limits
) -> ModelReplied:
    """Call the model. That the call is made is durable before it is, and the reply before it is returned.

    Raises `BackendError` when the call failed for good, retries included.
    """
    repeated = floor.was_in_flight(member.name, call_id)
    floor.record(ModelCallStarted(agent=member.name, call_id=call_id, purpose=purpose, repeated=repeated))
    await floor.settle()
    began = time.monotonic()
    deltas = _Deltas(member.name, call_id, floor)

    def on_retry(attempt: int, error: BackendError, wait_seconds: float) -> None:
        deltas.drop()
        floor.record(
            ModelCallRetried(
                agent=member.name,
                call_id=call_id,
                attempt=attempt,
                reason=error.reason,
                message=str(error),
                wait_seconds=wait_seconds,
            )
        )

    def on_wait(obstacle: Obstacle) -> None:
        floor.record(ModelCallWaiting(agent=member.name, call_id=call_id, obstacle=obstacle))

    try:
        reply = await call_model(
            member.backend,
            request,
            policy=limits.retry,
            deadline_seconds=limits.call_seconds,
            on_text=deltas.add,
            on_retry=on_retry,
            lane=member.lane,
            on_wait=on_wait,
        )
    except BackendError as error:
        floor.record(
            ModelCallFailed(
                agent=member.name,
                call_id=call_id,
                reason=error.reason,
                message=str(error),
                seconds=time.monotonic() - began,
            )
        )
        raise
    except anyio.get_cancelled_exc_class():
        floor.record(ModelCallAborted(agent=member.name, call_id=call_id, seconds=time.monotonic() - began))
        raise
    deltas.flush()
    event = _replied(member, call_id, purpose, reply)
    floor.record(event)
    await floor.settle()
    return event


def _replied(member: Member, call_id: str, purpose: CallPurpose, reply: Reply) -> ModelReplied:
    usage = reply.usage
    return ModelReplied(
        agent=member.name,
        call_id=call_id,
        purpose=purpose,
        model=reply.model,
        text=reply.text,
        reasoning=reply.reasoning,
        tool_calls=tuple(
            ToolCallRecord(id=call.id, name=call.name, arguments=call.arguments) for call in reply.tool_calls
        ),
        stop=reply.stop,
        replay=reply.replay,
        usage=usage
        and Usage(
            input_tokens=usage.input_tokens,
            cached_input_tokens=usage.cached_input_tokens,
            output_tokens=usage.output_tokens,
            reasoning_tokens=usage.reasoning_tokens,
        ),
        seconds=reply.seconds,
    )


class _Deltas:
    """Puts a stream's small pieces of text together, so that a journal is not one line per token."""

    def __init__(self, agent: str, call_id: str, floor: Floor) -> None:
        self._agent = agent
        self._call_id = call_id
        self._floor = floor
        self._pieces: list[str] = []
        self._flushed = time.monotonic()

    def add(self, text: str) -> None:
        self._pieces.append(text)
        old = time.monotonic() - self._flushed >= DELTA_SECONDS
        if old or sum(map(len, self._pieces)) >= DELTA_CHARACTERS:
            self.flush()

    def flush(self) -> None:
        if self._pieces:
            self._floor.record(TextDelta(agent=self._agent, call_id=self._call_id, text="".join(self._pieces)))
        self.drop()

    def drop(self) -> None:
        self._pieces.clear()
        self._flushed = time.monotonic()
