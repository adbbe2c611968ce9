"""MCP clients by the names that they give themselves: whether a task wakes the model, which forms of a reply it reads,
where the user puts keys. And `WakingRuns`: the runs whose end wakes the client of this process.
"""

from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from mcp.server.context import ServerRequestContext

from massgen_mcp.home import find_hook_mark
from massgen_mcp.runs.view.run_view import RunView


@dataclass(frozen=True, slots=True)
class KnownClient:
    part_of_name: str
    """In lower case."""
    where_keys_go: str
    is_woken_by_tasks: bool = False
    """Whether its model goes on with the result when a task ends. Tried with the client itself."""
    reads_both_forms: bool = False
    """Whether its model is shown the text of a reply beside the data."""


ANY_CLIENT = KnownClient(
    "", "Set keys under `env` in this server's entry in your MCP client's configuration, then restart the client."
)
"""A client that is not known: nothing wakes it."""
KNOWN_CLIENTS = (
    KnownClient(
        "claude-code",
        "Set keys in Claude Code's environment, then restart Claude Code. If `massgen install` wrote the "
        "server's entry, run `massgen install claude-code` again in a shell where the key is set.",
        is_woken_by_tasks=True,
    ),
    KnownClient(
        "claude",
        "Set keys under `env` in this server's entry in Claude Desktop's settings, then quit and restart it.",
    ),
    KnownClient(
        "codex",
        "Set keys in the environment in which Codex starts, and list their names under `env_vars` in this server's "
        "entry in ~/.codex/config.toml (`massgen install codex` and the plugin list them for you); then restart Codex.",
    ),
    KnownClient("copilot", ANY_CLIENT.where_keys_go, reads_both_forms=True),
    KnownClient("massgen web", "Set keys in the environment of `massgen web`, then restart it."),
)
OVER_HTTP = "Set keys in the environment of `massgen-mcp --transport http`, then restart that server."


def identify_client(ctx: ServerRequestContext[Any, Any] | None) -> KnownClient:
    """Return what is known of the client that sends a request."""
    if ctx is None or ctx.session.client_params is None:
        return ANY_CLIENT
    name = ctx.session.client_params.client_info.name.lower()
    return next((one for one in KNOWN_CLIENTS if one.part_of_name in name), ANY_CLIENT)


def is_over_http(ctx: ServerRequestContext[Any, Any]) -> bool:
    return ctx.request is not None


RECENT_RUNS = 16
"""How many of the newest runs are looked at for the mark of a hook. A client makes fewer calls than this at once."""


@dataclass(slots=True)
class WakingRuns:
    """Runs of which this process knows that their end wakes the model of its client.

    Only what was seen counts: a task that the client was given, or our hook, which ran after a call of this process. A
    hook that is installed but has not run may not be trusted. Over HTTP nothing counts: clients share the process.
    """

    _as_tasks: set[str] = field(default_factory=set[str])
    _waited_for: dict[str, Path] = field(default_factory=dict[str, Path])
    """The directory of each run that a call of this process started or waited for; the newest comes last."""
    _hook_runs: bool = False

    def note_call(self, ctx: ServerRequestContext[Any, Any], view: RunView) -> None:
        """Note a call after which the hook, if there is one, waits for the run."""
        if not is_over_http(ctx):
            self._waited_for.pop(view.row.run_id, None)
            self._waited_for[view.row.run_id] = view.directory.path

    def note_task(self, ctx: ServerRequestContext[Any, Any], run_id: str) -> None:
        """Note that the client was given a task that stands for the run."""
        if not is_over_http(ctx) and identify_client(ctx).is_woken_by_tasks:
            self._as_tasks.add(run_id)

    def includes(self, view: RunView) -> bool:
        """Return whether the end of this run wakes the client's model."""
        run_id = view.row.run_id
        if run_id in self._as_tasks:
            return True
        if run_id not in self._waited_for:
            return False
        if not self._hook_runs:
            newest = islice(reversed(self._waited_for.values()), RECENT_RUNS)
            self._hook_runs = any(find_hook_mark(directory).exists() for directory in newest)
        return self._hook_runs
