"""Every answer to every call is typed: a result that fits the tool's published schema, or `ERROR <code>: ...` with a
code of the closed list; none comes late, and afterwards the server is alive with the files open that it had before.
"""

import re
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, get_args

import jsonschema
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult

from massgen_mcp.errors import ErrorCode
from tests.harness import SERVER_MODULE, TempHome, agent, call, text_of
from tests.soak.crowd import footprint
from tests.soak.fuzzed_calls import Call, Calls, Json, Known

LATE_SECONDS = 1.0
"""How long after the wait that it asked for a call may be answered."""
HANG = {"hang": True}
TOLD = 300
"""Characters of a call or an answer in a report."""
MOST_REPORTED = 20


async def fuzz(
    home: TempHome, *, calls: int, seed: int, module: str = SERVER_MODULE, late_seconds: float = LATE_SECONDS
) -> str:
    """Returns the figures. Raises `AssertionError` with the calls whose answers were untyped or late."""
    outcomes: Counter[str] = Counter()
    untyped: list[str] = []
    latest = 0.0
    async with _client(home, module) as client:
        tools = (await client.list_tools()).model_dump(mode="json", by_alias=True, exclude_none=True)["tools"]
        judge = _Judge({tool["name"]: tool["outputSchema"] for tool in tools})
        known = await _runs(home, client)
        series = Calls(seed, {tool["name"]: tool["inputSchema"] for tool in tools}, known)
        (server,) = home.processes(module)
        before = footprint(server).files
        for _ in range(calls):
            made = series.draw()
            began = time.monotonic()
            try:
                reply = await client.call_tool(made.tool, made.arguments)
            except Exception as error:  # noqa: BLE001 - whatever the client cannot take is a finding
                outcome = f"untyped: {type(error).__name__}: {error}"
            else:
                outcome = judge.outcome_of(made.tool, reply)
            late = time.monotonic() - began - made.waits
            latest = max(latest, late)
            if outcome.startswith("untyped") or late > late_seconds:
                untyped.append(_told(made, outcome, late))
            outcomes[outcome.partition(":")[0]] += 1
            if made.tool == "control_run":
                await _keep_running(client, known)
        await call(client, "list_runs")
        after = footprint(server).files
    assert not untyped, f"{len(untyped)} untyped or late of {calls}:\n" + "\n".join(untyped[:MOST_REPORTED])
    assert after <= before, f"{before} open files became {after}"
    told = ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common())
    return (
        f"{calls} calls, seed {seed}: {told}; untyped 0; latest answer {latest:.2f} s after the wait asked for; "
        f"server alive, open files {before} to {after}"
    )


class _Judge:
    def __init__(self, schemas: dict[str, Json]) -> None:
        self._validators = {name: jsonschema.Draft202012Validator(schema) for name, schema in schemas.items()}

    def outcome_of(self, tool: str, reply: CallToolResult) -> str:
        """`result`, the code of an error, or `untyped: ...`."""
        text = text_of(reply)
        if not reply.is_error:
            wrong = [error.message for error in self._validators[tool].iter_errors(reply.structured_content)]
            return f"untyped: {wrong[0]}" if wrong else "result"
        told = re.match(r"ERROR ([a-z_]+): \S", text)
        if reply.structured_content is not None or told is None or told[1] not in get_args(ErrorCode):
            return f"untyped: {text}"
        if told[1] == "internal" or "Traceback (most recent" in text:
            return f"untyped: {text}"
        return told[1]


def _told(made: Call, outcome: str, late: float) -> str:
    return f"{made.tool} {str(made.arguments)[:TOLD]} -> {outcome[:TOLD]} ({late:.2f} s after its wait)"


@asynccontextmanager
async def _client(home: TempHome, module: str) -> AsyncGenerator[Client]:
    server = StdioServerParameters(command=sys.executable, args=["-m", module], env=home.environ)
    with (home.work / "server.log").open("a") as log:
        async with Client(stdio_client(server, errlog=log)) as client:
            yield client


# -- what the calls are about -----------------------------------------------------------------------------------------


async def _runs(home: TempHome, client: Client) -> Known:
    """A store with a run in every state that a call may meet, files of several kinds beside it."""
    known = Known()
    quick = home.config("quick", agent("ada", {"answer": "a"}, {"vote": "own"}), agent("bo", {"answer": "b"}))
    stuck = home.config("stuck", agent("ada", {"answer": "a"}, HANG), agent("bo", HANG))
    failing = home.config("failing", agent("ada", {"fail": "auth"}))
    asking = home.config(
        "asking",
        agent("ada", {"call": "ask_asker", "arguments": {"question": "Which?"}}, HANG),
        orchestrator={"allow_questions": True},
    )
    ends: dict[str, tuple[str, dict[str, Any]]] = {
        "completed": (quick, {}),
        "failed": (failing, {}),
        "timed_out": (stuck, {"max_seconds": 0.5}),
    }
    for state, (config, limits) in ends.items():
        reply = await call(client, "start_run", question="q", config=config, wait_seconds=40, **limits)
        assert reply["status"] == state, reply
        known.runs[state] = reply["run_id"]
    cancelled = (await call(client, "start_run", question="q", config=stuck, session_id="talk"))["run_id"]
    await call(client, "control_run", run_id=cancelled, action="cancel")
    known.runs["cancelled"] = cancelled
    for name, config in (("asking", asking), ("running", stuck), ("running too", stuck)):
        known.runs[name] = (await call(client, "start_run", question="q", config=config))["run_id"]
    known.runs["never was"] = "run-" + "a" * 26
    empty, binary, broken = (home.work / name for name in ("empty.yaml", "binary.yaml", "broken.yaml"))
    empty.touch()
    binary.write_bytes(bytes(range(256)))
    broken.write_text("agents: [unclosed\n")
    known.configs += [quick, "scripted", "@examples/scripted", "two_providers", "scriptd", str(home.work)]
    known.configs += [str(path) for path in (empty, binary, broken)]
    known.paths += [str(home.work), quick, "/etc/hostname"]
    return known


async def _keep_running(client: Client, known: Known) -> None:
    """The calls end runs that go on; others take their place."""
    run_id = known.runs["running"]
    if (await call(client, "get_status", run_id=run_id))["status"] in ("completed", "cancelled", "failed"):
        config = next(iter(known.paths[1:])).replace("quick", "stuck")
        started = await client.call_tool("start_run", {"question": "q", "config": config})
        if started.structured_content:
            known.runs["running"] = started.structured_content["run_id"]
