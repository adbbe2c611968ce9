"""The tools by which an agent has a run of its own, watches it, and takes its answer.

Small on purpose: their schemas are a part of every request of every agent that has them.
"""

import time
from typing import Annotated

from pydantic import Field

from massgen_mcp.backends.base import JsonObject, ToolSpec
from massgen_mcp.orchestration.nested_runs import NestedRunRequest, NestedRuns
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.tools.base import (
    Arguments,
    CheckedTool,
    Tool,
    ToolRefused,
    ToolResult,
    WellFormedText,
    parse_arguments,
    tool_spec,
)
from massgen_mcp.views.nested_runs import result_lines, status_lines
from massgen_mcp.workspace.directory import Workspace
from massgen_mcp.workspace.guard import PathRefused

DELEGATE = "delegate"
DELEGATION_TOOLS = (DELEGATE, "get_status", "get_result")
MAX_WAIT_SECONDS = 300
MAX_CONFIG_BYTES = 256 * 1024
RESULT_CHARACTERS = 20_000
"""Of an answer, in one result; the whole of it is in the run's directory."""


class Delegate(Arguments):
    """What is empty or 0 was not said; many models fill in what they may leave out."""

    question: Annotated[WellFormedText, Field(min_length=1, description="The whole task; the team sees nothing else.")]
    config: str = Field(default="", description="A ready-made team, or your own YAML file. Default: a team like yours.")
    max_usd: float = Field(default=0, ge=0)
    max_seconds: float = Field(default=0, ge=0)


class GetStatus(Arguments):
    run_id: str = Field(default="", description="Default: the latest.")
    wait_seconds: float = Field(default=0, ge=0, le=MAX_WAIT_SECONDS, description="Wait so long for its end.")


class GetResult(Arguments):
    run_id: str = ""


def delegation_tools(nested: NestedRuns, agent: str, workspace: Workspace | None) -> tuple[Tool, ...]:
    async def status(wanted: GetStatus) -> ToolResult:
        return _status(await nested.look(wanted.run_id, wanted.wait_seconds))

    async def result(wanted: GetResult) -> ToolResult:
        return _tool_result(await nested.look(wanted.run_id, 0))

    return (
        DelegateTool(nested, agent, workspace),
        CheckedTool(_STATUS, GetStatus, status),
        CheckedTool(_RESULT, GetResult, result),
    )


class DelegateTool:
    """Starts a run, once per call whatever becomes of this process (`KeyedTool`)."""

    side_effects = True
    keeps_state = False

    def __init__(self, nested: NestedRuns, agent: str, workspace: Workspace | None) -> None:
        self._nested = nested
        self._agent = agent
        self._workspace = workspace

    @property
    def spec(self) -> ToolSpec:
        description = (
            "Have a team of agents work on a question of its own, in the background. Gives its run_id; status.json, "
            "massgen.log and answers are files in runs/RUN_ID/. It ends when your run ends."
        )
        return tool_spec(DELEGATE, description, Delegate)

    async def run(self, arguments: JsonObject) -> ToolResult:
        del arguments
        return ToolResult("a run is started by a call of its own", is_error=True)

    async def run_once(self, arguments: JsonObject, key: str) -> ToolResult:
        try:
            wanted = parse_arguments(Delegate, arguments)
            written = self._written(wanted.config)
            started = await self._nested.start(
                self._agent,
                key,
                NestedRunRequest(
                    wanted.question,
                    config=None if written is not None else wanted.config or None,
                    written=written,
                    max_usd=wanted.max_usd or None,
                    max_seconds=wanted.max_seconds or None,
                ),
            )
        except (ToolRefused, PathRefused) as refused:
            return ToolResult(str(refused), is_error=True)
        caps = f"${started.max_usd:.4g} and {started.max_tokens:,} tokens"
        return ToolResult(
            f"started {started.run_id} ({started.source}; at most {caps}). Its files: runs/{started.run_id}/. "
            f"get_status with wait_seconds waits for its end."
        )

    def _written(self, config: str) -> bytes | None:
        """The config that the agent names as a file of its own; None for any other."""
        if not config.endswith((".yaml", ".yml", ".json")):
            return None
        if self._workspace is None:
            raise ToolRefused("you have no files here; name a ready-made team, or leave `config` out")
        place = self._workspace.resolve(config)
        return place.root.read_bytes(place.rel, MAX_CONFIG_BYTES)


_STATUS = tool_spec("get_status", "What a run is doing that `delegate` started.", GetStatus)
_RESULT = tool_spec("get_result", "The answer of a run that `delegate` started.", GetResult)


def _status(state: RunState) -> ToolResult:
    return ToolResult("\n".join(status_lines(state, state.now(time.monotonic(), time.time()))), foreign=True)


def _tool_result(state: RunState) -> ToolResult:
    if state.state not in TERMINAL_STATES:
        message = f"{state.run_id} is {state.state}; get_status with wait_seconds waits for its end"
        return ToolResult(message, is_error=True)
    answer = state.best_answer or ""
    cut = len(answer) - RESULT_CHARACTERS
    rest = f"\n[{cut} more characters: see the files in runs/{state.run_id}/final/]" if cut > 0 else ""
    message = "\n".join(result_lines(state, state.now(time.monotonic(), time.time())))
    return ToolResult(f"{message}\n\n{answer[:RESULT_CHARACTERS]}{rest}".rstrip(), foreign=True)
