"""What one agent had done before its run was resumed, for a backend and tools that keep their place in memory.

Not the run's state but an agent's memory: read from the journal once, when a run is resumed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from massgen_mcp.backends.base import PastCall, ToolCall
from massgen_mcp.events import (
    Event,
    ModelCallAborted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelReplied,
    ToolFinished,
)


@dataclass
class PastWork:
    """Mutable while being folded; treat it as read-only."""

    calls: list[PastCall] = field(default_factory=list[PastCall])
    """Every try to call its model that has ended, in order."""
    tools: list[ToolCall] = field(default_factory=list[ToolCall])
    """Every ordinary tool call that did what it should, in order."""
    _purpose: str = ""
    _pending: list[ToolCall] = field(default_factory=list[ToolCall])

    def take_in(self, event: Event) -> None:
        """Fold one more event of the agent in."""
        match event:
            case ModelCallStarted():
                self._purpose = event.purpose
            case ModelReplied():
                self._pending = [ToolCall(call.id, call.name, call.arguments) for call in event.tool_calls]
                self._tried(tuple(self._pending))
            case ModelCallRetried() | ModelCallFailed() | ModelCallAborted():
                self._tried()
            case ToolFinished():
                self._used(event)
            case _:
                pass

    def _tried(self, calls: tuple[ToolCall, ...] = ()) -> None:
        self.calls.append(PastCall(self._purpose == "coordinate", calls))

    def _used(self, event: ToolFinished) -> None:
        for place, call in enumerate(self._pending):
            if call.id == event.call_id and call.name == event.name:
                self._pending.pop(place)
                if not event.is_error:
                    self.tools.append(call)
                return


def past_work(agent: str, events: Iterable[Event]) -> PastWork:
    work = PastWork()
    for event in events:
        if getattr(event, "agent", None) == agent:
            work.take_in(event)
    return work
