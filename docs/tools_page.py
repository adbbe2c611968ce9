"""Writes docs/tools.md from the tools that the server publishes and a real run, and docs/replies.schema.json from the
models of their replies.
"""

import json
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from mcp import Client
from mcp.types import Tool
from pydantic import BaseModel, TypeAdapter

from docs.error_codes import codes_by_tools
from docs.first_answers import first_answers, new_server
from docs.kinds import default, kind, said
from docs.markdown import WRITTEN, block, code, table
from docs.steady import as_json, steady
from massgen_mcp.config.schema import DIALECT, about, meanings
from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.server.results.apply import Applied
from massgen_mcp.server.results.configs import ConfigList
from massgen_mcp.server.results.reply import ResultPart
from massgen_mcp.server.results.result import Result
from massgen_mcp.server.results.runs import RunList
from massgen_mcp.server.results.start import Begun, Waiting
from massgen_mcp.server.results.status import Controlled, Progress, Status
from tests.harness import TempHome, agent, call, events_of, expect_error, happened, wait_until

HEAD = f"""\
# The tools

{WRITTEN}
What an MCP client can call: arguments, replies and errors, as the server publishes them. What else a client finds is in
[mcp.md](mcp.md).

An argument may be left out unless it is *required*; one that is not listed is refused, with the nearest name. `≤200` is
the most characters or entries. The examples are from runs with scripted agents;
[replies.schema.json](replies.schema.json) has every field of every reply, and what it means.

A *state* is {code(*get_args(RunStatus))}.
"""

REPLIES_HEAD = """
## How replies are built

- Every reply has two forms: data (`structuredContent`) and a shorter text. Claude Code and Codex show their model
  only the data, Gemini CLI only the text, so each form has every fact, and the next step. What is not known, or does
  not exist, is left out; there are no nulls. `massgen-mcp VERB --json` prints the same data, without limits of size.
- An agent is named by its id in the config, also as an argument: `get_result(view="agent", agent="ada")`. `agent2.1`
  is the label of the first answer of the second agent. Files and records call agents `agent_a`, `agent_b`, …; that is
  taken as an argument, too, unless an agent has it as its id.
- Each form has at most 10,000 bytes **as it is sent**, with escapes. A long answer comes in pages: `next_offset` (in
  characters) is where the next one begins. A page ends with a line or a word. The pages joined are exactly the answer.
- The first page has the answer, then how the team came to it; later pages have the answer alone. `truncated` is true
  when any text in a reply is cut: `next_step` then says which view has it whole.
- `limit` makes pages smaller; `list_runs` continues with `next_cursor`.
- In tokens (o200k) of the data, all tools in `tools/list` take fewer than 2,500, a status of three agents fewer than
  150, of ten fewer than 300, `list_configs` fewer than 950. A result with an answer of 100 words takes about 550.
"""

HINTS = (
    ("readOnlyHint", "It only reads.", ""),
    ("destructiveHint", "It may replace what is there.", ""),
    ("idempotentHint", "A second call does nothing more.", "A second call does it again."),
    ("openWorldHint", "It asks model providers.", ""),
)
UNSAID: Mapping[tuple[str, str], str] = {
    **{
        (tool, "run_id"): "From start_run."
        for tool in ("wait_run", "get_status", "get_result", "control_run", "apply_result")
    },
    ("start_run", "num_agents"): "Team size.",
    ("wait_run", "cursor"): "From an earlier call.",
    ("wait_run", "timeout_seconds"): "Wait at most this long.",
    ("start_run", "on_conflict"): "What to do if the key is taken by another request.",
    ("start_run", "max_seconds"): "Time limit.",
    ("start_run", "max_answers"): "Answers per agent, before it only votes.",
    ("apply_result", "undo"): "Take back what was applied last.",
    ("control_run", "value"): "For raise_budget, in US dollars.",
    ("control_run", "message"): "For steer and answer.",
    ("list_runs", "state"): "Only runs in this state.",
    ("list_runs", "session_id"): "Only turns of this conversation.",
    ("list_runs", "kind"): "Also, or only, runs of `massgen batch` and `massgen eval`.",
    ("list_runs", "limit"): "Runs on one page.",
}
"""Arguments whose names say enough to a model, which pays for every word; `run_id` is the one of the reply."""

REPLIES: Mapping[str, object] = {
    "start_run": Waiting | Result,
    "wait_run": Status | Result,
    "get_status": Status,
    "get_result": Result,
    "control_run": Controlled,
    "apply_result": Applied,
    "list_runs": RunList,
    "list_configs": ConfigList,
}
BESIDES: Mapping[str, type[BaseModel]] = {"start_run": Begun, "wait_run": Progress}
"""What stands in a reply besides the fields of `REPLIES`."""
GOES_ON = {
    "start_run": "When `wait_seconds` saw the end of the run, the reply is that of [`get_result`](#get_result), with "
    "`reused`, `source`, `ignored`, `reach` and `estimate` besides.",
    "wait_run": "The reply is that of [`get_status`](#get_status), or of [`get_result`](#get_result) when the run has "
    "ended, with `changed` and `cursor` besides.",
}
LIKE = {"get_status": "wait_run"}
"""Tools whose example is that of another one."""
Json = dict[str, Any]
Key = TypeVar("Key")
Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Call:
    arguments: Json
    reply: Json


async def page() -> str:
    async with _playing() as (client, home):
        calls = await _calls(client, home)
        refused = await expect_error(client, "get_status", run_id="run-of-yesterday")
    with new_server() as server:
        *_, newest = (await first_answers(server)).values()
    tools = [Tool.model_validate(tool) for tool in cast("list[Json]", newest["tools/list"]["tools"])]
    for tool in tools:
        _known(REPLIES, tool.name, "name its reply in `REPLIES`")
    errors = (
        f"An error is a text and no data:\n\n{block('text', f'ERROR {refused[0]}: {refused[1]}')}\n"
        "[troubleshooting.md](troubleshooting.md#codes-of-errors) says what each code means. They come from:"
    )
    return "".join(
        [
            *(HEAD, *(_tool(tool, _known(calls, tool.name, "call it in `_calls`, as its example")) for tool in tools)),
            *(REPLIES_HEAD, f"\n## Errors\n\n{errors}\n\n", codes_by_tools()),
        ]
    )


def _tool(tool: Tool, example: Call) -> str:
    hints = tool.annotations.model_dump(by_alias=True) if tool.annotations else {}
    told = [text for name, yes, no in HINTS if hints.get(name) is not None and (text := yes if hints[name] else no)]
    told = told[:1] if hints.get("readOnlyHint") else told
    goes_on = f"{GOES_ON[tool.name]}\n\n" if tool.name in GOES_ON else ""
    shown = (
        f"The reply looks like that of [`{LIKE[tool.name]}`](#{LIKE[tool.name]}).\n"
        if tool.name in LIKE
        else f"For example:\n\n{block('json', as_json(example.arguments))}\n{block('json', as_json(example.reply))}"
    )
    return (
        f"\n## {tool.name}\n\n*{tool.title}.* {tool.description}\n\n{' '.join(told)}\n\n{_arguments(tool)}\n"
        f"{goes_on}{shown}"
    )


def _arguments(tool: Tool) -> str:
    schema = tool.input_schema
    required = cast("list[str]", schema.get("required", ()))
    lines = [
        [f"`{name}`", _kind(one), default(one, required=name in required), _said(tool.name, name, one)]
        for name, one in cast("dict[str, Json]", schema["properties"]).items()
    ]
    return table(["argument", "type", "default", "meaning"], lines)


def _said(tool: str, name: str, schema: Json) -> str:
    return str(schema.get("description") or _known(UNSAID, (tool, name), "say in `UNSAID` what the argument means"))


def _known(table: Mapping[Key, Kept], key: Key, to_do: str) -> Kept:
    if key not in table:
        raise LookupError(f"{key} is new: {to_do} (docs/tools_page.py)")
    return table[key]


def _kind(schema: Json) -> str:
    text, states = kind(schema), code(*get_args(RunStatus))
    return f"state{text.removeprefix(states)}" if text.startswith(states) else text


# -- the schema of replies --------------------------------------------------------------------------------------------


def schema() -> str:
    """What each tool replies: `$defs` has a part for every tool, by its name."""
    parts: Json = {}
    replies = {tool: _schema_of(reply, parts) for tool, reply in REPLIES.items()}
    for tool, besides in BESIDES.items():
        replies[tool] = {"allOf": [replies[tool], _schema_of(besides, parts)]}
    for model in _models(ResultPart):
        if model.__name__ in parts:
            _describe(model, parts[model.__name__])
    whole = {
        "$schema": DIALECT,
        "title": "Replies of the tools",
        "anyOf": [{"$ref": f"#/$defs/{tool}"} for tool in replies],
        "$defs": replies | parts,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _schema_of(reply: object, parts: Json) -> Json:
    """A reference, or several; what they lead to is put into `parts`."""
    made: Json = TypeAdapter(cast("Any", reply)).json_schema(mode="serialization")
    parts |= made.pop("$defs", {})
    if "properties" in made:
        parts[made["title"]] = made
        return {"$ref": f"#/$defs/{made['title']}"}
    return made


def _models(kind: type[BaseModel]) -> list[type[BaseModel]]:
    return [each for below in kind.__subclasses__() for each in (below, *_models(below))]


def _describe(model: type[BaseModel], part: Json) -> None:
    """A field that is not known is left out, so none is null. What stands in a reply besides is not forbidden."""
    part.pop("additionalProperties")
    part["description"] = about(model)
    told = meanings(model)
    for name, one in part["properties"].items():
        one.pop("title", None)
        one.pop("default", None)
        one["description"] = said(model, name, told)
        if {"type": "null"} in one.get("anyOf", ()):
            [kind] = [each for each in one.pop("anyOf") if each != {"type": "null"}]
            one.update(kind)
    part["required"] = [name for name, field in model.model_fields.items() if field.is_required()]


# -- the run of the examples ------------------------------------------------------------------------------------------

WRONG, RIGHT = "return sum(numbers) + 1\n", "return sum(numbers)\n"


@asynccontextmanager
async def _playing() -> AsyncGenerator[tuple[Client, TempHome]]:
    with tempfile.TemporaryDirectory() as directory:
        home = TempHome(Path(directory) / "home", Path(directory) / "work")
        home.work.mkdir()
        try:
            async with home.client() as client:
                yield client, home
        finally:
            home.close()


async def _calls(client: Client, home: TempHome) -> dict[str, Call]:
    """One call of every tool."""
    shop = home.work / "shop"
    shop.mkdir()
    (shop / "total.py").write_text(f"def total(numbers):\n    {WRONG}", encoding="utf-8")
    mends = {"path": "shop/total.py", "content": f"def total(numbers):\n    {RIGHT}"}
    reason = "It names the line, and its change makes the total right."
    team = home.config(
        "team",
        agent(
            "ada", {"call": "write_file", "arguments": mends}, {"answer": "One was added to the sum."}, {"vote": "own"}
        ),
        agent("bo", {"answer": "It is a rounding error."}, {"vote": "One was added", "reason": reason}),
    )
    slow = home.config("slow", agent("ada", {"answer": "Yes."}, {"vote": "own"}), agent("bo", {"hang": True}))
    calls: dict[str, Call] = {}
    places = {str(home.work): "/home/ada", str(home.path): "/home/ada/.local/state/massgen-mcp"}

    async def take(tool: str, **arguments: object) -> Json:
        reply = await call(client, tool, **arguments)
        calls[tool] = Call(steady(arguments, places), steady(reply, places))
        return reply

    paths = [{"path": str(shop), "permission": "write"}]
    started = await take("start_run", question="Why is the total wrong?", team=team, context_paths=paths)
    calls["start_run"].reply["status"] = "queued"  # a runner may have taken it already
    run_id = started["run_id"]
    await call(client, "wait_run", run_id=run_id)
    await take("get_result", run_id=run_id)
    votes = cast("list[dict[str, str]]", calls["get_result"].reply["votes"])
    votes.sort(key=lambda vote: vote["voter"])  # they voted at the same time
    await take("apply_result", run_id=run_id)
    await take("list_runs", limit=5)
    await take("list_configs", name="scripted")
    run_id = (await call(client, "start_run", question="Is it done?", team=slow))["run_id"]
    run = home.run_directory(run_id)
    await wait_until(lambda: len([one for one in events_of(run) if one["type"] == "model_call_started"]) > 1)
    await wait_until(lambda: happened(run, "answer_submitted"))
    await take("get_status", run_id=run_id)
    await take("wait_run", run_id=run_id, cursor=1, until="change")
    await take("control_run", run_id=run_id, action="steer", message="Say why.")
    await call(client, "control_run", run_id=run_id, action="cancel")
    return calls
