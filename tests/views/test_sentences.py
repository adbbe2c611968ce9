"""Every event has one sentence, from which all views take their words; an event without one is noticed by all."""

from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

import pytest
from opentelemetry.trace import NoOpTracer

from massgen_mcp.events.parts import AgentInfo, CheckOutcome, Event
from massgen_mcp.events.record import AnyEvent, LogRecord
from massgen_mcp.events.run import RunStarted
from massgen_mcp.page.history import RunHistory
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.activity import Activities
from massgen_mcp.views.coordination_record import coordination_events, coordination_table
from massgen_mcp.views.event_lines import event_line, log_line
from massgen_mcp.views.names import replace_names
from massgen_mcp.views.sentences import sentence_of
from massgen_mcp.views.spans import Spans

AGENT = AgentInfo(name="agent_a", id="first", backend="scripted", model="scripted")
EVENT_TYPES: tuple[type[Event], ...] = get_args(get_args(AnyEvent)[0])


class Moved(Event):
    """An event type that was just added to the union."""

    type: Literal["moved"] = "moved"
    agent: str = "agent_a"


def snapshot() -> RunState:
    run = RunState()
    run.apply(LogRecord(seq=1, time=1.0, event=RunStarted(run_id="r", question="q", agents=(AGENT,))))
    return run


def record_of(event: Event) -> LogRecord:
    return LogRecord.model_construct(seq=2, time=2.0, event=event)


VIEWS: dict[str, Callable[[LogRecord], Any]] = {
    "log and watch": lambda record: log_line(record, snapshot()),
    "live view's lines": lambda record: event_line(record, snapshot()),
    "live view's frame": Activities().apply,
    "coordination_events.json": lambda record: coordination_events(snapshot(), [record]),
    "coordination_table.txt": lambda record: coordination_table(snapshot(), [record]),
    "status": lambda record: snapshot().apply(record),
    "page": lambda record: RunHistory().add(record),
    "spans": Spans(NoOpTracer(), "r", (AGENT,), with_content=False).heard,
}


@pytest.mark.parametrize("view", [view for view in VIEWS if view not in {"status", "spans"}])
def test_a_new_event_type_is_refused_by_every_view_until_it_has_its_sentence(view: str) -> None:
    with pytest.raises(AssertionError):
        VIEWS[view](record_of(Moved()))


def example(event_type: type[Event]) -> Event:
    """An event with the plainest values that its fields can have."""
    values: dict[str, Any] = {"int": 1, "float": 1.0, "str": "word", "bool": True, "dict": {"agent1.1": 1}}
    fields: dict[str, Any] = {}
    for name, field in event_type.model_fields.items():
        if field.is_required():
            if field.annotation is CheckOutcome:
                fields[name] = example(CheckOutcome)
                continue
            words = [value for value in get_args(field.annotation) if isinstance(value, str)]
            kind = getattr(get_origin(field.annotation) or field.annotation, "__name__", "")
            fields[name] = words[0] if words else values.get(kind, () if kind == "tuple" else None)
    return event_type.model_validate(fields)


@pytest.mark.parametrize("event_type", EVENT_TYPES, ids=lambda event_type: event_type.__name__)
def test_every_event_says_what_happened_in_every_view_that_shows_it(event_type: type[Event]) -> None:
    record = record_of(example(event_type))
    said = sentence_of(record.event)
    assert said.text.strip()
    line = log_line(record, snapshot())
    assert (line is None) == (said.level is None)
    assert line is None or replace_names(snapshot(), said.text) in line
    shown = coordination_events(snapshot(), [record])["events"]
    assert [row["event_type"] for row in shown] == ([said.record] if said.record else [])
    assert (event_line(record, snapshot()) is None) == (said.live is None)
    history = RunHistory()
    history.add(record)
    bad = said.level in ("WARNING", "ERROR")
    moments = [(moment.say, moment.detail) for moment in history.moments]
    assert moments == ([(said.text, said.detail)] if said.record or said.live or bad else [])
