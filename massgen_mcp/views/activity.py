"""What each agent is doing at this moment and what it is just writing: for live displays, beside the snapshot.

Must not know how it is displayed.
"""

from dataclasses import dataclass, field

from massgen_mcp.events import (
    AgentDropped,
    LogRecord,
    ModelCallAborted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    TextDelta,
    ToolFinished,
)

KEPT_CHARACTERS = 8000
"""Of what an agent is writing; a display shows the end of it."""

_WORKFLOW = ("new_answer", "vote")


@dataclass
class Activity:
    """`doing` is a few words, empty while nothing is known; `writing` is the reply as far as it has come."""

    doing: str = ""
    writing: str = ""


@dataclass
class Activities:
    """A fold over a run's events. Mutable while being folded; treat it as read-only."""

    by_agent: dict[str, Activity] = field(default_factory=dict[str, Activity])

    def of(self, agent: str) -> Activity:
        return self.by_agent.get(agent, Activity())

    def apply(self, record: LogRecord) -> None:
        """Fold one more record in."""
        match record.event:
            case ModelCallStarted() as event:
                self.by_agent[event.agent] = Activity("thinking")
            case TextDelta() as event:
                written = self.of(event.agent).writing + event.text
                self.by_agent[event.agent] = Activity("writing", written[-KEPT_CHARACTERS:])
            case ModelCallWaiting() as event:
                self.by_agent[event.agent] = Activity(f"waits: {event.obstacle.replace('_', ' ')}")
            case ModelCallRetried() as event:
                self.by_agent[event.agent] = Activity(f"{event.reason}; next try in {event.wait_seconds:.0f} s")
            case ModelReplied() as event:
                tools = [call.name for call in event.tool_calls if call.name not in _WORKFLOW]
                doing = f"uses {', '.join(dict.fromkeys(tools))}" if tools else ""
                self.by_agent[event.agent] = Activity(doing, event.text[-KEPT_CHARACTERS:])
            case ToolFinished() as event:
                self.by_agent[event.agent] = Activity("reads the result", self.of(event.agent).writing)
            case ModelCallFailed() | ModelCallAborted() | AgentDropped() as event:
                self.by_agent[event.agent] = Activity()
            case _:
                pass
