"""How long a run's files are kept, and how they go: workspaces first, results later; the row stays as a tombstone.

Nothing is deleted before the store says that it is being deleted, so a crash in between leaves work to be finished by
the next pruning, never a run that looks whole. Age is counted by a clock of our own that a wall clock put forward or
back cannot fool.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from massgen_mcp.errors import MassgenError, storage_error
from massgen_mcp.home import HOUR
from massgen_mcp.runs.engine import Engine, Expirable, Kept, RunRow

MOST_CREDIT = 24 * HOUR
"""What a step of the wall clock counts at most where nothing else tells how long the machine was off."""

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
class ClockReadings:
    """Now, on every clock there is, in seconds. `uptime` counts within one `boot`, which is empty where unknown."""

    wall: float
    boot: str
    uptime: float

    @classmethod
    def now(cls) -> "ClockReadings":
        boot = ""
        with suppress(OSError):
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        uptime = time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else 0.0
        return cls(time.time(), boot, uptime)


def passed(last: ClockReadings, now: ClockReadings) -> float:
    """Seconds that have certainly passed between two moments: never too many, whatever was done to the wall clock."""
    if now.boot and now.boot == last.boot:
        return max(0.0, now.uptime - last.uptime)
    return min(max(0.0, now.wall - last.wall), MOST_CREDIT)


def prune(
    engine: Engine,
    *,
    dry_run: bool = False,
    older_than: float | None = None,
    now: ClockReadings | None = None,
) -> Pruned:
    """Delete what is older than the limits; with `dry_run` only say what that is.

    `older_than` (seconds) takes the place of both limits. Does nothing while another process prunes. Raises
    `MassgenError` disk_full or store_unavailable; what was pruned before is pruned.
    """
    pruned = Pruned()
    try:
        with engine.files.pruning():
            age = _age(engine, now or ClockReadings.now())
            limits = engine.home.limits
            kept: dict[Expirable, float] = {"results": limits.results_seconds, "workspaces": limits.workspaces_seconds}
            for part, seconds in kept.items():
                aged_from = age - (seconds if older_than is None else older_than)
                _expire(engine, part, aged_from, pruned, dry_run=dry_run)
            for run_id, size in engine.files.remove_leftovers(engine.store.index.find_known, dry_run=dry_run):
                pruned.removed.append(Removed(run_id, "leftover", size))
    except BlockingIOError:
        return pruned
    except OSError as error:
        raise storage_error("cannot prune", error) from error
    return pruned


def prune_named(engine: Engine, rows: Iterable[RunRow], *, dry_run: bool = False) -> Pruned:
    """Delete everything of these runs, wherever they lie and however old they are. Raises `MassgenError`
    invalid_action for a run that has not ended, disk_full, store_unavailable.
    """
    pruned = Pruned()
    for row in rows:
        if row.state in ("queued", "running"):
            raise MassgenError("invalid_action", f"run {row.run_id} is {row.state}; cancel it first")
        if row.kept != "nothing":
            _remove(engine, row, "results", pruned, dry_run=dry_run)
    return pruned


def _age(engine: Engine, now: ClockReadings) -> float:
    """The retention clock, moved on. Where the disk is too full to note even that, the reserve makes room."""
    for _ in range(2):
        try:
            clock = engine.store.retention.get_clock()
            age = clock[0] + passed(ClockReadings(*clock[1:]), now) if clock else 0.0
            engine.store.retention.set_clock(age, now.wall, now.boot, now.uptime)
            engine.store.retention.start_ageing(age)
        except MassgenError as error:
            if error.code != "disk_full" or not engine.files.free_reserve():
                raise
        else:
            return age
    raise MassgenError("disk_full", "cannot prune: the disk is too full to record what to delete; free some space")


_EXPIRING: dict[Expirable, tuple[Kept, tuple[Kept, ...], Kept]] = {
    "results": ("losing_results", ("all", "moved", "losing_workspaces", "results"), "nothing"),
    "workspaces": ("losing_workspaces", ("all",), "results"),
}
"""What a run is marked with while it loses a part, what is kept of those that still have it, and what is kept then."""


def _expire(engine: Engine, part: Expirable, aged_from: float, pruned: Pruned, *, dry_run: bool) -> None:
    """Finish what was begun, then expire what is old. An interrupted run waits as long as a result is kept, and so do
    the workspaces of one whose patch may still be applied.
    """
    losing, having, _ = _EXPIRING[part]
    begun = engine.store.retention.list_expired(float("inf"), [losing], interrupted=part == "results")
    expired = {removed.run_id for removed in pruned.removed}
    for row in [*begun, *engine.store.retention.list_expired(aged_from, having, interrupted=part == "results")]:
        if row.run_id not in expired and not (part == "workspaces" and engine.files.awaits_apply(row)):
            _remove(engine, row, part, pruned, dry_run=dry_run)


def _remove(engine: Engine, row: RunRow, what: Expirable, pruned: Pruned, *, dry_run: bool) -> None:
    """Mark, delete, mark again. A run that goes on meanwhile is left alone."""
    removed = Removed(row.run_id, what, engine.files.size(row, what))
    if dry_run:
        pruned.removed.append(removed)
        return
    losing, _, kept = _EXPIRING[what]
    if row.kept != losing and not engine.store.retention.set_kept(row, losing):
        return
    try:
        engine.files.remove(row, what)
    except OSError as error:
        pruned.failed.append((row.run_id, f"{error.strerror}: {error.filename}"))
        return
    engine.store.retention.set_kept(engine.store.index.get(row.run_id), kept)
    if removed.bytes or what == "results":
        pruned.removed.append(removed)


def expired_run(row: RunRow) -> MassgenError:
    """What is left to say of a run whose results are gone."""
    how = f"{row.state} ({row.outcome})" if row.outcome else row.state
    when = time.strftime("on %Y-%m-%d %H:%M UTC", time.gmtime(row.ended)) if row.ended else "some time ago"
    return MassgenError(
        "expired", f"run {row.run_id} ended {when}: {how}; massgen has since removed its results. Start a new run"
    )
