"""From which side each agent looks at the question where a whole team asks the same model.

The same words to the same model bring much the same answer, with the same errors. Only first answers are written from a
perspective: what is judged later is judged by everybody alike.
"""

from collections.abc import Sequence

from massgen_mcp.config.models.config import AgentSettings

PERSPECTIVES: dict[str, str] = {
    "builder": "Take the view of a builder: find the simplest answer that works, and carry it through, step by step.",
    "sceptic": (
        "Take the view of a sceptic: look for what the obvious answer overlooks (hidden assumptions, exceptions, "
        "errors) before you settle on one."
    ),
    "reader": (
        "Take the view of the person who will use the answer: what do they need in order to act on it? Leave no part "
        "of the question out."
    ),
    "analyst": "Take the view of an analyst: derive the answer from what can be checked or computed, not from custom.",
    "explorer": "Take the view of an explorer: work out two different ways to an answer, and compare them.",
}
"""By name, in the order in which a team gets them. A larger team begins again from the first."""


def perspectives(agents: Sequence[AgentSettings]) -> list[str | None]:
    """One per agent. None for all where they ask different models or there is one agent, and for each that has
    instructions of its own: whoever wrote those has given it a view.
    """
    asked = {agent.asked for agent in agents}
    if len(agents) == 1 or len(asked) > 1:
        return [None] * len(agents)
    texts = list(PERSPECTIVES.values())
    return [None if agent.system_message else texts[place % len(texts)] for place, agent in enumerate(agents)]
