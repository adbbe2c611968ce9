"""Where the store of several machines is put together."""

import time
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Literal

import anyio
import psycopg
from psycopg.conninfo import conninfo_to_dict

from massgen_mcp.errors import MassgenError
from massgen_mcp.home import FILES_VARIABLE, Home
from massgen_mcp.redaction import Redactor
from massgen_mcp.runs.engine import Engine, Expirable, FileStore, FrozenRequest, NewRun, RunFiles, RunRow
from massgen_mcp.runs.engine.journal import JOURNAL
from massgen_mcp.runs.engine.scope import StoreScope
from massgen_mcp.runs.store.kept_files import PULLED
from massgen_mcp.runs.store.postgres.database import PostgresDatabase, translated
from massgen_mcp.runs.store.postgres.event_log import Appender, PostgresLog
from massgen_mcp.runs.store.postgres.news import CHANNEL, NewsListener, Subscription
from massgen_mcp.runs.store.postgres.objects import KINDS, Mirror, RunObjects
from massgen_mcp.runs.store.postgres.schema import upgrade
from massgen_mcp.runs.store.postgres.shares import in_use
from massgen_mcp.runs.store.postgres.store import ClusterStore, JobHandover
from massgen_mcp.workspace.snapshot import remove_tree

SILENT_SECONDS = 15.0
"""After so long without a sign of life nobody is told any more that a worker is alive."""


CLOCK_SECONDS = 5.0
Check = tuple[str, Literal["ok", "warn", "fail"], str, str]
"""What one look found: of what, how it is, in words, and what to do."""
COPY_SECONDS = 24 * 3600.0
"""For so long a copy of a run's files is kept that was fetched to be looked at."""


class FetchedFiles(RunFiles):
    """Files of a run that may be in the object store alone, until somebody reads the request."""

    objects: RunObjects

    @contextmanager
    def request_read(self) -> Generator[dict[str, Any]]:
        if not self.request.exists():
            self.objects.pull(self.path.name, self.path, only=self.request.name)
        with super().request_read() as document:
            yield document


class SharedFiles(FileStore):
    """The files of runs whose events are in PostgreSQL: in an object store, of which the state directory holds copies,
    or in a state directory that servers and workers share.
    """

    def __init__(
        self,
        home: Home,
        events_of: Callable[[str], PostgresLog],
        objects: RunObjects | None,
        alone: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`alone`: held by one process of all machines."""
        super().__init__(home)
        self._events_of, self._alone = events_of, alone
        self.objects = objects

    def directory_at(self, path: Path) -> RunFiles:
        if self.objects is None:
            return super().directory_at(path)
        directory = FetchedFiles(path, self._log_of(path))
        directory.objects = self.objects
        return directory

    def publish(self, run_id: str, *, ended: bool = False) -> None:
        if self.objects is not None:
            Mirror(self.objects, run_id, self._home.runs / run_id, 0, archives=time.time_ns()).keep(last=ended)

    @contextmanager
    def whole(self, row: RunRow) -> Generator[RunFiles]:
        if self.objects is None:
            yield self.of(row)
            return
        own = Path(mkdtemp(prefix="whole.", dir=self._home.path))
        try:
            self.objects.pull(row.run_id, own, KINDS["results"])
            yield RunFiles(own, self._events_of(row.run_id))
        finally:
            remove_tree(own)

    def take_in(self, place: Path, request: FrozenRequest, redactor: Redactor, entry: NewRun, *, ended: bool) -> None:
        """The events are there before the row is, and only one process takes runs in."""
        lines = place / JOURNAL
        with lines.open("rb") as file:
            self._events_of(entry.run_id).fill(file)
        lines.unlink()
        super().take_in(place, request, redactor, entry, ended=ended)
        self.publish(entry.run_id, ended=ended)

    def moving(self) -> AbstractContextManager[None]:
        return self._alone()

    def fetch(self, row: RunRow) -> None:
        place = self.of(row)
        if self.objects is not None and not row.expired and not place.report.exists():
            self.objects.pull(row.run_id, place.path)

    def discard(self, run_id: str) -> None:
        super().discard(run_id)
        if self.objects is not None:
            self.objects.remove(run_id, "results")

    def size(self, row: RunRow, part: Expirable) -> int:
        archives = self.objects.archives(row.run_id, KINDS[part]) if self.objects is not None else ()
        return super().size(row, part) + sum(size for _, size in archives)

    def awaits_apply(self, row: RunRow) -> bool:
        """In the object store no patch goes with the workspaces."""
        return self.objects is None and super().awaits_apply(row)

    def remove_leftovers(self, known: Callable[[Collection[str]], set[str]], *, dry_run: bool) -> list[tuple[str, int]]:
        """Copies that were not used lately go, too, if all of it is elsewhere."""
        removed = super().remove_leftovers(known, dry_run=dry_run)
        for marker in self._home.runs.glob(f"*/{PULLED}") if self.objects is not None and not dry_run else ():
            applied = marker.with_name("changes") / "applied.json"  # what undoes it is here alone
            if marker.stat().st_mtime < time.time() - COPY_SECONDS and not applied.exists():
                remove_tree(marker.parent)
        return removed

    def _log_of(self, directory: Path) -> PostgresLog:
        return self._events_of(directory.name)

    def taken(self, row: RunRow, epoch: int, own: Path) -> tuple[RunFiles, Mirror | None]:
        """For the worker that has taken the run; `own`: where no other process has files of runs."""
        if self.objects is None:
            path = self.of(row).path
            return RunFiles(path, self._log_of(path).taken(epoch)), None
        path = own / str(epoch) / row.run_id
        mirror = Mirror(self.objects, row.run_id, path, epoch)
        mirror.fetch()
        return RunFiles(path, self._log_of(path).taken(epoch, mirror.keep)), mirror

    def remove(self, row: RunRow, part: Expirable) -> None:
        super().remove(row, part)
        if self.objects is not None:
            self.objects.remove(row.run_id, part)
        if part == "results":
            self._events_of(row.run_id).forget()


class WorkerNews:
    """See `engine.NewsHost`, for a worker. `executes`: whether it does, by run id. Made in its event loop."""

    def __init__(self, listener: NewsListener, appender: Appender, executes: Callable[[str], bool]) -> None:
        self._listener, self._appender = listener, appender
        self._subscription = Subscription(lambda run_id, mark: mark == "!" and executes(run_id))

    async def serve(self) -> None:
        with self._listener.subscribed(self._subscription):
            await anyio.sleep_forever()

    def tell(self, run_id: str, *, milestone: bool = True) -> None:
        self._appender.tell(run_id, milestone=milestone)

    async def woken(self) -> None:
        await self._subscription.changed()


class ClusterLiveness:
    """See `engine.Liveness`. Workers look for work themselves, and for what others have lost."""

    def __init__(self, database: PostgresDatabase, store: ClusterStore, listener: NewsListener) -> None:
        self._database, self._store, self._listener = database, store, listener

    def runner_alive(self, fingerprint: str) -> bool:
        return fingerprint in self._store.workers.count_by_pool(SILENT_SECONDS)

    def wake(self, fingerprint: str) -> bool:  # noqa: ARG002 - as of all stores
        """Its job has woken a worker of the pool."""
        return True

    def ensure_runner(self, fingerprint: str, environ: Mapping[str, str]) -> None:
        """Workers are started by whoever operates them."""

    def foreground_alive(self, run: RunFiles) -> bool:  # noqa: ARG002 - as of all stores
        """There are no such runs."""
        return False

    @contextmanager
    def following(self, row: RunRow, run: RunFiles, *, milestones: bool = False) -> Generator[Subscription]:  # noqa: ARG002 - as of all stores
        marks = "+!" if milestones else "-+!"
        subscription = Subscription(lambda run_id, mark: run_id == row.run_id and mark in marks)
        with self._listener.subscribed(subscription):
            yield subscription

    def announce(self, row: RunRow, run: RunFiles) -> None:  # noqa: ARG002 - as of all stores
        with self._database.reading() as db:
            db.execute("SELECT pg_notify(?, ?)", (CHANNEL, f"{row.run_id}!"))


@dataclass(frozen=True, slots=True)
class ClusterEngine(Engine):
    """The parts of `Engine` that a worker knows as what they are here."""

    store: ClusterStore
    files: SharedFiles
    url: str = field(kw_only=True)
    database: PostgresDatabase = field(kw_only=True)
    appender: Appender = field(kw_only=True)
    listener: NewsListener = field(kw_only=True)

    def upgrade(self) -> list[str]:
        """See `schema.upgrade`. Raises `MassgenError`."""
        with translated():
            return upgrade(self.url)

    def limits_in_use(self) -> list[tuple[str, str, int, int, int]]:
        with self.database.reading() as db:
            return in_use(db)

    def checks(self) -> list[Check]:
        """What a person should know of the store, its workers and its files. Never raises."""
        where, version = conninfo_to_dict(self.url).get("host", "this machine"), self.database.described()
        if (problem := self.database.examine()) is not None:
            message, _, advice = problem.partition("; ")
            return [("shared store", "fail", message, advice or "see PostgreSQL's log")]
        alive, ahead = self.store.workers.count_by_pool(SILENT_SECONDS), self.store.workers.measure_clock()
        pools = ", ".join(f"{count} of {pool}" for pool, count in sorted(alive.items()))
        found: list[Check] = [("shared store", "ok", f"{version}, at {where}", "")]
        if self.pool in alive:
            found.append(("workers", "ok", f"alive: {pools}", ""))
        else:
            advice = "start a worker for this pool, with its runs' keys set: massgen worker"
            found.append(("workers", "warn", f"no worker serves {self.pool} (alive: {pools or 'none'})", advice))
        if abs(ahead) > CLOCK_SECONDS:
            message = f"this machine's clock differs from PostgreSQL's by {ahead:+.0f} s"
            found.append(
                ("clock", "warn", message, "synchronize the clocks: massgen shows wrong times (runs aren't affected)")
            )
        else:
            found.append(("clock", "ok", "the same as PostgreSQL's", ""))
        for address, name, held, most, workers in self.limits_in_use():
            found.append(("shared limits", "ok", f"{address}: {name} {held} of {most}, held by {workers} workers", ""))
        return [*found, self._check_files()]

    def _check_files(self) -> Check:
        if self.files.objects is None:
            message = f"the runs' files are in {self.home.path}, which all machines must mount"
            return ("shared files", "ok", message, "")
        try:
            self.files.objects.probe()
        except MassgenError as error:
            return ("shared files", "fail", str(error), f"check {FILES_VARIABLE} and the keys for this address")
        return ("shared files", "ok", f"{self.files.objects.url} can be written", "")

    def close(self) -> None:
        self.listener.close()
        self.appender.close()
        self.database.close()


def cluster_engine(home: Home, url: str, pool: str, files_url: str | None = None) -> ClusterEngine:
    """Makes and opens nothing yet. `pool`: of the workers for which runs are that are started here; `files_url`: where
    files are kept; None: in a state directory that all of them share. Raises `MassgenError` invalid_arguments.
    """
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise MassgenError("invalid_arguments", f"cannot read the address of the run store: {error}") from error
    database, listener = PostgresDatabase(url), NewsListener(url)
    store = ClusterStore(StoreScope(database, JobHandover()))
    appender = Appender(url, store.leases.note_end)
    objects = RunObjects(files_url) if files_url else None
    files = SharedFiles(home, lambda run_id: PostgresLog(database, appender, run_id), objects, database.alone)
    liveness = ClusterLiveness(database, store, listener)
    return ClusterEngine(
        home, store, files, liveness, pool, url=url, database=database, appender=appender, listener=listener
    )
