"""What a run looks like at one moment: a fold over its events, from which every view is drawn."""

from dataclasses import dataclass, field
from typing import Literal, assert_never

from massgen_mcp.events import (
    TERMINAL,
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
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    Outcome,
    PresentationFailed,
    PresentationStarted,
    ReservationExceeded,
    RoundStarted,
    RuleViolated,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunTimedOut,
    TextDelta,
    ToolFinished,
    UnknownEvent,
    VoteCast,
    WinnerChosen,
)
from massgen_mcp.views.spent import Spent, dollars

RunState = Literal[
    "queued", "running", "input_required", "completed", "failed", "cancelled", "timed_out", "interrupted"
]
Phase = Literal["answering", "voting", "presenting", "evaluating"]
AgentStatus = Literal["waiting", "streaming", "answered", "voted", "restarting", "error", "timeout", "completed"]

TERMINAL_STATES: frozenset[RunState] = frozenset({"completed", "failed", "cancelled", "timed_out"})


@dataclass
class AnswerView:
    agent: str
    label: str
    content: str
    path: str | None
    attempt: int


@dataclass
class VoteView:
    """A standing vote."""

    voter: str
    label: str
    reason: str
    time: float


@dataclass
class AgentView:
    info: AgentInfo
    status: AgentStatus = "waiting"
    answers: list[AnswerView] = field(default_factory=list["AnswerView"])
    rounds: int = 0
    last_activity: float | None = None
    dropped: AgentDropped | None = None
    dropped_at: float | None = None

    @property
    def restarts(self) -> int:
        """Rounds that began because answers had changed."""
        return max(0, self.rounds - 1)

    @property
    def latest_label(self) -> str | None:
        return self.answers[-1].label if self.answers else None


@dataclass
class RunSnapshot:
    """Mutable while being folded; treat it as read-only. `state` is `queued` until the run's first event."""

    run_id: str = ""
    question: str = ""
    state: RunState = "queued"
    phase: Phase = "answering"
    agents: dict[str, AgentView] = field(default_factory=dict[str, AgentView])
    attempt: int = 1
    earlier_answers: list[AnswerView] = field(default_factory=list[AnswerView])
    """Those of the attempts before this one."""
    votes: dict[str, VoteView] = field(default_factory=dict[str, VoteView])
    winner: WinnerChosen | None = None
    end: RunCompleted | RunFailed | RunCancelled | RunTimedOut | None = None
    presentation_failed: PresentationFailed | None = None
    started_at: float | None = None
    updated_at: float | None = None
    ended_at: float | None = None
    input_required: InputRequired | None = None
    """What the caller has to decide before the run continues; None: nothing."""
    resumed: int = 0
    """How often another process had to go on with the run."""
    repeated_calls: int = 0
    """Model calls made once more because their reply was lost with a process."""
    seq: int = 0
    max_usd: float | None = None
    """The cap as it stands; None where the run has none."""
    budget_reached: bool = False
    spent: Spent = field(default_factory=Spent)
    spent_by_agent: dict[str, Spent] = field(default_factory=dict[str, Spent])
    spent_by_model: dict[str, Spent] = field(default_factory=dict[str, Spent])

    def apply(self, record: LogRecord) -> None:
        """Fold one more record in."""
        self.seq = record.seq
        self.updated_at = record.time
        agent = getattr(record.event, "agent", None)
        if isinstance(agent, str) and agent in self.agents:
            self.agents[agent].last_activity = record.time
        _apply(self, record.event, record.time)
        if isinstance(record.event, TERMINAL):
            self.ended_at = record.time

    def end_with(self, event: RunCompleted | RunFailed | RunCancelled | RunTimedOut) -> None:
        """Have the run ended like this, whatever became of the rest of the fold."""
        self.end = event
        match event:
            case RunCompleted():
                self.state = "completed"
                for view in self.agents.values():
                    if view.dropped is None:
                        view.status = "completed"
            case RunFailed():
                self.state = "failed"
            case RunCancelled():
                self.state = "cancelled"
            case RunTimedOut():
                self.state = "timed_out"

    # -- questions that several views ask -------------------------------------------------------------------------

    @property
    def answers(self) -> list[AnswerView]:
        """Every answer ever given: earlier attempts first, agents in the order of the config."""
        return [*self.earlier_answers, *(answer for agent in self.agents.values() for answer in agent.answers)]

    @property
    def current_answers(self) -> list[AnswerView]:
        return [agent.answers[-1] for agent in self.agents.values() if agent.answers]

    @property
    def tally(self) -> dict[str, int]:
        """Standing votes by label of the current answers; superseded votes are not there."""
        counts = {answer.label: 0 for answer in self.current_answers}
        for vote in self.votes.values():
            counts[vote.label] = counts.get(vote.label, 0) + 1
        return counts

    @property
    def final_answer(self) -> str | None:
        """Only a completed run has one."""
        return self.end.answer if isinstance(self.end, RunCompleted) else None

    @property
    def best_answer(self) -> str | None:
        """The final answer, or the best one that a run had which did not come to one."""
        return self.end.answer if self.end is not None else None

    @property
    def unkept(self) -> str:
        """Why the final answer has no files of its own in the run directory; empty where it has."""
        return self.end.unkept if isinstance(self.end, RunCompleted) else ""

    @property
    def outcome(self) -> Outcome | None:
        """How good the agreement was; whatever a run had that did not complete is the best so far."""
        if isinstance(self.end, RunCompleted):
            return self.end.outcome
        return "best_so_far" if self.best_answer is not None else None

    @property
    def money_notes(self) -> list[str]:
        """What the sums alone do not tell about the budget."""
        notes: list[str] = []
        if self.budget_reached:
            notes.append(f"The budget was reached at {dollars(self.spent.usd)} of max_usd {self.max_usd:g}.")
        if self.max_usd is not None and (unpriced := self.spent.unpriced_calls):
            notes.append(f"{unpriced} calls have no known price: they count for max_tokens, not for max_usd.")
        return notes

    @property
    def degraded(self) -> list[tuple[str, str, str]]:
        """(agent, reason, message) of everybody who fell out, and of what else was lost on the way."""
        rows = [(d.agent, d.reason, d.message) for view in self.agents.values() if (d := view.dropped)]
        if failed := self.presentation_failed:
            rows.append((failed.agent, failed.reason, f"presentation: {failed.message}"))
        if isinstance(self.end, RunCompleted) and self.unkept:
            rows.append((self.end.winner, "internal", f"the answer's files are not kept: {self.unkept}"))
        return rows

    @property
    def progress(self) -> int:
        """Percent of the way, 100 only when the run has ended. Restarts may take it back: votes that became void count
        as work to be done again.
        """
        if self.state in TERMINAL_STATES:
            return 100
        live = [view for view in self.agents.values() if view.dropped is None]
        if not live:
            return 0
        done = sum(1 for view in live if view.answers) + len(self.votes)
        return min(99, round(100 * done / (2 * len(live) + 1))) if self.winner is None else 95

    def elapsed(self, now: float) -> float:
        if self.started_at is None:
            return 0.0
        return max(0.0, (self.ended_at or now) - self.started_at)


def _apply(run: RunSnapshot, event: AnyEvent | UnknownEvent, time: float) -> None:  # noqa: C901 - one case per event, nothing else
    match event:
        case RunStarted():
            run.run_id, run.question, run.state, run.started_at = event.run_id, event.question, "running", time
            run.agents = {info.name: AgentView(info) for info in event.agents}
            run.max_usd = event.max_usd
        case RunResumed():
            run.resumed += 1
            for agent in run.agents:
                _idle(run, agent)
        case InputRequired():
            run.state, run.input_required = "input_required", event
        case InputGiven():
            run.state, run.input_required = "running", None
        case AttemptStarted():
            _new_attempt(run, event)
        case RoundStarted():
            run.agents[event.agent].rounds += 1
        case ModelCallStarted():
            if event.purpose == "evaluate":
                run.phase = "evaluating"
            run.agents[event.agent].status = "streaming"
            run.repeated_calls += event.repeated
            _lose(run, event)
        case BudgetReached() | BudgetRaised():
            run.budget_reached = isinstance(event, BudgetReached)
            run.max_usd = event.max_usd if isinstance(event, BudgetRaised) else run.max_usd
        case ModelReplied():
            _spend(run, event)
        case ModelCallRetried():
            _lose(run, event)
        case ModelCallFailed() | ModelCallAborted():
            _lose(run, event)
            _idle(run, event.agent)
        case AnswerSubmitted():
            _answered(run, event)
        case VoteCast():
            run.votes[event.agent] = VoteView(event.agent, event.label, event.reason, time)
            run.phase = "voting"
            run.agents[event.agent].status = "voted"
        case AgentDropped():
            view = run.agents[event.agent]
            view.dropped, view.dropped_at = event, time
            view.status = "timeout" if event.reason == "timeout" else "error"
            run.votes.pop(event.agent, None)
        case WinnerChosen():
            run.winner = event
        case PresentationStarted() | AnswerPresented():
            run.phase = "presenting"
        case PresentationFailed():
            run.presentation_failed = event
        case RunCompleted() | RunFailed() | RunCancelled() | RunTimedOut():
            run.end_with(event)
        case (
            FinishRequested() | BudgetMark() | ReservationExceeded() | CallerSaid() | MessagesShown() | BallotChanged()
        ):
            pass  # told by its own line alone
        case ModelCallWaiting() | TextDelta() | ToolFinished() | RuleViolated() | FirstAnswersClosed():
            pass
        case AnswerEvaluated() | UnknownEvent():
            pass
        case _:
            assert_never(event)


def _new_attempt(run: RunSnapshot, event: AttemptStarted) -> None:
    run.attempt, run.phase = event.attempt, "answering"
    run.earlier_answers = run.answers
    run.votes, run.winner = {}, None
    for view in run.agents.values():
        view.answers = []


def _spend(run: RunSnapshot, event: ModelReplied) -> None:
    for spent in _purses(run, event.agent, event.model):
        spent.add_reply(event.usage, event.cost, event.seconds)


def _lose(run: RunSnapshot, event: ModelCallStarted | ModelCallRetried | ModelCallFailed | ModelCallAborted) -> None:
    if event.usage is None or event.cost is None:
        return
    for spent in _purses(run, event.agent, run.agents[event.agent].info.model):
        spent.add_lost(event.usage, event.cost)


def _purses(run: RunSnapshot, agent: str, model: str) -> tuple[Spent, Spent, Spent]:
    by_agent, by_model = run.spent_by_agent, run.spent_by_model
    return run.spent, by_agent.setdefault(agent, Spent()), by_model.setdefault(model, Spent())


def _idle(run: RunSnapshot, agent: str) -> None:
    view = run.agents[agent]
    if view.dropped is None:
        view.status = "voted" if agent in run.votes else "answered" if view.answers else "waiting"


def _answered(run: RunSnapshot, event: AnswerSubmitted) -> None:
    view = run.agents[event.agent]
    view.answers.append(AnswerView(event.agent, event.label, event.content, event.path, run.attempt))
    view.status = "answered"
    for agent in event.voided_votes:
        run.votes.pop(agent, None)
        run.agents[agent].status = "restarting"
    if all(other.answers or other.dropped for other in run.agents.values()):
        run.phase = "voting"
