"""Our kind of MCP server: the SDK's, with arguments checked strictly and errors that say what they are."""

import inspect
import logging
import secrets
from collections.abc import Callable
from typing import Any

from anyio.abc import TaskGroup
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import CallToolResult, InputRequiredResult, TextContent, Tool
from pydantic import ValidationError

from massgen_mcp import __version__
from massgen_mcp.errors import MassgenError, storage_error
from massgen_mcp.mcp_streams import ReadStream, WriteStream
from massgen_mcp.nearest import did_you_mean
from massgen_mcp.redaction import NO_KEYS, Redactor
from massgen_mcp.server.arguments import as_published
from massgen_mcp.server.client.asking import ClientAsked
from massgen_mcp.server.client.where_keys_go import OVER_HTTP, where_keys_go
from massgen_mcp.server.results import MAX_BYTES, ToolReply
from massgen_mcp.server.results.pages import page_of
from massgen_mcp.server.run_app import for_models, listed, run_app
from massgen_mcp.server.schemas import compacted, reply_schema
from massgen_mcp.server.surface import SurfaceServer

logger = logging.getLogger(__name__)

ABOUT_KEYS = ("missing_key", "no_default_team")
CUT = " (cut here; fix this first)"

INSTRUCTIONS = """\
Delegate a question that is too hard or too important for one model (a second opinion, a review, a root cause, an \
architecture decision): start_run asks a team of other models that answer independently, read each other's answers \
without names, and vote until there is a consensus or the limits are reached. \
The run goes on in the background and survives this session: call start_run, go on with your work, and call wait_run \
when you need the result instead of polling. \
get_result returns the final answer first, then the votes with their reasons and the dissent; read the dissent before \
you rely on a close vote. \
Put everything the team must know into the question, or name files in context_paths: the team sees nothing else."""


class MassgenServer(SurfaceServer):
    """Refuses unknown arguments by name, and answers every failure with `ERROR <code>: <message>`. No reply holds a key
    that `redactor` knows.
    """

    def __init__(self, redactor: Redactor = NO_KEYS) -> None:
        self._tools: dict[str, Tool] = {}
        """As they are listed; made when they are first asked for."""
        super().__init__(
            redactor,
            "massgen-mcp",
            [run_app()],
            middleware=[listed],
            title="massgen-mcp",
            version=__version__,
            description="A team of LLM agents answers, reads each other and votes.",
            instructions=INSTRUCTIONS,
            log_level="WARNING",
        )

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
        super().add_tool(fn, *given, **named)
        reply = inspect.signature(fn, eval_str=True).return_annotation
        tool = self._tool_manager.get_tool(named.get("name") or fn.__name__)
        if tool is not None and isinstance(reply, type) and issubclass(reply, ToolReply):
            arguments = tool.fn_metadata.arg_model
            tool.fn_metadata = _SentReply(arg_model=arguments, output_schema=reply_schema(reply))

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[TaskGroup, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        return self.without_keys(await self._call(name, arguments, context))

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
            refusal = _refusal(error) or _fault(name, error)
            hint = f" {keys_of_client(context)}" if refusal.code in ABOUT_KEYS else ""
            return _error(refusal.code, f"{refusal}{hint}")

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


class _SentReply(FuncMetadata):
    """Of a tool that returns a `ToolReply`."""

    def convert_result(self, result: Any) -> CallToolResult | InputRequiredResult:  # noqa: ANN401 - as in the SDK
        return result.sent() if isinstance(result, ToolReply) else super().convert_result(result)


def keys_of_client(context: Context[Any, Any] | None) -> str:
    """Where keys go, for the client that asks."""
    if context is not None and context.request_context.request is not None:
        return OVER_HTTP
    params = context.session.client_params if context is not None else None
    return where_keys_go(params.client_info.name if params is not None else None)


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
            return MassgenError("invalid_arguments", _problems_text(wrong))
        case BaseExceptionGroup():
            refusals = [_refusal(each) for each in error.exceptions]
            return None if None in refusals else refusals[0]
        case _:
            return None


def _fault(tool: str, error: Exception) -> MassgenError:
    """Write the whole fault to the log; the caller hears where it stands, and nothing of what is in it."""
    reference = secrets.token_hex(4)
    logger.error("%s failed, reference %s", tool, reference, exc_info=error)
    message = f"{tool} failed by a fault of this program; server.log in the state directory has it as {reference}"
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
