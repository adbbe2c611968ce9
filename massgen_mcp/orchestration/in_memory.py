"""A journal and an answer store without a disk, for simulations, measurements and tests of the orchestrator."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from massgen_mcp.events import Event, EventT, LogRecord
from massgen_mcp.workspace.directory import Workspace


@dataclass(slots=True)
class EventList:
    """A journal that collects its events."""

    events: list[Event] = field(default_factory=list[Event])
    _listeners: list[Callable[[LogRecord], None]] = field(default_factory=list[Callable[[LogRecord], None]])

    def listen(self, listener: Callable[[LogRecord], None]) -> None:
        self._listeners.append(listener)

    def record(self, event: EventT) -> EventT:
        self.events.append(event)
        record = LogRecord.model_construct(seq=len(self.events), time=time.time(), event=event)
        for listener in self._listeners:
            listener(record)
        return event

    async def settle(self) -> None:
        """There is no disk to wait for."""


class NullAnswerStore:
    """An answer store whose answers have no files."""

    async def keep(self, attempt: int, agent: str, content: str, workspace: Workspace | None) -> str:
        del content, workspace
        return f"turn_1/attempt_{attempt}/{agent}"

    async def keep_final(self, agent: str, content: str, workspace: Workspace | None) -> None:
        """The final answer is in the events."""

    def files(self, path: str) -> Path | None:
        del path
