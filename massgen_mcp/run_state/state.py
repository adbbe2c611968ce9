"""The state of a run: the one fold over its events.

The process that executes a run has one such state: it decides on it, continues from it after a loss, and shows it.
Every other process that shows the run folds the same events into a state of its own. Knows no models, files or views.
"""

from collections.abc import Iterable
from typing import Self, assert_never

from massgen_mcp.coordination.state import Coordination, Rules
from massgen_mcp.events.agent_work import (
    BallotChanged,
    LostTry,
    ModelCallAborted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    RoundStarted,
    TextDelta,
)
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerPresented,
    AnswerSubmitted,
    CheckFinished,
    FilesChecked,
    ModelReplaced,
    PresentationFailed,
    PresentationStarted,
    StageOpened,
    VoteCast,
    WrittenTestsSubmitted,
)
from massgen_mcp.events.parts import AgentInfo
from massgen_mcp.events.record import AnyEvent, LogRecord, UnknownEvent
from massgen_mcp.events.run import (
    AttemptStarted,
    BaseTaken,
    BudgetMark,
    BudgetRaised,
    BudgetReached,
    CallerMessage,
    InputGiven,
    InputRequired,
    NestedRunEnded,
    NestedRunStarted,
    RunCancelled,
    RunCompleted,
    RunEnd,
    RunFailed,
    RunResumed,
    RunStarted,
    RunTimedOut,
    ServerLost,
    SetupFinished,
)
from massgen_mcp.money.budget import Budget
from massgen_mcp.run_state.agents import AgentState, Vote
from massgen_mcp.run_state.facts import Final, RunFacts
from massgen_mcp.run_state.work_done import WorkDone


class RunState(RunFacts):
    _work_done: WorkDone | None = None
    """As it follows from the facts; None: it has not been asked for since they changed."""

    @classmethod
    def begin(cls, agents: Iterable[AgentInfo], rules: Rules, budget: Budget) -> Self:
        """A run before its first event, as the process knows it that decides by these rules."""
        state = cls(budget=budget, coordination=Coordination.begin((), rules))
        state._seat(agents)
        return state

    def apply(self, record: LogRecord) -> None:
        """Fold one more record in."""
        self._work_done = None
        event = record.event
        self.seq, self.updated_at, self.clock = record.seq, record.time, record.clock
        agent = getattr(event, "agent", None)
        if isinstance(agent, str) and agent in self.agents:
            self.agents[agent].last_activity = record.time
        self.resume_point.count_time(record)
        if isinstance(event, TextDelta):
            return  # for display only
        if isinstance(event, RunStarted):
            self._begin(event, record.time)
        elif isinstance(event, AttemptStarted):
            self.earlier_answers = self.answers  # the rules forget them
        elif isinstance(event, RunResumed | RunEnd):
            self.lose_calls()
        self._reseat(self.coordination.after(event))
        self.resume_point.apply(event)
        self._apply(event, record.time)

    @property
    def work_done(self) -> WorkDone:
        if self._work_done is None:
            self._work_done = WorkDone.from_run(self)
        return self._work_done

    def end_with(self, event: RunEnd) -> None:
        """Have the run ended like this, whatever became of the rest of the fold."""
        self._work_done = None
        self.end = event
        for name, agent in self.agents.items():
            self._idle(name)
            if agent.dropped is not None or name not in self.coordination.asked:
                continue
            if isinstance(event, RunCompleted):
                agent.status = "completed"
            elif not agent.answers:
                agent.status = "timeout" if isinstance(event, RunTimedOut) else "error"

    def lose_calls(self) -> None:
        """Charge, once, for calls that have not ended: the process that made them is lost."""
        for agent, call in self.resume_point.under_way.items():
            self.budget.spending.add_lost_call(call, self.agents[agent].info.model)
        self.resume_point.under_way = {}

    def as_nested(self) -> NestedRunEnded | None:
        """How the run that this one is nested in hears of its end; None as long as it goes on."""
        match self.state:
            case "completed" | "failed" | "cancelled" | "timed_out" as over:
                return NestedRunEnded(run_id=self.run_id, state=over, spent=self.spent)
            case _:
                return None

    def end_nested(self, event: NestedRunEnded) -> None:
        """A nested run has ended: what it cost is a part of what this one did."""
        self.budget.apply(event)
        self.nested_ends[event.run_id] = event

    def _apply(self, event: AnyEvent | UnknownEvent, time: float) -> None:  # noqa: C901 - one case per event, nothing else
        match event:
            case BaseTaken():
                self.base = event
            case SetupFinished():
                self.setup = event
            case RunResumed():
                self.resumed += 1
                for agent in self.agents:
                    self._idle(agent)
            case CallerMessage() | InputRequired() | InputGiven():
                self.caller.apply(event)
            case BudgetRaised():
                self.caller.apply(event)
                self.budget.apply(event)
            case AttemptStarted():
                self._new_attempt(event)
            case RoundStarted():
                self._new_round(event)
                self.agents[event.agent].note_beginning(self.resume_point.elapsed)
            case BallotChanged():
                self.agents[event.agent].read_ballot(event.shortened)
            case WrittenTestsSubmitted():
                self.agents[event.agent].act()
            case ModelCallStarted():
                self._begin_call(event)
            case ModelCallWaiting():
                self.agents[event.agent].budget_wait = event.message
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
                self.agents[event.agent].note_first_answer(self.resume_point.elapsed)
            case VoteCast():
                self._voted(event, time)
            case ModelReplaced():
                self.agents[event.agent].replace_model(event)
                self._idle(event.agent)
            case AgentDropped():
                self.agents[event.agent].dropped_at = time
                self._idle(event.agent)
            case PresentationStarted():
                self.phase, self.agents[event.agent].opening = "presenting", event.opening
                self.agents[event.agent].read_opening(event.shortened)
            case AnswerPresented():
                self.phase = "presenting"
                if not event.reused:
                    self.agents[event.agent].act()
                outcome = self.winner.outcome if self.winner else "best_so_far"
                self.final = Final(event.agent, outcome, event.answer, event.changes, len(self.votes))
            case PresentationFailed():
                self.presentation_failed = event
            case RunCompleted() | RunFailed() | RunCancelled() | RunTimedOut():
                self.end_with(event)
                self.ended_at = time
            case RunStarted():
                self.checks_policy = event.checks_policy or self.coordination.rules.checks
                self.budget.apply(event)
            case BudgetMark() | BudgetReached():
                self.budget.apply(event)
            case StageOpened():
                self.phase = "answering" if event.kind == "answer" else "voting"
            case ServerLost():
                self.servers_lost[event.server, event.agents] = event.message
            case CheckFinished():
                if event.outcome.expected is None:  # the rules have folded in the others
                    self.check_outcomes[event.tree, event.outcome.command] = event.outcome
            case FilesChecked():
                self._files_checked(event)
            case NestedRunStarted():
                self.nested_runs[event.run_id] = event
                self.budget.apply(event)
            case NestedRunEnded():
                self.end_nested(event)
            case _:
                pass  # a part of the state reads it, or no part does

    def _begin(self, event: RunStarted, time: float) -> None:
        self.run_id, self.question, self.started_at = event.run_id, event.question, time
        self.parent = event.parent
        self._seat(event.agents)

    def _seat(self, agents: Iterable[AgentInfo]) -> None:
        infos = {info.name: info for info in agents}
        self.coordination = Coordination.begin(tuple(infos), self.coordination.rules)
        self.agents = {name: AgentState(infos[name], seat) for name, seat in self.coordination.seats.items()}

    def _reseat(self, coordination: Coordination) -> None:
        if coordination is not self.coordination:
            self.coordination = coordination
            for name, seat in coordination.seats.items():
                self.agents[name].seat = seat

    def _new_attempt(self, event: AttemptStarted) -> None:
        self.attempt_started, self.phase = event, "answering"
        self.earlier_final = self.final
        self.cast, self.cast_in_run_off = {}, {}
        for agent in self.agents.values():
            agent.round, agent.working_notes = 0, ""

    def _new_round(self, event: RoundStarted) -> None:
        agent = self.agents[event.agent]
        agent.rounds, agent.round, agent.opening = agent.rounds + 1, event.round, event.opening
        agent.read_opening(event.shortened)

    def _begin_call(self, event: ModelCallStarted) -> None:
        if event.purpose == "evaluate":
            self.phase = "evaluating"
        self.agents[event.agent].status, self.agents[event.agent].budget_wait = "streaming", ""
        self.budget.spending.note_bound(event, self.agents[event.agent].info.model)
        self._lose(event)

    def _lose(self, event: LostTry) -> None:
        self.budget.spending.add_lost(event, self.agents[event.agent].info.model)

    def _idle(self, name: str) -> None:
        agent = self.agents[name]
        agent.budget_wait = ""
        if agent.dropped is not None:
            agent.status = "timeout" if agent.dropped.reason == "timeout" else "error"
        else:
            voted = self.coordination.seats[name].vote is not None
            agent.status = "voted" if voted else "answered" if agent.answers else "waiting"

    def _voted(self, event: VoteCast, time: float) -> None:
        stage = self.coordination.stage
        if stage is None or stage.because != "still_tied":  # a verdict takes no vote's place
            cast = self.cast_in_run_off if event.run_off else self.cast
            cast.pop(event.agent, None)
            cast[event.agent] = Vote(event.agent, event.label, event.reason, time)
        self.phase, self.agents[event.agent].status = "voting", "voted"
        self.agents[event.agent].acted_in = event.form
        self.agents[event.agent].act()
        self.agents[event.agent].voted_on = self.agents[event.agent].opened_with

    def _files_checked(self, event: FilesChecked) -> None:
        match event.subject:
            case "final":
                self.checked_final = event
            case "unfinished":
                self.checked_unfinished[event.agent or ""] = event
            case "base" | "answer":
                pass  # the rules have folded it in
            case _:
                assert_never(event.subject)

    def _answered(self, event: AnswerSubmitted) -> None:
        agent = self.agents[event.agent]
        agent.answered(event)
        agent.act()
        agent.status, agent.acted_in = "answered", event.form
        for voter in event.voided_votes:
            self.agents[voter].status = "restarting"
        if not self.coordination.unanswered:
            self.phase = "voting"


def folded(records: Iterable[LogRecord]) -> RunState:
    """The state to which these records lead."""
    state = RunState()
    for record in records:
        state.apply(record)
    return state
