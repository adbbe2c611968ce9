"""What was written by this version of the journal stays readable, or the version is raised."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from massgen_mcp.events.agent_work import RoundStarted
from massgen_mcp.events.coordination import StageOpened
from massgen_mcp.events.parts import Event
from massgen_mcp.runs.engine.event_log import sealed, unsealed
from tests.golden.schema import RECORDED, Json, present, recorded, unreadable

HELP = "python -m tests.golden.schema"


def test_lines_of_this_version_stay_readable_or_the_version_is_raised() -> None:
    assert RECORDED.exists(), f"a new version of the journal: {HELP}"
    assert not unreadable(recorded(), present()), "JOURNAL_VERSION has to be raised"


def test_everything_that_this_version_writes_was_written_down() -> None:
    assert not unreadable(present(), recorded()), f"something was added to what a journal holds: {HELP}"


def fields(schema: Json, event: str = "VoteCast") -> Any:
    return schema["$defs"][event]["properties"]


def required(schema: Json, event: str = "VoteCast") -> list[str]:
    return schema["$defs"][event]["required"]


def test_of_version_1_only_what_says_a_run_off_has_other_words_now() -> None:
    old = json.loads((RECORDED.parent / "schema_1.json").read_text(encoding="utf-8"))
    assert unreadable(old, present()) == [
        "line.event.round_started.run_off: is not known any more",
        "line.event.run_off_started: object is not read",
    ]


def test_a_run_off_of_version_1_is_read_as_a_stage() -> None:
    opened = read_as_now({"type": "run_off_started", "candidates": ["agent1.1"], "voters": ["agent_b"], "camps": []})
    assert opened == StageOpened(kind="vote", subjects=("agent1.1",), agents=("agent_b",), because="tied")
    started: Json = {"type": "round_started", "agent": "agent_b", "round": 2, "revision": 2, "ballot": []}
    for run_off, kind in ((True, "run_off"), (False, "answer_or_vote")):
        read = read_as_now({**started, "run_off": run_off})
        assert isinstance(read, RoundStarted)
        assert read.kind == kind


def read_as_now(event: Json) -> Event:
    """From a line as version 1 wrote it."""
    record = unsealed(sealed(json.dumps({"v": 1, "seq": 1, "time": 1.0, "event": event}))[:-1])
    assert record is not None
    assert not record.newer
    assert isinstance(record.event, Event)
    return record.event


BROKEN: dict[str, tuple[Callable[[Json], object], str]] = {
    "a field was removed": (lambda new: fields(new).pop("reason"), "vote_cast.reason: is not known any more"),
    "a field was renamed": (
        lambda new: fields(new).update(why=fields(new).pop("reason")),
        "vote_cast.reason: is not known any more",
    ),
    "a field was added that lines must have": (
        lambda new: (fields(new).update(mood={"type": "string"}), required(new).append("mood")),
        "vote_cast.mood: is required, and lines are without it",
    ),
    "a field lost its default": (
        lambda new: required(new).append("run_off"),
        "vote_cast.run_off: is required, and lines are without it",
    ),
    "a field has another type": (
        lambda new: fields(new).update(label={"type": "integer"}),
        "vote_cast.label: string is not read",
    ),
    "a field may not be null any more": (
        lambda new: fields(new, "AnswerSubmitted").update(path={"type": "string"}),
        "answer_submitted.path: null is not read",
    ),
    "a number has become an integer": (
        lambda new: fields(new, "TimeReturned").update(seconds={"type": "integer"}),
        "time_returned.seconds: number is not read",
    ),
    "a field is bounded": (
        lambda new: fields(new)["label"].update(maxLength=8),
        "vote_cast.label: maxLength is another",
    ),
    "parts of a list have another type": (
        lambda new: fields(new, "AnswerSubmitted")["voided_votes"].update(items={"type": "integer"}),
        "answer_submitted.voided_votes: string is not read",
    ),
    "a word left a closed list": (
        lambda new: fields(new, "ModelCallStarted")["purpose"]["enum"].remove("condense"),
        "model_call_started.purpose: 'condense' is not read",
    ),
    "a part of several events lost a field": (
        lambda new: fields(new, "BallotEntry").pop("label"),
        "ballot_changed.ballot.label: is not known any more",
    ),
    "an event was removed": (
        lambda new: new["properties"]["event"]["oneOf"].remove({"$ref": "#/$defs/VoteCast"}),
        "vote_cast: object is not read",
    ),
}
KEPT: dict[str, Callable[[Json], object]] = {
    "nothing": lambda _: None,
    "an event was added": lambda new: (
        new["$defs"].update(Moved={"type": "object", "properties": {"type": {"const": "moved", "type": "string"}}}),
        new["properties"]["event"]["oneOf"].append({"$ref": "#/$defs/Moved"}),
    ),
    "a field with a default was added": lambda new: fields(new).update(mood={"type": "string"}),
    "a field got a default": lambda new: required(new).remove("reason"),
    "a field may be null": lambda new: fields(new).update(label={"anyOf": [{"type": "string"}, {"type": "null"}]}),
    "an integer has become a number": lambda new: fields(new).update(revision={"type": "number"}),
    "a word was added to a closed list": lambda new: fields(new, "ModelCallStarted")["purpose"]["enum"].append("plan"),
}


@pytest.mark.parametrize("change", BROKEN)
def test_a_change_that_makes_lines_unreadable_is_found(change: str) -> None:
    do, problem = BROKEN[change]
    new = copy.deepcopy(present())
    do(new)
    assert f"line.event.{problem}" in unreadable(present(), new)


@pytest.mark.parametrize("change", KEPT)
def test_a_change_that_leaves_lines_readable_is_let_through(change: str) -> None:
    new = copy.deepcopy(present())
    KEPT[change](new)
    assert unreadable(present(), new) == []
