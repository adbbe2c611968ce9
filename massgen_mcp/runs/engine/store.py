"""The index of all runs, in rows of a database: what a start, a runner, a look and a pruning ask of it."""

import json
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.record import JOURNAL_VERSION
from massgen_mcp.people import User
from massgen_mcp.request.build import OnConflict
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES, RunStatus
from massgen_mcp.runs.engine import sql
from massgen_mcp.runs.engine.claiming import (
    check_alone,
    check_queue,
    check_quota,
    check_session,
    claim,
    reusable_run,
)
from massgen_mcp.runs.engine.connection import SqlConnection, SqlDatabase
from massgen_mcp.runs.engine.rows import (
    Added,
    AuditEntry,
    Control,
    EndedRow,
    Kept,
    LostRun,
    NewRun,
    RunRow,
    StateFigures,
    Wish,
    WorkRow,
)
from massgen_mcp.statistics.digest import DIGEST_VERSION, Mark, RunDigest, as_kept, digest_of, from_kept
from massgen_mcp.views.outcome import describe_outcome

STAYS = "kept = CASE kept WHEN 'moved' THEN 'all' ELSE kept END"
"""Of a run that has ended before it could be moved."""


class RunStore:
    """The rows of all runs: state, credentials, open controls, and the order of the queue. Each method is one
    transaction.

    A row's state is an index over the run's event log. Every write is durable before the call returns, and safe among
    many processes. Methods may be called from any thread. All raise `MassgenError` disk_full or store_unavailable.

    A user sees no runs but their own; without a user every run is there (`as_user`).
    """

    def __init__(self, database: SqlDatabase, user: User | None = None) -> None:
        self._database = database
        self._user = user

    def as_user(self, user: User | None) -> Self:
        """Return the store as this user sees it; None: with every run."""
        return type(self)(self._database, user)

    @property
    def _owner(self) -> str | None:
        return None if self._user is None else self._user.name

    def _existing(self, db: SqlConnection, run_id: str) -> RunRow:
        return sql.existing(db, run_id, self._user)

    def close(self) -> None:
        self._database.close()

    # -- starting -------------------------------------------------------------------------------------------------

    def add(self, run: NewRun, *, on_conflict: OnConflict = "use_existing", max_queued: int | None = None) -> Added:
        """Queue a run, unless its idempotency key is taken.

        A taken key: `use_existing` gives the run of that key if it is the same request; `cancel_existing` cancels that
        run, whatever it was, and gives the key to the new one. Raises `MassgenError` idempotency_conflict otherwise,
        session_busy while another turn of the session goes on (one that was interrupted in the foreground does not),
        queue_full; `SessionMoved`. A nested run needs no room in the queue.
        """
        with self._database.transaction() as db:
            earlier = (
                sql.one(db, "idempotency_key = ?", run.idempotency_key) if run.idempotency_key is not None else None
            )
            if earlier is not None and on_conflict != "cancel_existing":
                return Added(reusable_run(earlier, run, on_conflict), reused=True)
            if earlier is not None:
                db.execute("UPDATE runs SET idempotency_key = NULL WHERE number = ?", (earlier.number,))
                earlier = self._want(db, earlier, "cancel")
            if run.session_id is not None:
                check_session(db, run, leaving=earlier)
            if run.parent is None:
                check_queue(db, max_queued)
                check_quota(db, self._user, run.usd)
            sql.insert(db, run, state="queued", created=time.time())
            if run.admitted:
                self._hand_out(db, run.run_id)
            row = self._existing(db, run.run_id)
            sql.note(db, row, "start", self._user)
            return Added(row, replaced=earlier)

    def add_foreground(self, run: NewRun, directory: Path) -> None:
        """Note a run that the calling process executes itself, in a directory of its own choice. Raises `MassgenError`
        session_busy; `SessionMoved`.
        """
        with self._database.transaction() as db:
            if run.session_id is not None:
                check_session(db, run, leaving=None)
            now = time.time()
            sql.insert(db, run, state="running", created=now, started=now, directory=str(directory), foreground=1)

    def take_foreground(self, run_id: str, fingerprint: str) -> bool:
        """Let the calling process continue an interrupted run itself; False if somebody was faster. Raises
        `MassgenError` session_busy.
        """
        with self._database.transaction() as db:
            check_alone(db, run_id)
            found = db.execute(
                "UPDATE runs SET state = 'running', foreground = 1, fingerprint = ?, resumes = resumes + 1,"
                " ended = NULL, aged_from = NULL WHERE run_id = ? AND state = 'interrupted' AND kept = 'all'",
                (fingerprint, run_id),
            )
            return found.rowcount == 1

    def reusable(self, run: NewRun, on_conflict: OnConflict) -> Added | None:
        """What `add` would give for a taken key, without adding anything; None if it would add the run.

        Raises `MassgenError` idempotency_conflict.
        """
        if run.idempotency_key is None or on_conflict == "cancel_existing":
            return None
        with self._database.reading() as db:
            earlier = sql.one(db, "idempotency_key = ?", run.idempotency_key)
        return None if earlier is None else Added(reusable_run(earlier, run, on_conflict), reused=True)

    # -- looking --------------------------------------------------------------------------------------------------

    def get(self, run_id: str) -> RunRow:
        """Raises `MassgenError` unknown_run."""
        with self._database.reading() as db:
            return self._existing(db, run_id)

    def recent(
        self,
        *,
        state: RunStatus | None = None,
        session_id: str | None = None,
        since: float | None = None,
        before: int | None = None,
        limit: int,
    ) -> list[RunRow]:
        """Newest first. `since`: started then or later; `before`: the `number` of the last row already seen. The name
        of a session means one of whoever asks.
        """
        owner = self._owner
        with self._database.reading() as db:
            return sql.every(
                db,
                "(?1 IS NULL OR state = ?1) AND (?2 IS NULL OR session_id = ?2) AND (?3 IS NULL OR created >= ?3)"
                " AND (?4 IS NULL OR number < ?4) AND (?6 IS NULL OR owner = ?6) ORDER BY number DESC LIMIT ?5",
                state,
                session_id,
                since,
                before,
                limit,
                "" if owner is None and session_id is not None else owner,
            )

    def unfinished_below(self, directory: Path) -> list[RunRow]:
        """Foreground runs below this directory that have not ended and that this version may execute, newest first."""
        beginning = f"{directory}/"
        condition = (
            "foreground = 1 AND state IN ('running', 'interrupted') AND kept = 'all'"
            f" AND journal_version <= {JOURNAL_VERSION:d} AND substr(directory, 1, ?1) = ?2"
            " AND (?3 IS NULL OR owner = ?3) ORDER BY number DESC"
        )
        with self._database.reading() as db:
            return sql.every(db, condition, len(beginning), beginning, self._owner)

    def ahead(self, row: RunRow) -> int:
        """How many runs that came before this one wait for a runner, too."""
        with self._database.reading() as db:
            others = "1 = 1" if row.held_back_by else "held_back_by IS NULL"
            if row.parent is not None:
                return 0
            before = "turn < (SELECT turn FROM runs WHERE number = ?1) AND (?2 IS NULL OR owner = ?2)"
            waiting = f"{sql.WAITING} AND {sql.NEEDS_A_PLACE} AND {others} AND {before}"
            return sql.count(db, waiting, row.number, self._owner)

    def known(self, run_ids: Collection[str]) -> set[str]:
        """Those of these ids that are runs, expired ones included."""
        with self._database.reading() as db:
            query = (
                "SELECT run_id FROM runs WHERE run_id IN (SELECT value FROM json_each(?1))"
                " AND (?2 IS NULL OR owner = ?2)"
            )
            return {run_id for (run_id,) in db.execute(query, (json.dumps(list(run_ids)), self._owner))}

    def beginning_with(self, prefix: str, limit: int) -> list[str]:
        """Ids of at most `limit` runs that begin so."""
        with self._database.reading() as db:
            query = "SELECT run_id FROM runs WHERE substr(run_id, 1, ?1) = ?2 AND (?4 IS NULL OR owner = ?4) LIMIT ?3"
            return [run_id for (run_id,) in db.execute(query, (len(prefix), prefix, limit, self._owner))]

    # -- what runners do ------------------------------------------------------------------------------------------

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
        # What a power cut takes back is claimed again, and goes on from its journal.
        with self._database.hasty_transaction() as db:
            return claim(db, fingerprint, runner, max_running, absent, among, held_back or {})

    def queue(self, fingerprint: str) -> list[WorkRow]:
        """The runs that a runner with these credentials could take, oldest first."""
        order = f"({sql.NEEDS_A_PLACE}), {sql.TURN}"
        query = f"SELECT {sql.WORK_COLUMNS} FROM runs WHERE {sql.WAITING} AND fingerprint = ? ORDER BY {order}"
        with self._database.reading() as db:
            return [WorkRow(*values) for values in db.execute(query, (fingerprint,))]

    def at_work(self) -> list[tuple[str, RunStatus, str | None]]:
        """Fingerprint, state and runner of everything that waits for a runner or has one, without repetition."""
        with self._database.reading() as db:
            query = f"SELECT DISTINCT fingerprint, state, runner FROM runs WHERE {sql.RUNNING} OR {sql.WAITING}"
            return db.execute(query).fetchall()

    def end(self, run_id: str, end: RunState) -> None:
        """Index how a run ended, so that lists need no journal, and a journal that was cut off later is noticed. Runs
        nested in it that go on are to be cancelled then.
        """
        with self._database.transaction() as db:
            self.note_end(db, run_id, end)

    def note_end(self, db: SqlConnection, run_id: str, end: RunState) -> None:
        """What `end` does, within a transaction."""
        winner = end.winner.agent if end.winner else None
        winner = end.agents[winner].info.id if winner in end.agents else winner
        usd = end.spent.known_usd
        db.execute(
            "UPDATE runs SET state = ?, outcome = ?, winner = ?, events = ?, ended = ?, weak = ?, summary = ?,"
            f" usd = coalesce(?, usd), {STAYS} WHERE run_id = ?",
            (
                end.state,
                end.outcome,
                winner,
                end.seq,
                time.time(),
                " ".join(end.work_done.weak),
                describe_outcome(end),
                usd,
                run_id,
            ),
        )
        db.execute("DELETE FROM controls WHERE run_id = ?", (run_id,))
        self._cancel_nested(db, run_id)
        keep_digests(db, {self._existing(db, run_id).number: digest_of(end)})

    def ended(
        self,
        *,
        since: float | None = None,
        config: str | None = None,
        run_ids: Collection[str] | None = None,
        newest: int | None = None,
    ) -> list[EndedRow]:
        """Runs that have ended and that are not nested in others, oldest first, expired ones included. `since`: started
        then or later; `config`: with a team from there; `run_ids`: these runs alone, nested or not; `newest`: so many
        of them at most, the last ones.
        """
        digest = f"(SELECT digest FROM digests WHERE number = runs.number AND version = {DIGEST_VERSION:d})"
        # From the last row on until there are enough: an index of states would have all ended runs sorted first, with
        # their digests.
        query = (
            f"SELECT {sql.COLUMNS}, {digest} FROM runs WHERE CASE WHEN {sql.among('state', sql.ENDED)} THEN TRUE END"
            " AND CASE WHEN ? IS NULL THEN parent IS NULL ELSE run_id IN (SELECT value FROM json_each(?)) END"
            " AND (? IS NULL OR created >= ?) AND (? IS NULL OR config = ?) AND (? IS NULL OR owner = ?)"
            " ORDER BY number DESC LIMIT ?"
        )
        among, owner = (None if run_ids is None else json.dumps([*run_ids])), self._owner
        chosen = (*sql.ENDED, among, among, since, since, config, config, owner, owner, newest or sys.maxsize)
        marks: dict[int, dict[str, Mark]] = {}
        with self._database.reading() as db:
            rows = db.execute(query, chosen).fetchall()
            for number, agent, verdict, note, at in db.execute("SELECT number, agent, verdict, note, at FROM marks"):
                marks.setdefault(number, {})[agent] = Mark(verdict=verdict, note=note, at=at)
        return [
            EndedRow(
                row := sql.row_of(values),
                kept is not None,
                from_kept(kept) if kept else None,
                marks.get(row.number, {}),
            )
            for *values, kept in reversed(rows)
        ]

    def keep_digests(self, digests: Mapping[int, RunDigest | None]) -> None:
        """What was read of the records of ended runs, by number; None: nothing is left of it. `end` does it, too."""
        with self._database.transaction() as db:
            keep_digests(db, digests)

    def mark(self, run_id: str, agent: str, mark: Mark | None) -> None:
        """What the user says of an agent, by its id, or, with an empty one, of the run's answer; None: nothing more. It
        outlives the run's results, without its note.
        """
        with self._database.transaction() as db:
            row = self._existing(db, run_id)
            sql.note(db, row, "mark", self._user)
            set_mark(db, row.number, agent, mark)

    def admit(self, run_id: str) -> None:
        """Let a nested run begin that was not admitted when it was added."""
        with self._database.transaction() as db:
            db.execute("UPDATE runs SET admitted = 1 WHERE run_id = ?", (run_id,))
            self._hand_out(db, run_id)

    def _hand_out(self, db: SqlConnection, run_id: str) -> None:
        """The run waits from now on for whoever executes runs. Runners look for it by themselves."""

    def interrupt(self, fingerprint: str, *, of_runner: str | None = None) -> list[str]:
        """Mark the running runs of lost runners, or of this one that was lost. Returns their ids."""
        with self._database.transaction() as db:
            of_lost = f"{sql.RUNNING} AND fingerprint = ?2 AND (?3 IS NULL OR runner = ?3)"
            return self._interrupt(db, of_lost, fingerprint, of_runner)

    def lose(self, run_id: str) -> None:
        """Mark a run as interrupted whose foreground process is gone."""
        with self._database.transaction() as db:
            self._interrupt(db, "state = 'running' AND foreground = 1 AND run_id = ?2", run_id)

    def pause(self, run_id: str, runner: str) -> None:
        """Let a run of this runner wait for one again, as if its own had been lost."""
        with self._database.transaction() as db:
            self._interrupt(db, "state = 'running' AND run_id = ?2 AND runner = ?3", run_id, runner)

    def _interrupt(self, db: SqlConnection, condition: str, *values: object) -> list[str]:
        """Mark these runs as interrupted, as `sql.interrupt` does; their executors may write no more."""
        run_ids = sql.interrupt(db, condition, *values)
        for run_id in run_ids:
            self._fence(db, run_id)
        return run_ids

    def _fence(self, db: SqlConnection, run_id: str) -> None:
        """Refuse what a former executor of the run still writes. On one machine its process is gone by then."""

    def set_aside(self, run_id: str) -> None:
        """Let a run that has not ended lie until a version looks that writes newer journals than this one."""
        with self._database.transaction() as db:
            query = (
                "UPDATE runs SET state = 'interrupted', ended = ?, journal_version = ? WHERE run_id = ?"
                f" AND {sql.among('state', sql.BUSY)}"
            )
            db.execute(query, (time.time(), JOURNAL_VERSION + 1, run_id, *sql.BUSY))
            self._fence(db, run_id)

    def controls(self, run_ids: list[str]) -> list[Control]:
        """The open controls of these runs, oldest first. One stays open until it is `done`, or the run ends; `move`, as
        long as the run is moved.
        """
        among = "run_id IN (SELECT value FROM json_each(?1))"
        with self._database.reading() as db:
            rows = db.execute(
                f"SELECT number, run_id, action, message FROM controls WHERE {among} UNION ALL"
                f" SELECT 0, run_id, 'move', '' FROM runs WHERE {among} AND kept = 'moved' ORDER BY number",
                (json.dumps(run_ids),),
            ).fetchall()
        return [Control(*row) for row in rows]

    def done(self, numbers: list[int]) -> None:
        """These controls are part of their runs' journals now."""
        with self._database.transaction() as db:
            among = "SELECT CAST(value AS BIGINT) FROM json_each(?)"
            db.execute(f"DELETE FROM controls WHERE number IN ({among})", (json.dumps(numbers),))

    # -- what people want -----------------------------------------------------------------------------------------

    def want(self, run_id: str, action: Wish, message: str = "") -> RunRow:
        """Ask for something to be done with a run; one that nobody works on is cancelled right here, and what is nested
        in it. Returns the row after that. Raises `MassgenError` invalid_action for one that was moved, as `adopt`.
        """
        with self._database.transaction() as db:
            row = self._existing(db, run_id)
            sql.check_here(row)
            if action == "raise_budget" and row.parent is None:
                check_quota(db, self._user, float(message), raised=row)
                db.execute("UPDATE runs SET usd = ? WHERE number = ?", (float(message), row.number))
            if action != "admit":
                sql.note(db, row, action, self._user)
            return self._want(db, row, action, message)

    def _want(self, db: SqlConnection, row: RunRow, action: Wish, message: str = "") -> RunRow:
        now = time.time()
        if row.state in ("queued", "interrupted") and action == "cancel":
            db.execute(
                "UPDATE runs SET state = 'cancelled', ended = ?, usd = CASE state WHEN 'queued' THEN 0 ELSE usd END,"
                f" {STAYS} WHERE run_id = ?",
                (now, row.run_id),
            )
            self._cancel_nested(db, row.run_id)
        elif row.state in ("queued", "running", "interrupted"):
            db.execute(
                "INSERT INTO controls (run_id, action, message, created) VALUES (?, ?, ?, ?)",
                (row.run_id, action, message, now),
            )
        return self._existing(db, row.run_id)

    def _cancel_nested(self, db: SqlConnection, run_id: str) -> None:
        """Nobody reads any more what the runs nested in this one come to."""
        for row in sql.every(db, f"parent = ? AND {sql.among('state', sql.BUSY)}", run_id, *sql.BUSY):
            self._want(db, row, "cancel")

    def adopt(self, run_id: str, fingerprint: str) -> None:
        """Let runners with these credentials take an interrupted run, whoever started it and with which ones. Raises
        `MassgenError` session_busy.
        """
        with self._database.transaction() as db:
            row = self._existing(db, run_id)
            sql.check_here(row)
            check_alone(db, run_id)
            sql.note(db, row, "resume", self._user)
            db.execute(
                "UPDATE runs SET fingerprint = ?, foreground = 0, held_back_by = NULL"
                " WHERE run_id = ? AND state = 'interrupted'",
                (fingerprint, run_id),
            )
            self._hand_out(db, run_id)

    def accept(self, run_id: str, fingerprint: str) -> None:
        """Give a run that a person accepted the credentials with which it may be executed."""
        with self._database.transaction() as db:
            sql.note(db, self._existing(db, run_id), "accept", self._user)
            db.execute("UPDATE runs SET fingerprint = ? WHERE run_id = ?", (fingerprint, run_id))

    def move_out(self, run_id: str, where: str) -> None:
        """Let a run that has not ended, and what is nested in it, go on in another store, and here no more: whoever
        executes it leaves it. `where`: in words. Raises `MassgenError` invalid_action for one that a process executes
        that is no runner.
        """
        with self._database.transaction() as db:
            going_on = [row for row in family(db, run_id, self._user) if row.state in sql.BUSY]
            for row in going_on:
                if row.foreground and row.state == "running":
                    message = (
                        f"another process (massgen or Python) is executing run {row.run_id}; end that process first"
                    )
                    raise MassgenError("invalid_action", message)
            if not self._existing(db, run_id).moved:
                sql.note(db, self._existing(db, run_id), "export", self._user)
            for row in going_on:
                db.execute(
                    "UPDATE runs SET kept = 'moved', held_back_by = ?,"
                    " state = CASE state WHEN 'queued' THEN 'interrupted' ELSE state END WHERE number = ?",
                    (where, row.number),
                )

    def take_back(self, run_id: str) -> list[RunRow]:
        """Let a run whose export failed, and what is nested in it, go on here, whatever their state. Returns the rows
        that were marked as moved.
        """
        with self._database.transaction() as db:
            marked = [row for row in family(db, run_id, self._user) if row.moved]
            for row in marked:
                db.execute("UPDATE runs SET kept = 'all', held_back_by = NULL WHERE number = ?", (row.number,))
                if row.state == "interrupted" and not row.foreground and row.admitted:
                    self._hand_out(db, row.run_id)
            return marked

    def family(self, run_id: str) -> list[RunRow]:
        """The run, and all that are nested in it, outer ones first."""
        with self._database.reading() as db:
            return family(db, run_id, self._user)

    def note(self, run_id: str, action: str) -> None:
        """Remember for good that whoever asks has done this to a run, if he is a person or the run is a person's.
        What the other methods here do is noted by them.
        """
        with self._database.transaction() as db:
            sql.note(db, self._existing(db, run_id), action, self._user)

    def audit(self, *, person: str | None, run_id: str | None, limit: int) -> list[AuditEntry]:
        """What was done, newest first, by this person and to this run; None: by any, to any."""
        query = (
            "SELECT at, person, action, run_id FROM audit WHERE (?1 IS NULL OR person = ?1)"
            " AND (?2 IS NULL OR run_id = ?2) AND (?4 IS NULL OR person = ?4) ORDER BY number DESC LIMIT ?3"
        )
        with self._database.reading() as db:
            return [AuditEntry(*row) for row in db.execute(query, (person, run_id, limit, self._owner))]

    def figures(self) -> list[StateFigures]:
        """How many runs there are in each state in which there is one."""
        query = (
            "SELECT state, count(*), min(created), coalesce(sum(usd), 0) FROM runs"
            " WHERE parent IS NULL AND kept != 'moved' AND (?1 IS NULL OR owner = ?1) GROUP BY state ORDER BY state"
        )
        with self._database.reading() as db:
            return [StateFigures(*row) for row in db.execute(query, (self._owner,))]

    # -- retention ------------------------------------------------------------------------------------------------

    def start_ageing(self, age: float) -> None:
        """Runs that have ended age from the first time that this is called after their end; `age` is the clock's."""
        with self._database.transaction() as db:
            db.execute(
                f"UPDATE runs SET aged_from = ? WHERE aged_from IS NULL AND {sql.among('state', sql.OVER)}",
                (age, *sql.OVER),
            )

    def old(self, aged_from: float, kept: Collection[Kept], *, interrupted: bool) -> list[RunRow]:
        """Runs that have ended at that age or before and of which so much is kept, oldest first. Runs in directories of
        their own lie in their user's projects: they never become too old.
        """
        states, kept = (sql.OVER if interrupted else sql.ENDED), tuple(kept)
        with self._database.reading() as db:
            condition = (
                f"aged_from <= ? AND {sql.among('state', states)} AND {sql.among('kept', kept)} AND directory IS NULL"
                " ORDER BY number"
            )
            return sql.every(db, condition, aged_from, *states, *kept)

    def keep(self, row: RunRow, kept: Kept) -> bool:
        """Change what is kept of a run. False, and no change, if it goes on again or another process has changed it.

        The idempotency key of an expired run is free again.
        """
        with self._database.transaction() as db:
            found = db.execute(
                "UPDATE runs SET kept = ?, held_back_by = NULL WHERE number = ? AND kept = ?"
                f" AND {sql.among('state', sql.OVER)}",
                (kept, row.number, row.kept, *sql.OVER),
            )
            if kept == "losing_results":
                forget = (
                    "UPDATE runs SET question = '', config = '', summary = '', idempotency_key = NULL"
                    " WHERE number = ? AND kept = ?"
                )
                db.execute(forget, (row.number, kept))
                db.execute("UPDATE marks SET note = '' WHERE number = ?", (row.number,))
            return found.rowcount == 1

    def clock(self) -> tuple[float, float, str, float] | None:
        """The retention clock as it was left: its age, and wall clock, boot and uptime when it had that age."""
        with self._database.reading() as db:
            return db.execute("SELECT age, wall, boot, uptime FROM retention_clock").fetchone()

    def set_clock(self, age: float, wall: float, boot: str, uptime: float) -> None:
        with self._database.transaction() as db:
            db.execute(
                "INSERT INTO retention_clock (id, age, wall, boot, uptime) VALUES (1, ?1, ?2, ?3, ?4)"
                " ON CONFLICT (id) DO UPDATE SET age = ?1, wall = ?2, boot = ?3, uptime = ?4",
                (age, wall, boot, uptime),
            )

    def restore(self, lost: Sequence[LostRun]) -> list[str]:
        """Enter those of these runs that have no row, or were moved, or have expired, in this order. Returns their ids.
        A key that another run has is that run's; of two of these the later one has it. They are kept as if they had
        ended now.
        """
        entered: list[str] = []
        with self._database.transaction() as db:
            for one in lost:
                known = sql.one(db, "run_id = ?", one.run.run_id)
                if known is not None and known.kept not in ("moved", "nothing"):
                    continue
                if (key := one.run.idempotency_key) is not None:
                    holder = sql.one(db, "idempotency_key = ?", key)
                    if holder is not None and holder.run_id in entered:
                        db.execute("UPDATE runs SET idempotency_key = NULL WHERE number = ?", (holder.number,))
                    elif holder is not None and holder != known:
                        one = replace(one, run=replace(one.run, idempotency_key=None))  # noqa: PLW2901
                _enter(db, one, known)
                self._fence(db, one.run.run_id)
                entered.append(one.run.run_id)
            for row in (self._existing(db, run_id) for run_id in entered):
                if row.busy and row.admitted:
                    self._hand_out(db, row.run_id)
            return entered

    def put_away_broken(self) -> Path | None:
        """Move a store away that is damaged; returns where it is then. None, and nothing is done, for one that is
        whole, missing, locked or of a newer version.
        """
        return self._database.put_away_broken()

    # -- for the doctor -------------------------------------------------------------------------------------------
    # These may be asked of a store that is damaged, locked or of another version. They change nothing, and take part in
    # no migration.

    def exists(self) -> bool:
        """Whether there is a store at all."""
        return self._database.exists()

    def described(self) -> str:
        """Which store this program would use, and which version of its schema."""
        return self._database.described()

    def examine(self) -> str | None:
        """What is wrong with the store, and what to do; None if nothing."""
        return self._database.examine()

    def overview(self) -> list[WorkRow]:
        """Every run, as far as it tells who should work on it. None where there is no store."""
        with self._database.looking() as db:
            return [] if db is None else [WorkRow(*row) for row in db.execute(f"SELECT {sql.WORK_COLUMNS} FROM runs")]


# ---------------------------------------------------------------------------------------------------------------------
# Runs are entered again whose rows were lost.


def _enter(db: SqlConnection, lost: LostRun, known: RunRow | None) -> None:
    """`known`: the row that it has already, whose number and place in the order of runs stay."""
    record = lost.record
    over = lost.state in TERMINAL_STATES
    winner = record.winner.agent if over and record.winner else None
    further: dict[str, object] = {
        "state": lost.state,
        "created": lost.created,
        "started": record.started_at,
        "ended": (record.ended_at or time.time()) if lost.state != "queued" else None,
        "outcome": record.outcome if over else None,
        "weak": " ".join(record.work_done.weak) if over else "",
        "summary": describe_outcome(record),
        "winner": record.agents[winner].info.id if winner in record.agents else winner,
        "events": record.seq if record.end else None,
        "foreground": int(lost.alone),
        "journal_version": JOURNAL_VERSION + 1 if lost.newer else 0,
    }
    if known is None:
        sql.insert(db, lost.run, **further)
    else:
        columns = {**sql.columns_of(db, lost.run), **further, "kept": "all"}
        columns |= dict.fromkeys(("runner", "directory", "held_back_by", "aged_from"))
        places = ", ".join(f"{name} = ?" for name in columns)
        db.execute(f"UPDATE runs SET {places} WHERE number = ?", (*columns.values(), known.number))
        db.execute("DELETE FROM controls WHERE run_id = ?", (known.run_id,))
    row = sql.existing(db, lost.run.run_id, None)
    for agent, mark in lost.marks.items():
        set_mark(db, row.number, agent, mark)
    if not over:
        for action, message in lost.controls:
            db.execute(
                "INSERT INTO controls (run_id, action, message, created) VALUES (?, ?, ?, ?)",
                (row.run_id, action, message, time.time()),
            )


def family(db: SqlConnection, run_id: str, user: User | None) -> list[RunRow]:
    """See `RunStore.family`."""
    found = [sql.existing(db, run_id, user)]
    for row in found:
        found += sql.every(db, "parent = ? ORDER BY number", row.run_id)
    return found


# ---------------------------------------------------------------------------------------------------------------------
# What statistics know of ended runs, and what their users said of them afterwards, in SQL.


def keep_digests(db: SqlConnection, digests: Mapping[int, RunDigest | None]) -> None:
    rows = [(number, DIGEST_VERSION, as_kept(digest) if digest else "") for number, digest in digests.items()]
    query = (
        "INSERT INTO digests (number, version, digest) VALUES (?1, ?2, ?3)"
        " ON CONFLICT (number) DO UPDATE SET version = ?2, digest = ?3"
    )
    db.executemany(query, rows)


def set_mark(db: SqlConnection, number: int, agent: str, mark: Mark | None) -> None:
    """None: nothing is said any more."""
    db.execute("DELETE FROM marks WHERE number = ? AND agent = ?", (number, agent))
    if mark is not None:
        values = (number, agent, mark.verdict, mark.note, mark.at)
        db.execute("INSERT INTO marks (number, agent, verdict, note, at) VALUES (?, ?, ?, ?, ?)", values)
