"""Commands of one agent outside of a run: what its tools answer, and which processes of a command there are."""

import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from massgen_mcp.sandbox import LevelName, Policy, ResourceLimits, spawn
from massgen_mcp.tools.base import Tool, ToolResult
from massgen_mcp.tools.command_policy import CommandRules
from massgen_mcp.tools.commands import AgentCommands, CommandHost
from massgen_mcp.workspace.directory import Workspace
from massgen_mcp.workspace.snapshot import remove_tree

BOUNDS = ResourceLimits(memory_bytes=256 << 20, processes=48, open_files=256, disk_bytes=64 << 20, files=2_000)


@dataclass
class Hands:
    """The tools of an agent, its workspace, and where that lies."""

    commands: AgentCommands
    workspace: Workspace
    place: Path

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self.commands.tools()

    async def use(self, tool_name: str, /, **arguments: Any) -> ToolResult:
        (tool,) = (tool for tool in self.tools if tool.spec.name == tool_name)
        return await tool.run(arguments)

    async def run(self, command: str, **arguments: Any) -> str:
        """What the agent reads after the command."""
        return (await self.use("run_command", command=command, **arguments)).text


@asynccontextmanager
async def hands(
    path: Path,
    level: LevelName,
    *,
    context: tuple[Path, ...] = (),
    network: tuple[str, ...] = (),
    **bounds: Any,
) -> AsyncGenerator[Hands]:
    rules = CommandRules(
        level=level, usual_seconds=60, most_seconds=60, bounds=BOUNDS._replace(**bounds), network=network
    )
    place = path / "workspace"
    with Workspace.create(place, context=context) as workspace:
        try:
            async with CommandHost.open() as host:
                yield Hands(AgentCommands(workspace, place, path / "scratch", rules, host), workspace, place)
        finally:
            for left in (place, path / "scratch"):  # much may have been written
                remove_tree(left)


def living(mark: str) -> list[int]:
    """The processes that have this in their arguments or their environment, ours and those above us excepted."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            if any(mark.encode() in (entry / name).read_bytes() for name in ("cmdline", "environ")):
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    found.append(int(entry.name))
    return found


def end_living(mark: str) -> None:
    for pid in living(mark):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def printed_by(argv: list[str], policy: Policy, level: LevelName) -> str:
    """What a command prints that ends by itself."""
    output = b""
    async with spawn(argv, policy, level) as process:
        with suppress(anyio.EndOfStream):
            while True:
                output += await process.stdout.receive()
        ended = await process.wait()
    assert ended.reason == "exited", ended
    return output.decode()
