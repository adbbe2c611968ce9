"""Events without what people, models and tools have named: files, directories, commands, servers and configs.

Their sentences tell such names, so a page that is to be shown to others takes its sentences from these.
"""

from massgen_mcp import events
from massgen_mcp.events import LogRecord


class Nameless:
    """Every command keeps one number, so that what is told of it in several places belongs together."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def record(self, record: LogRecord) -> LogRecord:
        event = self._event(record.event)
        return record if event is record.event else record.model_copy(update={"event": event})

    def _event(self, event: events.AnyEvent | events.UnknownEvent) -> events.AnyEvent | events.UnknownEvent:
        match event:
            case events.RunStarted(servers=servers) if servers:
                return event.model_copy(update={"servers": (f"{len(servers)} left out",)})
            case events.BaseTaken():
                directories = (
                    one.model_copy(update={"name": f"directory {place}"})
                    for place, one in enumerate(event.directories, 1)
                )
                return event.model_copy(update={"directories": tuple(directories)})
            case events.ServerLost():
                return event.model_copy(update={"server": "(name left out)"})
            case events.NestedRunStarted():
                return event.model_copy(update={"source": "config left out"})
            case events.RunCompleted(failing_checks=failing) if failing:
                return event.model_copy(update={"failing_checks": tuple(map(self._number, failing))})
            case events.CheckFinished():
                return event.model_copy(update={"outcome": self._outcome(event.outcome)})
            case events.FilesChecked():
                return event.model_copy(
                    update={
                        "outcomes": tuple(map(self._outcome, event.outcomes)),
                        "own": tuple(map(self._outcome, event.own)),
                        "fails_before": tuple(map(self._number, event.fails_before)),
                        "restored": tuple(f"file {place}" for place, _ in enumerate(event.restored, 1)),
                        "problem": "(reason left out)" if event.problem else "",
                    }
                )
            case _:
                return event

    def _outcome(self, outcome: events.CheckOutcome) -> events.CheckOutcome:
        how = "did not run" if outcome.result == "not_run" else outcome.how  # the rest of it may name files
        return outcome.model_copy(update={"command": self._number(outcome.command), "how": how})

    def _number(self, command: str) -> str:
        return self._numbers.setdefault(command, f"check {len(self._numbers) + 1}")
