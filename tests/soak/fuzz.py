"""Every answer to every call is typed: a result that fits the tool's published schema, or `ERROR <code>: ...` with a
code of the closed list; none comes late, and afterwards the server is alive with the files open that it had before.
"""

import json
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import jsonschema
from mcp import Client
from mcp.types import CallToolResult

from docs.error_codes import codes_of
from massgen_mcp.certificates import trusted
from tests.harness import SERVER_MODULE, TempHome, agent, call, http_server, raw_server, text_of
from tests.schemas import checker
from tests.soak.crowd import footprint
from tests.soak.fuzzed_calls import Call, Calls, Json, Known

LATE_SECONDS = 1.0
"""How long after the wait that it asked for a call may be answered."""
BRIEFLY = {"max_seconds": 1}
UNTYPED = "untyped"
TOLD = 300
"""Characters of a call or an answer in a report."""
MOST_REPORTED = 20


async def fuzz(
    home: TempHome,
    *,
    calls: int,
    seed: int,
    module: str = SERVER_MODULE,
    late_seconds: float = LATE_SECONDS,
    over_http: bool = False,
) -> str:
    """Returns the figures. `late_seconds`: by how much an answer may be late. Raises `AssertionError` with the calls
    whose answers were untyped or late.
    """
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    latest = 0.0
    async with home.client() as client, (_http if over_http else _stdio)(home, module) as (server, ask):
        tools = (await client.list_tools()).model_dump(mode="json", by_alias=True, exclude_none=True)["tools"]
        judge = _Judge({tool["name"]: tool["outputSchema"] for tool in tools})
        known = await _known(home, client)
        series = Calls(seed, {tool["name"]: tool["inputSchema"] for tool in tools}, known)
        before = footprint(server).files
        for _ in range(calls):
            made = series.draw()
            began = time.monotonic()
            outcome = await judge.outcome_of(ask, made)
            late = time.monotonic() - began - made.waits
            latest = max(latest, late)
            outcomes[outcome.partition(":")[0]] += 1
            if outcome.startswith(UNTYPED) or late > late_seconds:
                wrong.append(f"{made.tool} {str(made.arguments)[:TOLD]} -> {outcome[:TOLD]} ({late:.2f} s late)")
            if made.tool == "control_run":
                await _keep_going(home, client, known)
        await call(client, "list_runs")
        after = footprint(server).files
    assert not wrong, f"{len(wrong)} of {calls} untyped or late:\n" + "\n".join(wrong[:MOST_REPORTED])
    assert after <= before, f"{before} open files became {after}"
    told = ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common())
    return (
        f"{calls} calls, seed {seed}: {told}; untyped 0; latest answer {latest:.2f} s after the wait asked for; "
        f"server alive, open files {before} to {after}"
    )


class _Judge:
    """Knows what the tools published about their results."""

    def __init__(self, schemas: dict[str, Json]) -> None:
        self._schemas = {tool: checker(schema) for tool, schema in schemas.items()}

    async def outcome_of(self, ask: "Ask", made: Call) -> str:
        """`result`, the code of an error, or `untyped: ...`. A fault of ours is untyped, though it has a code."""
        try:
            reply = CallToolResult.model_validate(await ask({"name": made.tool, "arguments": made.arguments}))
        except Exception as error:  # noqa: BLE001 - whatever the client cannot take is a finding
            return f"{UNTYPED}: {type(error).__name__}: {error}"
        if not reply.is_error:
            try:
                self._schemas[made.tool](reply.structured_content)
            except jsonschema.ValidationError as error:
                return f"{UNTYPED}: {error.message}"
            return "result"
        text = text_of(reply)
        told = re.match(r"ERROR ([a-z_]+): \S", text)
        if (
            told is None
            or told[1] not in codes_of(made.tool) - {"internal"}
            or reply.structured_content is not None
            or "Traceback" in text
        ):
            return f"{UNTYPED}: {text}"
        return told[1]


Ask = Callable[[Json], Awaitable[Any]]
"""Sends the parameters of a `tools/call` as they are, and gives its result; `KeyError` for any other answer."""


@asynccontextmanager
async def _stdio(home: TempHome, module: str) -> AsyncGenerator[tuple[int, Ask]]:
    async with raw_server(home, module=module) as raw:

        async def ask(params: Json) -> Any:
            return (await raw.ask("tools/call", **params))["result"]

        await raw.ask("tools/call", name="list_runs", arguments={})
        yield raw.process.pid, ask


@asynccontextmanager
async def _http(home: TempHome, module: str) -> AsyncGenerator[tuple[int, Ask]]:
    async with http_server(home, module=module) as server:
        headers = {
            **server.credentials,
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2025-06-18",
        }
        async with httpx2.AsyncClient(verify=trusted(), headers=headers, trust_env=False, timeout=60) as http:

            async def send(document: Json) -> httpx2.Response:
                return await http.post(server.url, content=json.dumps({"jsonrpc": "2.0", **document}))

            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "f", "version": "1"}}
            greeted = await send({"id": 0, "method": "initialize", "params": params})
            http.headers["Mcp-Session-Id"] = greeted.headers["mcp-session-id"]
            await send({"method": "notifications/initialized"})

            async def ask(params: Json) -> Any:
                text = (await send({"id": 1, "method": "tools/call", "params": params})).text
                told = re.findall(r"^data: (.+)$", text, re.MULTILINE) or [text]
                answers = [json.loads(one) for one in told]
                return next(one for one in answers if one.get("id") == 1)["result"]

            await ask({"name": "list_runs", "arguments": {}})
            yield server.process.pid, ask


# -- what the calls are about -----------------------------------------------------------------------------------------


async def _known(home: TempHome, client: Client) -> Known:
    """A store with runs in every state that a call may meet, and files of several kinds beside it."""
    quick = home.config("quick", agent("ada", {"answer": "a"}, {"vote": "own"}), agent("bo", {"answer": "b"}))
    stuck = _stuck(home)
    failing = home.config("failing", agent("ada", {"fail": "auth"}))
    runs: dict[str, str] = {}
    for state, config, limits in (("completed", quick, {}), ("failed", failing, {}), ("timed_out", stuck, BRIEFLY)):
        reply = await call(client, "start_run", question="q", config=config, wait_seconds=40, **limits)
        assert reply["status"] == state, reply
        runs[state] = reply["run_id"]
    runs["cancelled"] = (await call(client, "start_run", question="q", config=stuck, session_id="talk"))["run_id"]
    await call(client, "control_run", run_id=runs["cancelled"], action="cancel")
    runs["asking"] = await _start_asking(home, client)
    runs["running"] = (await call(client, "start_run", question="q", config=stuck))["run_id"]
    runs["never was"] = "run-" + "a" * 26
    empty, binary, broken = (home.work / name for name in ("empty.yaml", "binary.yaml", "broken.yaml"))
    empty.touch()
    binary.write_bytes(bytes(range(256)))
    broken.write_text("agents: [unclosed\n")
    named = [quick, "scripted", "@examples/scripted", "two_providers", "scriptd"]
    configs = [*named, *map(str, (home.work, empty, binary, broken))]
    return Known(runs, configs, [str(home.work), quick, "/etc/hostname"])


def _stuck(home: TempHome) -> str:
    return home.config("stuck", agent("ada", {"answer": "a"}, {"hang": True}), agent("bo", {"hang": True}))


async def _start_asking(home: TempHome, client: Client) -> str:
    """Id of a run that waits for a larger budget."""
    config = home.config("broke", agent("ada", {"answer": "a"}), budget={"max_tokens": 1_000, "at_cap": "ask"})
    run_id = (await call(client, "start_run", question="q " * 10_000, config=config))["run_id"]
    waited = await call(client, "wait_run", run_id=run_id, timeout_seconds=40)
    assert waited["status"] == "input_required", waited
    return run_id


async def _keep_going(home: TempHome, client: Client, known: Known) -> None:
    """The calls end the runs that go on; others take their place."""
    for name in ("running", "asking"):
        status = (await call(client, "get_status", run_id=known.runs[name]))["status"]
        if status in ("queued", "running", "input_required"):
            continue
        if name == "asking":
            known.runs[name] = await _start_asking(home, client)
        else:
            known.runs[name] = (await call(client, "start_run", question="q", config=_stuck(home)))["run_id"]
