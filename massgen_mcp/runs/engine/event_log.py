"""The events of a run, wherever they are kept: the lines of a log, how each is sealed and read, also when a newer
version of this program wrote it; who appends, who follows, and what a log that is not whole tells.

Fixed for all versions: a line is one JSON object with `seq`, `time`, `event` and, last, `crc`; an event is an object
with a `type`. All else may change with `JOURNAL_VERSION`.
"""

import json
import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, Protocol, cast, get_args
from zlib import crc32

import anyio
from pydantic import ValidationError

from massgen_mcp.errors import JournalNewer, MassgenError
from massgen_mcp.events.parts import Event, EventT
from massgen_mcp.events.record import JOURNAL_VERSION, AnyEvent, LogRecord, UnknownEvent
from massgen_mcp.redaction import NO_KEYS, Redactor
from massgen_mcp.run_state.state import RunState


class DamagedJournal(MassgenError):
    """An event in the middle of a log is not what was written. `intact`: the new records before it."""

    def __init__(self, seq: int, intact: list[LogRecord]) -> None:
        super().__init__("run_damaged", f"the run's journal is damaged from event {seq} on")
        self.intact = intact


class TakenOver(MassgenError):
    """Another process has taken the run: further events of this one don't count."""

    def __init__(self, run_id: str) -> None:
        super().__init__("store_unavailable", f"another process has taken over {run_id}")


BATCH = 2000
"""So many records are in memory at once while a whole log is read."""
SEAL_BYTES = 18
_TEXT = re.compile(rb'\{"v":%d,"seq":(\d+),"time":[^,]+,"event":\{"type":"text_delta",' % JOURNAL_VERSION)


def sealed(record: str) -> bytes:
    """The line of a record: its JSON object, which is given, with the checksum of that object as its last member."""
    written = record.encode("utf-8", "replace")
    return b'%b,"crc":"%08x"}\n' % (written[:-1], crc32(written))


def unsealed(line: bytes) -> LogRecord | None:
    """The record in a line without its end; None if the line is not exactly what was written.

    What only a newer version knows is named in the record's `unread`, or is an `UnknownEvent`.
    """
    if (record := _record_json(line)) is None:
        return None
    try:
        return LogRecord.model_validate_json(record)
    except ValidationError:
        return _newer(record)


def seq_of_text(line: bytes) -> int | None:
    """The `seq` of a line without its end that holds streamed text, written by this version; None for all others. Tells
    it without taking the text out, at a fifth of the cost.
    """
    found = _TEXT.match(line)
    return None if found is None or _record_json(line) is None else int(found[1])


def _record_json(line: bytes) -> bytes | None:
    """The record's JSON text, if the line is what was written."""
    record, seal = line[:-SEAL_BYTES] + b"}", line[-SEAL_BYTES:]
    return record if seal == b',"crc":"%08x"}' % crc32(record) else None


def _newer(written: bytes) -> LogRecord | None:
    """The record as far as this version knows it; None if it is none of any version."""
    try:
        members: dict[str, Any] = json.loads(written)
        event: dict[str, Any] = dict(members["event"])
        known = {name: members[name] for name in LogRecord.model_fields if name in members and name != "event"}
        shell = LogRecord.model_validate({**known, "event": {"type": str(event["type"]), "content": {}}})
    except (ValueError, TypeError, KeyError):
        return None
    read, unread = _known_part(_as_now(event))
    return shell.model_copy(
        update={"event": read, "unread": (*unread, *sorted(members.keys() - known.keys() - {"event"}))}
    )


def _as_now(event: dict[str, Any]) -> dict[str, Any]:
    """An event of version 1 in the words of this one: a run-off was an event of its own, and a mark of its rounds."""
    match event:
        case {"type": "run_off_started", "candidates": subjects, "voters": agents, "camps": camps}:
            opened = {"kind": "vote", "because": "tied", "subjects": subjects, "agents": agents, "camps": camps}
            return {"type": "stage_opened", **opened}
        case {"type": "round_started", "run_off": bool(run_off), **others}:
            return {**others, "type": "round_started", "kind": "run_off" if run_off else "answer_or_vote"}
        case _:
            return event


def _known_part(event: dict[str, Any]) -> tuple[Event, tuple[str, ...]]:
    """The event without the members that are unknown here, or with values of closed lists that are, and their names; or
    all of it as an `UnknownEvent`.
    """
    kind = _KINDS.get(event["type"])
    unknown = UnknownEvent(type=event["type"], content={name: event[name] for name in event if name != "type"})
    if kind is None:
        return unknown, ()
    try:
        return kind.model_validate_json(json.dumps(event)), ()
    except ValidationError as error:
        surplus = [found["loc"] for found in error.errors() if found["type"] == "extra_forbidden"]
        strange = [str(found["loc"][0]) for found in error.errors() if found["type"] == "literal_error"]
    part: dict[str, Any] = json.loads(json.dumps(event))
    try:
        for path in surplus:
            _remove(part, path)
        for name in strange:
            part[name] = get_args(kind.model_fields[name].annotation)[0]
        read = kind.model_validate_json(json.dumps(part)).model_copy(update={name: event[name] for name in strange})
    except (ValidationError, LookupError):
        return unknown, ()
    return read, (*(".".join(map(str, path)) for path in surplus), *strange)


def _remove(event: dict[str, Any], path: tuple[int | str, ...]) -> None:
    place: Any = event
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]


_KINDS = {
    kind.model_fields["type"].default: kind for kind in cast("tuple[type[Event], ...]", get_args(get_args(AnyEvent)[0]))
}


class EventWriter:
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

    def close(self) -> None:
        """What was not settled may be lost."""


class EventReader:
    """Follows a log that others write; each `read` gives what is new since the last one.

    Also what is not given is read, and must be whole.
    """

    def __init__(self, after: int, *, text: bool) -> None:
        self._after = after
        self._text = text
        self._left_out: bytes | None = None
        """The line that was read last, if it was left out."""
        self._bytes = 0
        """So long are the lines that were read, with their ends."""
        self._seq = 0
        self.newer: JournalNewer | None = None
        """Why nobody here may go on with the run, once a record of a newer version was read."""
        self.damage: DamagedJournal | None = None
        """What is wrong with the log, once `read_intact` has met it."""

    def lines(self) -> Generator[bytes]:
        """Whole lines without their ends, from the first that was not read. Raises `MassgenError` store_unavailable."""
        raise NotImplementedError

    def read(self, most: int | None = None) -> list[LogRecord]:
        """New whole records, at most that many. A log that is not there yet has none.

        Raises `DamagedJournal` (run_damaged), again at every call, or `MassgenError` store_unavailable.
        """
        records: list[LogRecord] = []
        with closing(self.lines()) as lines:
            while (most is None or len(records) < most) and (line := next(lines, None)) is not None:
                if self._text or not self._leave_out(line):
                    self._take(line, records)
        self._give_last(records)
        return records

    def read_intact(self) -> Iterator[LogRecord]:
        """Yield new whole records, those before a damage if there is one. Raises `MassgenError` store_unavailable."""
        try:
            while records := self.read(BATCH):
                yield from records
        except DamagedJournal as damage:
            self.damage = damage
            yield from damage.intact

    def _leave_out(self, line: bytes) -> bool:
        """Whether the line is whole, in its place, and holds streamed text."""
        if (seq := seq_of_text(line)) is None or seq != self._seq + 1:
            return False
        self._left_out = line if seq > self._after else None
        self._seq = seq
        self._bytes += len(line) + 1
        return True

    def _give_last(self, records: list[LogRecord]) -> None:
        """What was read last is given even if it is text: so it is known how far the log goes."""
        if self._left_out is not None and (last := unsealed(self._left_out)) is not None:
            records.append(last)
        self._left_out = None

    def _take(self, line: bytes, records: list[LogRecord]) -> None:
        record = unsealed(line)
        if record is None or record.seq != self._seq + 1:
            self._give_last(records)
            raise DamagedJournal(self._seq + 1, records)
        if record.newer and self.newer is None:
            self.newer = JournalNewer(f"event {record.seq} ({getattr(record.event, 'type', '')})")
        if record.seq > self._after:
            records.append(record)
        self._left_out = None
        self._seq = record.seq
        self._bytes += len(line) + 1


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
        return self.follow(text=text).read()

    def read_intact(self) -> Iterator[LogRecord]:
        """Yield every record, for whoever looks back at the run; streamed text is left out as in `follow`. See
        `EventReader.read_intact`.
        """
        return self.follow(text=False).read_intact()

    def read_to_continue(self) -> list[LogRecord]:
        """Every record, for whoever continues or ends the run; streamed text is left out as in `follow`. Raises as
        `EventReader.read` does, and `JournalNewer` where a newer version wrote a part.
        """
        reader = self.follow(text=False)
        records = reader.read()
        if reader.newer is not None:
            raise reader.newer
        return records
