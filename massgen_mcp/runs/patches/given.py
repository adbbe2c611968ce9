"""The directories that a run is given, and what stands for them where another machine executes it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from massgen_mcp.changes.base import ContextDirectory
from massgen_mcp.changes.run_changes import RunChanges
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.orchestrator import ContextPath
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.workspace.directory import unique_names

SINGLE_FILE = "it is a single file; to let agents change it, pass its directory"
UPLOADED = "upload:"
"""Begins what stands for a path of the caller's on the machine that executes the run."""


def named_contexts(config: Config) -> Iterator[tuple[ContextPath, str]]:
    contexts = config.orchestrator.context_paths if config.orchestrator.enable_filesystem else ()
    return zip(contexts, unique_names([Path(one.path) for one in contexts]), strict=True)


def given_directories(
    config: Config, hidden: Sequence[Path], clones: Path | None = None
) -> tuple[list[ContextDirectory], list[str]]:
    """The directories among the context paths, and the names of files that were to be changed."""
    unseen = tuple(one.resolve() for one in hidden)
    directories: list[ContextDirectory] = []
    files: list[str] = []
    for context, name in named_contexts(config):
        place, writable = Path(context.path).resolve(), context.permission == "write"
        if clones is not None and (cloned := clones / name).is_dir():
            cloned = cloned.resolve()
            directories.append(
                ContextDirectory(name, cloned, writable, kept_outputs=context.keep_outputs, named=context.path)
            )
        elif place.is_dir():
            directories.append(
                ContextDirectory(name, place, writable, context.copy_ignored, context.keep_outputs, hidden=unseen)
            )
        elif writable:
            files.append(name)
    return directories, files


def upload_base(run: RunFiles, config: Config) -> None:
    """Take the base of a run that a machine executes which has none of the directories. Raises `MassgenError`
    invalid_arguments.
    """
    given, files = given_directories(config, (run.path,))
    base, refused = RunChanges(run.changes).begin([replace(one, named=str(one.path)) for one in given], [])
    if base is None or refused or files:
        why = "; ".join([*(f"{one.name}: {one.why}" for one in refused), *(f"{name}: {SINGLE_FILE}" for name in files)])
        raise MassgenError("invalid_arguments", f"cannot be uploaded: {why or SINGLE_FILE}")
