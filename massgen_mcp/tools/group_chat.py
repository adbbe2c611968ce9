"""`next_speaker`: how a group of agents behind one backend goes on talking. The backend calls it, no model does.

A step that ends a turn of the talk ends with a call like every other one, so each turn is in the journal.
"""

from massgen_mcp.backends.base import NEXT_SPEAKER
from massgen_mcp.tools.base import Arguments, CheckedTool, ToolResult, tool_spec


class NextSpeaker(Arguments):
    name: str


async def _next_speaker(wanted: NextSpeaker) -> ToolResult:
    return ToolResult(f"The turn is with {wanted.name}.")


NEXT_SPEAKER_TOOL = CheckedTool(
    tool_spec(NEXT_SPEAKER, "Whose turn it is in the group's talk.", NextSpeaker), NextSpeaker, _next_speaker
)
