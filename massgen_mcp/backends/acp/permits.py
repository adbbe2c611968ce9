"""What an agent CLI that asks for permission is told: the team's tools are allowed, everything else is not. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from massgen_mcp.backends.base import JsonObject
from massgen_mcp.backends.frameworks.agent_cli import PREFIX
from massgen_mcp.config.access.acp_agents import TEAM, Sign
from massgen_mcp.json_rpc import fields

MAX_CALLS = 10_000
_SERVER_KEYS = ("server", "server_name")


class Permits:
    """Of one session. `signs`: where its CLI says whose a tool is."""

    def __init__(self, signs: Sequence[Sign]) -> None:
        self._signs = signs
        self._ours: set[str] = set()
        """Ids of calls of the team's tools that were told of."""

    def hear(self, update: Mapping[str, Any]) -> None:
        """A call that the CLI tells of; its request for permission may name nothing but the id."""
        match update:
            case {"sessionUpdate": "tool_call" | "tool_call_update", "toolCallId": str(call_id)}:
                if len(self._ours) < MAX_CALLS and self._is_ours(update):
                    self._ours.add(call_id)
            case _:
                pass

    def decide(self, asked: Mapping[str, Any]) -> JsonObject:
        """The answer to `session/request_permission`."""
        call = fields(asked.get("toolCall"))
        ours = call.get("toolCallId") in self._ours or self._is_ours(call)
        kinds = ("allow_once", "allow_always") if ours else ("reject_once", "reject_always")
        chosen = next((option for kind in kinds for option in _options(asked, kind)), None)
        if chosen is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    def _is_ours(self, call: Mapping[str, Any]) -> bool:
        """By what the CLI itself writes, never by what its model may have written."""
        raw = fields(call.get("rawInput"))
        found: dict[Sign, bool] = {
            "name": str(call.get("name", "")).startswith(PREFIX),
            "id": str(call.get("toolCallId", "")).startswith(f"mcp_{TEAM}_"),
            "server": any(raw.get(key) == TEAM for key in _SERVER_KEYS) and "command" not in raw,
        }
        return any(found[sign] for sign in self._signs)


def _options(asked: Mapping[str, Any], kind: str) -> Iterator[str]:
    options: object = asked.get("options")
    for option in cast("list[object]", options) if isinstance(options, list) else []:
        match option:
            case {"kind": str(found), "optionId": str(option_id)} if found == kind:
                yield option_id
            case _:
                pass
