"""The state of a run: the one fold over its events.

The process that executes a run has one such state: it decides on it, continues from it after a loss, and shows it.
Every other process that shows the run folds the same events into a state of its own. Knows no models, files or views.
"""

from collections.abc import Iterable
from typing import Self, assert_never

from massgen_mcp import events
from massgen_mcp.coordination.state import Coordination, Rules
from massgen_mcp.money.budget import Budget
from massgen_mcp.run_state.agents import AgentState, Vote
from massgen_mcp.run_state.facts import Final, RunFacts


class RunState(RunFacts):
    @classmethod
    def begin(cls, agents: Iterable[events.AgentInfo], rules: Rules, budget: Budget) -> Self:
        """A run before its first event, as the process knows it that decides by these rules."""
        state = cls(budget=budget, coordination=Coordination.begin((), rules))
        state._seat(agents)
        return state

    def apply(self, record: events.LogRecord) -> None:
        """Fold one more record in."""
        event = record.event
        self.seq, self.updated_at = record.seq, record.time
        agent = getattr(event, "agent", None)
        if isinstance(agent, str) and agent in self.agents:
            self.agents[agent].last_activity = record.time
        self.resume_point.count_time(record)
        if isinstance(event, events.TextDelta):
            return  # for display only
        if isinstance(event, events.RunStarted):
            self._begin(event, record.time)
        elif isinstance(event, events.AttemptStarted):
            self.earlier_answers = self.answers  # the rules forget them
        self.budget.apply(event)
        self._reseat(self.coordination.after(event))
        self.resume_point.apply(event)
        self._apply(event, record.time)

    def end_with(self, event: events.RunEnd) -> None:
        """Have the run ended like this, whatever became of the rest of the fold."""
        self.end = event
        if isinstance(event, events.RunCompleted):
            for agent in self.agents.values():
                if agent.dropped is None:
                    agent.status = "completed"

    def _apply(self, event: events.AnyEvent | events.UnknownEvent, time: float) -> None:  # noqa: C901 - one case per event, nothing else
        match event:
            case events.RunResumed():
                self.resumed += 1
                for agent in self.agents:
                    self._idle(agent)
            case events.CallerSaid() | events.InputRequired() | events.InputGiven() | events.BudgetRaised():
                self.caller.apply(event)
            case events.AttemptStarted():
                self._new_attempt(event)
            case events.RoundStarted():
                self._new_round(event)
            case events.ModelCallStarted():
                self._call(event)
            case events.ModelReplied():
                self.budget.spending.add_reply(event)
                self.agents[event.agent].note(event)
            case events.ModelCallRetried():
                self._lose(event)
            case events.ModelCallFailed() | events.ModelCallAborted():
                self._lose(event)
                self._idle(event.agent)
            case events.AnswerSubmitted():
                self._answered(event)
            case events.VoteCast():
                self._voted(event, time)
            case events.AgentDropped():
                agent = self.agents[event.agent]
                agent.dropped_at = time
                agent.status = "timeout" if event.reason == "timeout" else "error"
            case events.PresentationStarted():
                self.phase, self.agents[event.agent].opening = "presenting", event.opening
            case events.AnswerPresented():
                self.phase = "presenting"
                outcome = self.winner.outcome if self.winner else "best_so_far"
                self.final = Final(event.agent, outcome, event.answer)
            case events.PresentationFailed():
                self.presentation_failed = event
            case events.RunCompleted() | events.RunFailed() | events.RunCancelled() | events.RunTimedOut():
                self.end_with(event)
                self.ended_at = time
            case events.RunStarted() | events.WinnerChosen() | events.FirstAnswersClosed() | events.FinishRequested():
                pass  # what there is to know of it, a part has folded in
            case events.RunOffStarted():
                pass  # what there is to know of it, a part has folded in
            case events.ServerLost():
                self.servers_lost[event.server, event.agents] = event.message
            case events.NestedRunStarted():
                self.nested_runs[event.run_id] = event
            case events.NestedRunEnded():
                self.nested_ends[event.run_id] = event
            case events.BudgetMark() | events.BudgetReached() | events.ReservationExceeded() | events.RuleViolated():
                pass
            case events.ToolStarted():
                pass  # the resume point keeps it until its result is there
            case events.BallotChanged() | events.MessagesShown() | events.AnswerEvaluated() | events.ToolFinished():
                pass
            case events.ModelCallWaiting() | events.ModelCallAdmitted() | events.TextDelta() | events.UnknownEvent():
                pass
            case _:
                assert_never(event)

    def _begin(self, event: events.RunStarted, time: float) -> None:
        self.run_id, self.question, self.started_at = event.run_id, event.question, time
        self.parent = event.parent
        self._seat(event.agents)

    def _seat(self, agents: Iterable[events.AgentInfo]) -> None:
        infos = {info.name: info for info in agents}
        self.coordination = Coordination.begin(tuple(infos), self.coordination.rules)
        self.agents = {name: AgentState(infos[name], seat) for name, seat in self.coordination.seats.items()}

    def _reseat(self, coordination: Coordination) -> None:
        if coordination is not self.coordination:
            self.coordination = coordination
            for name, seat in coordination.seats.items():
                self.agents[name].seat = seat

    def _new_attempt(self, event: events.AttemptStarted) -> None:
        self.attempt_started, self.phase = event, "answering"
        self.earlier_final = self.final
        self.cast, self.cast_in_run_off = {}, {}
        for agent in self.agents.values():
            agent.round, agent.working_notes = 0, ""

    def _new_round(self, event: events.RoundStarted) -> None:
        agent = self.agents[event.agent]
        agent.rounds, agent.round, agent.opening = agent.rounds + 1, event.round, event.opening

    def _call(self, event: events.ModelCallStarted) -> None:
        if event.purpose == "evaluate":
            self.phase = "evaluating"
        self.agents[event.agent].status = "streaming"
        self.repeated_calls += event.repeated
        self._lose(event)

    def _lose(self, event: events.LostTry) -> None:
        self.budget.spending.add_lost(event, self.agents[event.agent].info.model)

    def _idle(self, name: str) -> None:
        agent = self.agents[name]
        if agent.dropped is None:
            voted = self.coordination.seats[name].vote is not None
            agent.status = "voted" if voted else "answered" if agent.answers else "waiting"

    def _voted(self, event: events.VoteCast, time: float) -> None:
        cast = self.cast_in_run_off if event.run_off else self.cast
        cast.pop(event.agent, None)
        cast[event.agent] = Vote(event.agent, event.label, event.reason, time)
        self.phase, self.agents[event.agent].status = "voting", "voted"
        self.agents[event.agent].acted_in = event.form

    def _answered(self, event: events.AnswerSubmitted) -> None:
        agent = self.agents[event.agent]
        agent.answered(event)
        agent.status, agent.acted_in = "answered", event.form
        for voter in event.voided_votes:
            self.agents[voter].status = "restarting"
        if all(other.answers or other.dropped for other in self.agents.values()):
            self.phase = "voting"


def folded(records: Iterable[events.LogRecord]) -> RunState:
    """The state to which these records lead."""
    state = RunState()
    for record in records:
        state.apply(record)
    return state
