"""Which run a command means: the one whose id begins as given, else the newest one of this directory."""

import argparse
import os
from pathlib import Path

from massgen_mcp.cli.asking import confirm
from massgen_mcp.cli.massgen.earlier_runs import background_runs
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.verb import NEWEST
from massgen_mcp.errors import Declined, MassgenError
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.views.plain_text import preview

SEARCHED = 200
"""Newest runs of this user, among which the newest one of a directory is looked for."""


async def find_run_to_read(service: RunService, named: str | None) -> str:
    """Return a run's id. Raises `MassgenError` unknown_run."""
    if named is None or named in NEWEST:
        return (await _find_newest(service)).row.run_id
    return await service.watcher.find_run_id(named)


async def find_run_to_change(service: RunService, options: argparse.Namespace, verb: str) -> str:
    """Return a run's id: the named one; else the newest one of this directory, if a person at a terminal says that it
    is meant. Raises `Declined`, `MassgenError` unknown_run.
    """
    if options.run_id is not None and options.run_id not in NEWEST:
        return await service.watcher.find_run_id(options.run_id, to_change=True)
    view = await _find_newest(service)
    print_line(f'{view.row.run_id}, {view.state}: "{preview(view.row.question, 60)}"')
    if not options.yes and not confirm(f"{verb.capitalize()} this run", default=False):
        raise Declined("Nothing changed. To choose another run, pass its ID; `massgen runs` lists all runs.")
    return view.row.run_id


async def _find_newest(service: RunService) -> RunView:
    cwd = Path.cwd()
    in_background = background_runs(cwd)
    for view in await service.watcher.list_runs(limit=SEARCHED):
        is_there = view.row.run_id in in_background or _is_of_directory(view, cwd)
        if is_there and view.directory.path.exists():
            return view
    raise MassgenError("unknown_run", f"no run was started in {cwd}; pass a run's ID (`massgen runs` lists all runs)")


def _is_of_directory(view: RunView, cwd: Path) -> bool:
    """Check whether it was asked in this directory, or works on it."""
    if view.row.directory is not None:
        return Path(view.row.directory).is_relative_to(cwd / ".massgen")
    if view.row.expired or view.row.parent is not None:
        return False
    return any(os.path.realpath(path) == os.path.realpath(cwd) for path in view.read_context_paths())
