"""A run that is cut off after each of its events, and goes on from there: what is run once must not be run again."""

from collections.abc import Awaitable, Callable, Sequence

from massgen_mcp.events.agent_work import ToolFinished, ToolStarted
from massgen_mcp.events.parts import Event
from massgen_mcp.events.record import LogRecord
from massgen_mcp.orchestration.tool_calls import INTERRUPTED

__all__ = ["check_every_cut"]

Again = Callable[[str, Sequence[LogRecord]], Awaitable[tuple[list[Event], list[str]]]]
"""The rest of the run from this past, in a place of this name that knows nothing: its events, and what ran now."""


async def check_every_cut(again: Again) -> None:
    """For a script that runs `one` and `two`: neither is run twice, and one that was begun is told as interrupted."""
    events, ran = await again("whole", ())
    assert ran == ["one", "two"]
    lines = [{"seq": seq, "time": 1000.0 + seq, "event": event.model_dump()} for seq, event in enumerate(events, 1)]
    records = [LogRecord.model_validate(line) for line in lines]
    told = 0
    for cut in range(1, len(events)):
        begun = sum(isinstance(event, ToolStarted) for event in events[:cut])
        done = sum(isinstance(event, ToolFinished) for event in events[:cut])
        rest, ran = await again(f"cut-{cut}", records[:cut])
        assert ran == ["one", "two"][begun:]
        interrupted = [event for event in rest if isinstance(event, ToolFinished) and event.result == INTERRUPTED]
        assert len(interrupted) == begun - done
        told += len(interrupted)
    assert told == 2
