"""One line of a journal: how it is sealed, and how it is read, also when a newer version of this program wrote it.

Fixed for all versions: a line is one JSON object with `seq`, `time`, `event` and, last, `crc`; an event is an object
with a `type`. All else may change with `JOURNAL_VERSION`.
"""

import json
import re
from typing import Any, cast, get_args
from zlib import crc32

from pydantic import ValidationError

from massgen_mcp.events.parts import Event
from massgen_mcp.events.record import JOURNAL_VERSION, AnyEvent, LogRecord, UnknownEvent

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
    if (record := _checked(line)) is None:
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
    return None if found is None or _checked(line) is None else int(found[1])


def _checked(line: bytes) -> bytes | None:
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
