"""The queue of runs: how they come into it, and to whom they are given."""

import json
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.runs.engine import sql
from massgen_mcp.runs.engine.claiming import (
    Claimant,
    check_alone,
    check_queue,
    check_quota,
    check_session,
    claim,
    reusable_run,
)
from massgen_mcp.runs.engine.controls import enter_request
from massgen_mcp.runs.engine.rows import Added, NewRun, RunRow, WorkRow
from massgen_mcp.runs.engine.scope import StorePart

if TYPE_CHECKING:  # what reads runs needs nothing of how one is built
    from massgen_mcp.request.build import OnConflict


class RunQueue(StorePart):
    """Runs that wait for an executor, and the credentials that they wait for."""

    def add(self, run: NewRun, *, on_conflict: "OnConflict" = "use_existing", max_queued: int | None = None) -> Added:
        """Queue a run, unless its idempotency key is taken.

        A taken key: `use_existing` gives the run of that key if it is the same request; `cancel_existing` cancels that
        run, whatever it was, and gives the key to the new one. Raises `MassgenError` idempotency_conflict otherwise,
        session_busy while another turn of the session goes on (one that was interrupted in the foreground does not),
        queue_full; `SessionMoved`. A nested run needs no room in the queue.
        """
        with self._scope.database.transaction() as db:
            earlier = (
                sql.one(db, "idempotency_key = ?", run.idempotency_key) if run.idempotency_key is not None else None
            )
            if earlier is not None and on_conflict != "cancel_existing":
                return Added(reusable_run(earlier, run, on_conflict), reused=True)
            if earlier is not None:
                db.execute("UPDATE runs SET idempotency_key = NULL WHERE number = ?", (earlier.number,))
                earlier = enter_request(db, earlier, "cancel")
            if run.session_id is not None:
                check_session(db, run, leaving=earlier)
            if run.parent is None:
                check_queue(db, max_queued)
                check_quota(db, self._scope.user, run.usd)
            sql.insert(db, run, state="queued", created=time.time())
            if run.admitted:
                self._scope.handover.hand_out(db, run.run_id)
            row = self._scope.get_row(db, run.run_id)
            self._scope.note(db, row, "start")
            return Added(row, replaced=earlier)

    def add_foreground(self, run: NewRun, directory: Path) -> None:
        """Note a run that the calling process executes itself, in a directory of its own choice. Raises `MassgenError`
        session_busy; `SessionMoved`.
        """
        with self._scope.database.transaction() as db:
            if run.session_id is not None:
                check_session(db, run, leaving=None)
            now = time.time()
            sql.insert(db, run, state="running", created=now, started=now, directory=str(directory), foreground=1)

    def take_foreground(self, run_id: str, fingerprint: str) -> bool:
        """Let the calling process continue an interrupted run itself; False if somebody was faster. Raises
        `MassgenError` session_busy.
        """
        with self._scope.database.transaction() as db:
            check_alone(db, run_id)
            found = db.execute(
                "UPDATE runs SET state = 'running', foreground = 1, fingerprint = ?, resumes = resumes + 1,"
                " ended = NULL, aged_from = NULL WHERE run_id = ? AND state = 'interrupted' AND kept = 'all'",
                (fingerprint, run_id),
            )
            return found.rowcount == 1

    def find_reusable(self, run: NewRun, on_conflict: "OnConflict") -> Added | None:
        """Return what `add` would give for a taken key, without adding anything; None if it would add the run.

        Raises `MassgenError` idempotency_conflict.
        """
        if run.idempotency_key is None or on_conflict == "cancel_existing":
            return None
        with self._scope.database.reading() as db:
            earlier = sql.one(db, "idempotency_key = ?", run.idempotency_key)
        return None if earlier is None else Added(reusable_run(earlier, run, on_conflict), reused=True)

    def admit(self, run_id: str) -> None:
        """Let a nested run begin that was not admitted when it was added."""
        with self._scope.database.transaction() as db:
            db.execute("UPDATE runs SET admitted = 1 WHERE run_id = ?", (run_id,))
            self._scope.handover.hand_out(db, run_id)

    def claim(
        self,
        fingerprint: str,
        runner: str,
        *,
        max_running: int,
        absent: Collection[str] = (),
        among: Collection[str] | None = None,
        held_back: Mapping[str, str] | None = None,
    ) -> list[RunRow]:
        """Take the queued or interrupted runs whose turn it is (see `claiming`) and that this runner's credentials
        fit, oldest first. `runner`: its id.

        At most `max_running` runs are running then, of all runners together, besides nested ones, which work in the
        place of the run that they are nested in and are all taken. Nothing is held free for the fingerprints
        in `absent`, which have no runner. `among`: ids of the only runs that may be taken; None: any. `held_back`: by
        id, what else those wait for that their runner leaves in the queue, in words (`RunRow.held_back_by`); no place
        is held free for them either.
        """
        only = None if among is None else json.dumps(list(among))
        # What a power cut takes back is claimed again, and goes on from its journal.
        with self._scope.database.hasty_transaction() as db:
            return claim(db, Claimant(fingerprint, runner, only), max_running, absent, held_back or {})

    def list_waiting(self, fingerprint: str) -> list[WorkRow]:
        """Return the runs that a runner with these credentials could take, oldest first."""
        order = f"({sql.NEEDS_A_PLACE}), {sql.TURN}"
        query = f"SELECT {sql.WORK_COLUMNS} FROM runs WHERE {sql.WAITING} AND fingerprint = ? ORDER BY {order}"
        with self._scope.database.reading() as db:
            return [WorkRow(*values) for values in db.execute(query, (fingerprint,))]

    def list_at_work(self) -> list[tuple[str, RunStatus, str | None]]:
        """Return fingerprint, state and runner of everything that waits for a runner or has one, without repetition."""
        with self._scope.database.reading() as db:
            query = f"SELECT DISTINCT fingerprint, state, runner FROM runs WHERE {sql.RUNNING} OR {sql.WAITING}"
            return db.execute(query).fetchall()

    def adopt(self, run_id: str, fingerprint: str) -> None:
        """Let runners with these credentials take an interrupted run, whoever started it and with which ones. Raises
        `MassgenError` session_busy.
        """
        with self._scope.database.transaction() as db:
            row = self._scope.get_row(db, run_id)
            sql.check_here(row)
            check_alone(db, run_id)
            self._scope.note(db, row, "resume")
            db.execute(
                "UPDATE runs SET fingerprint = ?, foreground = 0, held_back_by = NULL"
                " WHERE run_id = ? AND state = 'interrupted'",
                (fingerprint, run_id),
            )
            self._scope.handover.hand_out(db, run_id)

    def accept(self, run_id: str, fingerprint: str) -> None:
        """Give a run that a person accepted the credentials with which it may be executed."""
        with self._scope.database.transaction() as db:
            self._scope.note(db, self._scope.get_row(db, run_id), "accept")
            db.execute("UPDATE runs SET fingerprint = ? WHERE run_id = ?", (fingerprint, run_id))
