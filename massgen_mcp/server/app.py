"""Our kind of MCP server: the SDK's, with arguments checked strictly and errors that say what they are."""

import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup
from mcp.server import MCPServer
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import (
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnexpectedResourceError,
    UnexpectedToolError,
)
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    PromptsCapability,
    Resource,
    ResourcesCapability,
    ServerCapabilities,
    TextContent,
    Tool,
    ToolsCapability,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import AnyUrl, BaseModel, ValidationError

from massgen_mcp import __version__
from massgen_mcp.errors import MassgenError, storage_error
from massgen_mcp.redaction import NO_KEYS, Redactor
from massgen_mcp.server.asking import ClientAsked
from massgen_mcp.server.schemas import compacted
from massgen_mcp.server.tasks import Tasks
from massgen_mcp.workspace.guard import PathRefused

logger = logging.getLogger(__name__)

Sent = CallToolResult | InputRequiredResult
ParamsT = TypeVar("ParamsT", bound=BaseModel)
Handler = Callable[[ServerRequestContext[TaskGroup, Any], ParamsT], Awaitable[HandlerResult]]

INSTRUCTIONS = """\
Delegate a question that is too hard or too important for one model: start_run gives it to a team of LLM agents that \
answer independently, read each other's answers without names, and vote. \
The run goes on in the background and survives this session: call start_run, go on with your work, and call wait_run \
when you need the result instead of polling. \
get_result returns the final answer first, then the votes with their reasons and the dissent; read the dissent before \
you rely on a close vote. \
Put everything the team must know into the question, or name files in context_paths: the team sees nothing else."""

WHERE_KEYS_GO = (
    "Keys go into `env` of this server's entry in the configuration of your MCP client; restart the client then."
)


class MassgenServer(MCPServer[TaskGroup]):
    """Refuses unknown arguments by name, and answers every failure of a tool with `ERROR <code>: <message>`. No reply
    holds a key that `redactor` knows. Its lifespan is a task group for what goes on between two requests.
    """

    def __init__(self, redactor: Redactor = NO_KEYS) -> None:
        self._redactor = redactor
        self._tools: dict[str, Tool] = {}
        """As they are listed; made when they are first asked for."""
        self._listings: list[Callable[[], Awaitable[list[Resource]]]] = []
        self.tasks = Tasks()
        self.changes = InMemorySubscriptionBus()
        """What this process knows to have changed, for all its clients."""
        super().__init__(
            "massgen-mcp",
            title="massgen-mcp",
            version=__version__,
            description="A team of LLM agents answers, reads each other and votes.",
            instructions=INSTRUCTIONS,
            log_level="WARNING",
            extensions=[self.tasks],
            subscriptions=self.changes,
            lifespan=_background,
        )
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
            raise MCPError(INVALID_PARAMS, f"there is no prompt {name[:80]!r}{_nearest(name, list(prompts))}")
        known = prompts[name].arguments or []
        names = [argument.name for argument in known]
        for given in arguments or {}:
            if given not in names:
                raise MCPError(INVALID_PARAMS, f"unknown argument {given[:80]!r}{_nearest(given, names)}")
        if missing := [one.name for one in known if one.required and not (arguments or {}).get(one.name)]:
            raise MCPError(INVALID_PARAMS, f"prompt {name} needs {', '.join(missing)}")
        return await super().get_prompt(name, arguments, context)

    async def list_tools(self) -> list[Tool]:
        """The tools, in few words, with schemas that say that unknown arguments are refused."""
        return list((await self._listed()).values())

    async def _listed(self) -> dict[str, Tool]:
        if not self._tools:
            self._tools = {tool.name: compacted(tool) for tool in await super().list_tools()}
        return self._tools

    def add_tool(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - the SDK decides what it takes
        """As the SDK's."""
        self._tools = {}
        super().add_tool(*given, **named)

    def reply_of(self, name: str, result: object) -> CallToolResult | InputRequiredResult:
        """What a call of a tool that has come to this result is answered with."""
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            raise ValueError(f"there is no tool {name}")
        return self._redacted(tool.fn_metadata.convert_result(result))

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[TaskGroup, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        return self._redacted(await self._call(name, arguments, context))

    def _redacted(self, reply: Sent) -> Sent:
        if not self._redactor.finds(reply.model_dump_json()):
            return reply
        return type(reply).model_validate(self._redactor.value(reply.model_dump(mode="json", by_alias=True)))

    async def _call(
        self, name: str, arguments: dict[str, Any], context: Context[TaskGroup, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        try:
            await self._refuse_unknown(name, arguments)
            return await super().call_tool(name, arguments, context)
        except MCPError:  # the protocol's own, such as a client that is gone
            raise
        except Exception as error:  # noqa: BLE001 - the boundary of every call
            if isinstance(asked := error.__cause__, ClientAsked):
                return asked.result
            refusal = _refusal(error) or _fault(name, error)
            hint = f". {WHERE_KEYS_GO}" if refusal.code in ("missing_key", "no_default_team") else ""
            return _error(refusal.code, f"{refusal}{hint}")

    async def _refuse_unknown(self, name: str, arguments: dict[str, Any]) -> None:
        """Raises `MassgenError` invalid_arguments for an unknown tool or argument, with the nearest name."""
        tools = await self._listed()
        if name not in tools:
            raise MassgenError("invalid_arguments", f"there is no tool {name[:80]!r}{_nearest(name, list(tools))}")
        known = list(tools[name].input_schema["properties"])
        unknown = [argument for argument in arguments if argument not in known]
        if unknown:
            told = "; ".join(f"unknown argument {argument[:80]!r}{_nearest(argument, known)}" for argument in unknown)
            raise MassgenError("invalid_arguments", f"{told}; {name} takes: {', '.join(known) or 'nothing'}")

    async def serve(
        self, incoming: ReadStream[SessionMessage | Exception], outgoing: WriteStream[SessionMessage]
    ) -> None:
        """One session over these streams, until `incoming` ends."""
        options = self._lowlevel_server.create_initialization_options()
        await self._lowlevel_server.run(incoming, outgoing, options)


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
            return ResourceNotFoundError(f"invalid_arguments: {_listed(cause)}")
        case _:
            return error


def _nearest(name: str, known: list[str]) -> str:
    nearest = get_close_matches(name, known, 1)
    return f", did you mean {nearest[0]!r}?" if nearest else ""


def _refusal(error: BaseException | None) -> MassgenError | None:
    """What the caller is told of a failure, groups of them included; None where one of them is a fault of ours."""
    match error:
        case MassgenError():
            return error
        case OSError():
            return storage_error("the operating system refused", error)
        case UnexpectedToolError():
            return _refusal(error.__cause__)
        case ToolError(__cause__=ValidationError() as wrong):
            return MassgenError("invalid_arguments", _listed(wrong))
        case BaseExceptionGroup():
            refusals = [_refusal(each) for each in error.exceptions]
            return None if None in refusals else refusals[0]
        case _:
            return None


def _fault(tool: str, error: Exception) -> MassgenError:
    """Write the whole fault to the log; the caller hears where it stands, and nothing of what is in it."""
    reference = secrets.token_hex(4)
    logger.error("%s failed, reference %s", tool, reference, exc_info=error)
    told = f"{tool} failed by a fault of this program; server.log in the state directory has it as {reference}"
    return MassgenError("internal", told)


def _listed(error: ValidationError) -> str:
    """Every wrong argument, without its value."""
    told = (
        (".".join(map(str, detail["loc"])), detail["msg"].removeprefix("Value error, ")) for detail in error.errors()
    )
    return "; ".join(f"{place}: {message}" for place, message in told)


def _error(code: str, message: str) -> CallToolResult:
    """Text only: where a client shows a model the structured content alone, an error must not have any."""
    return CallToolResult(content=[TextContent(type="text", text=f"ERROR {code}: {message}")], is_error=True)
