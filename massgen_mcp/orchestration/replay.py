"""What one agent had done before its run was resumed, for a backend and tools that keep their place in memory.

Not the run's state but an agent's memory: read from the journal once, when a run is resumed.
"""

from collections.abc import Iterable
from typing import assert_never

from massgen_mcp.backends.abilities import Abilities
from massgen_mcp.backends.base import PastCall, ToolCall
from massgen_mcp.events.agent_work import (
    ModelCallAborted,
    ModelCallAdmitted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from massgen_mcp.events.parts import Usage
from massgen_mcp.events.record import AnyEvent, UnknownEvent, outside_calls
from massgen_mcp.orchestration.conversation import calls_of, native_calls


def measure_past(agent: str, events: Iterable[AnyEvent | UnknownEvent], abilities: Abilities) -> None:
    """Let `abilities` know what the provider counted of the agent's calls."""
    sent = dict[str, int]()
    for event in events:
        match event:
            case ModelCallStarted(agent=name, usage_if_lost=Usage() as estimated) if name == agent:
                sent[event.call_id] = estimated.input_tokens
            case ModelReplied(agent=name) if name == agent and event.call_id in sent:
                abilities.measure(sent[event.call_id], event.usage)
            case _:
                pass


def past_work(agent: str, events: Iterable[AnyEvent | UnknownEvent]) -> tuple[list[PastCall], list[ToolCall]]:
    """Every try to call the agent's model that has ended, and every ordinary tool call that did what it should; both in
    order.
    """
    tries, used, unfinished, coordinates = list[PastCall](), list[ToolCall](), list[ToolCall](), False
    for event in events:
        if outside_calls(event) or event.agent != agent:
            continue
        match event:
            case ModelCallStarted():
                coordinates = event.purpose == "coordinate"
            case ModelReplied():
                unfinished = [*calls_of(event)]
                tries.append(PastCall(coordinates, native_calls(event)))
            case ModelCallRetried() | ModelCallFailed() | ModelCallAborted():
                tries.append(PastCall(coordinates))
            case ToolFinished():
                for call in [call for call in unfinished if (call.id, call.name) == (event.call_id, event.name)][:1]:
                    unfinished.remove(call)
                    used += [] if event.is_error else [call]
            case ModelCallWaiting() | ModelCallAdmitted() | TextDelta() | ToolStarted():
                pass
            case _:
                assert_never(event)
    return tries, used
