"""How long a run's files are kept, and how they go: workspaces first, results later; the row stays as a tombstone.

Nothing is deleted before the store says that it is being deleted, so a crash in between leaves work to be finished by
the next pruning, never a run that looks whole. Age is counted by a clock of our own that a wall clock put forward or
back cannot fool. Must not know what is in the files, or models.
"""

import math
import os
import re
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from massgen_mcp.errors import MassgenError, storage_error
from massgen_mcp.home import HOUR, Home
from massgen_mcp.runs.directory import directory_of
from massgen_mcp.runs.locks import acquire
from massgen_mcp.runs.store import RunRow, Store
from massgen_mcp.workspace.snapshot import remove_tree

RUN_ID = re.compile(r"run-[a-z2-7]{26}")
MOST_CREDIT = 24 * HOUR
"""What a step of the wall clock counts at most where nothing else tells how long the machine was off."""

RESERVE_BYTES = 512 * 1024

What = Literal["workspaces", "results", "leftover"]


@dataclass(frozen=True, slots=True)
class Removed:
    """Something that was deleted, or would be. `leftover`: a directory whose start was never acknowledged."""

    run_id: str
    what: What
    bytes: int


@dataclass(slots=True)
class Pruned:
    """What a pruning did, or would do. `failed`: run id and cause; the next pruning tries again."""

    removed: list[Removed] = field(default_factory=list[Removed])
    failed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def bytes(self) -> int:
        return sum(removed.bytes for removed in self.removed)


@dataclass(frozen=True, slots=True)
class Moment:
    """Now, on every clock there is, in seconds. `uptime` counts within one `boot`, which is empty where unknown."""

    wall: float
    boot: str
    uptime: float

    @classmethod
    def now(cls) -> "Moment":
        boot = ""
        with suppress(OSError):
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        uptime = time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else 0.0
        return cls(time.time(), boot, uptime)


def passed(last: Moment, now: Moment) -> float:
    """Seconds that have certainly passed between two moments: never too many, whatever was done to the wall clock."""
    if now.boot and now.boot == last.boot:
        return max(0.0, now.uptime - last.uptime)
    return min(max(0.0, now.wall - last.wall), MOST_CREDIT)


@contextmanager
def making(home: Home) -> Generator[None]:
    """Held from before a run's directory is made until its row is stored. While it is held, pruning deletes no
    directory that has no row.
    """
    with _locked(home.path / "making.lock", shared=True, patience=math.inf):
        yield


def prune(
    home: Home,
    store: Store,
    *,
    dry_run: bool = False,
    older_than: float | None = None,
    now: Moment | None = None,
) -> Pruned:
    """Delete what is older than the limits; with `dry_run` only say what that is.

    `older_than` (seconds) takes the place of both limits. Does nothing while another process prunes. Raises
    `MassgenError` disk_full or store_unavailable; what was pruned before is pruned.
    """
    pruned = Pruned()
    try:
        with _locked(home.path / "prune.lock"):
            age = _age(home, store, now or Moment.now())
            results = age - _limit(older_than, home.limits.results_seconds)
            workspaces = age - _limit(older_than, home.limits.workspaces_seconds)
            _results(home, store, results, pruned, dry_run=dry_run)
            _workspaces(home, store, workspaces, pruned, dry_run=dry_run)
            _leftovers(home, store, pruned, dry_run=dry_run)
            _make_reserve(home)
    except BlockingIOError:
        return pruned
    except OSError as error:
        raise storage_error("cannot prune", error) from error
    return pruned


def prune_named(home: Home, store: Store, rows: Iterable[RunRow], *, dry_run: bool = False) -> Pruned:
    """Delete everything of these runs, wherever they lie and however old they are. Raises `MassgenError`
    invalid_action for a run that has not ended, disk_full, store_unavailable.
    """
    pruned = Pruned()
    for row in rows:
        if row.state in ("queued", "running"):
            raise MassgenError("invalid_action", f"run {row.run_id} is {row.state}; cancel it first")
        if row.kept != "nothing":
            _remove(store, row, "results", [directory_of(home, row).path], pruned, dry_run=dry_run)
    return pruned


def _age(home: Home, store: Store, now: Moment) -> float:
    """The retention clock, moved on. Where the disk is too full to note even that, the reserve makes room."""
    for _ in range(2):
        try:
            age = _tick(store, now)
            store.start_ageing(age)
        except MassgenError as error:
            if error.code != "disk_full" or not _free_reserve(home):
                raise
        else:
            return age
    raise MassgenError("disk_full", "cannot prune: no room even to note what is deleted; free some space")


def _free_reserve(home: Home) -> bool:
    """Whether there was a reserve."""
    try:
        (home.path / "reserve").unlink()
    except FileNotFoundError:
        return False
    return True


def _make_reserve(home: Home) -> None:
    """Room kept for pruning a full disk: deleting must be noted first."""
    path = home.path / "reserve"
    if path.exists():
        return
    try:
        with path.open("xb") as file:
            file.write(bytes(RESERVE_BYTES))
    except OSError:
        path.unlink(missing_ok=True)


def _limit(older_than: float | None, limit: float) -> float:
    return limit if older_than is None else older_than


def _tick(store: Store, now: Moment) -> float:
    """Move the retention clock on; returns its age."""
    clock = store.clock()
    age = clock[0] + passed(Moment(*clock[1:]), now) if clock else 0.0
    store.set_clock(age, now.wall, now.boot, now.uptime)
    return age


def _results(home: Home, store: Store, aged_from: float, pruned: Pruned, *, dry_run: bool) -> None:
    """Finish what was begun, then expire what is old. An interrupted run waits as long as a result is kept."""
    begun = store.old(float("inf"), ["losing_results"], interrupted=True)
    old = store.old(aged_from, ["all", "losing_workspaces", "results"], interrupted=True)
    for row in [*begun, *old]:
        _remove(store, row, "results", [directory_of(home, row).path], pruned, dry_run=dry_run)


def _workspaces(home: Home, store: Store, aged_from: float, pruned: Pruned, *, dry_run: bool) -> None:
    """The agents' workspaces and the snapshots of their answers; the winner's final files are part of the result."""
    begun = store.old(float("inf"), ["losing_workspaces"], interrupted=False)
    expired = {removed.run_id for removed in pruned.removed if removed.what == "results"}
    for row in [*begun, *store.old(aged_from, ["all"], interrupted=False)]:
        if row.run_id not in expired:
            run = home.runs / row.run_id
            paths = [run / "workspaces", *run.glob("turn_*/attempt_*/*/*/workspace")]
            _remove(store, row, "workspaces", paths, pruned, dry_run=dry_run)


def _remove(
    store: Store,
    row: RunRow,
    what: Literal["results", "workspaces"],
    paths: list[Path],
    pruned: Pruned,
    *,
    dry_run: bool,
) -> None:
    """Mark, delete, mark again. A run that goes on meanwhile is left alone."""
    removed = Removed(row.run_id, what, sum(map(_size, paths)))
    if dry_run:
        pruned.removed.append(removed)
        return
    losing, kept = ("losing_results", "nothing") if what == "results" else ("losing_workspaces", "results")
    if row.kept != losing and not store.keep(row, losing):
        return
    try:
        for path in paths:
            remove_tree(path)
    except OSError as error:
        pruned.failed.append((row.run_id, f"{error.strerror}: {error.filename}"))
        return
    store.keep(store.get(row.run_id), kept)
    if removed.bytes or what == "results":
        pruned.removed.append(removed)


def _leftovers(home: Home, store: Store, pruned: Pruned, *, dry_run: bool) -> None:
    """Directories of starts that were never acknowledged: no row, nobody making them, and no runner ever in them.

    A directory with a journal had a row once. If the store does not know it, the store was lost, and the run is not
    ours to delete.
    """
    with _locked(home.path / "making.lock"):
        found = [path for path in home.runs.iterdir() if RUN_ID.fullmatch(path.name)]
        known = store.known([path.name for path in found])
        for path in found:
            if path.name in known or (path / "events.jsonl").exists():
                continue
            size = _size(path)
            if not dry_run:
                remove_tree(path)
            pruned.removed.append(Removed(path.name, "leftover", size))


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


def expired_run(row: RunRow) -> MassgenError:
    """What is left to say of a run whose results are gone."""
    how = f"{row.state} ({row.outcome})" if row.outcome else row.state
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(row.ended)) if row.ended else "some time ago"
    return MassgenError(
        "expired", f"run {row.run_id} ended as {how} on {when}; its results were removed since. Start a new run"
    )
