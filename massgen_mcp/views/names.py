"""Names that people read in place of a run's own: `gpt-6.1-sol's 2nd answer` for `agent1.2`, `gpt-6.1-sol` for
`agent_a`. Records and prompts keep the run's own. Pure.
"""

import re
from collections.abc import Sequence

from massgen_mcp.name_lists import join_names
from massgen_mcp.run_state.state import RunState

_AGENT = re.compile(r"\bagent_[a-z]+\b")
_SHOWN_AS = re.compile(r"\bagent\d+ = (?=agent\d+\.\d+)")
"""The neutral name that a prompt has for an answer."""
_NEW_ANSWER = re.compile(r"\bnew answer agent\d+\.(\d+)\b")
_ANSWER = re.compile(r"\bagent(\d+)\.(\d+)\b")
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
MAX_NAMED = 3
"""Agents that a clause names."""


def name_agent(run: RunState, name: str) -> str:
    """Return the id that the config has for the agent; any other name as it is."""
    if name not in run.agents:
        return name
    return run.agents[name].info.id


def name_answer(run: RunState, label: str) -> str:
    """Return whose answer it is, and which of theirs."""
    if (found := _ANSWER.fullmatch(label)) is None:
        return label
    agents = [*run.agents.values()]
    place = int(found[1]) - 1
    if place >= len(agents):
        return label
    return f"{agents[place].info.id}'s {format_ordinal(int(found[2]))} answer"


def replace_names(run: RunState, text: str) -> str:
    """Return a sentence of ours with the names that people read."""
    if "agent" not in text:
        return text
    text = _SHOWN_AS.sub("", text)
    text = _NEW_ANSWER.sub(lambda found: f"{format_ordinal(int(found[1]))} answer", text)
    text = _ANSWER.sub(lambda found: name_answer(run, found[0]), text)
    return _AGENT.sub(lambda found: name_agent(run, found[0]), text)


def join_few(names: Sequence[str]) -> str:
    """Return the names as `join_names` does; of more than `MAX_NAMED` the first ones, and how many more there are."""
    if len(names) > MAX_NAMED:
        names = [*names[: MAX_NAMED - 1], f"{len(names) - MAX_NAMED + 1} more"]
    return join_names(names)


def format_ordinal(number: int) -> str:
    """Return `1st`, `2nd`, `11th`."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{_ENDINGS.get(number % 10, 'th')}"
