"""Where a run stands in the middle of its work: what a process needs that goes on with it after another one was lost.

Kept small, because every process that executes or shows a run folds it: a round's events are dropped when it ends.
"""

from dataclasses import dataclass, field

from massgen_mcp.events.agent_work import (
    OWN_QUEUE,
    BallotChanged,
    ConversationCondensed,
    ConversationShortened,
    MessagesShown,
    ModelCallAborted,
    ModelCallAdmitted,
    ModelCallFailed,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    RoundStarted,
    RuleViolated,
    ToolFinished,
    ToolStarted,
    WorkEvent,
)
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerEvaluated,
    AnswerPresented,
    AnswerSubmitted,
    PresentationFailed,
    PresentationStarted,
    VoteCast,
    WinnerChosen,
    WrittenTestsSubmitted,
)
from massgen_mcp.events.record import AnyEvent, LogRecord, UnknownEvent
from massgen_mcp.events.run import AttemptStarted, RunResumed, TimeReturned


@dataclass
class ResumePoint:
    """Mutable while being folded; treat it as read-only."""

    open_rounds: dict[str, list[RoundStarted | WorkEvent]] = field(
        default_factory=dict[str, list[RoundStarted | WorkEvent]]
    )
    """By agent, those events of its unfinished round that its model was told of, `RoundStarted` first."""
    presentation: list[PresentationStarted | PresentationFailed | WorkEvent] = field(
        default_factory=list[PresentationStarted | PresentationFailed | WorkEvent]
    )
    """The same of this attempt's final answer being written, `PresentationStarted` first; empty once it is there."""
    presented: bool = False
    """This attempt has its final answer."""
    judging: ModelReplied | None = None
    """The reply in which the winner judged the final answer of this attempt."""
    judged: AnswerEvaluated | None = None
    in_flight: dict[str, str] = field(default_factory=dict[str, str])
    """By agent, the id of the model call that was made and has not ended."""
    under_way: dict[str, ModelCallStarted] = field(default_factory=dict[str, ModelCallStarted])
    """Those of them that nobody has been charged for yet: they are lost with the process that works on the run."""
    queued: set[str] = field(default_factory=set[str])
    """Agents whose call waits in our own queue to the provider."""
    seconds: float = 0.0
    """How long the run has been worked on; the time it lay interrupted or its process stood still, or it waited only
    for our own queue, does not count.
    """
    elapsed: float = 0.0
    """The same with the time in our own queue."""
    _last: LogRecord | None = None

    @property
    def presentation_broke_off(self) -> bool:
        """The winner could not write the final answer of this attempt."""
        return bool(self.presentation) and isinstance(self.presentation[-1], PresentationFailed)

    @property
    def only_queued(self) -> bool:
        """Whether nobody of the run works, because the calls of all who should wait in our own queue."""
        return bool(self.queued) and self.open_rounds.keys() | self.in_flight.keys() <= self.queued

    def count_time(self, record: LogRecord) -> None:
        """Before the record is folded in."""
        last, self._last = self._last, record
        if last is None or isinstance(record.event, RunResumed):
            return
        passed = max(0.0, _seconds(last, record))
        if isinstance(record.event, TimeReturned):
            passed -= record.event.seconds
        self.elapsed += passed
        if not self.only_queued:
            self.seconds += passed

    def apply(self, event: AnyEvent | UnknownEvent) -> None:  # noqa: C901 - one case per event, nothing else
        """Fold one more event in."""
        match event:
            case AttemptStarted():
                self.open_rounds, self.presentation = {}, []
                self.presented, self.judging, self.judged = False, None, None
            case RoundStarted():
                self.open_rounds[event.agent] = [event]
            case AnswerSubmitted() | VoteCast() | WrittenTestsSubmitted() | AgentDropped():
                self.open_rounds.pop(event.agent, None)
            case WinnerChosen():
                self.open_rounds = {}
            case PresentationStarted():
                self.presentation = [event]
            case PresentationFailed():
                self.presentation.append(event)
            case AnswerPresented():
                self.presented, self.presentation = True, []
            case AnswerEvaluated():
                self.judged = event
            case ModelCallStarted():
                self.in_flight[event.agent] = event.call_id
                self.under_way[event.agent] = event
                self.queued.discard(event.agent)
            case ModelCallWaiting() if event.obstacle in OWN_QUEUE:
                self.queued.add(event.agent)
            case ModelCallWaiting() | ModelCallAdmitted():
                self.queued.discard(event.agent)
            case RunResumed():
                self.queued = set()
            case ModelReplied() | ModelCallFailed() | ModelCallAborted():
                self._end_call(event)
            case (
                ToolStarted()
                | ToolFinished()
                | BallotChanged()
                | MessagesShown()
                | RuleViolated()
                | ConversationShortened()
                | ConversationCondensed()
            ):
                self._keep(event)
            case _:
                pass

    def _end_call(self, event: ModelReplied | ModelCallFailed | ModelCallAborted) -> None:
        self.in_flight.pop(event.agent, None)
        self.under_way.pop(event.agent, None)
        self.queued.discard(event.agent)
        if isinstance(event, ModelReplied) and event.purpose == "evaluate":
            self.judging = event
        else:
            self._keep(event)

    def _keep(self, event: WorkEvent) -> None:
        """It belongs to the agent's open round, or else to the presentation."""
        if event.agent in self.open_rounds:
            self.open_rounds[event.agent].append(event)
        elif self.presentation:
            self.presentation.append(event)


def _seconds(before: LogRecord, after: LogRecord) -> float:
    if before.clock is None or after.clock is None:
        return after.time - before.time
    return after.clock - before.clock
