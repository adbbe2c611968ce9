"""Runs on one machine: a SQLite file, a directory per run, and locks that the kernel drops with their process.

`local_engine` is where it is put together; everybody else is handed an `Engine`.
"""

import math
import os
import re
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from massgen_mcp.changes.applied import AppliedRecords
from massgen_mcp.changes.git import GitFailed
from massgen_mcp.changes.run_changes import PATCH, RunChanges
from massgen_mcp.errors import MassgenError, storage_error
from massgen_mcp.home import Home
from massgen_mcp.redaction import Redactor
from massgen_mcp.runs.engine import Engine, Expirable, RunFiles
from massgen_mcp.runs.engine.rows import FrozenRequest, NewRun, RunRow, WorkRow
from massgen_mcp.runs.store.directory import RunDirectory
from massgen_mcp.runs.store.journal import has_events
from massgen_mcp.runs.store.locks import acquire
from massgen_mcp.runs.store.runner_endpoint import LocalLiveness
from massgen_mcp.runs.store.sqlite.store import Store
from massgen_mcp.workspace.snapshot import remove_tree

RUN_ID = re.compile(r"run-[a-z2-7]{26}")
DATABASE = "runs.sqlite3"
RESERVE_BYTES = 512 * 1024


def local_engine(home: Home) -> Engine:
    """Makes and opens nothing yet."""
    return Engine(home, Store(home.path / DATABASE), LocalFiles(home), LocalLiveness(home))


class LocalFiles:
    """See `engine.FileStore`: `runs/<run id>` below the home, or where the program that executed the run wanted it."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def create(
        self,
        run_id: str,
        request: FrozenRequest,
        redactor: Redactor,
        entry: NewRun | None = None,
    ) -> RunDirectory:
        return RunDirectory.create(self._home.runs / run_id, request, redactor, entry)

    def created(self, run_id: str) -> bool:
        return RunDirectory(self._home.runs / run_id).request.exists()

    def discard(self, run_id: str) -> None:
        remove_tree(self._home.runs / run_id)

    def of(self, row: RunRow | WorkRow) -> RunDirectory:
        return RunDirectory(Path(row.directory) if row.directory else self._home.runs / row.run_id)

    def making(self) -> AbstractContextManager[None]:
        return _locked(self._home.path / "making.lock", shared=True, patience=math.inf)

    @contextmanager
    def pruning(self) -> Generator[None]:
        with _locked(self._home.path / "prune.lock"):
            yield
            _make_reserve(self._reserve)

    @property
    def _reserve(self) -> Path:
        return self._home.path / "reserve"

    def free_reserve(self) -> bool:
        try:
            self._reserve.unlink()
        except FileNotFoundError:
            return False
        return True

    def size(self, row: RunRow, part: Expirable) -> int:
        return sum(map(_size, self._paths(row, part)))

    def awaits_apply(self, row: RunRow) -> bool:
        run = self.of(row)
        with suppress(GitFailed, MassgenError):
            base = RunChanges(run.changes).base()
            if base is None or not any(directory.writable for directory in base.directories):
                return False
            return any(_patches(run.path)) and not AppliedRecords(run.changes).read()
        return False

    def remove(self, row: RunRow, part: Expirable) -> None:
        for path in self._paths(row, part):
            remove_tree(path)

    def _paths(self, row: RunRow, part: Expirable) -> list[Path]:
        """The winner's final files are part of the result."""
        run = self.of(row).path
        return [run] if part == "results" else [run / "workspaces", *run.glob("turn_*/attempt_*/*/*/workspace")]

    def remove_leftovers(self, known: Callable[[Collection[str]], set[str]], *, dry_run: bool) -> list[tuple[str, int]]:
        """A directory with a journal had a row once. If the store does not know it, the store was lost, and the run is
        not ours to delete.
        """
        removed: list[tuple[str, int]] = []
        with _locked(self._home.path / "making.lock"):
            found = [path for path in self._home.runs.iterdir() if RUN_ID.fullmatch(path.name)]
            of_runs = known([path.name for path in found])
            for path in found:
                if path.name in of_runs or has_events(path):
                    continue
                size = _size(path)
                if not dry_run:
                    remove_tree(path)
                removed.append((path.name, size))
        return removed

    def begun(self) -> list[RunFiles]:
        found = (RunDirectory(path) for path in sorted(self._home.runs.iterdir()) if RUN_ID.fullmatch(path.name))
        return [run for run in found if run.request.exists() or has_events(run.path)]

    def with_events(self) -> list[str]:
        return sorted(path.name for path in self._home.runs.glob("*") if has_events(path))


def _patches(run: Path) -> Iterator[Path]:
    yield from run.glob(f"final/*/{PATCH}")
    yield from run.glob(f"turn_*/attempt_*/*/*/{PATCH}")


def _size(path: Path) -> int:
    """Bytes on disk of everything below `path`, links not followed. What cannot be looked at counts as nothing."""
    total = 0
    for directory, _, files in os.walk(path, followlinks=False):
        for name in files:
            with suppress(OSError):
                total += (Path(directory) / name).lstat().st_blocks * 512
    return total


@contextmanager
def _locked(path: Path, *, shared: bool = False, patience: float = 0.0) -> Generator[None]:
    """Raises `BlockingIOError` if another process still holds the lock after `patience` seconds."""
    try:
        descriptor = acquire(path, shared=shared, patience=patience)
    except OSError as error:
        raise storage_error(f"cannot open {path.name}", error) from error
    if descriptor is None:
        raise BlockingIOError
    try:
        yield
    finally:
        os.close(descriptor)


def _make_reserve(path: Path) -> None:
    """Room kept for pruning a full disk: deleting must be noted first."""
    if path.exists():
        return
    try:
        with path.open("xb") as file:
            file.write(bytes(RESERVE_BYTES))
    except OSError:
        path.unlink(missing_ok=True)
