"""A client that knows the Tasks extension, made of the SDK's client: it gets a handle, and asks for the rest."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import anyio
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, NotificationBinding, ResultClaim
from mcp.types import CallToolResult, Request, RequestParams, Result
from pydantic import BaseModel, ConfigDict, Field

from tests.harness import PATIENCE_SECONDS

TASKS = "io.modelcontextprotocol/tasks"
POLL_SECONDS = 0.1
ENDED = ("completed", "failed", "cancelled")


class Handle(Result):
    """The answer to a call that became a task; `ttl_ms` must be there, null or not."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")
    status: str
    status_message: str | None = Field(None, alias="statusMessage")
    created_at: str = Field(alias="createdAt")
    last_updated_at: str = Field(alias="lastUpdatedAt")
    ttl_ms: int | None = Field(alias="ttlMs")
    poll_interval_ms: int | None = Field(None, alias="pollIntervalMs")


class TaskNews(BaseModel):
    model_config = ConfigDict(extra="allow")

    taskId: str  # noqa: N815 - as on the wire
    status: str


class KnowsTasks(ClientExtension):
    """Give it to a client; `news` is what the server told by itself."""

    identifier = TASKS

    def __init__(self) -> None:
        self.news: list[dict[str, Any]] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return (ResultClaim(result_type="task", model=Handle, resolve=self._finish),)

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        return (NotificationBinding(method="notifications/tasks", params_type=TaskNews, handler=self._heard),)

    async def _heard(self, news: TaskNews) -> None:
        self.news.append(news.model_dump())

    async def _finish(self, handle: Handle, context: ClaimContext) -> CallToolResult:
        """As a client does for which a task is only a call that takes longer."""
        with anyio.fail_after(PATIENCE_SECONDS):
            while True:
                task = await context.session.send_request(TaskRequest.of("tasks/get", handle.task_id), Anything)
                if task.told["status"] in ENDED:
                    return CallToolResult.model_validate(task.told["result"])
                await anyio.sleep(POLL_SECONDS)


class TaskParams(RequestParams):
    model_config = ConfigDict(extra="allow")

    taskId: str  # noqa: N815 - as on the wire


class TaskRequest(Request[TaskParams, str]):
    name_param: ClassVar[str | None] = "taskId"

    @classmethod
    def of(cls, method: str, task_id: str, **more: Any) -> "TaskRequest":
        return cls(method=method, params=TaskParams.model_validate({"taskId": task_id, **more}))


class Anything(Result):
    model_config = ConfigDict(extra="allow")

    @property
    def told(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


async def begin(client: Client, **arguments: Any) -> Handle:
    """`start_run` as a task."""
    handle = await client.session.call_tool("start_run", arguments, allow_claimed=True)
    assert isinstance(handle, Handle), handle
    return handle


async def ask_task(client: Client, method: str, task_id: str, **more: Any) -> dict[str, Any]:
    """The result of `tasks/get`, `tasks/update` or `tasks/cancel`."""
    reply = await client.session.send_request(TaskRequest.of(method, task_id, **more), Anything)
    return {key: value for key, value in reply.told.items() if key not in ("_meta", "resultType")}


async def task_that(client: Client, task_id: str, *statuses: str) -> dict[str, Any]:
    """The task as soon as it has one of these statuses."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            task = await ask_task(client, "tasks/get", task_id)
            if task["status"] in statuses:
                return task
            await anyio.sleep(POLL_SECONDS)
