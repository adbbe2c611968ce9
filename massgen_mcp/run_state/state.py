"""The state of a run: the one fold over its events.

The process that executes a run has one such state: it decides on it, continues from it after a loss, and shows it.
Every other process that shows the run folds the same events into a state of its own. Knows no models, files or views.
"""

from collections.abc import Iterable
from typing import Self, assert_never

from massgen_mcp.coordination.state import Coordination, Rules
from massgen_mcp.events import (
    AgentDropped,
    AgentInfo,
    AnswerEvaluated,
    AnswerPresented,
    AnswerSubmitted,
    AnyEvent,
    AttemptStarted,
    BallotChanged,
    BudgetMark,
    BudgetRaised,
    BudgetReached,
    CallerSaid,
    FinishRequested,
    FirstAnswersClosed,
    InputGiven,
    InputRequired,
    LogRecord,
    MessagesShown,
    ModelCallAborted,
    ModelCallAdmitted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    PresentationFailed,
    PresentationStarted,
    ReservationExceeded,
    RoundStarted,
    RuleViolated,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunOffStarted,
    RunResumed,
    RunStarted,
    RunTimedOut,
    TextDelta,
    ToolFinished,
    UnknownEvent,
    VoteCast,
    WinnerChosen,
)
from massgen_mcp.money.budget import Budget
from massgen_mcp.run_state.agents import AgentState, Vote
from massgen_mcp.run_state.facts import Final, RunFacts


class RunState(RunFacts):
    @classmethod
    def begin(cls, agents: Iterable[AgentInfo], rules: Rules, budget: Budget) -> Self:
        """A run before its first event, as the process knows it that decides by these rules."""
        state = cls(budget=budget, coordination=Coordination.begin((), rules))
        state._seat(agents)
        return state

    def apply(self, record: LogRecord) -> None:
        """Fold one more record in."""
        event = record.event
        self.seq, self.updated_at = record.seq, record.time
        agent = getattr(event, "agent", None)
        if isinstance(agent, str) and agent in self.agents:
            self.agents[agent].last_activity = record.time
        self.resume_point.count_time(record)
        if isinstance(event, TextDelta):
            return  # for display only
        if isinstance(event, RunStarted):
            self._begin(event, record.time)
        self.budget.apply(event)
        self.coordination = self.coordination.after(event)
        self.resume_point.apply(event)
        self._apply(event, record.time)

    def end_with(self, event: RunCompleted | RunFailed | RunCancelled | RunTimedOut) -> None:
        """Have the run ended like this, whatever became of the rest of the fold."""
        self.end = event
        if isinstance(event, RunCompleted):
            for agent in self.agents.values():
                if agent.dropped is None:
                    agent.status = "completed"

    def _apply(self, event: AnyEvent | UnknownEvent, time: float) -> None:  # noqa: C901 - one case per event, nothing else
        match event:
            case RunResumed():
                self.resumed += 1
                for agent in self.agents:
                    self._idle(agent)
            case CallerSaid() | InputRequired() | InputGiven() | BudgetRaised():
                self.caller.apply(event)
            case AttemptStarted():
                self._new_attempt(event)
            case RoundStarted():
                self._new_round(event)
            case ModelCallStarted():
                self._call(event)
            case ModelReplied():
                self.budget.spending.add_reply(event)
                self.agents[event.agent].note(event)
            case ModelCallRetried():
                self._lose(event)
            case ModelCallFailed() | ModelCallAborted():
                self._lose(event)
                self._idle(event.agent)
            case AnswerSubmitted():
                self._answered(event)
            case VoteCast():
                self._voted(event, time)
            case AgentDropped():
                agent = self.agents[event.agent]
                agent.dropped, agent.dropped_at = event, time
                agent.status = "timeout" if event.reason == "timeout" else "error"
            case PresentationStarted():
                self.phase, self.agents[event.agent].opening = "presenting", event.opening
            case AnswerPresented():
                self.phase = "presenting"
                outcome = self.winner.outcome if self.winner else "best_so_far"
                self.final = Final(event.agent, outcome, event.answer)
            case PresentationFailed():
                self.presentation_failed = event
            case RunCompleted() | RunFailed() | RunCancelled() | RunTimedOut():
                self.end_with(event)
                self.ended_at = time
            case (
                RunStarted()
                | WinnerChosen()
                | RunOffStarted()
                | FirstAnswersClosed()
                | FinishRequested()
                | BudgetMark()
            ):
                pass  # what there is to know of it, a part has folded in
            case BudgetReached() | BallotChanged() | MessagesShown() | RuleViolated() | ToolFinished():
                pass
            case AnswerEvaluated() | ReservationExceeded() | TextDelta() | UnknownEvent():
                pass
            case ModelCallWaiting() | ModelCallAdmitted():
                pass
            case _:
                assert_never(event)

    def _begin(self, event: RunStarted, time: float) -> None:
        self.run_id, self.question, self.started_at = event.run_id, event.question, time
        self._seat(event.agents)

    def _seat(self, agents: Iterable[AgentInfo]) -> None:
        self.agents = {info.name: AgentState(info) for info in agents}
        self.coordination = Coordination.begin(tuple(self.agents), self.coordination.rules)

    def _new_attempt(self, event: AttemptStarted) -> None:
        self.attempt_started, self.phase = event, "answering"
        self.earlier_answers, self.earlier_final = self.answers, self.final
        self.cast, self.cast_in_run_off = {}, {}
        for agent in self.agents.values():
            agent.answers, agent.round, agent.working_notes = [], 0, ""

    def _new_round(self, event: RoundStarted) -> None:
        agent = self.agents[event.agent]
        agent.rounds, agent.round, agent.opening = agent.rounds + 1, event.round, event.opening

    def _call(self, event: ModelCallStarted) -> None:
        if event.purpose == "evaluate":
            self.phase = "evaluating"
        self.agents[event.agent].status = "streaming"
        self.repeated_calls += event.repeated
        self._lose(event)

    def _lose(self, event: ModelCallStarted | ModelCallRetried | ModelCallFailed | ModelCallAborted) -> None:
        self.budget.spending.add_lost(event, self.agents[event.agent].info.model)

    def _idle(self, name: str) -> None:
        agent = self.agents[name]
        if agent.dropped is None:
            voted = self.coordination.seats[name].vote is not None
            agent.status = "voted" if voted else "answered" if agent.answers else "waiting"

    def _voted(self, event: VoteCast, time: float) -> None:
        cast = self.cast_in_run_off if event.run_off else self.cast
        cast.pop(event.agent, None)
        cast[event.agent] = Vote(event.agent, event.label, event.reason, time)
        self.phase, self.agents[event.agent].status = "voting", "voted"
        self.agents[event.agent].acted_in = event.form

    def _answered(self, event: AnswerSubmitted) -> None:
        agent = self.agents[event.agent]
        agent.answered(event, self.attempt)
        agent.status, agent.acted_in = "answered", event.form
        for voter in event.voided_votes:
            self.agents[voter].status = "restarting"
        if all(other.answers or other.dropped for other in self.agents.values()):
            self.phase = "voting"


def folded(records: Iterable[LogRecord]) -> RunState:
    """The state to which these records lead."""
    state = RunState()
    for record in records:
        state.apply(record)
    return state
