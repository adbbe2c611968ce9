"""What a person has done with a run: `answer`, `raise-budget`, `resume`, `cancel`, and `mark` afterwards."""

import argparse
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import anyio.to_thread

from massgen_mcp.cli.asking import confirm, on_terminal
from massgen_mcp.cli.command_line import AS_IT_IS
from massgen_mcp.cli.exits import EXIT_NOT_ENDED, EXIT_OK
from massgen_mcp.cli.named_runs import find_run_to_change
from massgen_mcp.cli.output import print_either, print_lines
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.consent import RunDemands, read_demands
from massgen_mcp.runs.engine import Action
from massgen_mcp.runs.service import RunService
from massgen_mcp.server.results import controlled
from massgen_mcp.server.results.reply import as_json

CANCEL_SECONDS = 10.0
"""How long a run is given to stop before `cancel` says that it has not."""


_ACTIONS: Mapping[str, Action | Literal["resume"]] = MappingProxyType(
    {"answer": "answer", "raise-budget": "raise_budget", "cancel": "cancel", "resume": "resume"}
)
"""By the verb that asks for it."""


async def control_run(options: argparse.Namespace) -> int:
    """Request what the verb asks for, and print the state of the run afterwards."""
    action = _ACTIONS[options.verb]
    with run_service() as service:
        run_id = await find_run_to_change(service, options, options.verb.replace("-", " "))
        if action == "resume":
            view = await service.resume(run_id, await accept_demands(service, run_id, options.trust))
        else:
            view = await service.control(run_id, action, getattr(options, "text", ""), getattr(options, "usd", None))
        if action == "cancel":
            view = await service.watcher.wait(run_id, until="terminal", seconds=CANCEL_SECONDS, cursor=None)
    taken_up = action == "resume" and view.state == "interrupted"
    line = f"{run_id}: {'the run continues in the background' if taken_up else view.state}"
    print_either([line], controlled(view, action).as_json(), as_json=options.json)
    return EXIT_NOT_ENDED if action == "cancel" and not view.ended else EXIT_OK


def is_trusted(trust: str | None, demands: RunDemands) -> bool:
    """Check whether `--trust` accepts the demands of an imported run. Raises `MassgenError` config_untrusted for the
    digest of other demands.
    """
    if trust not in (None, AS_IT_IS, demands.digest):
        message = f"--trust doesn't match the digest of the run's permissions: {demands.digest}"
        raise MassgenError("config_untrusted", message)
    return trust is not None


async def accept_demands(service: RunService, run_id: str, trust: str | None) -> str | None:
    """Return the digest of what an imported run asks for, if `--trust` or the person at the terminal accepts that."""
    demands = await anyio.to_thread.run_sync(read_demands, service.access.engine, run_id, service.access.environ)
    if demands is None:
        return None
    if not is_trusted(trust, demands):
        if not on_terminal():
            return None
        print_lines(["The run asks for permissions that need your consent (!):", *demands.describe_lines()])
        if not confirm("Allow this", default=False):
            return None
    return demands.digest


async def mark_run(options: argparse.Namespace) -> int:
    """Record what a person says of a run's answer afterwards, for the statistics."""
    verdict = None if options.undo else options.verdict
    with run_service() as service:
        run_id = await find_run_to_change(service, options, "mark")
        await service.outcomes.mark(run_id, verdict, agent=options.agent, note=options.note or "")
    marked = {"run_id": run_id, "agent": options.agent, "verdict": verdict, "note": options.note}
    document = as_json({name: value for name, value in marked.items() if value is not None})
    whose = f"{options.agent} of {run_id}" if options.agent else run_id
    line = f"{whose}: {f'marked {verdict}' if verdict else 'removed the mark'}"
    print_either([line], document, as_json=options.json)
    return EXIT_OK
