"""The checks of a config, tried on the unchanged files before a model is asked: what a check says there, or why it says
nothing, and what helps. What comes of it is kept, and a run that begins soon after does not run it again.
"""

import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread

from massgen_mcp.changes.git import GitFailed
from massgen_mcp.checks.judge import FileJudge
from massgen_mcp.checks.kept import kept_in
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.parts import CheckOutcome
from massgen_mcp.home import find_home
from massgen_mcp.runs.host.judging import kept_file, prepare_judging
from massgen_mcp.runs.host.setting_up import failed_setup, set_up_copies
from massgen_mcp.runs.host.working_copies import WorkingCopies, prepare_base
from massgen_mcp.runs.store.directory import RunDirectory
from massgen_mcp.sandbox import ProjectTools, project_tools
from massgen_mcp.views.checks import HINDRANCES, TriedCheck
from massgen_mcp.workspace.snapshot import remove_tree

NO_SANDBOX_CURE = "`massgen-mcp doctor` tells how to get a sandbox"
UNFINISHED_CURE = "it goes on in the run, before a model is asked"
STALE_SECONDS = 86_400.0
"""What a trial that was killed left behind is removed after so long."""


async def last_tried(config: Config, environ: Mapping[str, str]) -> tuple[TriedCheck, ...]:
    """What the checks said when they ran last, whatever has changed since; runs none."""
    file = kept_file(find_home(environ).path, config)
    kept = await anyio.to_thread.run_sync(kept_in, file)
    known = {outcome.command: outcome for outcome in (kept.outcomes if kept is not None else ())}
    return tuple(
        _tried(known[command]) if command in known else TriedCheck(command, "untried")
        for command in config.orchestrator.checks
    )


async def try_checks(config: Config, environ: Mapping[str, str], *, seconds: float) -> tuple[TriedCheck, ...]:
    """Run them, for at most so many seconds in all. Raises `MassgenError` for an unusable variable."""
    commands = config.orchestrator.checks
    tried = {command: TriedCheck(command, "unfinished", cure=UNFINISHED_CURE) for command in commands}
    if not commands:
        return ()
    trials = find_home(environ).ensure().path / "checks" / "trials"
    run = RunDirectory(trials / secrets.token_hex(8))
    try:
        with anyio.move_on_after(seconds):
            judge = await _judge(run, config, environ)
            for command in commands:
                tried[command] = (
                    replace(judge, command=command)
                    if isinstance(judge, TriedCheck)
                    else _tried(await judge.check_base(command))
                )
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(remove_tree, run.path)
    return tuple(tried.values())


async def _judge(run: RunDirectory, config: Config, environ: Mapping[str, str]) -> FileJudge | TriedCheck:
    """What judges the base; or why nothing does, which holds for every check."""
    try:
        copies, tools = await anyio.to_thread.run_sync(_prepared, run, config, environ)
    except (GitFailed, OSError) as error:
        return TriedCheck("", "void", f"the files cannot be read: {error}")
    copies, set_up = await set_up_copies(run, config, environ, copies, tools)
    judging = await prepare_judging(run, config, environ, copies, tools, failed_setup(set_up))
    if judging.judge is not None:
        return judging.judge
    return TriedCheck("", "void", judging.denied or judging.problem, NO_SANDBOX_CURE if judging.denied else "")


def _prepared(
    run: RunDirectory, config: Config, environ: Mapping[str, str]
) -> tuple[WorkingCopies | None, ProjectTools]:
    for left in run.path.parent.glob("*"):
        if left.stat().st_mtime < time.time() - STALE_SECONDS:
            remove_tree(left)
    run.path.mkdir(mode=0o700, parents=True)
    tools = project_tools([Path(one.path) for one in config.orchestrator.context_paths], environ)
    return prepare_base(run, config, (find_home(environ).path,)), tools


def _tried(outcome: CheckOutcome) -> TriedCheck:
    if outcome.obstacle is not None:
        how = f"{HINDRANCES[outcome.obstacle]}, {outcome.how}"
        return TriedCheck(outcome.command, "void", how, outcome.cure, outcome.excerpt)
    if outcome.result == "not_run":
        return TriedCheck(outcome.command, "void", outcome.how, NO_SANDBOX_CURE)
    return TriedCheck(outcome.command, outcome.result, outcome.how, excerpt=outcome.excerpt)
