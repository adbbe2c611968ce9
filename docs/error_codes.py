"""What each code of an error means, and what to do. The codes are those of `massgen_mcp.errors`."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from docs.markdown import code, table
from massgen_mcp.errors import ErrorCode
from massgen_mcp.server.front import first_answers


class Meaning(NamedTuple):
    what: str
    to_do: str
    tools: frozenset[str]
    """Of MCP that answer with it."""


def _published() -> dict[str, set[str]]:
    """The arguments of each tool that every client is offered, as `make docs ONLY=first-answers` wrote them down."""
    newest = max(first_answers().items())[1]
    tools = cast("list[dict[str, Any]]", newest["tools/list"]["tools"])
    return {tool["name"]: set(tool["inputSchema"]["properties"]) for tool in tools}


ALL = frozenset(_published())
_START = frozenset({"start_run"})
_OF_RUNS = frozenset(tool for tool, arguments in _published().items() if "run_id" in arguments)
CODES: Mapping[ErrorCode, Meaning] = {
    "invalid_arguments": Meaning(
        "An argument is missing, unknown or not as it has to be.",
        "Correct the argument that the message names.",
        ALL,
    ),
    "config_invalid": Meaning(
        "The config has errors; the message has a line for each.",
        "Correct them; `massgen --validate FILE` checks again.",
        _START,
    ),
    "config_not_found": Meaning(
        "There is no config of that name or at that path.",
        "Take the name that the message suggests, or one that `list_configs` has.",
        frozenset({"start_run", "list_configs"}),
    ),
    "config_untrusted": Meaning(
        "The config, or an imported run, asks for what a person has to allow first.",
        "A person runs `massgen-mcp trust PATH`, of a run `massgen-mcp resume ID` ([trust](security.md#configs)).",
        _START | {"control_run"},
    ),
    "missing_key": Meaning(
        "The variable with the key of an agent is not set where the server runs.",
        "Set it there ([clients](clients.md)), or remove the agent.",
        _START | {"control_run"},
    ),
    "key_refused": Meaning(
        "The config would send a key to a host that is not its provider's.",
        "Correct `base_url`, or let a person accept the pair ([keys](security.md#which-server-a-key-may-go-to)).",
        _START,
    ),
    "no_default_team": Meaning(
        "Nothing was named, there is no config, no key is set and no model server answers.",
        "Set a key, start a model server, or make a config with `massgen --init` ([default teams](default-teams.md)).",
        _START,
    ),
    "unknown_run": Meaning(
        "There is no run of that id in this state directory, or it belongs to somebody else.",
        "Take an id from `list_runs`; check `MASSGEN_MCP_HOME`.",
        _OF_RUNS | {"run_page"},
    ),
    "expired": Meaning(
        "The files of the run were deleted when their time was over.",
        "Start a new run; `MASSGEN_MCP_KEEP_RESULTS_DAYS` keeps the next ones longer.",
        _OF_RUNS,
    ),
    "not_finished": Meaning(
        "The run goes on.",
        "Call `wait_run`, or look at one agent with `view=agent`.",
        frozenset({"get_result", "apply_result"}),
    ),
    "idempotency_conflict": Meaning(
        "The key belongs to another request, or `on_conflict` is `fail`.",
        "Take another key, or another `on_conflict`.",
        _START,
    ),
    "session_busy": Meaning(
        "A turn of this session has not ended.",
        "Wait for it or cancel it, then start the next turn.",
        _START,
    ),
    "queue_full": Meaning(
        "As many runs wait as may wait.",
        "Start it later, or cancel others; `MASSGEN_MCP_MAX_QUEUED` sets the limit.",
        _START,
    ),
    "quota_reached": Meaning(
        "The person has started as many runs as he may, or the money for them is used up.",
        "Wait for the next day or month (UTC), or give a smaller `max_usd`.",
        frozenset({"start_run", "control_run"}),
    ),
    "invalid_action": Meaning(
        "That cannot be done with the run as it is now, such as steering one that has ended, or with a path.",
        "`next_step` of `get_status` says what can be done. After the end: a new run in the same `session_id`.",
        ALL,
    ),
    "nesting_refused": Meaning(
        "The outer run allows no run inside it, or no more of them.",
        "Set `nested` in the config of the outer run ([nested runs](nested-runs.md)).",
        _START,
    ),
    "sandbox_denied": Meaning(
        "The run has commands or checks, and no sandbox holds on this machine.",
        "`massgen-mcp doctor` says what is missing ([sandbox](commands.md)).",
        _START,
    ),
    "run_damaged": Meaning(
        "Files of the run are not as they were written.",
        "Read what is left with `view=agent`, and start a new run.",
        _OF_RUNS,
    ),
    "journal_newer": Meaning(
        "A newer massgen-mcp worked on the run.",
        "Upgrade, and continue it; it stays as it is until then.",
        frozenset({"control_run", "apply_result"}),
    ),
    "disk_full": Meaning(
        "There is no room, or a quota is used up.",
        "Free some space, as with `massgen-mcp prune`. Runs wait for it; nothing needs a restart.",
        ALL,
    ),
    "store_unavailable": Meaning(
        "The state directory cannot be used; the message says why.",
        "`massgen-mcp doctor` says more.",
        ALL,
    ),
    "unsafe_path": Meaning(
        "A name or a link leads out of its directory.",
        "Take a plain name, or remove the link.",
        _START,
    ),
    "run_not_completed": Meaning(
        "Python only: `run` came to no final answer. `state`, `reason` and `result` say more.",
        "Take the best answer from `result`, or fix the cause.",
        frozenset(),
    ),
    "internal": Meaning(
        "A fault of this program. The message has a reference.",
        "`server.log` in the state directory has the fault under it; please report it.",
        ALL,
    ),
}


def codes_table() -> str:
    return table(["code", "meaning", "what to do"], [[f"`{name}`", one.what, one.to_do] for name, one in _sorted()])


def codes_by_tools() -> str:
    """Which codes come from which tools."""
    lines: dict[str, list[str]] = {}
    for name, one in _sorted():
        if one.tools:
            lines.setdefault(_named(one.tools), []).append(name)
    return "".join(f"- {tools}: {code(*names)}\n" for tools, names in sorted(lines.items()))


def codes_of(tool: str) -> set[str]:
    """What this tool answers with; of one that does not exist, what such a call is answered with."""
    return {code for code, one in CODES.items() if tool in one.tools or (tool not in ALL and one.tools == ALL)}


def _named(tools: frozenset[str]) -> str:
    names = {ALL: "all", _OF_RUNS: "every tool with `run_id`"}
    return names.get(tools) or ", ".join(f"`{tool}`" for tool in sorted(tools))


def _sorted() -> list[tuple[ErrorCode, Meaning]]:
    return sorted(CODES.items())
