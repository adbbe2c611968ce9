"""Writes docs/records.md: the files of a run, every field of `status.json` and every event of `events.jsonl`.

Events are told by their models. `status.json` has no model, so its words stand here; a key without words is an error.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel, TypeAdapter

from docs.kinds import kind, said
from docs.markdown import WRITTEN, anchor, block, table
from docs.steady import RUN_ID, as_json, steady
from massgen_mcp.config.schema import about, meanings
from massgen_mcp.events.agent_work import AgentEvent, BallotChanged, ModelCallAdmitted, ModelCallWaiting, ToolStarted
from massgen_mcp.events.coordination import (
    AnswerSubmitted,
    CheckFinished,
    CoordinationEvent,
    FilesChecked,
    FirstAnswersClosed,
)
from massgen_mcp.events.parts import BallotEntry, CheckOutcome, Event, NestedSpending
from massgen_mcp.events.record import JOURNAL_VERSION, AnyEvent, LogRecord
from massgen_mcp.events.run import (
    BudgetMark,
    BudgetReached,
    NestedRunEnded,
    NestedRunStarted,
    ReservationExceeded,
    RunEvent,
    ServerLost,
)
from massgen_mcp.run_state.status import AgentStatus
from tests.harness import ROOT
from tests.teams import Act, Ended, run_team, team

HEAD = f"""\
# Records of a run

{WRITTEN}
What a run leaves in its directory, and what each field means. Where that directory is, how it comes to be and when it
is deleted: [runs.md](runs.md).

| file | for whom | what |
| --- | --- | --- |
"""

FILES: Mapping[str, tuple[str, str]] = {
    "events.jsonl": ("the program, and yours", "everything that happened, one event a line; the run itself"),
    "status.json": ("your program", "what the run looks like now; replaced as a whole"),
    "config.json": ("the program", "question, config and earlier turns, as they were asked for, with a checksum"),
    "final/AGENT/answer.txt": ("you", "the final answer; beside it `workspace/` with its files, and `changes.patch`"),
    "report.html": ("you", "the whole run as [one page](run-page.md)"),
    "turn_1/attempt_N/AGENT/TIME/answer.txt": (
        "you",
        "one answer; beside it `workspace/`, a copy of its author's files",
    ),
    "massgen.log": ("you", "what happened, line by line, and stack traces of faults of the program"),
    "coordination_events.json": ("MassGen's tools", "what happened in the coordination"),
    "coordination_table.txt": ("you", "the same as a table"),
    "execution_metadata.yaml": ("MassGen's tools", "question, config, versions and times"),
    "workspaces/AGENT/": ("agents", "where they work; deleted first"),
    "changes/": ("the program", "copies of your directories and what became of them, where the run has any"),
    "private/AGENT/": ("agents that are programs", "their home directories"),
}
"""Nobody reads back but `events.jsonl` and `config.json`."""

STATUS: Mapping[str, str] = {
    "meta.last_updated": "When this was written.",
    "meta.session_id": "The name of the run's directory.",
    "meta.log_dir": "The run's directory, absolute.",
    "meta.question": "The caller's text.",
    "meta.start_time": "When the run was begun; null before.",
    "meta.elapsed_seconds": "For how long it is, or was, worked on, whatever the clock was set to.",
    "meta.parent_run_id": "Of a nested run: the run in which it was started. Else absent.",
    "coordination.phase": "`initial_answer`, `enforcement` (answers are judged) or `presentation`.",
    "coordination.active_agent": "The one agent that is at work; null for none or several.",
    "coordination.completion_percentage": "0 to 100; 100 when the run has ended, and only then.",
    "coordination.is_final_presentation": "Whether the final answer is being written, or is there.",
    "agents.AGENT.status": "What it does: "
    + ", ".join(f"`{word}`" for word in get_args(AgentStatus))
    + ". Of a run that ended otherwise than completed: `answered`, `voted`, or `error` or `timeout` without an answer.",
    "agents.AGENT.answer_count": "Its answers so far.",
    "agents.AGENT.latest_answer_label": "Label of the newest one; null before.",
    "agents.AGENT.vote_cast": "Its standing vote; null without one.",
    "agents.AGENT.vote_cast.voted_for_agent": "Whose answer.",
    "agents.AGENT.vote_cast.voted_for_label": "Which answer.",
    "agents.AGENT.vote_cast.reason_preview": "The beginning of its reason, 100 characters.",
    "agents.AGENT.times_restarted": "Rounds after its first one.",
    "agents.AGENT.last_activity": "When it last did something; null before.",
    "agents.AGENT.error": "Why it was dropped; null if it was not.",
    "agents.AGENT.error.type": "`timeout` or `error`.",
    "agents.AGENT.error.reason": "One word of a [closed list](troubleshooting.md#why-an-agent-was-dropped).",
    "agents.AGENT.error.message": "The same in words.",
    "agents.AGENT.error.timestamp": "When.",
    "results.votes": "Votes by label of an answer.",
    "results.winner": "The agent whose answer it is; null while there is none.",
    "results.final_answer_preview": "The beginning of the final answer, 200 characters; null before.",
    "telemetry.total_calls": "Model calls that came to a reply, nested ones included.",
    "telemetry.by_model.MODEL": "What calls of this model used.",
    "telemetry.by_agent.AGENT": "What this agent's calls used.",
    "telemetry.nested": "What nested runs used. Absent without any that has ended.",
    "checks": "How [checks](code-work.md#checks) came out: `base`, `answers` by label, `final`. Absent without any.",
    "nested_runs.RUN_ID": "`started_by`, `source`, `state`, `max_usd` and `max_tokens` of one.",
}
USED: Mapping[str, str] = {
    "calls": "Calls that came to a reply.",
    "tokens": "Input and output.",
    "input_tokens": "What models read.",
    "cached_input_tokens": "Those of them that came from providers' caches.",
    "cache_write_tokens": "Those of them that were written to providers' caches.",
    "output_tokens": "What models wrote.",
    "reasoning_tokens": "Those of them that were thoughts.",
    "calls_without_usage": "Calls whose provider told no tokens; ours are estimates.",
    "lost_calls": "Tries without a reply that have to be paid for.",
    "cost": "US dollars; null where no price is known.",
    "unpriced_calls": "Calls whose price nobody knows.",
    "estimated_calls": "Calls whose price is an estimate.",
    "latency": "Seconds of all calls together.",
}
"""The fields wherever `status.json` says what was used."""

STATUS_HEAD = """
## status.json

It is replaced as a whole, so a reader never sees half of it: at most ten times a second, and for runs of `massgen` at
least every two seconds. Agents have their public names (`agent_a` is the first of the config), times are seconds since
the epoch. These keys are a contract: none of them goes away or changes its meaning; new ones may come.

"""

USED_HEAD = """
Whatever was used, by a model, by an agent or by nested runs, is told in these fields:

"""

EVENTS_HEAD = """
## events.jsonl

One JSON object a line, only ever appended to. The last line may be cut off by a crash: a line without its end has not
happened. A reader can follow the file while the run goes on; `massgen-mcp watch ID --json` prints the same lines'
events, `massgen://runs/ID/events` serves them in pages. After `run_completed`, `run_failed`, `run_cancelled` or
`run_timed_out` nothing more happens.

"""

VERSIONS = f"""
### Versions

- `v` is {JOURNAL_VERSION} today. It rises with the release that adds an event, a field, or a value of a closed list.
- In every version a line is one JSON object with `seq`, `time`, `event` and, last, `crc`, and an event has a `type`.
  All else may change when `v` rises: a reader should skip the types and fields that it does not know.
- This program reads journals of every earlier version. What a newer one wrote it shows as far as it can, and does not
  continue: `journal_newer`.
- `crc` is the CRC-32, in hexadecimal, of the line's JSON object without it. A line whose `crc` is wrong is damage:
  `run_damaged`.
"""

SAME_EVERYWHERE: Mapping[str, str] = {
    "agent": "Whose event it is, by public name.",
    "answer": "The answer; of a run that did not complete the best one there was, or null.",
    "call_id": "Id of the model call.",
    "cost": "What that cost.",
    "form": "How the model acted: by a tool call, in text, or by a line of text.",
    "label": "The label of the answer, `agent1.2`: of the first agent the second answer.",
    "message": "In words.",
    "name": "The neutral name on the reader's ballot.",
    "opening": "Nonce of the markers around the question.",
    "outcome": "How good the agreement was.",
    "purpose": "To answer and vote, to write the final answer, or to judge it.",
    "reason": "Why, in one word of a closed list.",
    "revision": "Number of the state of the ballot; every new answer raises it.",
    "run_id": "Of this run.",
    "winner": "The agent whose answer it is, or null.",
}
"""For fields whose model says nothing of them."""

GROUPS = {"The run": RunEvent, "One agent's work": AgentEvent, "The coordination": CoordinationEvent}
EVENTS = cast("tuple[type[Event], ...]", get_args(get_args(AnyEvent)[0]))

PASSED = CheckOutcome(command="pytest -q", result="passed", how="exit code 0", code=0, seconds=3.1)
BY_HAND: tuple[Event, ...] = (
    BudgetMark(percent=75, usd=3.75, tokens=412_000),
    BudgetReached(agent="agent_b", message="a call may cost $1.31, and $1.25 of max_usd 5 are left"),
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
        run_id=RUN_ID, state="completed", spent=NestedSpending(calls=5, input_tokens=9_000, output_tokens=700, usd=0.08)
    ),
    BallotChanged(
        agent="agent_b", revision=2, ballot=(BallotEntry(name="agent1", label="agent1.1"),), nonce="5f0c9a1be27d4368"
    ),
    ModelCallWaiting(agent="agent_a", call_id="agent_a-1", obstacle="concurrency"),
    ModelCallAdmitted(agent="agent_a", call_id="agent_a-1", queued_seconds=0.8),
    ToolStarted(agent="agent_a", call_id="call_3", name="run_command", shown="pytest -q"),
    CheckFinished(tree="9ae1f0c5d27b4e6380f1a2b3c4d5e6f708192a3b", outcome=PASSED),
    FilesChecked(subject="answer", agent="agent_a", label="agent1.1", outcomes=(PASSED,)),
)
"""What needs a provider, a sandbox or good luck to happen."""


async def page() -> str:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        usual = await _usual(place / "usual")
        seen = {
            type(event): event
            for event in reversed([*_golden(), *[e for run in await _runs(place) for e in run.events]])
        }
        places = {str(place): "/home/ada"}
        return "".join(
            [
                HEAD,
                "".join(f"| `{name}` | {whom} | {what} |\n" for name, (whom, what) in FILES.items()),
                *(_status(usual, places), _journal(usual, places)),
                *(_group(title, seen, places) for title in GROUPS),
                *("\n## Parts of events\n", *map(_part, _parts())),
            ]
        )


# -- status.json ------------------------------------------------------------------------------------------------------


def _status(run: Ended, places: Mapping[str, str]) -> str:
    status = json.loads(run.directory.status.read_text(encoding="utf-8"))
    if unsaid := set(keys_of(status)) - {*STATUS, *USED}:
        raise KeyError(f"docs/records_page.py has no words for {', '.join(sorted(unsaid))}")
    told = table(["key", "meaning"], [[f"`{key}`", text] for key, text in STATUS.items()])
    used = table(["key", "meaning"], [[f"`{key}`", text] for key, text in USED.items()])
    example = block("json", as_json(steady(status, places)))
    return f"{STATUS_HEAD}{told}{USED_HEAD}{used}\nA run that has ended, in which one agent was dropped:\n\n{example}"


def keys_of(status: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """The keys of a status as `STATUS` and `USED` write them, those of what was used without what is above them."""
    named = {"agents": "AGENT", "by_model": "MODEL", "by_agent": "AGENT", "nested_runs": "RUN_ID"}
    for name, value in status.items():
        key = f"{above}{name}"
        if name in named and isinstance(value, dict):
            for one in cast("dict[str, dict[str, Any]]", value).values():
                yield from _of_one(f"{key}.{named[name]}", one)
        elif key == "telemetry.nested":
            yield from _of_one(key, cast("dict[str, Any]", value))
        elif isinstance(value, dict) and key not in ("checks", "results.votes"):
            yield from keys_of(cast("dict[str, Any]", value), f"{key}.")
        else:
            yield key


def _of_one(key: str, value: Mapping[str, Any]) -> Iterator[str]:
    if key.startswith("telemetry"):
        yield key
        yield from value
    elif key.startswith("nested_runs"):
        yield key
    else:
        yield from keys_of(value, f"{key}.")


# -- events.jsonl -----------------------------------------------------------------------------------------------------


def _journal(run: Ended, places: Mapping[str, str]) -> str:
    line = json.loads((run.directory.path / "events.jsonl").read_text(encoding="utf-8").splitlines()[0])
    told = meanings(LogRecord)
    fields = [[f"`{name}`", told[name]] for name in ("v", "seq", "time", "event")]
    members = table(["member", "meaning"], [*fields, ["`crc`", "Checksum of the line."]])
    example = block("json", json.dumps(steady(line, places)))
    return f"{EVENTS_HEAD}{members}\n{example}{VERSIONS}"


def _group(title: str, seen: Mapping[type[Event], Event], places: Mapping[str, str]) -> str:
    told = "".join(_event(event, seen, places) for event in get_args(GROUPS[title]))
    return f"\n## {title}\n{told}"


def _event(event: type[Event], seen: Mapping[type[Event], Event], places: Mapping[str, str]) -> str:
    if event in seen:
        shown, whence = steady(seen[event].model_dump(mode="json"), places), ""
    else:
        shown = next(one for one in BY_HAND if isinstance(one, event)).model_dump(mode="json")
        whence = " (written by hand)"
    example = block("json", as_json(shown))
    return f"\n### {_type(event)}\n\n{_about(event)}{_fields(event)}For example{whence}:\n\n{example}"


def _type(event: type[Event]) -> str:
    return str(event.model_fields["type"].default)


def _part(model: type[BaseModel]) -> str:
    return f"\n### {model.__name__}\n\n{_about(model)}{_fields(model)}".removesuffix("\n")


def _about(model: type[BaseModel]) -> str:
    return f"{text}\n\n" if (text := _named(about(model))) else ""


def _fields(model: type[BaseModel]) -> str:
    properties = cast("dict[str, Any]", model.model_json_schema(mode="serialization")["properties"])
    told = {**SAME_EVERYWHERE, **meanings(model)}
    lines = [
        [f"`{name}`", kind(one, _linked, with_null=True), _named(said(model, name, told))]
        for name, one in properties.items()
        if name != "type"
    ]
    return table(["field", "is", "meaning"], lines) + "\n" if lines else ""


def _named(text: str) -> str:
    """Events by the names that stand in the file."""
    for event in EVENTS:
        text = text.replace(f"`{event.__name__}`", f"`{_type(event)}`").replace(
            f"`{event.__name__}.", f"`{_type(event)}."
        )
    return text


def _linked(name: str) -> str:
    return f"[{name}](#{anchor(name)})"


def _parts() -> list[type[BaseModel]]:
    """The models that events are made of, in the order of the module."""
    defined = TypeAdapter(AnyEvent).json_schema()["$defs"]
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


async def _usual(place: Path) -> Ended:
    """Two agents that agree, and a third one that is dropped."""
    mends = {"call": "write_file", "arguments": {"path": "answer.txt", "content": "42"}}
    config = team(
        [mends, {"answer": "Forty-two."}, {"vote": "own"}], [{"answer": "42"}, {"vote": "Forty"}], [{"fail": "auth"}]
    )
    return await run_team(place, config)


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
