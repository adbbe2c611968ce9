"""Our kind of MCP server: the SDK's, with arguments checked strictly and errors that say what they are."""

import inspect
import logging
import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
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
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp.server.subscriptions import InMemorySubscriptionBus
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
from massgen_mcp.errors import MassgenError, translate_system_error
from massgen_mcp.home import find_store_path
from massgen_mcp.mcp_streams import ReadStream, WriteStream
from massgen_mcp.nearest import did_you_mean
from massgen_mcp.redaction import NO_KEYS, Redactor
from massgen_mcp.server.arguments import as_published
from massgen_mcp.server.clients import OVER_HTTP, WakingRuns, identify_client, is_over_http
from massgen_mcp.server.results import MAX_BYTES, ToolReply
from massgen_mcp.server.results.reply import page_of
from massgen_mcp.server.results.words import find_own_program
from massgen_mcp.server.run_app import for_models, listed, run_app
from massgen_mcp.server.schemas import compacted, reply_schema
from massgen_mcp.server.tasks import Tasks
from massgen_mcp.server.waiting import ClientAsked
from massgen_mcp.workspace.guard import PathRefused

ParamsT = TypeVar("ParamsT", bound=BaseModel)
Handler = Callable[[ServerRequestContext[TaskGroup, Any], ParamsT], Awaitable[HandlerResult]]

logger = logging.getLogger(__name__)

ABOUT_KEYS = ("missing_key", "no_default_team")
SEE_DATA = "The reply is in the structured data."
"""The text of a reply for a client whose model reads the text beside the data."""
CUT = " (cut here)"

INSTRUCTIONS = """\
Delegate a question that is too hard or too important for one model (a second opinion, a review, a root cause, an \
architecture decision): start_run asks a team of other models that answer independently, read each other's \
anonymous answers, and vote until they reach a consensus or a limit. \
The run continues in the background and survives this session. Do other work, but before you end your turn, call \
wait_run until the run has ended, unless a reply says that you will be woken. \
get_result returns the answer, votes and dissent; read the dissent before you rely on a close vote. \
Put everything the team must know into the question, or name files in context_paths: the team sees nothing else."""


class MassgenServer(MCPServer[TaskGroup]):
    """Refuses unknown arguments by name, and answers every failure with `ERROR <code>: <message>`. No reply and no
    resource holds a key that `redactor` knows. The lifespan is a task group for what goes on between requests.
    """

    def __init__(self, redactor: Redactor = NO_KEYS) -> None:
        self.waking = WakingRuns()
        self.tasks = Tasks()
        self.changes = InMemorySubscriptionBus()
        """What this process knows to have changed, for all its clients."""
        self._redactor = redactor
        self._listings: list[Callable[[], Awaitable[list[Resource]]]] = []
        self._tools: dict[str, Tool] = {}
        """As they are listed; made when they are first asked for."""
        super().__init__(
            "massgen-mcp",
            extensions=[self.tasks, run_app()],
            subscriptions=self.changes,
            lifespan=_background,
            middleware=[listed],
            title="massgen-mcp",
            version=__version__,
            description="LLM agents answer, read each other's answers and vote.",
            instructions=INSTRUCTIONS,
            log_level="WARNING",
        )
        self._lowlevel_server.get_capabilities = partial(_true_capabilities, self._lowlevel_server.get_capabilities)

    def serve_method(self, method: str, params_type: type[ParamsT], handler: Handler[ParamsT]) -> None:
        """Answer requests of a method of the protocol for which the SDK has no decorator."""
        self._lowlevel_server.add_request_handler(method, params_type, handler)

    def hear(
        self,
        method: str,
        params_type: type[ParamsT],
        handler: Callable[[ServerRequestContext[TaskGroup, Any], ParamsT], Awaitable[None]],
    ) -> None:
        """Take notifications of clients."""
        self._lowlevel_server.add_notification_handler(method, params_type, handler)

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
            raise ResourceError("this file contains a key, so massgen doesn't show it")
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

    async def list_tools(self) -> list[Tool]:
        """The tools, in few words, with schemas that say that unknown arguments are refused."""
        return list((await self._tools_by_name()).values())

    async def _tools_by_name(self) -> dict[str, Tool]:
        if not self._tools:
            self._tools = {tool.name: compacted(tool) for tool in await super().list_tools()}
        return self._tools

    def add_tool(self, fn: Callable[..., Any], *given: Any, **named: Any) -> None:  # noqa: ANN401 - the SDK decides what it takes
        """As the SDK's. A tool that returns a `ToolReply` says itself how that is sent."""
        self._tools = {}
        reply = inspect.signature(fn, eval_str=True).return_annotation
        if not (isinstance(reply, type) and issubclass(reply, ToolReply)):
            super().add_tool(fn, *given, **named)
            return
        # What the SDK would derive of such a reply is not used, and is half of the work of building a server.
        super().add_tool(fn, *given, **{**named, "structured_output": False})
        if (tool := self._tool_manager.get_tool(named.get("name") or fn.__name__)) is not None:
            arguments = tool.fn_metadata.arg_model
            tool.fn_metadata = _SentReply(arg_model=arguments, output_schema=reply_schema(reply))

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[TaskGroup, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        reply = self.without_keys(await self._call(name, arguments, context))
        ctx = context.request_context if context is not None else None
        if isinstance(reply, CallToolResult) and reply.structured_content and identify_client(ctx).reads_both_forms:
            reply.content = [TextContent(type="text", text=SEE_DATA)]
        return reply

    async def _call(
        self, name: str, arguments: dict[str, Any], context: Context[TaskGroup, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        try:
            return await super().call_tool(name, await self._admitted(name, arguments), context)
        except MCPError:  # the protocol's own, such as a client that is gone
            raise
        except Exception as error:  # noqa: BLE001 - the boundary of every call
            if isinstance(asked := error.__cause__, ClientAsked):
                return asked.result
            refusal = _caller_error(error) or _fault(name, error)
            hint = f" {keys_of_client(context)}" if refusal.code in ABOUT_KEYS else ""
            message = str(refusal).replace("`massgen ", f"`{find_own_program()} ")
            return _error(refusal.code, f"{message}{hint}")

    async def _admitted(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments that the call gives. Raises `MassgenError` invalid_arguments for an unknown tool or argument,
        with the nearest name.
        """
        tools = await self._tools_by_name()
        if name not in tools:
            names = [tool.name for tool in tools.values() if for_models(tool.meta)]
            raise MassgenError("invalid_arguments", f"there is no tool {name[:80]!r}{did_you_mean(name, names)}")
        schema = tools[name].input_schema
        known = list(schema["properties"])
        given = as_published(name, arguments, set(known).difference(schema.get("required", ())))
        unknown = [argument for argument in given if argument not in known]
        if unknown:
            message = "; ".join(f"unknown argument {one[:80]!r}{did_you_mean(one, known)}" for one in unknown)
            raise MassgenError("invalid_arguments", f"{message}; {name} takes: {', '.join(known) or 'nothing'}")
        return given

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
            return ResourceNotFoundError(f"invalid_arguments: {_problems_text(cause)}")
        case _:
            return error


class _SentReply(FuncMetadata):
    """Of a tool that returns a `ToolReply`."""

    def convert_result(self, result: Any) -> CallToolResult | InputRequiredResult:  # noqa: ANN401 - as in the SDK
        return result.sent() if isinstance(result, ToolReply) else super().convert_result(result)


def keys_of_client(context: Context[Any, Any] | None) -> str:
    """Where keys go, for the client that asks."""
    ctx = context.request_context if context is not None else None
    if ctx is not None and is_over_http(ctx):
        return OVER_HTTP
    return identify_client(ctx).where_keys_go


def _caller_error(error: BaseException | None) -> MassgenError | None:
    """What the caller is told of a failure, groups of them included; None where one of them is a fault of ours."""
    match error:
        case MassgenError():
            return error
        case OSError():
            return translate_system_error(error, find_store_path(os.environ))
        case UnexpectedToolError():
            return _caller_error(error.__cause__)
        case ToolError(__cause__=ValidationError() as wrong):
            return MassgenError("invalid_arguments", _problems_text(wrong))
        case BaseExceptionGroup():
            refusals = [_caller_error(each) for each in error.exceptions]
            return None if None in refusals else refusals[0]
        case _:
            return None


def _fault(tool: str, error: Exception) -> MassgenError:
    """Write the whole fault to the log; the caller hears where it stands, and nothing of what is in it."""
    reference = secrets.token_hex(4)
    logger.error("%s failed, reference %s", tool, reference, exc_info=error)
    message = f"{tool} failed because of a bug in massgen; see server.log in the state directory ({reference})"
    return MassgenError("internal", message)


def _problems_text(error: ValidationError) -> str:
    """Every wrong argument, without its value."""
    problems = (
        (".".join(map(str, detail["loc"])), detail["msg"].removeprefix("Value error, ")) for detail in error.errors()
    )
    return "; ".join(f"{place}: {message}" for place, message in problems)


def _error(code: str, message: str) -> CallToolResult:
    """Text only: where a client shows a model the structured content alone, an error must not have any."""
    body, cut = page_of(f"ERROR {code}: {message}", 0, MAX_BYTES, MAX_BYTES - len(CUT))
    return CallToolResult(content=[TextContent(type="text", text=f"{body}{CUT if cut else ''}")], is_error=True)
