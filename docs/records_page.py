"""Writes docs/records.md: the files of a run, every field of `status.json`, and when each event happens.

Events are described by their models; their fields are in docs/events.schema.json. `status.json` has no model, so its
words stand here; a key without words is an error.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast, get_args

from docs.markdown import WRITTEN, block, table
from docs.steady import as_json, steady
from massgen_mcp.config.schema import meanings
from massgen_mcp.events.record import JOURNAL_VERSION, LogRecord
from massgen_mcp.run_state.status import AgentStatus
from tests.teams import Ended, run_team, team

HEAD = f"""\
# Records of a run

{WRITTEN}
What a run leaves in its directory, and what each field means. Where that directory is, how it comes to be and when it
is deleted: [runs.md](runs.md).

| file | for whom | what |
|---|---|---|
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
    "nlip.jsonl": (
        "programs that read NLIP",
        "with `enable_nlip`: what agents, tools and caller say to each other, as messages of ECMA-430; sent nowhere",
    ),
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
    "results.winner": "The agent whose answer the run ended with, in every ending; null before, or without one.",
    "results.final_answer_preview": "The beginning of that answer, 200 characters; null before.",
    "results.outcome": "[How the winner was found](coordination.md#what-a-result-shows); null before.",
    "results.weak": "Why the decision is weak, the gravest first; empty if it is firm.",
    "results.failure": "Why the run is no success: `not_completed`, `nobody_left`, `unproven`; else null.",
    "results.cautions": "The same, and what was left undone, in sentences. Absent without any.",
    "applied": "What became of the changes to your files: `status`, `files`, `conflicts`, `left_out`, `note`.",
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
    "saved_by_cache": "US dollars that providers' caches saved, as far as prices are known.",
    "output_tokens": "What models wrote.",
    "reasoning_tokens": "Those of them that were thoughts.",
    "calls_without_usage": "Calls whose provider told no tokens; ours are estimates.",
    "partly_counted_calls": "Those of which an agent told a part only: a lower bound.",
    "lost_calls": "Tries without a reply that have to be paid for.",
    "cost": "US dollars; null where no price is known.",
    "unpriced_calls": "Calls whose price nobody knows.",
    "estimated_calls": "Calls whose price is an estimate.",
    "bounded_calls": "Calls of unknown price, counted at the highest known price of similar models.",
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
What a model, an agent or nested runs have used:

"""

EVENTS_HEAD = """
## events.jsonl

One JSON object a line, only ever appended to. The last line may be cut off by a crash: a line without its end has not
happened. A reader can follow the file while the run goes on; `massgen watch ID --json` prints the same lines'
events, `massgen://runs/ID/events` serves them in pages. After `run_completed`, `run_failed`, `run_cancelled` or
`run_timed_out` nothing more happens.

[events.schema.json](events.schema.json) is the JSON Schema of a line: when each event happens, every field with its
meaning, and an example.

"""

VERSIONS = f"""
### Versions

- `v` is {JOURNAL_VERSION} today. It rises when lines of before would no longer be read; additions do not raise it.
- In every version a line is one JSON object with `seq`, `time`, `event` and, last, `crc`, and an event has a `type`.
  All else may change when `v` rises: a reader should skip the types and fields that it does not know.
- This program reads journals of every earlier version. What a newer one wrote it shows as far as it can, and does not
  continue: `journal_newer`.
- `crc` is the CRC-32, in hexadecimal, of the line's JSON object without it. A line whose `crc` is wrong is damage:
  `run_damaged`.
"""


async def page() -> str:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        usual = await _usual(place / "usual")
        places = {str(place): "/home/ada"}
        return "".join(
            [
                HEAD,
                "".join(f"| `{name}` | {whom} | {what} |\n" for name, (whom, what) in FILES.items()),
                _status(usual, places),
                _journal(),
            ]
        )


# -- status.json ------------------------------------------------------------------------------------------------------


def _status(run: Ended, places: Mapping[str, str]) -> str:
    status = json.loads(run.directory.status.read_text(encoding="utf-8"))
    if unsaid := set(keys_of(status)) - {*STATUS, *USED}:
        raise KeyError(f"docs/records_page.py has no words for {', '.join(sorted(unsaid))}")
    meant = table(["key", "meaning"], [[f"`{key}`", text] for key, text in STATUS.items()])
    used = table(["key", "meaning"], [[f"`{key}`", text] for key, text in USED.items()])
    del status["agents"]["agent_b"], status["telemetry"]
    example = block("json", as_json(steady(status, places)))
    shown = "A run that has ended, in which one agent was dropped, without `agents.agent_b` and `telemetry`:"
    return f"{STATUS_HEAD}{meant}{USED_HEAD}{used}\n{shown}\n\n{example}"


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
        elif isinstance(value, dict) and key not in ("checks", "applied", "results.votes"):
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


def _journal() -> str:
    told = meanings(LogRecord)
    fields = [[f"`{name}`", told[name]] for name in ("v", "seq", "time", "event")]
    members = table(["member", "meaning"], [*fields, ["`crc`", "Checksum of the line."]])
    return f"{EVENTS_HEAD}{members}{VERSIONS}"


# -- runs -------------------------------------------------------------------------------------------------------------


async def _usual(place: Path) -> Ended:
    """Two agents that agree, and a third one that is dropped."""
    mends = {"call": "write_file", "arguments": {"path": "answer.txt", "content": "42"}}
    config = team(
        [mends, {"answer": "Forty-two."}, {"vote": "own"}], [{"answer": "42"}, {"vote": "Forty"}], [{"fail": "auth"}]
    )
    return await run_team(place, config)
