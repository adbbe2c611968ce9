"""`massgen-mcp demo`: the whole way of a run as a parent agent goes it, with a real server, a real runner and scripted
agents. It is a client and nothing else: it knows only the tools.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path
from sysconfig import get_path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

from massgen_mcp.cli.exits import EXIT_FAILED, EXIT_OK
from massgen_mcp.cli.massgen_mcp.install.clients import CLIENTS
from massgen_mcp.cli.output import print_line
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import IDLE_VARIABLE

QUESTION = "Our billing service is ten years old and every change hurts. Rewrite it, or mend it?"
CONFIG = "scripted"
RUNNER_IDLE_SECONDS = "5"
NEXT = {
    "massgen-mcp doctor": "what is here, and how to fix the rest",
    "massgen-mcp install claude-code": f"or another client: {', '.join(sorted(set(CLIENTS) - {'claude-code'}))}",
    'massgen "Your question"': "the first real run",
}


async def run(options: argparse.Namespace) -> int:  # noqa: ARG001 - every verb takes its options; this one has none
    """Start the server as a client would and delegate one question."""
    print_line(
        "massgen-mcp demo: three scripted agents, no key needed. NO MODEL IS CALLED; every word is fixed in advance."
    )
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "massgen_mcp.cli.massgen_mcp.main"],
        env={**os.environ, IDLE_VARIABLE: os.environ.get(IDLE_VARIABLE, RUNNER_IDLE_SECONDS)},
    )
    async with Client(server) as client:
        tools = await client.list_tools()
        print_line()
        print_line(f"The server offers: {', '.join(tool.name for tool in tools.tools)}")
        print_line()
        print_line(f"start_run(question={QUESTION!r}, team={CONFIG!r})")
        started = await _call(client, "start_run", question=QUESTION, team=CONFIG)
        run_id = str(started["run_id"])
        print_line(f"  run_id {run_id}")
        for agent, model in started["team"].items():
            print_line(f"  agent {agent} ({model})")
        await _follow(client, run_id)
        result = await _call(client, "get_result", run_id=run_id)
    return _tell(result)


async def _follow(client: Client, run_id: str) -> None:
    """Wait for each change and tell it, until the run has ended."""
    print_line()
    print_line("wait_run, until it has ended:")
    shown, cursor = "", 0
    while True:
        status = await _call(client, "wait_run", run_id=run_id, until="change", cursor=cursor, timeout_seconds=30)
        agents = "; ".join(status.get("agents", ()))
        line = f"  {status['status']:<9} {status.get('phase', ''):<10} {agents}"
        if line != shown and agents:
            print_line(line)
            shown = line
        cursor = status["cursor"]
        if "poll_after_ms" not in status:
            print_line(f"  {status['status']}")
            return


def _tell(result: dict[str, Any]) -> int:
    print_line()
    print_line(f"get_result: {result['status']}, {result.get('outcome')}, in {result['seconds']:.2f} s")
    print_line()
    print_line("ANSWER")
    for line in result.get("answer", "none").splitlines():
        print_line(f"  {line}")
    print_line()
    print_line(f"VOTES (winner: {result.get('winner')})")
    for vote in result["votes"]:
        print_line(f"  {vote['voter']} for {vote['voted_for']} ({vote['label']}): {vote['reason']}")
    for dissent in result["dissent"]:
        print_line(f"  dissent of {dissent['agent']} ({dissent['label']}): {dissent['preview']}")
    print_line()
    print_line("FILES")
    for name, path in result["paths"].items():
        print_line(f"  {name}: {path}")
    print_line()
    print_line(
        "No model was called. For a real team set the key of a provider, or start a local model server. Go on with:"
    )
    for command, meaning in NEXT.items():
        program, _, rest = command.partition(" ")
        print_line(f"  {_typed(program)} {rest}  # {meaning}")
    return EXIT_OK if result["status"] == "completed" else EXIT_FAILED


def _typed(program: str) -> str:
    """How a person starts a command of ours here: by its name where that is on PATH, else by its place."""
    return program if shutil.which(program) else str(Path(get_path("scripts"), program))


async def _call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    reply = await client.call_tool(tool, arguments)
    if reply.is_error or reply.structured_content is None:
        raise MassgenError("internal", _text(reply))
    return reply.structured_content


def _text(reply: CallToolResult) -> str:
    return " ".join(block.text for block in reply.content if isinstance(block, TextContent))
