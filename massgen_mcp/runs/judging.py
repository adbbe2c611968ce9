"""Makes what judges the files of a run's answers: its checks, the sandbox they run in, and what they see beside a tree."""

from collections.abc import Iterator
from pathlib import Path

from massgen_mcp.checks.judge import FileJudge
from massgen_mcp.config.models import OrchestratorConfig
from massgen_mcp.runs.assembly import check_rules
from massgen_mcp.runs.working_copies import WorkingCopies
from massgen_mcp.sandbox import WORKSPACE, LevelName, Shown
from massgen_mcp.workspace.guard import PathRefused, Root
from massgen_mcp.workspace.snapshot import remove_tree

MAX_LOOKED_AT = 200_000
"""Entries of a directory in the search for what must be hidden in it."""


def judge_of(
    orchestrator: OrchestratorConfig, level: LevelName, copies: WorkingCopies, hidden: tuple[Path, ...]
) -> FileJudge:
    """`hidden`: what no check ever sees. Blocks."""
    place = copies.run.path / "checks"
    remove_tree(place)  # of a process that was lost
    shown: list[Shown] = []
    concealed: list[Path] = []
    for one in _shared(copies):
        found = _secrets_in(one.host)
        if found is not None:
            shown.append(one)
            concealed += found
    return FileJudge(
        copies.kept.repository,
        copies.base.id,
        place,
        check_rules(orchestrator, level, (*hidden, *concealed)),
        directory=copies.names[0],
        shown=tuple(shown),
    )


def _shared(copies: WorkingCopies) -> Iterator[Shown]:
    """What git ignores, as the caller has it, where a command would look for it."""
    for directory in copies.base.directories:
        for below in directory.shared:
            yield Shown(Path(directory.path, below), f"{WORKSPACE}/{directory.name}/{below}")


def _secrets_in(directory: Path) -> list[Path] | None:
    """Files that commonly hold secrets; None if not all of them can be found, so that it must not be shown."""
    try:
        with Root.open(directory, "", above=directory.parts) as root:
            found, whole = root.concealed(MAX_LOOKED_AT)
    except PathRefused:
        return None
    return [directory / path for path in found] if whole else None
