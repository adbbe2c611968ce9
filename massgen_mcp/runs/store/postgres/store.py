"""The rows of runs in PostgreSQL, and beside them the jobs by which procrastinate hands runs to workers.

A run waits, or goes on, only together with a job: what makes it wait defers the job in the same transaction.
"""

import json
import time
from collections.abc import Collection

from massgen_mcp.events.record import JOURNAL_VERSION
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import RunRow, sql
from massgen_mcp.runs.engine.connection import SqlConnection
from massgen_mcp.runs.engine.leases import RunLeases
from massgen_mcp.runs.engine.scope import Handover, StorePart, StoreScope
from massgen_mcp.runs.engine.store import RunStore

TASK = "run"
NESTED = ".nested"
"""The end of the queue of a pool's nested runs, which need no place."""
LOOKING, LOOKING_SECONDS = 2, 2.0
"""So many workers look for what was lost: the second one in case that the first is lost, too. After so long without a
sign of life another one does: before runs of that one are lost.
"""
WORKABLE = f"kept = 'all' AND foreground = 0 AND admitted = 1 AND journal_version <= {JOURNAL_VERSION:d}"
LIVE_JOB = "EXISTS (SELECT 1 FROM procrastinate_jobs WHERE lock = run_id AND status IN ('todo', 'doing'))"


class JobHandover(Handover):
    """Hands a run out as a job of procrastinate, and fences by the number of times that it was taken."""

    def hand_out(self, db: SqlConnection, run_id: str) -> None:
        row = sql.existing(db, run_id, None)
        outer = row.parent and sql.one(db, "run_id = ?", row.parent)
        queue = f"{outer.fingerprint}{NESTED}" if outer else row.fingerprint
        job = "ROW(?1, ?2, (SELECT -turn FROM runs WHERE run_id = ?3), ?3, NULL, CAST(?4 AS jsonb), NULL)"
        db.execute(
            f"SELECT procrastinate_defer_jobs_v1(ARRAY[{job}]::procrastinate_job_to_defer_v1[])",
            (queue, TASK, run_id, json.dumps({"run_id": run_id})),
        )

    def fence(self, db: SqlConnection, run_id: str) -> None:
        db.execute("UPDATE runs SET epoch = epoch + 1 WHERE run_id = ?", (run_id,))


class RunJobs:
    """Runs that workers have taken, and jobs that were lost."""

    def __init__(self, scope: StoreScope, leases: RunLeases) -> None:
        self._scope, self._leases = scope, leases

    def take(self, run_id: str, worker: str) -> tuple[RunRow, int] | None:
        """Let this worker execute a run, and nobody who has taken it before; with the number by which its events are
        known to be its own. None if there is nothing to do for it. What a crash takes back of it, it takes back of its
        events, too.
        """
        with self._scope.database.hasty_transaction() as db:
            taken = db.execute(
                "UPDATE runs SET resumes = resumes + CASE WHEN state = 'queued' THEN 0 ELSE 1 END, state = 'running',"
                " runner = ?, started = ?, ended = NULL, aged_from = NULL, held_back_by = NULL, epoch = epoch + 1"
                f" WHERE run_id = ? AND {sql.among('state', sql.BUSY)} AND {WORKABLE} RETURNING epoch, {sql.COLUMNS}",
                (worker, time.time(), run_id, *sql.BUSY),
            ).fetchone()
            return None if taken is None else (sql.row_of(taken[1:]), int(taken[0]))

    def hand_over(self, run_id: str, epoch: int) -> None:
        """Let the next worker go on with a run that one has taken."""
        with self._scope.database.transaction() as db:
            if self._leases.interrupt_where(db, "state = 'running' AND run_id = ?2 AND epoch = ?3", run_id, epoch):
                self._scope.handover.hand_out(db, run_id)

    def end_taken(self, run_id: str, epoch: int, end: RunState) -> None:
        """Note how a run has ended, for whoever has taken it, if that was not noted with its last event."""
        with self._scope.database.transaction() as db:
            if sql.one(db, "state = 'running' AND run_id = ? AND epoch = ?", run_id, epoch):
                self._leases.note_end(db, run_id, end)

    def replace_jobs(self, jobs: Collection[int]) -> list[str]:
        """Jobs are lost that were begun: other workers look after their runs, whether they go on or have ended. All at
        once, as a worker that gets the first of them has little time left for the others. Returns the runs' ids.
        """
        lost = "id IN (SELECT CAST(value AS bigint) FROM json_each(?)) AND status = 'doing'"
        with self._scope.database.transaction() as db:
            deleted = db.execute(f"DELETE FROM procrastinate_jobs WHERE {lost} RETURNING lock", (json.dumps([*jobs]),))
            run_ids = [run_id for (run_id,) in deleted]
            for run_id in run_ids:
                self._leases.interrupt_where(db, "state = 'running' AND run_id = ?2", run_id)
                self._scope.handover.hand_out(db, run_id)
            return run_ids

    def hand_out_lost(self) -> list[str]:
        """Let workers go on with the runs that wait or go on without a job. Returns their ids."""
        jobless = f"{sql.among('state', sql.BUSY)} AND {WORKABLE} AND NOT {LIVE_JOB}"
        with self._scope.database.reading() as db:
            if not sql.count(db, jobless, *sql.BUSY):
                return []
        with self._scope.database.transaction() as db:
            lost = [row.run_id for row in sql.every(db, jobless, *sql.BUSY)]
            for run_id in lost:
                self._leases.interrupt_where(db, "state = 'running' AND run_id = ?2", run_id)
                self._scope.handover.hand_out(db, run_id)
            return lost


class WorkerRegistry(StorePart):
    """The workers that are alive, and the pools that they serve."""

    def register(self, worker: str, pools: Collection[str]) -> bool:
        """This worker is alive, and serves these pools. Whether it is to look for what others have lost."""
        before = "SELECT count(DISTINCT name) FROM workers WHERE name < ? AND seen > now() - make_interval(secs => ?)"
        with self._scope.database.reading() as db:
            db.executemany(
                "INSERT INTO workers (name, pool) VALUES (?, ?) ON CONFLICT (name, pool) DO UPDATE SET seen = now()",
                [(worker, pool) for pool in pools],
            )
            (others,) = db.execute(before, (worker, LOOKING_SECONDS)).fetchone() or (0,)
            return others < LOOKING

    def unregister(self, worker: str) -> None:
        """It leaves, and so have those that have not been seen for a day."""
        with self._scope.database.reading() as db:
            db.execute("DELETE FROM workers WHERE name = ? OR seen < now() - interval '1 day'", (worker,))

    def count_by_pool(self, seconds: float) -> dict[str, int]:
        """Count the workers of each pool that were seen in the last `seconds`."""
        query = "SELECT pool, count(*) FROM workers WHERE seen > now() - make_interval(secs => ?) GROUP BY pool"
        with self._scope.database.reading() as db:
            return dict(db.execute(query, (seconds,)).fetchall())

    def measure_clock(self) -> float:
        """By how many seconds this machine's clock is ahead of PostgreSQL's, at least."""
        with self._scope.database.reading() as db:
            before = time.time()
            (theirs,) = db.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8)").fetchone() or (0,)
            after = time.time()
        return max(0.0, before - theirs) or min(0.0, after - theirs)


class ClusterStore(RunStore):
    """The rows of runs in PostgreSQL. A run's `fingerprint` is the pool of workers that it is for."""

    def __init__(self, scope: StoreScope) -> None:
        super().__init__(scope)
        self.jobs = RunJobs(scope, self.leases)
        self.workers = WorkerRegistry(scope)
