"""What a person sees of a run while it goes on, in the process that executes it or in another one.

Must not know what is printed before and after a run.
"""

import signal
from collections.abc import Callable
from typing import Protocol

import anyio

from massgen_mcp.events.record import LogRecord
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import Action
from massgen_mcp.views.event_lines import spoken_line

LET_GO = signal.SIGUSR1
"""Tells the process that executes a run that a person wants the terminal back, and the run to go on."""


class FollowedRun(Protocol):
    """A run that is looked at, and what may be done with it."""

    @property
    def state(self) -> RunState:
        """Always up to date."""
        ...

    @property
    def past(self) -> tuple[LogRecord, ...]:
        """What had happened before anybody looked."""
        ...

    def do(self, action: Action, message: str = "", number: int = 0) -> None:
        """See `RunHandle.do`."""


class Display:
    """Shows nothing. Everything here is called in the run's own event loop; nothing may block it."""

    def started(self, run: FollowedRun) -> None:
        """The run begins; `run.state` is always up to date."""

    def record(self, record: LogRecord) -> None:
        """Something happened."""

    def note(self, text: str) -> None:
        """Something that is no event of the run."""

    async def refresh(self) -> None:
        """Runs beside the run and is cancelled when it has ended: for clocks and keys."""
        await anyio.sleep_forever()

    def close(self) -> None:
        """The run has ended, well or not. Leaves the terminal as it was."""


class Sentences(Display):
    """One plain sentence for everything that a person who follows a run wants to know. `say` prints what `word` makes
    of an event.
    """

    def __init__(
        self, say: Callable[[str], object], word: Callable[[LogRecord, RunState], str | None] = spoken_line
    ) -> None:
        self._say, self._word = say, word
        self._run: FollowedRun | None = None

    def started(self, run: FollowedRun) -> None:
        self._run = run

    def record(self, record: LogRecord) -> None:
        if self._run is not None and (line := self._word(record, self._run.state)):
            self._say(line)

    def note(self, text: str) -> None:
        self._say(text)
