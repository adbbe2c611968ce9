"""Writes docs/tools.md from the tools that the server publishes, the models of their replies, and a real run."""

import tempfile
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mcp import Client
from mcp.types import Tool
from pydantic import BaseModel

from docs.error_codes import codes_table
from docs.kinds import default, kind, said
from docs.markdown import WRITTEN, anchor, block, table
from docs.steady import as_json, steady
from massgen_mcp.config.schema import about, meanings
from massgen_mcp.server.results.apply import Applied, RefusedFile
from massgen_mcp.server.results.configs import ConfigLine, ConfigList
from massgen_mcp.server.results.control import Controlled
from massgen_mcp.server.results.files import FileLine, Files
from massgen_mcp.server.results.record import CheckLine, Dissent, Dropped, NestedRun, ResultUsage, VoteLine
from massgen_mcp.server.results.result import Result
from massgen_mcp.server.results.runs import RunLine, RunList
from massgen_mcp.server.results.start import BaseCheck, Begun, Waiting
from massgen_mcp.server.results.status import Status
from massgen_mcp.server.results.wait import Progress
from tests.harness import TempHome, agent, call, events_of, expect_error, happened, wait_until

HEAD = f"""\
# The tools

{WRITTEN}
What an MCP client can call: arguments, replies and errors of the eight tools, as the server publishes them. What else a
client finds is in [mcp.md](mcp.md).

Arguments that are not listed are refused, with the nearest name. An argument without a default may be left out, unless
it is *required*. The examples are from real runs with scripted agents; times, tokens, ids and paths were made the same
for every reader.
"""

REPLIES_HEAD = """
## How replies are built

- Every reply has two forms: data (`structuredContent`) and a shorter text. Claude Code and Codex show their model
  only the data, Gemini CLI only the text, so each form has every fact, and the next step. What is not known, or does
  not exist, is left out of both; there are no nulls. `massgen-mcp VERB --json` prints the same data, without limits
  of size.
- An agent is named by its id in the config, also as an argument: `get_result(view="agent", agent="ada")`. `agent2.1`
  is the label of the first answer of the second agent. Files and records call agents `agent_a`, `agent_b`, …; that is
  taken as an argument, too, unless an agent has it as its id.
- Each form has at most 10,000 bytes **as it is sent**: the data as compact JSON in UTF-8, the text as a JSON string
  with its escapes. A long answer comes in pages: `next_offset` (in characters) is where the next one begins. A page
  ends with a line or a word. The pages joined are exactly the answer.
- The first page has the answer, then how the team came to it; later pages have the answer alone. `truncated` is true
  when any text in a reply is cut. Reasons of votes, dissent and errors are shortened when there is no room;
  `next_step` then says which view has them whole: `view=votes`, or `view=full` if they are longer than a reply.
- `limit` makes pages smaller; `list_runs` continues with `next_cursor`.
- Tests hold the tokens (o200k) of the data: all tools in `tools/list` below 2,500, with room for applying results,
  checks and diffs; a status of three agents below 150, of ten below 300; `list_configs` below 900. `start_run` of
  three agents takes about 130, an answer of 100 words with three votes and dissent about 550.
"""

HINTS = (
    ("readOnlyHint", "only reads", "changes something"),
    ("destructiveHint", "may replace or stop what is there", "replaces and stops nothing"),
    ("idempotentHint", "does nothing more when it is called again", "does it once more when it is called again"),
    ("openWorldHint", "asks model providers", "asks nobody outside of this machine"),
)
UNSAID: Mapping[tuple[str, str], str] = {
    ("wait_run", "timeout_seconds"): "Wait at most this long.",
    ("control_run", "value"): "For raise_budget, in US dollars.",
    ("list_runs", "state"): "Only runs that stand so.",
    ("list_runs", "session_id"): "Only turns of this conversation.",
    ("list_runs", "limit"): "Runs on one page.",
}
"""Arguments whose names say enough to a model, which pays for every word; `run_id` is the one of the reply."""

REPLIES: Mapping[str, tuple[type[BaseModel], ...]] = {
    "start_run": (Waiting, Begun),
    "wait_run": (Progress,),
    "get_status": (Status,),
    "get_result": (Result,),
    "control_run": (Controlled,),
    "apply_result": (Applied,),
    "list_runs": (RunList,),
    "list_configs": (ConfigList,),
}
GOES_ON = {
    "start_run": "When `wait_seconds` saw the end of the run: the fields of `get_result` in place of the first ones.",
    "wait_run": "Besides, the fields of [`get_status`](#get_status); when the run has ended, those of "
    "[`get_result`](#get_result) instead.",
}
PARTS: Mapping[str, type[BaseModel]] = {
    "A vote": VoteLine,
    "Dissent": Dissent,
    "A dropped agent": Dropped,
    "A check": CheckLine,
    "A check of the unchanged files": BaseCheck,
    "Changed files": Files,
    "A changed file": FileLine,
    "A conflict": RefusedFile,
    "A nested run": NestedRun,
    "ResultUsage": ResultUsage,
    "A run in the list": RunLine,
    "A config in the list": ConfigLine,
}

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    arguments: Json
    reply: Json


async def page() -> str:
    async with _playing() as (client, home):
        tools = (await client.list_tools()).tools
        calls = await _calls(client, home)
        refused = await expect_error(client, "get_status", run_id="run-of-yesterday")
    contents = "".join(f"- [`{tool.name}`](#{tool.name}): {tool.title}\n" for tool in tools)
    parts = "".join(f"\n### {title}\n\n{_about(model)}{_reply(model)}" for title, model in PARTS.items())
    errors = (
        f"An error is a text and no data:\n\n{block('text', f'ERROR {refused[0]}: {refused[1]}')}\n"
        "What each code means and what to do: [troubleshooting.md](troubleshooting.md#codes-of-errors)."
    )
    return "".join(
        [
            *(HEAD, "\n", contents, *(_tool(tool, calls[tool.name]) for tool in tools)),
            *(REPLIES_HEAD, "\n## Parts of a reply\n", parts),
            *(f"\n## Errors\n\n{errors}\n\n", codes_table(of_tools=True)),
        ]
    )


def _tool(tool: Tool, example: Call) -> str:
    hints = tool.annotations.model_dump(by_alias=True) if tool.annotations else {}
    told = [yes if hints[name] else no for name, yes, no in HINTS if hints.get(name) is not None]
    replies = _reply(*REPLIES[tool.name])
    goes_on = f"\n{GOES_ON[tool.name]}\n" if tool.name in GOES_ON else ""
    return (
        f"\n## {tool.name}\n\n*{tool.title}.* {tool.description}\n\nIt {'; it '.join(told)}.\n\n{_arguments(tool)}\n"
        f"The reply:\n\n{replies}{goes_on}\nFor example:\n\n{block('json', as_json(example.arguments))}\n"
        f"{block('json', as_json(example.reply))}"
    )


def _arguments(tool: Tool) -> str:
    schema = tool.input_schema
    required = cast("list[str]", schema.get("required", ()))
    lines = [
        [f"`{name}`", kind(one), default(one, required=name in required), _said(tool.name, name, one)]
        for name, one in cast("dict[str, Json]", schema["properties"]).items()
    ]
    return table(["argument", "may be", "default", "meaning"], lines)


def _said(tool: str, name: str, schema: Json) -> str:
    return str(schema["description"] if "description" in schema else UNSAID[tool, name])


def _reply(*models: type[BaseModel]) -> str:
    lines = [line for model in models for line in _fields(model)]
    return table(["field", "is", "there", "meaning"], lines)


def _fields(model: type[BaseModel]) -> Iterator[list[str]]:
    told = meanings(model)
    properties = cast("dict[str, Json]", model.model_json_schema(mode="serialization")["properties"])
    for name, one in properties.items():
        always = "always" if model.model_fields[name].is_required() else ""
        yield [f"`{name}`", kind(one, _linked), always, said(model, name, told)]


def _about(model: type[BaseModel]) -> str:
    return f"{text}\n\n" if (text := about(model)) else ""


def _linked(name: str) -> str:
    """The table of a part."""
    title = next(title for title, model in PARTS.items() if model.__name__ == name)
    return f"[{title.lower()}](#{anchor(title)})"


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
    started = await take("start_run", question="Why is the total wrong?", config=team, context_paths=paths)
    calls["start_run"].reply["status"] = "queued"  # a runner may have taken it already
    run_id = started["run_id"]
    await call(client, "wait_run", run_id=run_id)
    await take("get_result", run_id=run_id)
    votes = cast("list[dict[str, str]]", calls["get_result"].reply["votes"])
    votes.sort(key=lambda vote: vote["voter"])  # they voted at the same time
    await take("apply_result", run_id=run_id)
    await take("list_runs", limit=5)
    await take("list_configs", name="scripted")
    run_id = (await call(client, "start_run", question="Is it done?", config=slow))["run_id"]
    run = home.run_directory(run_id)
    await wait_until(lambda: len([one for one in events_of(run) if one["type"] == "model_call_started"]) > 1)
    await wait_until(lambda: happened(run, "answer_submitted"))
    await take("get_status", run_id=run_id)
    await take("wait_run", run_id=run_id, cursor=1, until="change")
    await take("control_run", run_id=run_id, action="steer", message="Say why.")
    await call(client, "control_run", run_id=run_id, action="cancel")
    return calls
