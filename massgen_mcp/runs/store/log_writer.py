"""What whoever appends to an event log does, wherever the log is kept."""

import time
from collections.abc import Callable, Sequence

import anyio

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import Event, EventT
from massgen_mcp.events.record import JOURNAL_VERSION, LogRecord
from massgen_mcp.redaction import Redactor
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.store.journal_line import sealed


class LogWriter:
    """Appends to the log, for the process that executes the run.

    `record` fixes an event's place at once and hands it to the listeners; it is durable after `settle`, and most likely
    soon anyway. No key passes: what is recorded and what the listeners hear holds none.
    """

    def __init__(self, redactor: Redactor, recorded: int) -> None:
        """`recorded`: so many events are there."""
        self._redactor = redactor
        self._pending: list[bytes] = []
        self._recorded = self._settled = recorded
        self._writing = anyio.Lock()
        self._listeners: list[Callable[[LogRecord], None]] = []

    async def _write(self, lines: Sequence[bytes]) -> None:
        """Make these lines durable, which come after what is settled. Raises `MassgenError`: none of them is."""
        raise NotImplementedError

    def ends_with(self, state: RunState) -> None:
        """`state` is what the log comes to: a store that keeps both notes the end of the run with its last event."""

    def listen(self, listener: Callable[[LogRecord], None]) -> None:
        """Call `listener` with every record from now on, in order, before anything else happens."""
        self._listeners.append(listener)

    def record(self, event: EventT) -> EventT:
        """Returns the event as it is recorded: without keys."""
        record = self._next(event)
        line = record.model_dump_json(warnings=False)
        if self._redactor.finds(line):
            event = type(event).model_validate(self._redactor.value(event.model_dump()))
            record = self._next(event)
            line = record.model_dump_json(warnings=False)
        self._recorded = record.seq
        self._pending.append(sealed(line))
        for listener in self._listeners:
            listener(record)
        return event

    def _next(self, event: Event) -> LogRecord:
        return LogRecord.model_construct(
            v=JOURNAL_VERSION,
            seq=self._recorded + 1,
            time=time.time(),
            event=event,
            clock=round(time.monotonic(), 3),
        )

    async def settle(self) -> None:
        """Everything recorded before this call survives a power cut. Concurrent calls share one write.

        Raises `MassgenError` disk_full or store_unavailable; nothing is lost then, and the next call tries again.
        """
        wanted = self._recorded
        async with self._writing:
            if self._settled >= wanted:
                return
            lines, self._pending, last = self._pending, [], self._recorded
            try:
                with anyio.CancelScope(shield=True):
                    await self._write(lines)
            except MassgenError:
                self._pending[:0] = lines
                raise
            self._settled = last

    async def drain(self) -> None:
        """Write what is pending, for readers in other processes."""
        if self._pending:
            await self.settle()
