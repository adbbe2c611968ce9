"""What agents left in files that were dropped before they answered: no answer, but work that was paid for. Pure."""

from collections.abc import Mapping

from massgen_mcp.coordination.evidence import excluded
from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.run_state.agents import WORKING_NOTES, AgentState


def best_left(agents: Mapping[str, AgentState], checked: Mapping[str, FilesChecked]) -> str | None:
    """Who left the best of it: files that checks speak against no more than against others', of these what was changed
    last.
    """
    left = [name for name, agent in agents.items() if agent.dropped is not None and agent.dropped.changes is not None]
    out = excluded({name: checked[name] for name in left if name in checked}, "required")
    able = [name for name in left if name not in out]
    return max(able, key=lambda name: agents[name].dropped_at or 0.0, default=None)


def told_of(agent: AgentState) -> str:
    """What takes the place of an answer: whose files these are and why they are unfinished, with its last words."""
    why = agent.dropped.reason if agent.dropped is not None else ""
    facts = f"Unfinished: {agent.info.id} did not come to an answer ({why}), and left {agent.latest_changes}."
    words = agent.working_notes[-WORKING_NOTES:].strip()
    return f"{facts}\n\nIts last words:\n\n{words}" if words else facts
