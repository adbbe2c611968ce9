"""What agents are told, as conversations in the form of Chat Completions: plain dictionaries with `role` and `content`.

The words are those of a run (`orchestration.prompts`); here they can be replaced.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from massgen_mcp.backends.base import ToolSpec
from massgen_mcp.config.models.config import AgentTexts
from massgen_mcp.coordination.guidance import Ballot
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import BallotEntry
from massgen_mcp.markers import draw_nonce
from massgen_mcp.nearest import nearest
from massgen_mcp.orchestration import prompts

TEMPLATES = tuple(AgentTexts.model_fields)
"""What can be replaced."""


class MessageTemplates:
    """The texts of a conversation. Each can be replaced by name: `MessageTemplates(enforcement_message="...")`.

    Replaced texts hold for conversations that are built here (`AgentConfig.build_conversation` and its continuations)
    and for the agent in a run.
    """

    def __init__(self, **overrides: str) -> None:
        """Raises `MassgenError("invalid_arguments")` for a name that is not in `TEMPLATES`."""
        for name in overrides:
            if name not in TEMPLATES:
                near = nearest(name, TEMPLATES)
                hint = f"did you mean {near!r}?" if near else f"there are: {', '.join(TEMPLATES)}"
                raise MassgenError("invalid_arguments", f"unknown template {name!a}; {hint}")
        self._overrides = dict(overrides)

    @property
    def overrides(self) -> dict[str, str]:
        """A copy of the replaced texts, by name."""
        return dict(self._overrides)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageTemplates) and self.overrides == other.overrides

    __hash__ = None  # pyright: ignore[reportAssignmentType] - as of every class with __eq__ whose instances may differ

    def __repr__(self) -> str:
        return f"MessageTemplates({', '.join(f'{name}={text!r}' for name, text in self._overrides.items())})"

    def evaluation_system_message(self, voting_sensitivity: str = "lenient") -> str:
        """What an agent is asked to do that is shown answers. `voting_sensitivity`: lenient, balanced or strict."""
        criterion = self._get_criterion(voting_sensitivity)
        task = self._overrides.get("evaluation_system_message", prompts.JUDGE)
        return prompts.system_prompt(task, None, [criterion] if criterion else [])

    def _get_criterion(self, voting_sensitivity: str) -> str:
        criterion = prompts.CONTENT_WITH.get(voting_sensitivity)
        if criterion is None:
            known = ", ".join(prompts.CONTENT_WITH)
            raise MassgenError("config_invalid", f"voting_sensitivity {voting_sensitivity[:60]!a}: expected {known}")
        return criterion

    def final_presentation_system_message(self) -> str:
        """What a winner is asked to do."""
        own = prompts.system_prompt(prompts.PRESENT, None, ())
        return self._overrides.get("final_presentation_system_message", own)

    def enforcement_message(self) -> str:
        """What an agent is told that replied without `new_answer` or `vote`."""
        own = prompts.ENFORCE.format(names="`new_answer` and, where it is offered, `vote`")
        return self._overrides.get("enforcement_message", own)

    def format_original_message(self, task: str) -> str:
        """The question as agents see it, between markers with a new random code."""
        return prompts.question_block(task, draw_nonce([task]))

    def format_current_answers(self, answers: Mapping[str, str], own: str | None = None) -> str:
        """The answers (neutral name → text) as agents see them. `own`: the name of the reader's own one."""
        nonce = draw_nonce(answers.values())
        return prompts.ballot_block(prompts.BALLOT_FIRST, list(answers.items()), nonce, own=own)

    def get_standard_tools(self, names: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The workflow tools: `new_answer`, and with `names` of answers also a `vote` that takes one of them."""
        tools = [prompts.NEW_ANSWER]
        if names:
            entries = tuple(BallotEntry(name=name, label=name) for name in names)
            tools.append(prompts.vote_tool(Ballot(viewer="", revision=0, entries=entries)))
        return [_described(tool) for tool in tools]

    def build_initial_conversation(
        self,
        task: str,
        agent_summaries: Mapping[str, str] | None = None,
        *,
        own_id: str | None = None,
        voting_sensitivity: str = "lenient",
    ) -> dict[str, Any]:
        """The beginning of a round: without answers (case 1) or with them (case 2), which then may be voted for.

        `agent_summaries` are answers by agent id. In the conversation they have neutral names, dealt in the order of
        the ids; the answer of `own_id` is marked as the reader's own. Returns `system_message`, `user_message`,
        `messages` (both as dictionaries), `tools`, and `agent_mapping` (neutral name → id).
        """
        mapping = {f"agent{place}": agent_id for place, agent_id in enumerate(sorted(agent_summaries or {}), start=1)}
        user, own = self.format_original_message(task), self._overrides.get("evaluation_system_message")
        criterion = self._get_criterion(voting_sensitivity)
        usual = prompts.FIRST_ANSWER
        if agent_summaries:
            usual = prompts.JUDGE
        if own is None:
            user = f"{user}\n\n{usual}"
        if criterion and agent_summaries:
            user = f"{user}\n\n{criterion}"
        if agent_summaries:
            answers = {name: agent_summaries[agent_id] for name, agent_id in mapping.items()}
            reader = next((name for name, agent_id in mapping.items() if agent_id == own_id), None)
            user = f"{user}\n\n{self.format_current_answers(answers, reader)}\n\n{prompts.DECIDE}"
        system = prompts.system_message(None, filter(None, [own]))
        return {
            "system_message": system,
            "user_message": user,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "tools": self.get_standard_tools(list(mapping)),
            "agent_mapping": mapping,
        }


def get_templates() -> MessageTemplates:
    """The texts with nothing replaced."""
    return MessageTemplates()


def _described(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}
