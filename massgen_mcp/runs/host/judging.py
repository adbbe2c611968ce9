"""Makes what judges the files of a run's answers: its checks, their sandbox, and what they see beside a tree."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from massgen_mcp.checks.judge import FileJudge
from massgen_mcp.config.models.config import Config
from massgen_mcp.home import find_home
from massgen_mcp.request.checkable import no_sandbox
from massgen_mcp.request.sandboxes import sandbox_of_checks
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.host.assembly import check_rules
from massgen_mcp.runs.host.working_copies import WorkingCopies
from massgen_mcp.sandbox import Image, LevelName, ProjectTools, VisiblePath
from massgen_mcp.workspace.guard import PathRefused, Root
from massgen_mcp.workspace.snapshot import remove_tree

NO_COPIES = "agents have no copies of the context paths, so there is nothing to check"


@dataclass(frozen=True, slots=True)
class Judging:
    judge: FileJudge | None = None
    denied: str = ""
    """Why the run must not go on: its checks have no sandbox."""
    problem: str = ""
    """Why it goes on without checks, although it has some."""


async def prepare_judging(
    run: RunFiles,
    config: Config,
    environ: Mapping[str, str],
    copies: WorkingCopies | None,
    tools: ProjectTools,
    problem: str,
) -> Judging:
    """What judges the answers of a run, where its config has checks. `problem`: why they say nothing, if that is known.
    Raises `MassgenError` for an unusable variable.
    """
    if not config.orchestrator.checks:
        return Judging()
    choice = await sandbox_of_checks(config, environ)
    if choice.level is None:
        return Judging(denied=no_sandbox(config, choice))
    if copies is None:
        return Judging(problem=NO_COPIES)
    if problem:
        return Judging(problem=problem)
    hidden = (find_home(environ).path, run.path)
    return Judging(
        await anyio.to_thread.run_sync(_judge, run, config, choice.level, choice.image, copies, hidden, tools)
    )


def _judge(
    run: RunFiles,
    config: Config,
    level: LevelName,
    unpacked: Image | None,
    copies: WorkingCopies,
    hidden: tuple[Path, ...],
    tools: ProjectTools,
) -> FileJudge:
    place = run.path / "checks"
    remove_tree(place)  # of a process that was lost
    shown: list[VisiblePath] = []
    secret: list[Path] = []
    for one in copies.shared:
        found = _secrets_in(one.host)
        if found is not None:
            shown.append(one)
            secret += found
    return FileJudge(
        copies.kept.repository,
        copies.base,
        place,
        check_rules(config.orchestrator, level, unpacked, (*hidden, *secret), tools),
        shown=(*shown, *copies.installed),
        made=copies.kept.made,
    )


def _secrets_in(directory: Path) -> list[Path] | None:
    """Files that commonly hold secrets; None if not all of them can be found, so that it must not be shown."""
    try:
        with Root.open(directory, "", above=directory.parts) as root:
            found, whole = root.hidden.paths()
    except PathRefused:
        return None
    return [directory / path for path in found] if whole else None
