"""`massgen demo`: the whole way of a run as a parent agent goes it, with a real server, a real runner and scripted
agents. It is a client and nothing else: it knows only the tools.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from sysconfig import get_path
from typing import Any, cast

from mcp import Client, StdioServerParameters
from mcp.types import TextContent

from massgen_mcp.cli.exits import EXIT_FAILED, EXIT_OK
from massgen_mcp.cli.massgen_mcp.install.clients import CLIENTS
from massgen_mcp.cli.output import print_line, print_lines
from massgen_mcp.errors import ErrorCode, MassgenError
from massgen_mcp.home import IDLE_VARIABLE

QUESTION = "Our billing service is ten years old and every change hurts. Should we rewrite it or refactor it?"
CONFIG = "scripted"
RUNNER_IDLE_SECONDS = "5"
NEXT = {
    "massgen doctor": "check your setup",
    "massgen install claude-code": f"or another client: {', '.join(sorted(set(CLIENTS) - {'claude-code'}))}",
    'massgen "Your question"': "start your first real run",
}


async def run(options: argparse.Namespace) -> int:  # noqa: ARG001 - every verb takes its options; this one has none
    """Start the server as a client would and delegate one question."""
    print_line("massgen demo: three scripted agents, no API key needed. No model is called: all answers are scripted.")
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "massgen_mcp.cli.massgen_mcp.main"],
        env={**os.environ, IDLE_VARIABLE: os.environ.get(IDLE_VARIABLE, RUNNER_IDLE_SECONDS)},
    )
    async with Client(server) as client:
        tools = await client.list_tools()
        _tell_part(f"The server offers: {', '.join(tool.name for tool in tools.tools)}", ())
        _tell_part(f"start_run(question={QUESTION!r}, team={CONFIG!r})", ())
        started = await _call(client, "start_run", question=QUESTION, team=CONFIG)
        run_id = str(started["run_id"])
        print_line(f"  run_id {run_id}")
        print_lines(f"  agent {agent} ({model})" for agent, model in started["team"].items())
        await _follow(client, run_id)
        result = await _call(client, "get_result", run_id=run_id)
    return _print_result(result)


async def _follow(client: Client, run_id: str) -> None:
    """Wait for each change and tell it, until the run has ended."""
    _tell_part("wait_run, until the run ends:", ())
    shown, cursor = "", 0
    while True:
        status = await _call(client, "wait_run", run_id=run_id, until="change", cursor=cursor, timeout_seconds=30)
        agents = "; ".join(status.get("agents", ()))
        line = f"  {status['status']:<9} {status.get('phase', ''):<10} {agents}"
        if line != shown and agents:
            print_line(line)
            shown = line
        cursor = status["cursor"]
        if status["status"] not in ("queued", "running"):
            print_line(f"  {status['status']}")
            return


def _print_result(result: dict[str, Any]) -> int:
    votes = (f"{vote['voter']} for {vote['voted_for']} ({vote['label']}): {vote['reason']}" for vote in result["votes"])
    dissent = (f"dissent by {one['agent']} ({one['label']}): {one['preview']}" for one in result["dissent"])
    print_line()
    print_line(f"get_result: {result['status']}, {result.get('outcome')}, in {result['seconds']:.2f} s")
    _tell_part("ANSWER", result.get("answer", "none").splitlines())
    _tell_part(f"VOTES (winner: {result.get('winner')})", [*votes, *dissent])
    _tell_part("FILES", [f"{name}: {path}" for name, path in result["paths"].items()])
    commands = ((*command.partition(" "), meaning) for command, meaning in NEXT.items())
    _tell_part(
        "No model was called. For a real team, set a provider key or start a local model server. Next steps:",
        [f"{_typed(program)} {rest}  # {meaning}" for program, _, rest, meaning in commands],
    )
    return EXIT_OK if result["status"] == "completed" else EXIT_FAILED


def _tell_part(title: str, lines: Sequence[str]) -> None:
    print_lines(["", title, *(f"  {line}" for line in lines)])


def _typed(program: str) -> str:
    """How a person starts a command of ours here: by its name where that is on PATH, else by its place."""
    if shutil.which(program):
        return program
    return str(Path(get_path("scripts"), program))


async def _call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    reply = await client.call_tool(tool, arguments)
    if reply.is_error or reply.structured_content is None:
        texts = (block.text for block in reply.content if isinstance(block, TextContent))
        code, _, message = " ".join(texts).removeprefix("ERROR ").partition(": ")
        raise MassgenError(cast("ErrorCode", code), message)
    return reply.structured_content
