"""The events of a run: who appends, who follows, and what a log that is not whole tells."""

from collections.abc import Callable, Generator
from typing import Protocol

from massgen_mcp.errors import JournalNewer, MassgenError
from massgen_mcp.events.parts import EventT
from massgen_mcp.events.record import LogRecord
from massgen_mcp.redaction import NO_KEYS, Redactor
from massgen_mcp.run_state.state import RunState


class DamagedJournal(MassgenError):
    """An event in the middle of a log is not what was written. `intact`: the new records before it."""

    def __init__(self, seq: int, intact: list[LogRecord]) -> None:
        super().__init__("run_damaged", f"the run's journal is damaged from event {seq} on")
        self.intact = intact


class EventWriter(Protocol):
    """Appends to the log, for the process that executes the run.

    `record` fixes an event's place at once and hands it to the listeners; it is durable after `settle`, and most likely
    soon anyway. No key passes: what is recorded and what the listeners hear holds none.
    """

    def ends_with(self, state: RunState) -> None:
        """`state` is what the log comes to: a store that keeps both notes the end of the run with its last event."""

    def listen(self, listener: Callable[[LogRecord], None]) -> None:
        """Call `listener` with every record from now on, in order, before anything else happens."""

    def record(self, event: EventT) -> EventT:
        """Returns the event as it is recorded: without keys."""
        ...

    async def settle(self) -> None:
        """Everything recorded before this call survives a power cut. Concurrent calls share one write.

        Raises `MassgenError` disk_full or store_unavailable; nothing is lost then, and the next call tries again.
        """

    async def drain(self) -> None:
        """Write what is pending, for readers in other processes."""

    def close(self) -> None:
        """What was not settled may be lost."""


class EventReader(Protocol):
    """Follows a log that others write; each `read` gives what is new since the last one."""

    newer: JournalNewer | None
    """Why nobody here may go on with the run, once a record of a newer version was read."""

    def lines(self) -> Generator[bytes]:
        """As they are kept, without their ends, from the first that was not read. Raises `MassgenError`
        store_unavailable.
        """
        ...

    def read(self, most: int | None = None) -> list[LogRecord]:
        """New whole records, at most that many. A log that is not there yet has none.

        Raises `DamagedJournal` (run_damaged), again at every call, or `MassgenError` store_unavailable.
        """
        ...


class EventLog(Protocol):
    """The events of one run: one writer, any number of readers in any process. `seq` counts from 1 without a gap.

    An event that was not wholly written never happened; one that was changed or is missing is damage; what a newer
    version wrote is neither.
    """

    def make(self) -> None:
        """An empty log, when the run is made. Raises `OSError`."""

    def begun(self) -> bool:
        """Whether there is any event."""
        ...

    def append(self, *, redactor: Redactor = NO_KEYS) -> EventWriter:
        """Goes on after the last whole event. Raises `OSError`, `MassgenError`."""
        ...

    def follow(self, after: int = 0, *, text: bool = True) -> EventReader:
        """Gives the events whose `seq` is above `after`. Without `text` those of streamed text are left out, which are
        for display only, but for the last record of a read: how far the log goes is known.
        """
        ...

    def read(self, *, text: bool = True) -> list[LogRecord]:
        """Every record there is now; `text` as in `follow`. Raises as `EventReader.read` does."""
        ...

    def read_to_continue(self) -> list[LogRecord]:
        """Every record, for whoever continues or ends the run; streamed text is left out as in `follow`. Raises as
        `EventReader.read` does, and `JournalNewer` where a newer version wrote a part.
        """
        ...
