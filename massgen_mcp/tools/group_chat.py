"""`next_speaker`: how a group of agents behind one backend goes on talking. The backend calls it, no model does.

A step that ends a turn of the talk ends with a call like every other one, so each turn is in the journal.
"""

from dataclasses import dataclass

from massgen_mcp.backends.base import NEXT_SPEAKER, JsonObject, ToolSpec
from massgen_mcp.tools.base import Arguments, ToolRefused, ToolResult, parse_arguments, tool_spec


class NextSpeaker(Arguments):
    name: str


_SPEC = tool_spec(NEXT_SPEAKER, "Whose turn it is in the group's talk.", NextSpeaker)


@dataclass(frozen=True, slots=True)
class NextSpeakerTool:
    spec: ToolSpec = _SPEC
    side_effects: bool = False
    keeps_state: bool = False

    async def run(self, arguments: JsonObject) -> ToolResult:
        try:
            wanted = parse_arguments(NextSpeaker, arguments)
        except ToolRefused as refused:
            return ToolResult(str(refused), is_error=True)
        return ToolResult(f"The turn is with {wanted.name}.")
