"""All events as one closed union, and the line of `events.jsonl` that holds one."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from massgen_mcp.events.agent_work import AgentEvent
from massgen_mcp.events.coordination import CoordinationEvent
from massgen_mcp.events.parts import Event
from massgen_mcp.events.run import RunEvent

JOURNAL_VERSION = 2
"""Of the lines of `events.jsonl` that this program writes, and the highest that it goes on from. 0: lines without one.
Raised when this program would no longer read lines of this version: `tests/golden/schema.py` compares them and says so.
What is only added needs no new one: a line that has it is newer to a program that does not know it.
"""

AnyEvent = Annotated[RunEvent | AgentEvent | CoordinationEvent, Field(discriminator="type")]


class UnknownEvent(Event):
    """What a newer version of this program wrote and this one does not know. `content`: all but the type."""

    type: str
    content: dict[str, Any]
    """All of it but the type."""


class LogRecord(BaseModel, frozen=True, extra="forbid", cache_strings="keys"):
    """One line of `events.jsonl`: `seq` rises by one from 1, `time` is seconds since the epoch, `v` is the
    `JOURNAL_VERSION` of who wrote it.

    Pydantic would keep the last 16,384 short values that it read for reuse; here hardly one comes twice.
    """

    v: int = 0
    """The version of the format that wrote it; 0 in lines without one."""
    seq: int
    """Rises by one from 1."""
    time: float
    """Seconds since the epoch."""
    event: Annotated[AnyEvent | UnknownEvent, Field(union_mode="left_to_right")]
    """What happened."""
    clock: float | None = None
    """Seconds on the clock of its machine that nobody sets: how long something took is told by it. It means nothing
    after a restart of the machine. None in lines without one.
    """
    unread: tuple[str, ...] = Field(default=(), exclude=True)
    """Names of what was left out of the event, or is no known value, because a newer version wrote it."""

    @property
    def newer(self) -> bool:
        """Whether a newer version wrote it, so that it may mean more than what was read."""
        return self.v > JOURNAL_VERSION or bool(self.unread) or isinstance(self.event, UnknownEvent)
