"""Writes docs/events.schema.json: what a line of `events.jsonl` may be, what each field means, examples of events.

Meanings are those of the models, so the file says what the code says; a field without words is an error.
"""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel, TypeAdapter

from docs.kinds import said
from docs.steady import RUN_ID, steady
from massgen_mcp.config.schema import DIALECT, about, meanings
from massgen_mcp.events.agent_work import (
    BallotChanged,
    ConversationCondensed,
    ConversationShortened,
    ModelCallAdmitted,
    ModelCallWaiting,
    ToolStarted,
)
from massgen_mcp.events.coordination import (
    AnswerSubmitted,
    CheckFinished,
    FilesChecked,
    FirstAnswersClosed,
    ModelReplaced,
    StageOpened,
    WrittenTestsSubmitted,
)
from massgen_mcp.events.parts import BallotEntry, CheckOutcome, Event, Spent, WrittenTest
from massgen_mcp.events.record import JOURNAL_VERSION, AnyEvent, LogRecord
from massgen_mcp.events.run import (
    BudgetMark,
    BudgetReached,
    NestedRunEnded,
    NestedRunStarted,
    ReservationExceeded,
    ServerLost,
    SetupFinished,
    TimeReturned,
)
from tests.harness import ROOT
from tests.teams import Act, Ended, run_team, team

Json = dict[str, Any]

SAME_EVERYWHERE: Mapping[str, str] = {
    "agent": "Whose event it is, by public name.",
    "answer": "The answer; of a run that did not complete the best one there was, or null.",
    "call_id": "Id of the model call.",
    "cost": "What that cost.",
    "form": "How the model acted: by a tool call, in text, or in a line of text.",
    "label": "The label of the answer, `agent1.2`: of the first agent the second answer.",
    "message": "In words.",
    "name": "The neutral name on the reader's ballot.",
    "opening": "Nonce of the markers around the question.",
    "outcome": "How good the agreement was.",
    "purpose": "To answer and vote, to write the final answer, to judge it, or to note what the agent has done so far.",
    "reason": "Why, in one word of a closed list.",
    "revision": "Number of the state of the ballot; every new answer raises it.",
    "run_id": "Of this run.",
    "winner": "The agent whose answer it is, or null.",
}
"""For fields whose model says nothing of them."""

EVENTS = cast("tuple[type[Event], ...]", get_args(get_args(AnyEvent)[0]))

PASSED = CheckOutcome(command="pytest -q", result="passed", how="exit code 0", code=0, seconds=3.1)
BY_HAND: tuple[Event, ...] = (
    SetupFinished(
        outcome=CheckOutcome(
            command="npm ci", result="passed", how="exit code 0", code=0, seconds=8.4, excerpt="added 44 packages in 8s"
        ),
        directories=("shop/node_modules",),
    ),
    BudgetMark(percent=75, usd=3.75, tokens=412_000),
    BudgetReached(agent="agent_b", message="a call may cost $1.31, and $1.25 of max_usd 5 are left"),
    TimeReturned(seconds=184.2),
    ModelReplaced(
        agent="agent_a",
        reason="quota_exhausted",
        message="the quota of this key is used up",
        backend="claude",
        model="claude-opus-5-5",
    ),
    ServerLost(server="tickets", agents=("agent_a",), message="MCP server tickets ended by itself"),
    ReservationExceeded(
        agent="agent_a", call_id="agent_a-1", reserved_usd=0.06, usd=0.09, reserved_tokens=20_000, tokens=31_000
    ),
    NestedRunStarted(
        agent="agent_a",
        key="call_7",
        run_id=RUN_ID,
        question="Which of the two is faster?",
        source="@examples/basic_multi",
        max_usd=2.5,
        max_tokens=1_000_000,
    ),
    NestedRunEnded(
        run_id=RUN_ID, state="completed", spent=Spent(calls=5, input_tokens=9_000, output_tokens=700, usd=0.08)
    ),
    BallotChanged(
        agent="agent_b", revision=2, ballot=(BallotEntry(name="agent1", label="agent1.1"),), nonce="5f0c9a1be27d4368"
    ),
    ConversationShortened(agent="agent_a", kept_replies=4, characters=1_000),
    ConversationCondensed(
        agent="agent_a",
        note="auth.py:88 compares naive dates; both tests of test_auth.py fail there. Left: mend it, run them again.",
        nonce="0d4c7a93be15f268",
        kept_replies=4,
    ),
    ModelCallWaiting(agent="agent_a", call_id="agent_a-1", obstacle="concurrency"),
    ModelCallAdmitted(agent="agent_a", call_id="agent_a-1", queued_seconds=0.8),
    ToolStarted(agent="agent_a", call_id="call_3", name="run_command", shown="pytest -q"),
    StageOpened(kind="test", subjects=("agent1.1", "agent2.1"), agents=("agent_a", "agent_b"), because="differ"),
    WrittenTestsSubmitted(
        agent="agent_a",
        tests=(
            WrittenTest(
                title="A leap day is a valid date.",
                script="python3 -c 'import dates; print(dates.valid(2024, 2, 29))'",
                expected="True",
            ),
        ),
    ),
    CheckFinished(tree="9ae1f0c5d27b4e6380f1a2b3c4d5e6f708192a3b", outcome=PASSED),
    FilesChecked(subject="answer", agent="agent_a", label="agent1.1", outcomes=(PASSED,)),
)
"""What needs a provider, a sandbox or good luck to happen."""


async def page() -> str:
    """The file, with examples from real runs."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        runs = await _runs(place)
        seen = [*_golden(), *(event for run in runs for event in run.events), *BY_HAND]
        examples = {
            type(event): steady(event.model_dump(mode="json"), {directory: "/home/ada"}) for event in reversed(seen)
        }
    return json.dumps(_schema(examples), indent=1, ensure_ascii=False) + "\n"


def type_of(event: type[Event]) -> str:
    """Its name in the file."""
    return str(event.model_fields["type"].default)


def meaning(model: type[BaseModel]) -> str:
    """What it is, in one paragraph, with other events by the names that stand in the file."""
    return _named(about(model))


def _schema(examples: Mapping[type[Event], Json]) -> Json:
    events: Json = TypeAdapter(AnyEvent).json_schema()
    parts: Json = events.pop("$defs")
    for model in (*EVENTS, *_parts(parts)):
        _describe(model, parts[model.__name__])
    for event in EVENTS:
        parts[event.__name__]["required"] = sorted({"type", *parts[event.__name__].get("required", ())})
        if event not in examples:
            raise LookupError(f"no run of docs/events_schema.py has {event.__name__}: write an example into BY_HAND")
        parts[event.__name__]["examples"] = [examples[event]]
    line = LogRecord.model_json_schema()["properties"]
    members = {name: line[name] | {"description": text} for name, text in meanings(LogRecord).items() if name in line}
    crc = {"type": "string", "description": "CRC-32, in hexadecimal, of the line's object without it."}
    return {
        "$schema": DIALECT,
        "title": f"A line of events.jsonl, version {JOURNAL_VERSION}",
        "type": "object",
        "properties": {**members, "event": events | {"description": members["event"]["description"]}, "crc": crc},
        "required": ["seq", "time", "event", "crc"],
        "$defs": parts,
    }


def _describe(model: type[BaseModel], schema: Json) -> None:
    """Readers skip what they do not know, so nothing is forbidden."""
    schema.pop("additionalProperties", None)
    schema["description"] = meaning(model)
    told = {**SAME_EVERYWHERE, **meanings(model)}
    for name, one in schema["properties"].items():
        one.pop("title", None)
        if name != "type":
            one["description"] = _named(said(model, name, told))


def _named(text: str) -> str:
    for event in EVENTS:
        text = text.replace(f"`{event.__name__}`", f"`{type_of(event)}`")
        text = text.replace(f"`{event.__name__}.", f"`{type_of(event)}.")
    return text


def _parts(defined: Json) -> list[type[BaseModel]]:
    """The models that events are made of."""
    return [each for each in Event.__subclasses__() if each.__name__ in defined and each not in EVENTS]


# -- runs -------------------------------------------------------------------------------------------------------------


def _golden() -> list[Event]:
    """Those of the newest journals that are kept."""
    lines = [
        line
        for path in sorted((ROOT / "tests" / "golden" / f"journal_{JOURNAL_VERSION}" / "runs").glob("*/events.jsonl"))
        for line in path.read_text().splitlines()
    ]
    kept = [json.loads(line) for line in lines]
    return [LogRecord.model_validate({k: v for k, v in one.items() if k != "crc"}).event for one in kept]


async def _runs(place: Path) -> list[Ended]:
    """What the kept journals have not."""
    shop = place / "shop"
    shop.mkdir()
    (shop / "total.py").touch()
    hang: list[dict[str, Any]] = [{"hang": True}]
    quick = team([{"answer": "42"}], hang, orchestrator={"first_answer_wait_seconds": 0.05})
    copied = team([{"answer": "42"}], orchestrator={"context_paths": [{"path": str(shop), "permission": "write"}]})
    tied = team([{"answer": "42"}, {"vote": "own"}], [{"answer": "41"}, {"vote": "own"}])
    unable = team([{"answer": "42"}, {"vote": "own"}, {"fail": "auth"}], [{"answer": "41"}, {"vote": "42"}])
    return [
        await run_team(place / "quick", quick, act=Act(FirstAnswersClosed, "cancel")),
        await run_team(place / "copied", copied),
        await run_team(place / "tied", tied),
        await run_team(place / "unable", unable),
        await run_team(place / "finished", team([{"answer": "42"}], hang), act=Act(AnswerSubmitted, "finish_now")),
    ]
