"""The floor: where the agents of one run meet. It owns the live coordination state and the run's journal.

Every fact passes through `record`, in one order, and reaches the journal, the state and whoever waits for a change.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import anyio

from massgen_mcp.coordination.state import Coordination
from massgen_mcp.errors import BackendError
from massgen_mcp.events import (
    AgentDropped,
    AnswerSubmitted,
    AttemptStarted,
    BallotEntry,
    BudgetRaised,
    CallerSaid,
    Event,
    EventT,
    InputGiven,
    InputRequired,
    PresentationStarted,
    RoundStarted,
    VoteCast,
)
from massgen_mcp.money.reservations import Reservations
from massgen_mcp.orchestration.faults import Report, fault_of, name_only
from massgen_mcp.orchestration.team import AnswerStore


class Journal(Protocol):
    """The run's event log as orchestration sees it."""

    def record(self, event: EventT) -> EventT:
        """Append an event; its order among others is fixed now. Returns it as it is recorded: without keys."""
        ...

    async def settle(self) -> None:
        """Return when everything recorded so far would survive a power cut."""
        ...


class Floor:
    def __init__(
        self,
        state: Coordination,
        journal: Journal,
        reservations: Reservations | None = None,
        report: Report = name_only,
    ) -> None:
        self.state = state
        self.reservations = reservations or Reservations()
        self._journal = journal
        self._report = report
        self._changed = anyio.Event()
        self._paths: dict[str, str | None] = {}
        self._votes: dict[str, VoteCast] = {}
        self._dropped: list[AgentDropped] = []
        self._openings: dict[str, str] = {}
        self._said: dict[int, str] = {}
        self._raises: set[int] = set()
        self._in_flight: dict[str, str] = {}
        self.asked: InputRequired | None = None
        """What the caller has to decide before the run continues."""
        self._decisions: dict[tuple[str | None, str], str] = {}

    def resume(self, events: Iterable[Event], in_flight: Mapping[str, str]) -> None:
        """Stand where the events lead, without recording them again. `in_flight`: the calls that nobody replied to, by
        agent.
        """
        self._in_flight = dict(in_flight)
        for event in events:
            self._note(event)
            self.state = self.state.after(event)

    def decide(self) -> None:
        """Record a decision that is due: the process that should have done so may have been lost just then."""
        if winner := self.state.decision():
            self._journal.record(winner)
            self.state = self.state.after(winner)

    @property
    def said(self) -> tuple[str, ...]:
        """What the caller has sent the team so far."""
        return tuple(self._said.values())

    def decision_on(self, agent: str | None, question: str) -> str | None:
        """What the caller decided when this was asked."""
        return self._decisions.get((agent, question))

    def opening_of(self, agent: str) -> str:
        """The nonce of the markers around the question, as this agent was shown it last; "" if it was not yet."""
        return self._openings.get(agent, "")

    def has_heard(self, control: int) -> bool:
        """Whether the caller's control of this number, a message or a raise of the budget, has been carried out."""
        return control in self._said or control in self._raises

    def was_in_flight(self, agent: str, call_id: str) -> bool:
        """Whether this call was made before the run was resumed, and its reply lost. True at most once for a call."""
        return self._in_flight.get(agent) == call_id and bool(self._in_flight.pop(agent))

    @property
    def dropped(self) -> tuple[AgentDropped, ...]:
        """Who fell out and why, in order."""
        return tuple(self._dropped)

    @property
    def standing_votes(self) -> tuple[VoteCast, ...]:
        return tuple(self._votes[agent] for agent, seat in self.state.seats.items() if seat.vote is not None)

    def files_of(self, entries: Iterable[BallotEntry], answer_store: AnswerStore) -> dict[str, Path]:
        """The snapshot directories of a ballot's answers by neutral name, for those that have files."""
        found: dict[str, Path] = {}
        for entry in entries:
            path = self._paths.get(entry.label)
            files = answer_store.files(path) if path else None
            if files is not None:
                found[entry.name] = files
        return found

    def record(self, event: EventT) -> EventT:
        """Append an event to the journal and apply it to the state. Continue with the event that is returned: a
        resumed run will read that one. If it decides the coordination, the winner is recorded right after it.
        """
        event = self._journal.record(event)
        self._note(event)
        before = self.state
        self.state = before.after(event)
        if self.state is not before:
            self.decide()
        elif not isinstance(event, InputGiven):
            return event
        self._changed.set()
        self._changed = anyio.Event()
        return event

    def _note(self, event: Event) -> None:
        self.reservations.note(event)
        match event:
            case BudgetRaised():
                self._raises.add(event.control)
            case AttemptStarted():
                self._paths.clear()
                self._votes.clear()
            case AnswerSubmitted():
                self._paths[event.label] = event.path
            case RoundStarted() | PresentationStarted():
                self._openings[event.agent] = event.opening
            case VoteCast():
                self._votes[event.agent] = event
            case AgentDropped():
                self._dropped.append(event)
            case CallerSaid():
                self._said[event.control] = event.message
            case InputRequired():
                self.asked = event
            case InputGiven() if self.asked is not None:
                self._decisions[self.asked.agent, self.asked.text] = event.text
                self.asked = None
            case _:
                pass

    def fault(self, error: Exception) -> BackendError:
        """Why the agent in whose work `error` was raised falls out (see `faults`), with the trace in the run's log."""
        return fault_of(error, self._report)

    async def settle(self) -> None:
        await self._journal.settle()

    async def change(self) -> None:
        """Return at the next change of the coordination state."""
        await self._changed.wait()
