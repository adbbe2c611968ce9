"""A journal and an answer store without a disk, for simulations, measurements and tests of the orchestrator."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from massgen_mcp.events.parts import Changes, Event, EventT
from massgen_mcp.events.record import LogRecord
from massgen_mcp.orchestration.live_run import StoredAnswer
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

    async def keep(self, attempt: int, agent: str, content: str, workspace: Workspace | None) -> StoredAnswer:
        del content, workspace
        return StoredAnswer(f"turn_1/attempt_{attempt}/{agent}")

    async def keep_patch(self, agent: str, workspace: Workspace | None) -> None:
        del agent, workspace

    async def restore(self, agent: str, changes: Changes) -> None:
        """There is nothing that an answer could have changed."""

    async def keep_final(
        self, agent: str, content: str, workspace: Workspace | None, changes: Changes | None
    ) -> Changes | None:
        """The final answer is in the events."""
        del agent, content, workspace
        return changes

    def patch(self, changes: Changes, most: int) -> str:
        del changes, most
        return ""

    def files(self, path: str) -> Path | None:
        del path
