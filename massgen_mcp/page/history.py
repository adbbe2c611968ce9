"""When what happened in a run, in the order of time: what its state, which tells of one moment, does not keep.

Reads every record once. Who may vote, what counts and who wins is not decided here: the state is asked for it.
"""

from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from massgen_mcp.events.agent_work import (
    BallotChanged,
    LostTry,
    MessagesShown,
    ModelCallAborted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelReplied,
    RoundStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerSubmitted,
    CheckFinished,
    FilesChecked,
    PresentationStarted,
    VoteCast,
    WinnerChosen,
)
from massgen_mcp.events.record import AnyEvent, LogRecord, UnknownEvent
from massgen_mcp.events.run import (
    AttemptStarted,
    BaseTaken,
    BudgetRaised,
    CallerMessage,
    FinishRequested,
    InputGiven,
    InputRequired,
    NestedRunEnded,
    NestedRunStarted,
    RunCancelled,
    RunEnd,
    RunResumed,
    RunStarted,
)
from massgen_mcp.money.budget import Spending
from massgen_mcp.page.data import CallEnd, MomentKind, PageModelCall, PageMoment, PagePhase, PageToolCall
from massgen_mcp.views.sentences import sentence_of

_STEERING = (
    CallerMessage,
    FinishRequested,
    InputRequired,
    InputGiven,
    BudgetRaised,
    RunCancelled,
)


E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Past(Generic[E]):
    """An event, when it happened, and in which attempt."""

    at: float
    attempt: int
    event: E


@dataclass(frozen=True, slots=True)
class PastVote(Past[VoteCast]):
    void_at: float | None = None


PastAnswer = Past[AnswerSubmitted]
PastChecked = Past[FilesChecked]
Sent = Past[RoundStarted | BallotChanged | MessagesShown | PresentationStarted]
"""What an agent was sent."""


@dataclass
class RunHistory:
    """Mutable while records are added; treat it as read-only. Times are those of the records, in seconds; in parts of a
    page they are those since the run began.
    """

    calls: list[PageModelCall] = field(default_factory=list[PageModelCall])
    """One that has not ended ends where it began."""
    tools: list[PageToolCall] = field(default_factory=list[PageToolCall])
    """What each was to do is here as it was written, and so is what was written at a moment."""
    check_runs: list[Past[CheckFinished]] = field(default_factory=list[Past[CheckFinished]])
    checked: list[PastChecked] = field(default_factory=list[PastChecked])
    authors: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Whose files a tree holds; None: the base's. Of files as they are judged it is known when all checks have run."""
    answers: list[PastAnswer] = field(default_factory=list[PastAnswer])
    votes: list[PastVote] = field(default_factory=list[PastVote])
    moments: list[PageMoment] = field(default_factory=list[PageMoment])
    sent: list[Sent] = field(default_factory=list[Sent])
    nested: dict[str, tuple[float, float | None]] = field(default_factory=dict[str, tuple[float, float | None]])
    """From when to when a nested run went on, by its id."""
    by_phase: dict[PagePhase, Spending] = field(default_factory=dict[PagePhase, Spending])
    decided: float | None = None
    """When the winner of the last attempt was chosen."""
    last: float = 0.0
    """When the last thing happened."""
    began: float | None = None
    _attempt: int = 1
    _models: dict[str, str] = field(default_factory=dict[str, str])
    _alone: set[str] = field(default_factory=set[str])
    """Agents in a round that began without answers of others."""
    _open_calls: dict[str, tuple[int, ModelCallStarted]] = field(
        default_factory=dict[str, tuple[int, ModelCallStarted]]
    )
    """Place in `calls`, and how it began; by id."""
    _standing: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Places in `votes` of those of an agent that nothing has made void."""
    _shown_tools: dict[str, str] = field(default_factory=dict[str, str])

    def since(self, time: float) -> float:
        """Seconds since the run began; a clock that was set back cannot lead before that."""
        return round(max(0.0, time - (self.began or time)), 3)

    def add(self, record: LogRecord) -> None:
        event = record.event
        if isinstance(event, TextDelta):
            self.last = max(self.last, record.time)
            return
        if isinstance(event, RunResumed | RunEnd):
            self._lose_calls()
        self.last = max(self.last, record.time)
        self._add_moment(record.time, event)
        self._add(record.time, event)

    def _add(self, at: float, event: AnyEvent | UnknownEvent) -> None:  # noqa: C901 - one case per event, nothing else
        match event:
            case RunStarted():
                self._models = {agent.name: agent.model for agent in event.agents}
                self.began = at
            case AttemptStarted():
                self._attempt, self._standing, self.decided = event.attempt, {}, None
            case WinnerChosen():
                self.decided = at
            case RoundStarted() | BallotChanged() | MessagesShown() | PresentationStarted():
                self._send(at, event)
            case ModelCallStarted():
                self._begin_call(at, event)
            case ModelReplied():
                self._spending(event.call_id).add_reply(event)
                self._end_call(event.call_id, at, "replied", sentence_of(event).text)
            case ModelCallRetried():
                self._lose(event)
            case ModelCallFailed():
                self._lose(event)
                self._end_call(event.call_id, at, "failed", sentence_of(event).text)
            case ModelCallAborted():
                self._lose(event)
                self._end_call(event.call_id, at, "stopped", sentence_of(event).text)
            case ToolStarted():
                self._shown_tools[event.call_id] = event.shown
            case ToolFinished():
                self.tools.append(
                    PageToolCall(
                        agent=event.agent,
                        start=self.since(at - event.seconds),
                        end=self.since(at),
                        name=event.name,
                        shown=self._shown_tools.pop(event.call_id, ""),
                        failed=event.is_error,
                    )
                )
            case BaseTaken(tree=str(tree)):
                self.authors[tree] = None
            case CheckFinished():
                self.check_runs.append(Past(at, self._attempt, event))
            case FilesChecked():
                self._check(at, event)
            case AnswerSubmitted():
                self.answers.append(Past(at, self._attempt, event))
                if event.changes is not None:
                    self.authors.setdefault(event.changes.tree, event.agent)
                for voter in event.voided_votes:
                    self._void(voter, at)
            case VoteCast():
                self._standing.setdefault(event.agent, []).append(len(self.votes))
                self.votes.append(PastVote(at, self._attempt, event))
            case AgentDropped():
                self._void(event.agent, at)
            case NestedRunStarted():
                self.nested[event.run_id] = (at, None)
            case NestedRunEnded():
                self.nested[event.run_id] = (self.nested.get(event.run_id, (at, None))[0], at)
            case _:
                pass

    def _add_moment(self, at: float, event: AnyEvent | UnknownEvent) -> None:
        """One for everything that the records or the live view tell, or that is a warning."""
        sentence = sentence_of(event)
        bad = sentence.level in ("WARNING", "ERROR")
        if not (sentence.record or sentence.live or bad):
            return
        kind: MomentKind = "step"
        if isinstance(event, AnswerSubmitted):
            kind = "answer"
        elif isinstance(event, VoteCast):
            kind = "vote"
        elif isinstance(event, _STEERING):
            kind = "steering"
        elif bad:
            kind = "failure"
        agent = getattr(event, "agent", None)
        say, detail = sentence.text, sentence.detail
        self.moments.append(PageMoment(at=self.since(at), agent=agent, say=say, detail=detail, kind=kind))

    def _send(self, at: float, event: RoundStarted | BallotChanged | MessagesShown | PresentationStarted) -> None:
        self.sent.append(Past(at, self._attempt, event))
        if isinstance(event, RoundStarted | BallotChanged):
            (self._alone.discard if event.ballot else self._alone.add)(event.agent)

    def _begin_call(self, at: float, event: ModelCallStarted) -> None:
        match event.purpose:
            case "coordinate":
                alone = event.agent in self._alone
                phase: PagePhase = "First answers" if alone else "Reading, improving, voting"
            case "present":
                phase = "Final answer"
            case "evaluate":
                phase = "Judging it"
            case "condense":
                phase = "Making room"
        self._open_calls[event.call_id] = len(self.calls), event
        start = self.since(at)
        self.calls.append(PageModelCall(agent=event.agent, start=start, end=start, phase=phase, ended="open", say=""))
        self._lose(event)

    def _end_call(self, call_id: str, at: float, ended: CallEnd, say: str) -> None:
        if (opened := self._open_calls.pop(call_id, None)) is not None:
            place, _ = opened
            end = {"end": self.since(at), "ended": ended, "say": say}
            self.calls[place] = self.calls[place].model_copy(update=end)

    def _void(self, voter: str, at: float) -> None:
        for place in self._standing.pop(voter, []):
            self.votes[place] = replace(self.votes[place], void_at=at)

    def _check(self, at: float, event: FilesChecked) -> None:
        if event.label is not None:  # told again when some of its checks have run once more
            known = (self._attempt, event.label)
            self.checked = [one for one in self.checked if (one.attempt, one.event.label) != known]
        self.checked.append(Past(at, self._attempt, event))
        found = (*event.outcomes, *event.own)
        for run in self.check_runs:
            if run.event.outcome in found:
                self.authors.setdefault(run.event.tree, event.agent)

    def _lose_calls(self) -> None:
        """The process that made these calls was lost before they ended."""
        for call_id, (_, begun) in list(self._open_calls.items()):
            self._spending(call_id).add_lost_call(begun, self._models.get(begun.agent, ""))
            self._end_call(call_id, self.last, "lost", "lost when the run's process ended")

    def _spending(self, call_id: str) -> Spending:
        opened = self._open_calls.get(call_id)
        phase: PagePhase = self.calls[opened[0]].phase if opened is not None else "Reading, improving, voting"
        return self.by_phase.setdefault(phase, Spending())

    def _lose(self, event: LostTry) -> None:
        """What a try without a reply has to be paid for; before the call is noted as ended."""
        self._spending(event.call_id).add_lost(event, self._models.get(event.agent, ""))


def key_of(attempt: int, label: str) -> str:
    """What tells an answer from every other one of its run."""
    return label if attempt == 1 else f"{label}, attempt {attempt}"
