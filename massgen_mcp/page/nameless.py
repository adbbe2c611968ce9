"""Events without what people, models and tools have named: files, directories, commands, servers and configs.

Their sentences tell such names, so a page that is to be shown to others takes its sentences from these.
"""

from typing import assert_never

from massgen_mcp.events.agent_work import (
    BallotChanged,
    ConversationCondensed,
    ConversationShortened,
    MessagesShown,
    ModelCallAborted,
    ModelCallAdmitted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    RoundStarted,
    RuleViolated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerEvaluated,
    AnswerPresented,
    AnswerSubmitted,
    CheckFinished,
    FilesChecked,
    FirstAnswersClosed,
    PresentationFailed,
    PresentationStarted,
    StageOpened,
    VoteCast,
    WinnerChosen,
    WrittenTestsSubmitted,
)
from massgen_mcp.events.parts import CheckOutcome
from massgen_mcp.events.record import AnyEvent, LogRecord, UnknownEvent
from massgen_mcp.events.run import (
    AttemptStarted,
    BaseTaken,
    BudgetMark,
    BudgetRaised,
    BudgetReached,
    CallerMessage,
    FinishRequested,
    InputGiven,
    InputRequired,
    NestedRunEnded,
    NestedRunStarted,
    ReservationExceeded,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunTimedOut,
    ServerLost,
    SetupFinished,
    TimeReturned,
)


class Nameless:
    """Every command keeps one number, so that what is told of it in several places belongs together."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def record(self, record: LogRecord) -> LogRecord:
        event = self._event(record.event)
        return record if event is record.event else record.model_copy(update={"event": event})

    def _event(self, event: AnyEvent | UnknownEvent) -> AnyEvent | UnknownEvent:
        match event:
            case RunStarted(servers=servers) if servers:
                return event.model_copy(update={"servers": (f"{len(servers)} left out",)})
            case BaseTaken():
                directories = (
                    one.model_copy(update={"name": f"directory {place}"})
                    for place, one in enumerate(event.directories, 1)
                )
                return event.model_copy(update={"directories": tuple(directories)})
            case ServerLost():
                return event.model_copy(update={"server": "(name left out)"})
            case NestedRunStarted():
                return event.model_copy(update={"source": "config left out"})
            case RunCompleted(failing_checks=failing) if failing:
                return event.model_copy(update={"failing_checks": tuple(map(self._number, failing))})
            case SetupFinished():
                directories = tuple(f"directory {place}" for place, _ in enumerate(event.directories, 1))
                return event.model_copy(update={"outcome": self._outcome(event.outcome), "directories": directories})
            case CheckFinished():
                return event.model_copy(update={"outcome": self._outcome(event.outcome)})
            case FilesChecked():
                return event.model_copy(
                    update={
                        "outcomes": tuple(map(self._outcome, event.outcomes)),
                        "own": tuple(map(self._outcome, event.own)),
                        "fails_before": tuple(map(self._number, event.fails_before)),
                        "restored": tuple(f"file {place}" for place, _ in enumerate(event.restored, 1)),
                        "problem": "(reason left out)" if event.problem else "",
                    }
                )
            case (
                RunStarted()
                | AttemptStarted()
                | FinishRequested()
                | TimeReturned()
                | BudgetMark()
                | BudgetReached()
                | BudgetRaised()
                | ReservationExceeded()
                | RunResumed()
                | CallerMessage()
                | InputRequired()
                | InputGiven()
                | NestedRunEnded()
                | RunCompleted()
                | RunFailed()
                | RunCancelled()
                | RunTimedOut()
                | RoundStarted()
                | MessagesShown()
                | BallotChanged()
                | ModelCallStarted()
                | ModelCallWaiting()
                | ModelCallAdmitted()
                | TextDelta()
                | ModelCallRetried()
                | ModelReplied()
                | ModelCallFailed()
                | ModelCallAborted()
                | ToolStarted()
                | ToolFinished()
                | RuleViolated()
                | ConversationShortened()
                | ConversationCondensed()
                | AnswerSubmitted()
                | VoteCast()
                | StageOpened()
                | WrittenTestsSubmitted()
                | FirstAnswersClosed()
                | AgentDropped()
                | WinnerChosen()
                | PresentationStarted()
                | AnswerPresented()
                | AnswerEvaluated()
                | PresentationFailed()
                | UnknownEvent()
            ):
                return event
            case _:
                assert_never(event)

    def _outcome(self, outcome: CheckOutcome) -> CheckOutcome:
        how = "did not run" if outcome.result == "not_run" else outcome.how  # the rest of it may name files
        command = self._number(outcome.command)
        return outcome.model_copy(update={"command": command, "how": how, "cure": "", "excerpt": ""})

    def _number(self, command: str) -> str:
        return self._numbers.setdefault(command, f"check {len(self._numbers) + 1}")
