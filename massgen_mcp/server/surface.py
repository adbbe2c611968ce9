"""The SDK's server with what a client finds beside tools: resources, prompts, changes, tasks, and true capabilities.

Knows no runs. `app` adds what is ours of tools.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup
from mcp.server import MCPServer
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.extension import Extension
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, UnexpectedResourceError
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    PromptsCapability,
    Resource,
    ResourcesCapability,
    ServerCapabilities,
    ToolsCapability,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import AnyUrl, BaseModel, ValidationError

from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import did_you_mean
from massgen_mcp.redaction import Redactor
from massgen_mcp.server.tasks import Tasks
from massgen_mcp.workspace.guard import PathRefused

ParamsT = TypeVar("ParamsT", bound=BaseModel)
Handler = Callable[[ServerRequestContext[TaskGroup, Any], ParamsT], Awaitable[HandlerResult]]


class SurfaceServer(MCPServer[TaskGroup]):
    """No resource shows a key that `redactor` knows. The lifespan is a task group for what goes on between requests."""

    def __init__(
        self,
        redactor: Redactor,
        name: str,
        extensions: Sequence[Extension] = (),
        **described: Any,  # noqa: ANN401 - as the SDK takes it
    ) -> None:
        self._redactor = redactor
        self._listings: list[Callable[[], Awaitable[list[Resource]]]] = []
        self.tasks = Tasks()
        self.changes = InMemorySubscriptionBus()
        """What this process knows to have changed, for all its clients."""
        offered = [self.tasks, *extensions]
        super().__init__(name, extensions=offered, subscriptions=self.changes, lifespan=_background, **described)
        self._lowlevel_server.get_capabilities = partial(_true_capabilities, self._lowlevel_server.get_capabilities)

    def serve_method(self, method: str, params_type: type[ParamsT], handler: Handler[ParamsT]) -> None:
        """Answer requests of a method of the protocol for which the SDK has no decorator."""
        self._lowlevel_server.add_request_handler(method, params_type, handler)

    def hear(self, method: str, params_type: type[ParamsT], handler: Handler[ParamsT]) -> None:
        """Take notifications of clients."""

        async def heard(ctx: ServerRequestContext[TaskGroup, Any], params: ParamsT) -> None:
            await handler(ctx, params)

        self._lowlevel_server.add_notification_handler(method, params_type, heard)

    def list_also(self, resources: Callable[[], Awaitable[list[Resource]]]) -> None:
        """List resources that change while the server works; `resources` is asked for every list."""
        self._listings.append(resources)

    async def tell_resources_changed(self, *, unless: bool) -> None:
        """Clients are told that the list of resources has changed."""
        if not unless:
            await self.changes.publish(ResourcesListChanged())

    async def list_resources(self) -> list[Resource]:
        listed = await super().list_resources()
        for listing in self._listings:
            listed += await listing()
        return listed

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[TaskGroup, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        try:
            contents = await super().read_resource(uri, context)
        except ResourceError as error:
            raise _resource_error(error) from error
        if isinstance(contents, InputRequiredResult):
            return contents
        return [self._without_keys(one) for one in contents]

    def _without_keys(self, content: ReadResourceContents) -> ReadResourceContents:
        if isinstance(content.content, str):
            known = None if content.mime_type == "application/octet-stream" else content.mime_type
            return replace(content, content=self._redactor.text(content.content), mime_type=known or "text/plain")
        if self._redactor.finds(content.content.decode("latin-1")):
            raise ResourceError("a key stands in this file, so it is not shown")
        return content

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[TaskGroup, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """As the SDK's, but for what is refused: an unknown prompt or argument, or one that is missing."""
        prompts = {prompt.name: prompt for prompt in await self.list_prompts()}
        if name not in prompts:
            raise MCPError(INVALID_PARAMS, f"there is no prompt {name[:80]!r}{did_you_mean(name, list(prompts))}")
        known = prompts[name].arguments or []
        names = [argument.name for argument in known]
        for given in arguments or {}:
            if given not in names:
                raise MCPError(INVALID_PARAMS, f"unknown argument {given[:80]!r}{did_you_mean(given, names)}")
        if missing := [one.name for one in known if one.required and not (arguments or {}).get(one.name)]:
            raise MCPError(INVALID_PARAMS, f"prompt {name} needs {', '.join(missing)}")
        return await super().get_prompt(name, arguments, context)

    def reply_of(self, name: str, result: object) -> CallToolResult | InputRequiredResult:
        """What a call of a tool that has come to this result is answered with. Raises `ValueError` without the tool."""
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            raise ValueError(f"there is no tool {name}")
        return self.without_keys(tool.fn_metadata.convert_result(result))

    def without_keys(self, reply: CallToolResult | InputRequiredResult) -> CallToolResult | InputRequiredResult:
        if not self._redactor.finds(reply.model_dump_json()):
            return reply
        return type(reply).model_validate(self._redactor.value(reply.model_dump(mode="json", by_alias=True)))


@asynccontextmanager
async def _background(_: MCPServer[TaskGroup]) -> AsyncGenerator[TaskGroup]:
    async with anyio.create_task_group() as tasks:
        yield tasks
        tasks.cancel_scope.cancel()


def _true_capabilities(
    derived: Callable[..., ServerCapabilities],
    *given: Any,  # noqa: ANN401 - the SDK decides what it passes
    **named: Any,  # noqa: ANN401
) -> ServerCapabilities:
    """What the SDK derives, without what never happens here: lists of tools and prompts that change, and extensions on
    the wire of the handshake revisions.
    """
    modern = named.get("protocol_version") in MODERN_PROTOCOL_VERSIONS
    found = derived(*given, **named)
    return found.model_copy(
        update={
            "tools": found.tools and ToolsCapability(),
            "prompts": found.prompts and PromptsCapability(),
            "resources": found.resources and ResourcesCapability(subscribe=True, list_changed=True),
            "extensions": found.extensions if modern else None,
        }
    )


def _resource_error(error: ResourceError) -> ResourceError:
    """In words that help; what is no fault of ours is told, too."""
    cause = error.__cause__.__cause__ if isinstance(error.__cause__, UnexpectedResourceError) else error.__cause__
    match cause:
        case MassgenError(code="unknown_run" | "expired" | "config_not_found" | "unsafe_path" | "not_finished"):
            return ResourceNotFoundError(f"{cause.code}: {cause}")
        case MassgenError():
            return ResourceError(f"{cause.code}: {cause}")
        case PathRefused():
            return ResourceNotFoundError(str(cause))
        case ValidationError():
            return ResourceNotFoundError(f"invalid_arguments: {_first_fault(cause)}")
        case _:
            return error


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
