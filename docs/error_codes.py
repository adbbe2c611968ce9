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
        "An argument is missing, unknown or invalid.",
        "Correct the argument that the message names.",
        ALL,
    ),
    "config_invalid": Meaning(
        "The config has errors; the message lists them.",
        "Correct the errors, and run `massgen validate FILE` to check again.",
        _START,
    ),
    "config_not_found": Meaning(
        "No config has that name or path.",
        "Use the name that the message suggests, or one from `list_configs`.",
        frozenset({"start_run", "list_configs"}),
    ),
    "config_untrusted": Meaning(
        "The config, or an imported run, needs a person's consent.",
        "Ask a person to run `massgen validate --trust PATH`, or `massgen resume ID` for an imported run "
        "([trust](security.md#configs)).",
        _START | {"control_run"},
    ),
    "missing_key": Meaning(
        "The variable with an agent's key isn't set in the server's environment.",
        "Set the variable there ([clients](clients.md)), or remove the agent.",
        _START | {"control_run"},
    ),
    "key_refused": Meaning(
        "The config would send a key to a host that doesn't belong to its provider.",
        "Correct `base_url`, or ask a person to accept the host ([keys](security.md#which-server-a-key-may-go-to)).",
        _START,
    ),
    "no_default_team": Meaning(
        "No team is named or configured, no key is set, and no local model server answers.",
        "Set a key, start a model server, or run `massgen init` ([default teams](default-teams.md)).",
        _START,
    ),
    "unknown_run": Meaning(
        "This state directory has no run with that id, or the run belongs to another user.",
        "Use an id from `list_runs`, and check `MASSGEN_MCP_HOME`.",
        _OF_RUNS | {"run_page"},
    ),
    "expired": Meaning(
        "The run has expired, and massgen deleted its files.",
        "Start a new run. To keep future runs longer, set `MASSGEN_MCP_KEEP_RESULTS_DAYS`.",
        _OF_RUNS,
    ),
    "not_finished": Meaning(
        "The run hasn't ended.",
        "Call `wait_run`, or read one agent's answers with `view=agent`.",
        frozenset({"get_result", "apply_result"}),
    ),
    "idempotency_conflict": Meaning(
        "This `idempotency_key` belongs to a different request, or it was used before and `on_conflict` is `fail`.",
        "Use another key or another `on_conflict`.",
        _START,
    ),
    "session_busy": Meaning(
        "A turn of this session hasn't ended.",
        "Wait for that turn or cancel it, then start the next one.",
        _START,
    ),
    "queue_full": Meaning(
        "The queue is full.",
        "Try again later, cancel other runs, or raise `MASSGEN_MCP_MAX_QUEUED`.",
        _START,
    ),
    "quota_reached": Meaning(
        "The user has reached the limit on runs or on spending.",
        "Wait for the next day or month (UTC), or pass a smaller `max_usd`.",
        frozenset({"start_run", "control_run"}),
    ),
    "invalid_action": Meaning(
        "The state of the run, or of a path, doesn't allow this action: for example, you can't steer an ended run.",
        "See `next_step` of `get_status`. If the run has ended, start a new one with the same `session_id`.",
        ALL,
    ),
    "nesting_refused": Meaning(
        "The outer run doesn't allow nested runs, or has reached its limit on nested runs.",
        "Set `nested` in the config of the outer run ([nested runs](nested-runs.md)).",
        _START,
    ),
    "sandbox_denied": Meaning(
        "The run has commands or checks, but no sandbox works on this machine.",
        "Run `massgen doctor` to see what is missing ([sandbox](commands.md)).",
        _START,
    ),
    "run_damaged": Meaning(
        "Some of the run's files are damaged.",
        "Read the remaining answers with `view=agent`, and start a new run.",
        _OF_RUNS,
    ),
    "journal_newer": Meaning(
        "A newer version of massgen-mcp has worked on the run.",
        "Upgrade massgen-mcp, then continue the run; until then, the run stays unchanged.",
        frozenset({"control_run", "apply_result"}),
    ),
    "disk_full": Meaning(
        "The disk is full, or a quota is exhausted.",
        "Free some space, for example with `massgen prune`. Waiting runs then continue without a restart.",
        ALL,
    ),
    "store_unavailable": Meaning(
        "massgen can't use the state directory; the message gives the reason.",
        "Run `massgen doctor` for details.",
        ALL,
    ),
    "unsafe_path": Meaning(
        "A name or link points outside its directory.",
        "Use a plain name, or remove the link.",
        _START,
    ),
    "run_not_completed": Meaning(
        "Python only: `run` ended without a final answer. See `state`, `reason` and `result`.",
        "Use the best answer in `result`, or fix the cause.",
        frozenset(),
    ),
    "internal": Meaning(
        "A bug in massgen. The message contains a reference.",
        "Please report it with the entry in the state directory's `server.log` that has this reference.",
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
