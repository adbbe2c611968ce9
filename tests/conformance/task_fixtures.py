"""The tools of the conformance suite that answer with tasks: kept in memory, by the extension of our server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from time import time
from typing import Any, Literal

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    ElicitRequest,
    ElicitResult,
    InputRequiredResult,
    TextContent,
)

from massgen_mcp.errors import MassgenError
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.tasks import (
    Cancelled,
    Completed,
    Failed,
    McpTask,
    TaskInputRequired,
    TaskState,
    Working,
)
from tests.conformance.fixtures import NAME, form

CONFIRM = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}
TTL_MS = 600_000
JOB_SECONDS = 1.0


@dataclass
class Kept:
    created: float
    ends: float
    outcome: TaskState
    open: dict[str, ElicitRequest] = field(default_factory=dict[str, ElicitRequest])
    cancelled: bool = False


class FixtureTasks:
    """See `TaskSource`."""

    tools: Mapping[str, Literal["optional", "required"]] = {
        "slow_compute": "optional",
        "failing_job": "required",
        "protocol_error_job": "optional",
        "confirm_delete": "optional",
        "multi_input": "optional",
        "test_tool_with_task": "required",
    }

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}

    def owns(self, task_id: str) -> bool:
        return task_id.startswith("fixture-")

    async def begin(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> McpTask | HandlerResult:
        arguments, now = params.arguments or {}, time()
        match params.name:
            case "slow_compute":
                kept = Kept(now, now + float(arguments.get("seconds", 0)), _text("computed"))
            case "failing_job":
                kept = Kept(now, now + JOB_SECONDS, _text("it failed", is_error=True))
            case "protocol_error_job":
                kept = Kept(now, now, Failed(INTERNAL_ERROR, "it broke"))
            case "confirm_delete":
                kept = Kept(now, now, _text("deleted"), {"confirm": form("Delete it?", CONFIRM)})
            case "multi_input":
                both = {"first": form("First name?", NAME), "second": form("Second name?", NAME)}
                kept = Kept(now, now, _text("both there"), both)
            case _:
                answer = (params.input_responses or {}).get("user_name")
                if not isinstance(answer, ElicitResult):
                    return await call_next(ctx)
                kept = Kept(now, now, _text(f"Hello, {(answer.content or {}).get('name')}!"))
        task_id = f"fixture-{token_hex(8)}"
        self._kept[task_id] = kept
        return await self.get(task_id, None)

    async def get(self, task_id: str, client: ClientCapabilities | None) -> McpTask:
        del client  # all of the suite's clients can be asked
        kept = self._known(task_id)
        state: TaskState = kept.outcome
        if kept.cancelled:
            state = Cancelled()
        elif kept.open:
            state = TaskInputRequired(kept.open)
        elif time() < kept.ends:
            state = Working()
        return McpTask(task_id, state, kept.created, time(), ttl_ms=TTL_MS, poll_ms=100)

    async def update(self, task_id: str, answers: Mapping[str, ElicitResult]) -> None:
        kept = self._known(task_id)
        kept.open = {key: request for key, request in kept.open.items() if key not in answers}

    async def cancel(self, task_id: str) -> None:
        kept = self._known(task_id)
        kept.cancelled = kept.cancelled or bool(kept.open) or time() < kept.ends

    def _known(self, task_id: str) -> Kept:
        if task_id not in self._kept:
            raise MassgenError("unknown_run", "there is no such task")
        return self._kept[task_id]


def _text(text: str, *, is_error: bool = False) -> Completed:
    result = CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)
    wire: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return Completed(wire)


def add_task_fixtures(server: MassgenServer) -> None:
    """The tools as they answer without tasks, and what keeps their tasks."""

    @server.tool(description="Greets.", structured_output=False)
    async def greet(name: str) -> str:
        return f"Hello, {name}!"

    @server.tool(description="Computes for a while.", structured_output=False)
    async def slow_compute(seconds: float = 0, label: str = "") -> str:
        del label
        await anyio.sleep(seconds)
        return "computed"

    @server.tool(description="Fails.", structured_output=False)
    async def failing_job() -> str:
        raise AssertionError("only as a task")

    @server.tool(description="Breaks.", structured_output=False)
    async def protocol_error_job() -> str:
        raise AssertionError("only as a task")

    @server.tool(description="Asks before it deletes.", structured_output=False)
    async def confirm_delete(filename: str = "") -> str:
        return f"{filename} is still there"

    @server.tool(description="Asks for two things.", structured_output=False)
    async def multi_input() -> str:
        return "nothing to ask"

    @server.tool(description="Asks, then works.", structured_output=False)
    async def test_tool_with_task(context: Context) -> InputRequiredResult:
        del context
        return InputRequiredResult(input_requests={"user_name": form("What is your name?", NAME)})

    server.tasks.add(FixtureTasks())
