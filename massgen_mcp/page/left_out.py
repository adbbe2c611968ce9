"""What is left out of the data of a page: of what was written all that does not fit, which is said; and of a redacted
page, which is to be shown to others, whatever people, models and tools have named, such as files, directories,
commands, servers and configs.
"""

from dataclasses import dataclass

from massgen_mcp.events.coordination import CheckFinished, FilesChecked
from massgen_mcp.events.parts import CheckOutcome
from massgen_mcp.events.record import AnyEvent, LogRecord, UnknownEvent
from massgen_mcp.events.run import BaseTaken, NestedRunStarted, RunCompleted, RunStarted, ServerLost, SetupFinished
from massgen_mcp.page.data import Text
from massgen_mcp.views.plain_text import preview

BEGINNING = 1_000
"""So much is left of a text that there is no room for."""


@dataclass(frozen=True, slots=True)
class Most:
    """How much a page holds. `characters`: of all its texts together; `marks`: of calls, tools and moments each, of
    which a longer run shows the last ones.
    """

    characters: int = 2_000_000
    marks: int = 4_000


WHOLE = Most()
"""Of a page that stands alone in a file."""


class TextRoom:
    """Takes texts in, the important ones first. `redacted`: none of them, on purpose."""

    def __init__(self, *, redacted: bool, most: Most = WHOLE) -> None:
        self.most = most
        self.redacted = redacted
        self.shortened = 0
        self._left = most.characters

    def take(self, text: str) -> Text:
        if self.redacted:
            return Text(text="", left_out=len(text))
        if len(text) > self._left:
            kept = text[: min(BEGINNING, self._left)]
            self.shortened += 1
        else:
            kept = text
        self._left -= len(kept)
        return Text(text=kept, left_out=len(text) - len(kept))

    def beginning(self, text: str, most: int) -> str:
        """At most `most` characters of what is elsewhere in the page, or in the run's record, whole."""
        return preview(self.take(text[: 4 * most]).text, most)


class Nameless:
    """Events without what was named. Their sentences tell such names, so a redacted page takes its sentences from
    these. Every command keeps one number, so that what is told of it in several places belongs together.
    """

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
                return event.model_copy(update={"failing_checks": tuple(map(self._numbered, failing))})
            case SetupFinished():
                directories = tuple(f"directory {place}" for place, _ in enumerate(event.directories, 1))
                return event.model_copy(
                    update={"outcome": self._redacted_outcome(event.outcome), "directories": directories}
                )
            case CheckFinished():
                return event.model_copy(update={"outcome": self._redacted_outcome(event.outcome)})
            case FilesChecked():
                return event.model_copy(
                    update={
                        "outcomes": tuple(map(self._redacted_outcome, event.outcomes)),
                        "own": tuple(map(self._redacted_outcome, event.own)),
                        "fails_before": tuple(map(self._numbered, event.fails_before)),
                        "restored": tuple(f"file {place}" for place, _ in enumerate(event.restored, 1)),
                        "problem": "(reason left out)" if event.problem else "",
                        "unfollowed": (),
                    }
                )
            case _:
                return event

    def _redacted_outcome(self, outcome: CheckOutcome) -> CheckOutcome:
        how = "did not run" if outcome.result == "not_run" else outcome.how  # the rest of it may name files
        command = self._numbered(outcome.command)
        return outcome.model_copy(update={"command": command, "how": how, "cure": "", "excerpt": "", "warnings": ()})

    def _numbered(self, command: str) -> str:
        return self._numbers.setdefault(command, f"check {len(self._numbers) + 1}")
