"""Programs of agents, run where they can neither harm nor read anything that was not given to them.

    policy = Policy(workspace=Path(...), scratch=Path(...), shown=(Shown(Path("/home/me/repo"), "/context/repo"),))
    choice = await choose(Wishes(), cache)     # tries the levels for real, once; `cache` is a file
    if choice.level is None: ...               # `choice.why` says what is missing, and how to get it
    async with spawn(["/bin/sh", "-c", "make test"], policy, choice.level) as process:
        ...                                    # process.stdout, process.stderr, process.stdin, process.stop()
        ended = await process.wait()           # Ended(reason, code, seconds, ...)

Inside, the workspace is `/workspace`, the scratch directory `/tmp`; each `VisiblePath` is at its `place`. The
environment is `Policy.environ` and a few plain variables, never our own. When the block is left, by a cancellation too,
and when this process dies, every process of the command is gone, whatever it has done to get away. A program that one
talks with over its standard input and output is started by `sandboxed`, or by `bare` without a sandbox.
"""

from massgen_mcp.sandbox.levels import interpreter, present
from massgen_mcp.sandbox.network import Network, NetworkFailed
from massgen_mcp.sandbox.piped import LastWords, PipedProgram, bare, sandboxed
from massgen_mcp.sandbox.policy import (
    INSTALLED,
    SCRATCH,
    WORKSPACE,
    Image,
    LevelName,
    Policy,
    VisiblePath,
    find_package,
)
from massgen_mcp.sandbox.probe import LevelReport, SandboxChoice, Wanted, Wishes, choose, how_to_get_one, survey
from massgen_mcp.sandbox.process import Ended, EndReason, SandboxedProcess, SandboxFailed, spawn
from massgen_mcp.sandbox.project_tools import NO_TOOLS, OFFLINE, ProjectTools, project_tools
from massgen_mcp.sandbox.rules import SandboxRules
from massgen_mcp.sandbox.shell import build_shell_command
from massgen_mcp.sandbox.specification import ResourceLimits

__all__ = [
    "INSTALLED",
    "NO_TOOLS",
    "OFFLINE",
    "SCRATCH",
    "WORKSPACE",
    "EndReason",
    "Ended",
    "Image",
    "LastWords",
    "LevelName",
    "LevelReport",
    "Network",
    "NetworkFailed",
    "PipedProgram",
    "Policy",
    "ProjectTools",
    "ResourceLimits",
    "SandboxChoice",
    "SandboxFailed",
    "SandboxRules",
    "SandboxedProcess",
    "VisiblePath",
    "Wanted",
    "Wishes",
    "bare",
    "build_shell_command",
    "choose",
    "find_package",
    "how_to_get_one",
    "interpreter",
    "present",
    "project_tools",
    "sandboxed",
    "spawn",
    "survey",
]
