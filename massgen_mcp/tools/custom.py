"""Python functions of the user's as tools. Each call is a process in the sandbox, as a command is, and reaches no more.

What a function returns stands on its standard output between two marks; whatever else it prints does no harm.
"""

import json
import secrets
from collections.abc import Mapping
from typing import Any

from pydantic import Field, create_model

from massgen_mcp.backends.base import JsonObject
from massgen_mcp.config.custom_tools import Parameter, described
from massgen_mcp.config.models.config import CustomTool
from massgen_mcp.sandbox import SandboxFailed
from massgen_mcp.tools.base import Arguments, CheckedTool, ToolRefused, ToolResult, tool_spec
from massgen_mcp.tools.commands import MAX_SHOWN, AgentCommands

_SCRIPT = """\
import asyncio, inspect, json, sys, types

source, file, function, arguments, mark = json.loads({given!r})


class Block:
    def __init__(self, data="", **more):
        self.data = data


class Returned:
    def __init__(self, output_blocks=(), **more):
        self.output_blocks = output_blocks


for name in ("massgen", "massgen.tool", "massgen.tool._result"):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    module.ExecutionResult = Returned
    module.TextContent = module.ImageContent = module.AudioContent = Block


def text_of(value):
    if hasattr(value, "output_blocks"):
        return "\\n".join(str(block.data) for block in value.output_blocks)
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


async def result_of(value):
    if inspect.isasyncgen(value):
        return "\\n".join([text_of(one) async for one in value])
    if inspect.isgenerator(value):
        return "\\n".join(map(text_of, value))
    return text_of(await value if inspect.isawaitable(value) else value)


module = sys.modules["own_tools"] = types.ModuleType("own_tools")
module.__file__ = file
exec(compile(source, file, "exec"), module.__dict__)
called = getattr(module, function)
named = inspect.signature(called).parameters.items()
first = [arguments.pop(name, one.default) for name, one in named if one.kind is one.POSITIONAL_ONLY]
text = asyncio.run(result_of(called(*first, **arguments)))
sys.stdout.flush()
print("\\n" + mark + json.dumps(text) + mark, flush=True)
"""


class FunctionTool(CheckedTool[Arguments]):
    def shown(self, arguments: JsonObject) -> str:
        return f"{self.spec.name} {json.dumps(arguments)}"[:MAX_SHOWN]


def function_tool(tool: CustomTool, commands: AgentCommands) -> FunctionTool:
    """Raises `ValueError` where the function is no longer there."""
    found = described(tool.path, tool.function)
    open_to_models = {name: one for name, one in found.parameters.items() if name not in tool.preset_args}
    kind = create_model("OfAFunction", __base__=Arguments, **_fields(open_to_models))

    async def call(arguments: Arguments) -> ToolResult:
        mark = secrets.token_hex(16)
        wanted = arguments.model_dump(mode="json", by_alias=True, exclude_unset=True)
        given = [found.source, tool.path, tool.function, {**wanted, **tool.preset_args}, mark]
        try:
            return await commands.run_script(_SCRIPT.format(given=json.dumps(given)), mark)
        except SandboxFailed as failed:
            raise ToolRefused(f"The sandbox could not be started, so nothing ran: {failed}") from failed

    spec = tool_spec(tool.name, tool.description or found.about, kind)
    return FunctionTool(spec, kind, call, side_effects=True)


def _fields(parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Named by number: a name of the function's own may be one that pydantic's models have."""
    return {
        f"of_{number}": (
            one.type,
            Field(default=... if one.required else None, alias=name, description=one.about or None),
        )
        for number, (name, one) in enumerate(parameters.items())
    }
