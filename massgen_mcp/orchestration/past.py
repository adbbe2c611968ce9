"""What a run's journal tells about the part of it that has already happened, for whoever goes on with it.

A fold like any other: reading the events in order gives each unfinished piece of work the events that it needs to stand
where it stood.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from massgen_mcp.backends.base import PastCall, ToolCall
from massgen_mcp.coordination.state import Coordination, Rules
from massgen_mcp.events import (
    AgentDropped,
    AnswerEvaluated,
    AnswerPresented,
    AnswerSubmitted,
    AttemptStarted,
    Event,
    LogRecord,
    ModelCallAborted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelReplied,
    Outcome,
    PresentationFailed,
    PresentationStarted,
    RoundStarted,
    RunResumed,
    RunStarted,
    ToolFinished,
    VoteCast,
    WinnerChosen,
)


@dataclass(frozen=True, slots=True)
class Final:
    """An attempt's final answer, and what the coordination that led to it came to."""

    agent: str
    outcome: Outcome
    answer: str


@dataclass
class Past:
    """Nothing, for a run that begins. Treat it as read-only once it is folded."""

    attempt: AttemptStarted | None = None
    """The attempt that was going on."""
    rounds: dict[str, int] = field(default_factory=dict[str, int])
    """How many rounds each agent has begun in this attempt."""
    open_rounds: dict[str, list[Event]] = field(default_factory=dict[str, list[Event]])
    """By agent, the events of its unfinished round."""
    presentation: list[Event] = field(default_factory=list[Event])
    """The events of this attempt's final answer being written."""
    presented: bool = False
    judging: ModelReplied | None = None
    """The reply in which the winner judged its final answer."""
    judged: AnswerEvaluated | None = None
    final: Final | None = None
    """The latest final answer, of this attempt or an earlier one."""
    before: Final | None = None
    """The final answer of the attempts before this one."""
    in_flight: dict[str, str] = field(default_factory=dict[str, str])
    """By agent, the id of the model call that was made and not replied to."""
    controls: set[int] = field(default_factory=set[int])
    seconds: float = 0.0
    """How long the run has been worked on; the time it lay interrupted does not count."""
    calls: dict[str, list[PastCall]] = field(default_factory=dict[str, list[PastCall]])
    """By agent, every try to call its model that has ended, in order."""
    tools: dict[str, list[ToolCall]] = field(default_factory=dict[str, list[ToolCall]])
    """By agent, every ordinary tool call that did what it should, in order."""
    _outcome: Outcome = "best_so_far"
    _purposes: dict[str, str] = field(default_factory=dict[str, str])
    _pending: dict[str, list[ToolCall]] = field(default_factory=dict[str, list[ToolCall]])
    _since: float | None = None
    _until: float = 0.0

    def apply(self, record: LogRecord) -> None:
        """Fold one more record in."""
        self._count_time(record)
        event = record.event
        match event:
            case AttemptStarted():
                self._begin(event)
            case WinnerChosen():
                self._outcome = event.outcome
            case PresentationStarted():
                self.presentation = [event]
            case AnswerPresented():
                self.presented = True
                self.final = Final(event.agent, self._outcome, event.answer)
            case AnswerEvaluated():
                self.judged = event
            case _:
                self._of_agent(event)

    def _count_time(self, record: LogRecord) -> None:
        if self._since is None or isinstance(record.event, RunResumed):
            self._since = self._until = record.time
        self.seconds += max(0.0, record.time - self._until)
        self._until = record.time

    def _begin(self, event: AttemptStarted) -> None:
        self.attempt, self.before = event, self.final
        self.rounds, self.open_rounds, self.presentation = {}, {}, []
        self.presented, self.judging, self.judged, self._outcome = False, None, None, "best_so_far"

    def _of_agent(self, event: Event) -> None:
        """What one agent did: it belongs to its open round, or to the presentation."""
        match event:
            case RoundStarted():
                self.rounds[event.agent] = event.round
                self.open_rounds[event.agent] = [event]
            case AnswerSubmitted() | VoteCast() | AgentDropped():
                self.open_rounds.pop(event.agent, None)
            case ModelCallStarted():
                self.in_flight[event.agent] = event.call_id
                self._purposes[event.agent] = event.purpose
            case ModelReplied():
                self._replied(event)
            case ModelCallRetried():
                self._tried(event.agent)
            case ModelCallFailed() | ModelCallAborted():
                self._tried(event.agent)
                self.in_flight.pop(event.agent, None)
                self._keep(event.agent, event)
            case ToolFinished():
                self._used(event)
                self._keep(event.agent, event)
            case PresentationFailed():
                self.presentation.append(event)
            case _:
                if (agent := getattr(event, "agent", None)) in self.open_rounds:
                    self.open_rounds[agent].append(event)

    def _keep(self, agent: str, event: Event) -> None:
        if agent in self.open_rounds:
            self.open_rounds[agent].append(event)
        elif self.presentation and not self.presented:
            self.presentation.append(event)

    def _replied(self, event: ModelReplied) -> None:
        self.in_flight.pop(event.agent, None)
        calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in event.tool_calls)
        self._tried(event.agent, calls)
        self._pending[event.agent] = list(calls)
        if event.purpose == "evaluate":
            self.judging = event
        else:
            self._keep(event.agent, event)

    def _tried(self, agent: str, calls: tuple[ToolCall, ...] = ()) -> None:
        coordinated = self._purposes.get(agent) == "coordinate"
        self.calls.setdefault(agent, []).append(PastCall(coordinated, calls))

    def _used(self, event: ToolFinished) -> None:
        pending = self._pending.get(event.agent, [])
        for place, call in enumerate(pending):
            if call.id == event.call_id and call.name == event.name:
                pending.pop(place)
                if not event.is_error:
                    self.tools.setdefault(event.agent, []).append(call)
                return


def past_of(records: Iterable[LogRecord]) -> Past:
    past = Past()
    for record in records:
        past.apply(record)
    return past


def best_of(final: Final | None, state: Coordination) -> tuple[str | None, str | None]:
    """Whose answer is the best one so far, and its text: a presented one is better than a winner's draft, and that is
    better than any other draft. None for both where there is none.
    """
    if final is not None:
        return final.agent, final.answer
    winner = state.winner or state.best_so_far()
    return (winner.agent, state.content(winner.label)) if winner else (None, None)


def best_in(records: Sequence[LogRecord]) -> tuple[str | None, str | None]:
    """`best_of` the run that these records tell of, whatever has become of it."""
    started = next((record.event for record in records if isinstance(record.event, RunStarted)), None)
    if started is None:
        return None, None
    state = Coordination.begin(tuple(agent.name for agent in started.agents), Rules())
    for record in records:
        state = state.after(record.event)
    return best_of(past_of(records).final, state)
