"""A tool whose results hold no keys, whatever it read. Must not know any one tool."""

from dataclasses import dataclass, replace

from massgen_mcp.backends.base import JsonObject, ToolSpec
from massgen_mcp.redaction import Redactor
from massgen_mcp.tools.base import Tool, ToolResult


@dataclass(frozen=True, slots=True)
class RedactedTool:
    """`tool` behind `redactor`."""

    tool: Tool
    redactor: Redactor

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    @property
    def side_effects(self) -> bool:
        return self.tool.side_effects

    @property
    def keeps_state(self) -> bool:
        return self.tool.keeps_state

    async def run(self, arguments: JsonObject) -> ToolResult:
        result = await self.tool.run(arguments)
        return replace(result, text=self.redactor.text(result.text))
