"""The Tasks extension of 2026-07-28: a tool call that takes long is answered with a task, whose result comes when the
client asks for it, or by itself where the client listens.

Knows tasks, not runs: a `TaskSource` keeps those of some tools (see `run_tasks`). Only for clients that declare the
extension in the request; nobody needs it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, assert_never

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    ClientCapabilities,
    ElicitRequest,
    ElicitResult,
    RequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from massgen_mcp.errors import MassgenError
from massgen_mcp.server.results.reply import format_moment

TASKS = "io.modelcontextprotocol/tasks"
NAME_HEADER = "mcp-name"


@dataclass(frozen=True, slots=True)
class Working:
    """The call goes on."""


@dataclass(frozen=True, slots=True)
class TaskInputRequired:
    """`requests` by names that no other request of the task ever has."""

    requests: Mapping[str, ElicitRequest]


@dataclass(frozen=True, slots=True)
class Completed:
    """`result`: of the tool call, also where the tool failed; as it goes over the wire."""

    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """The call ended in an error of the protocol."""

    code: int
    message: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The call was taken back."""


TaskState = Working | TaskInputRequired | Completed | Failed | Cancelled


@dataclass(frozen=True, slots=True)
class McpTask:
    """Times are seconds since the epoch. `ttl_ms`: for how long after `created` it can be asked for; None: no end is
    known yet.
    """

    task_id: str
    state: TaskState
    created: float
    updated: float
    message: str | None = None
    ttl_ms: int | None = None
    poll_ms: int | None = None


class TaskSource(Protocol):
    """Keeps the tasks of some tools."""

    @property
    def tools(self) -> Mapping[str, Literal["optional", "required"]]:
        """Which tools may answer with a task; `required`: they cannot do otherwise."""
        ...

    def owns(self, task_id: str) -> bool:
        """Whether an id can be one of these."""
        ...

    async def begin(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> McpTask | HandlerResult:
        """Answer a call of one of `tools`: with a task that `get` knows from now on, or with the result at once."""
        ...

    async def get(self, task_id: str, client: ClientCapabilities | None) -> McpTask:
        """Raises `MassgenError` unknown_run, expired."""
        ...

    async def update(self, task_id: str, answers: Mapping[str, ElicitResult]) -> None:
        """Take answers to `TaskInputRequired`; unknown names are passed over. Raises `MassgenError` as `get` does, and
        invalid_arguments.
        """

    async def cancel(self, task_id: str) -> None:
        """What has ended stays as it is. Raises `MassgenError` as `get` does."""


class TaskParams(RequestParams):
    task_id: str


class UpdateParams(TaskParams):
    input_responses: dict[str, Any]


class Tasks(Extension):
    identifier = TASKS

    def __init__(self) -> None:
        self._sources: list[TaskSource] = []

    def add(self, source: TaskSource) -> None:
        self._sources.append(source)

    def methods(self) -> Sequence[MethodBinding]:
        era = frozenset(MODERN_PROTOCOL_VERSIONS)
        return (
            MethodBinding("tasks/get", TaskParams, self._get, era),
            MethodBinding("tasks/update", UpdateParams, self._update, era),
            MethodBinding("tasks/cancel", TaskParams, self._cancel, era),
        )

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        source = next((one for one in self._sources if params.name in one.tools), None)
        if source is None:
            return await call_next(ctx)
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS or not declares_tasks(ctx):
            if source.tools[params.name] == "required":
                require_client_extension(ctx, TASKS)
            return await call_next(ctx)
        answer = await source.begin(params, ctx, call_next)
        return {"resultType": "task", **_head(answer)} if isinstance(answer, McpTask) else answer

    async def known(self, task_id: str, ctx: ServerRequestContext[Any, Any]) -> McpTask | None:
        """The task as this client may see it; None if there is none."""
        try:
            return await self._source(task_id).get(task_id, ctx.session.client_capabilities)
        except (MassgenError, MCPError):
            return None

    async def _get(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        self._admit(ctx, params)
        with_source = self._source(params.task_id)
        try:
            task = await with_source.get(params.task_id, ctx.session.client_capabilities)
        except MassgenError as error:
            raise _mcp_error(error) from error
        return {"resultType": "complete", **detailed(task)}

    async def _update(self, ctx: ServerRequestContext[Any, Any], params: UpdateParams) -> dict[str, Any]:
        self._admit(ctx, params)
        answers: dict[str, ElicitResult] = {}
        for key, given in params.input_responses.items():
            if isinstance(given, dict) and "action" in given:
                answers[key] = ElicitResult.model_validate(given)
        try:
            await self._source(params.task_id).update(params.task_id, answers)
        except MassgenError as error:
            raise _mcp_error(error) from error
        return {"resultType": "complete"}

    async def _cancel(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        self._admit(ctx, params)
        try:
            await self._source(params.task_id).cancel(params.task_id)
        except MassgenError as error:
            raise _mcp_error(error) from error
        return {"resultType": "complete"}

    def _source(self, task_id: str) -> TaskSource:
        source = next((one for one in self._sources if one.owns(task_id)), None)
        if source is None:
            raise MCPError(INVALID_PARAMS, f"Task not found: {task_id[:80]!r}")
        return source

    def _admit(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> None:
        """Over HTTP a header names the task, too, so that what lies between can route by it."""
        require_client_extension(ctx, TASKS)
        named = getattr(ctx.request, "headers", {}).get(NAME_HEADER)
        if named is not None and named != params.task_id:
            raise MCPError(HEADER_MISMATCH, "the Mcp-Name header doesn't match params.taskId")


def declares_tasks(ctx: ServerRequestContext[Any, Any]) -> bool:
    capabilities = ctx.session.client_capabilities
    return TASKS in ((capabilities.extensions if capabilities else None) or {})


def detailed(task: McpTask) -> dict[str, Any]:
    """The task with what its state brings, as `tasks/get` and `notifications/tasks` show it."""
    head = _head(task)
    match task.state:
        case TaskInputRequired(requests):
            shown = {
                key: one.model_dump(by_alias=True, mode="json", exclude_none=True) for key, one in requests.items()
            }
            return {**head, "inputRequests": shown}
        case Completed(result):
            return {**head, "result": result}
        case Failed(code, message):
            return {**head, "error": {"code": code, "message": message}}
        case Working() | Cancelled():
            return head


def _head(task: McpTask) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "taskId": task.task_id,
        "status": _status(task.state),
        "createdAt": format_moment(task.created),
        "lastUpdatedAt": format_moment(task.updated),
        "ttlMs": task.ttl_ms,
    }
    if task.poll_ms is not None:
        shown["pollIntervalMs"] = task.poll_ms
    if task.message is not None:
        shown["statusMessage"] = task.message
    return shown


def _status(state: TaskState) -> str:
    match state:
        case Working():
            return "working"
        case TaskInputRequired():
            return "input_required"
        case Completed():
            return "completed"
        case Failed():
            return "failed"
        case Cancelled():
            return "cancelled"
        case _:
            assert_never(state)


def _mcp_error(error: MassgenError) -> MCPError:
    asked_wrongly = error.code in ("unknown_run", "expired", "invalid_arguments", "invalid_action")
    return MCPError(INVALID_PARAMS if asked_wrongly else INTERNAL_ERROR, f"{error.code}: {error}")
