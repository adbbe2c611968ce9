"""The floor: where the agents of one run meet. It owns the live coordination state and the run's journal.

Every fact passes through `record`, in one order, and reaches the journal, the state and whoever waits for a change.
Must not know models, tools or prompts.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import anyio

from massgen_mcp.coordination.state import Coordination
from massgen_mcp.events import AgentDropped, AnswerSubmitted, AttemptStarted, BallotEntry, Event, VoteCast
from massgen_mcp.orchestration.team import Gallery


class Journal(Protocol):
    """The run's event log as orchestration sees it."""

    def record(self, event: Event) -> None:
        """Append an event; its order among others is fixed now."""
        ...

    async def settle(self) -> None:
        """Return when everything recorded so far would survive a power cut."""
        ...


class Floor:
    def __init__(self, state: Coordination, journal: Journal) -> None:
        self.state = state
        self._journal = journal
        self._changed = anyio.Event()
        self._paths: dict[str, str | None] = {}
        self._votes: dict[str, VoteCast] = {}
        self._dropped: list[AgentDropped] = []

    @property
    def dropped(self) -> tuple[AgentDropped, ...]:
        """Who fell out and why, in order."""
        return tuple(self._dropped)

    @property
    def standing_votes(self) -> tuple[VoteCast, ...]:
        return tuple(self._votes[agent] for agent, seat in self.state.seats.items() if seat.vote is not None)

    def files_of(self, entries: Iterable[BallotEntry], gallery: Gallery) -> dict[str, Path]:
        """The snapshot directories of a ballot's answers by neutral name, for those that have files."""
        found: dict[str, Path] = {}
        for entry in entries:
            path = self._paths.get(entry.label)
            files = gallery.files(path) if path else None
            if files is not None:
                found[entry.name] = files
        return found

    def record(self, event: Event) -> None:
        """Let something be true. If it decides the coordination, the decision is recorded with it."""
        self._journal.record(event)
        match event:
            case AttemptStarted():
                self._paths.clear()
                self._votes.clear()
            case AnswerSubmitted():
                self._paths[event.label] = event.path
            case VoteCast():
                self._votes[event.agent] = event
            case AgentDropped():
                self._dropped.append(event)
            case _:
                pass
        before = self.state
        self.state = before.after(event)
        if self.state is before:
            return
        if winner := self.state.decision():
            self._journal.record(winner)
            self.state = self.state.after(winner)
        self._changed.set()
        self._changed = anyio.Event()

    async def settle(self) -> None:
        await self._journal.settle()

    async def change(self) -> None:
        """Return at the next change of the coordination state."""
        await self._changed.wait()
