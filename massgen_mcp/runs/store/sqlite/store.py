"""The run store of one machine: one SQLite file per user.

Each method is one transaction.
"""

import json
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.record import JOURNAL_VERSION
from massgen_mcp.request.run_request import OnConflict
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import RunStatus
from massgen_mcp.runs.engine import Added, Control, EndedRow, Kept, LostRun, NewRun, RunRow, Wish, WorkRow
from massgen_mcp.runs.store.sqlite import sql
from massgen_mcp.runs.store.sqlite.claiming import check_alone, check_queue, check_session, claim, reusable_run
from massgen_mcp.runs.store.sqlite.database import SCHEMA_VERSION, Database, examine, put_away_broken
from massgen_mcp.runs.store.sqlite.digests import ended_rows, forget_notes, keep_digests, set_mark
from massgen_mcp.runs.store.sqlite.restoring import restore
from massgen_mcp.statistics.digest import Mark, RunDigest, digest_of
from massgen_mcp.views.firmness import firmness


class Store:
    """See `engine.RunStore`. The file is opened, and made, when it is first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = Database(path)

    def close(self) -> None:
        self._database.close()

    # -- starting -------------------------------------------------------------------------------------------------

    def add(self, run: NewRun, *, on_conflict: OnConflict = "use_existing", max_queued: int | None = None) -> Added:
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
            sql.insert(db, run, state="queued", created=time.time())
            return Added(sql.existing(db, run.run_id), replaced=earlier)

    def add_foreground(self, run: NewRun, directory: Path) -> None:
        with self._database.transaction() as db:
            if run.session_id is not None:
                check_session(db, run, leaving=None)
            now = time.time()
            sql.insert(db, run, state="running", created=now, started=now, directory=str(directory), foreground=1)

    def take_foreground(self, run_id: str, fingerprint: str) -> bool:
        with self._database.transaction() as db:
            check_alone(db, run_id)
            found = db.execute(
                "UPDATE runs SET state = 'running', foreground = 1, fingerprint = ?, resumes = resumes + 1,"
                " ended = NULL, aged_from = NULL WHERE run_id = ? AND state = 'interrupted' AND kept = 'all'",
                (fingerprint, run_id),
            )
            return found.rowcount == 1

    def reusable(self, run: NewRun, on_conflict: OnConflict) -> Added | None:
        if run.idempotency_key is None or on_conflict == "cancel_existing":
            return None
        with self._database.reading() as db:
            earlier = sql.one(db, "idempotency_key = ?", run.idempotency_key)
        return None if earlier is None else Added(reusable_run(earlier, run, on_conflict), reused=True)

    # -- looking --------------------------------------------------------------------------------------------------

    def get(self, run_id: str) -> RunRow:
        with self._database.reading() as db:
            return sql.existing(db, run_id)

    def recent(
        self,
        *,
        state: RunStatus | None = None,
        session_id: str | None = None,
        since: float | None = None,
        before: int | None = None,
        limit: int,
    ) -> list[RunRow]:
        with self._database.reading() as db:
            return sql.every(
                db,
                "(?1 IS NULL OR state = ?1) AND (?2 IS NULL OR session_id = ?2) AND (?3 IS NULL OR created >= ?3)"
                " AND (?4 IS NULL OR number < ?4) ORDER BY number DESC LIMIT ?5",
                state,
                session_id,
                since,
                before,
                limit,
            )

    def unfinished_below(self, directory: Path) -> list[RunRow]:
        beginning = f"{directory}/"
        condition = (
            "foreground = 1 AND state IN ('running', 'interrupted') AND kept = 'all'"
            f" AND journal_version <= {JOURNAL_VERSION:d} AND substr(directory, 1, ?) = ? ORDER BY number DESC"
        )
        with self._database.reading() as db:
            return sql.every(db, condition, len(beginning), beginning)

    def ahead(self, row: RunRow) -> int:
        with self._database.reading() as db:
            others = "1" if row.held_back_by else "held_back_by IS NULL"
            if row.parent is not None:
                return 0
            return sql.count(db, f"{sql.WAITING} AND {sql.NEEDS_A_PLACE} AND {others} AND number < ?", row.number)

    def known(self, run_ids: Collection[str]) -> set[str]:
        with self._database.reading() as db:
            query = "SELECT run_id FROM runs WHERE run_id IN (SELECT value FROM json_each(?))"
            return {run_id for (run_id,) in db.execute(query, (json.dumps(list(run_ids)),))}

    def beginning_with(self, prefix: str, limit: int) -> list[str]:
        with self._database.reading() as db:
            query = "SELECT run_id FROM runs WHERE substr(run_id, 1, ?) = ? LIMIT ?"
            return [run_id for (run_id,) in db.execute(query, (len(prefix), prefix, limit))]

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
        # What a power cut takes back is claimed again, and goes on from its journal.
        with self._database.hasty_transaction() as db:
            return claim(db, fingerprint, runner, max_running, absent, among, held_back or {})

    def queue(self, fingerprint: str) -> list[WorkRow]:
        order = f"({sql.NEEDS_A_PLACE}), number"
        query = f"SELECT {sql.WORK_COLUMNS} FROM runs WHERE {sql.WAITING} AND fingerprint = ? ORDER BY {order}"
        with self._database.reading() as db:
            return [WorkRow(*values) for values in db.execute(query, (fingerprint,))]

    def at_work(self) -> list[tuple[str, RunStatus, str | None]]:
        with self._database.reading() as db:
            query = f"SELECT DISTINCT fingerprint, state, runner FROM runs WHERE {sql.RUNNING} OR {sql.WAITING}"
            return db.execute(query).fetchall()

    def end(self, run_id: str, end: RunState) -> None:
        winner = end.winner.agent if end.winner else None
        winner = end.agents[winner].info.id if winner in end.agents else winner
        with self._database.transaction() as db:
            db.execute(
                "UPDATE runs SET state = ?, outcome = ?, winner = ?, events = ?, ended = ?, weak = ? WHERE run_id = ?",
                (end.state, end.outcome, winner, end.seq, time.time(), " ".join(firmness(end).weak), run_id),
            )
            db.execute("DELETE FROM controls WHERE run_id = ?", (run_id,))
            self._cancel_nested(db, run_id)
            keep_digests(db, {sql.existing(db, run_id).number: digest_of(end)})

    def ended(
        self, *, since: float | None = None, config: str | None = None, run_ids: Collection[str] | None = None
    ) -> list[EndedRow]:
        with self._database.reading() as db:
            return ended_rows(db, since, config, run_ids)

    def keep_digests(self, digests: Mapping[int, RunDigest | None]) -> None:
        with self._database.transaction() as db:
            keep_digests(db, digests)

    def mark(self, run_id: str, agent: str, mark: Mark | None) -> None:
        with self._database.transaction() as db:
            set_mark(db, sql.existing(db, run_id).number, agent, mark)

    def admit(self, run_id: str) -> None:
        with self._database.transaction() as db:
            db.execute("UPDATE runs SET admitted = 1 WHERE run_id = ?", (run_id,))

    def interrupt(self, fingerprint: str, *, of_runner: str | None = None) -> list[str]:
        with self._database.transaction() as db:
            return sql.interrupt(
                db, f"{sql.RUNNING} AND fingerprint = ?2 AND (?3 IS NULL OR runner = ?3)", fingerprint, of_runner
            )

    def lose(self, run_id: str) -> None:
        with self._database.transaction() as db:
            sql.interrupt(db, "state = 'running' AND foreground = 1 AND run_id = ?2", run_id)

    def pause(self, run_id: str, runner: str) -> None:
        with self._database.transaction() as db:
            sql.interrupt(db, "state = 'running' AND run_id = ?2 AND runner = ?3", run_id, runner)

    def set_aside(self, run_id: str) -> None:
        with self._database.transaction() as db:
            query = (
                "UPDATE runs SET state = 'interrupted', ended = ?, journal_version = ? WHERE run_id = ?"
                f" AND {sql.among('state', sql.BUSY)}"
            )
            db.execute(query, (time.time(), JOURNAL_VERSION + 1, run_id, *sql.BUSY))

    def controls(self, run_ids: list[str]) -> list[Control]:
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT number, run_id, action, message FROM controls"
                " WHERE run_id IN (SELECT value FROM json_each(?)) ORDER BY number",
                (json.dumps(run_ids),),
            ).fetchall()
        return [Control(*row) for row in rows]

    def done(self, numbers: list[int]) -> None:
        with self._database.transaction() as db:
            db.execute("DELETE FROM controls WHERE number IN (SELECT value FROM json_each(?))", (json.dumps(numbers),))

    # -- what people want -----------------------------------------------------------------------------------------

    def want(self, run_id: str, action: Wish, message: str = "") -> RunRow:
        with self._database.transaction() as db:
            return self._want(db, sql.existing(db, run_id), action, message)

    def _want(self, db: sqlite3.Connection, row: RunRow, action: Wish, message: str = "") -> RunRow:
        now = time.time()
        if row.state in ("queued", "interrupted") and action == "cancel":
            db.execute("UPDATE runs SET state = 'cancelled', ended = ? WHERE run_id = ?", (now, row.run_id))
            self._cancel_nested(db, row.run_id)
        elif row.state in ("queued", "running", "interrupted"):
            db.execute(
                "INSERT INTO controls (run_id, action, message, created) VALUES (?, ?, ?, ?)",
                (row.run_id, action, message, now),
            )
        return sql.existing(db, row.run_id)

    def _cancel_nested(self, db: sqlite3.Connection, run_id: str) -> None:
        """Nobody reads any more what the runs nested in this one come to."""
        for row in sql.every(db, f"parent = ? AND {sql.among('state', sql.BUSY)}", run_id, *sql.BUSY):
            self._want(db, row, "cancel")

    def adopt(self, run_id: str, fingerprint: str) -> None:
        with self._database.transaction() as db:
            check_alone(db, run_id)
            db.execute(
                "UPDATE runs SET fingerprint = ?, foreground = 0, held_back_by = NULL"
                " WHERE run_id = ? AND state = 'interrupted'",
                (fingerprint, run_id),
            )

    # -- retention ------------------------------------------------------------------------------------------------

    def start_ageing(self, age: float) -> None:
        with self._database.transaction() as db:
            db.execute(
                f"UPDATE runs SET aged_from = ? WHERE aged_from IS NULL AND {sql.among('state', sql.OVER)}",
                (age, *sql.OVER),
            )

    def old(self, aged_from: float, kept: Collection[Kept], *, interrupted: bool) -> list[RunRow]:
        states, kept = (sql.OVER if interrupted else sql.ENDED), tuple(kept)
        with self._database.reading() as db:
            condition = (
                f"aged_from <= ? AND {sql.among('state', states)} AND {sql.among('kept', kept)} AND directory IS NULL"
                " ORDER BY number"
            )
            return sql.every(db, condition, aged_from, *states, *kept)

    def keep(self, row: RunRow, kept: Kept) -> bool:
        with self._database.transaction() as db:
            found = db.execute(
                f"UPDATE runs SET kept = ? WHERE number = ? AND kept = ? AND {sql.among('state', sql.OVER)}",
                (kept, row.number, row.kept, *sql.OVER),
            )
            if kept == "losing_results":
                forget = (
                    "UPDATE runs SET question = '', config = '', idempotency_key = NULL WHERE number = ? AND kept = ?"
                )
                db.execute(forget, (row.number, kept))
                forget_notes(db, row.number)
            return found.rowcount == 1

    def clock(self) -> tuple[float, float, str, float] | None:
        with self._database.reading() as db:
            return db.execute("SELECT age, wall, boot, uptime FROM retention_clock").fetchone()

    def set_clock(self, age: float, wall: float, boot: str, uptime: float) -> None:
        with self._database.transaction() as db:
            db.execute("INSERT OR REPLACE INTO retention_clock VALUES (1, ?, ?, ?, ?)", (age, wall, boot, uptime))

    def restore(self, lost: Sequence[LostRun]) -> list[str]:
        with self._database.transaction() as db:
            return restore(db, lost)

    def put_away_broken(self) -> Path | None:
        self._database.close()
        return put_away_broken(self._path)

    # -- for the doctor -------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        return self._path.exists()

    def described(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}, store schema {SCHEMA_VERSION}"

    def examine(self) -> str | None:
        return examine(self._path)

    def overview(self) -> list[WorkRow]:
        if not self.exists():
            return []
        query = f"SELECT {sql.WORK_COLUMNS} FROM runs"
        try:
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True, timeout=10)) as db:
                if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
                    return []  # emptied, and not opened since
                return [WorkRow(*values) for values in db.execute(query)]
        except sqlite3.Error as error:
            raise MassgenError("store_unavailable", str(error)) from error
