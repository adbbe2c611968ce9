"""Events in PostgreSQL. All runs of a process share one writer, and what they settle at once is one commit.

Only who has taken a run last may write: each statement that adds events compares the run's epoch itself.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

import anyio.to_thread
import psycopg

from massgen_mcp.errors import MassgenError
from massgen_mcp.redaction import NO_KEYS, Redactor
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine.connection import SqlConnection
from massgen_mcp.runs.engine.event_log import EventLog, EventReader, EventWriter, TakenOver, seq_of_text
from massgen_mcp.runs.store.postgres.database import (
    LazyConnection,
    PostgresConnection,
    PostgresDatabase,
    TranslatingConnection,
    is_away,
    lock_store,
    pause_before_retry,
    translation,
)
from massgen_mcp.runs.store.postgres.news import notify

READ_AT_ONCE = 1000
NoteEnd = Callable[[SqlConnection, str, RunState], None]


@dataclass(frozen=True, slots=True)
class Addition:
    """Lines that are to be durable. `epoch`: None where no worker has taken the run; `end`: how the run ends with them;
    `done` is called with what went wrong, from another thread.
    """

    run_id: str
    epoch: int | None
    first: int
    lines: Sequence[bytes]
    end: RunState | None
    done: Callable[[MassgenError | None], None]


_ADD = b"""
WITH fence AS MATERIALIZED (
    SELECT run_id, epoch FROM runs WHERE run_id = ANY(%(runs)s) ORDER BY run_id FOR SHARE
)
INSERT INTO events (run, seq, body)
SELECT run, seq, body
  FROM unnest(%(runs)s::text[], %(epochs)s::int[], %(seqs)s::int[], %(bodies)s::text[]) AS added (run, epoch, seq, body)
 WHERE epoch IS NULL OR EXISTS (SELECT 1 FROM fence WHERE fence.run_id = added.run AND fence.epoch = added.epoch)
    ON CONFLICT (run, seq) DO UPDATE SET body = excluded.body WHERE events.body = excluded.body
RETURNING run
"""
"""What was added before, by a commit whose reply was lost, is there and counts as added."""


class Appender:
    """A thread that commits what the runs of this process settle, together, and tells followers of news, once for each
    commit. While PostgreSQL is away it tries again; runs wait and do not notice.
    """

    def __init__(self, url: str, note_end: NoteEnd) -> None:
        self._line = LazyConnection(url)
        self._note_end = note_end
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._additions: list[Addition] = []
        self._news: dict[str, bool] = {}
        self._closed = False

    def add(self, addition: Addition) -> None:
        with self._changed:
            self._additions.append(addition)
            self._wake()

    def tell(self, run_id: str, *, milestone: bool) -> None:
        """As `NewsHost.tell`; after what was added before."""
        with self._changed:
            self._news[run_id] = milestone or self._news.get(run_id, False)
            self._wake()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="events", daemon=True)
            self._thread.start()
        self._changed.notify()

    def close(self) -> None:
        """When what was told is written, or PostgreSQL is away."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self._line.close()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._additions or self._news or self._closed)
                additions, self._additions = self._additions, []
                news, self._news = self._news, {}
            if not additions and not news:
                return
            self._commit(additions, news)

    def _commit(self, additions: Sequence[Addition], news: dict[str, bool]) -> None:
        while True:
            try:
                connection = self._line.ready(patience=0.0)
                with connection.transaction():
                    added = self._add_all(connection, additions)
                    notify(connection, [f"{run_id}{'+' if milestone else '-'}" for run_id, milestone in news.items()])
                break
            except psycopg.Error as error:
                if is_away(error) and not self._closed:
                    pause_before_retry()
                    continue
                fault = translation(error)
            except MassgenError as error:
                fault = error
            if len(additions) > 1:  # one that cannot be written is nobody else's fault
                for addition in additions:
                    self._commit([addition], {})
            else:
                for addition in additions:
                    addition.done(fault)
            return
        for addition in additions:
            addition.done(None if addition.run_id in added else TakenOver(addition.run_id))

    def _add_all(self, connection: PostgresConnection, additions: Sequence[Addition]) -> set[str]:
        """Returns the runs whose events are there."""
        if not additions:
            return set()
        if any(addition.end for addition in additions):
            lock_store(connection)  # before rows of runs are locked, as everybody does
        lines = [
            (one.run_id, one.epoch, one.first + place, line)
            for one in additions
            for place, line in enumerate(one.lines)
        ]
        runs, epochs, seqs, bodies = (list(column) for column in zip(*lines, strict=True))
        values = {"runs": runs, "epochs": epochs, "seqs": seqs, "bodies": [body[:-1].decode() for body in bodies]}
        missing = Counter(runs)
        missing.subtract(run_id for (run_id,) in connection.execute(_ADD, values))
        added = {run_id for run_id, count in missing.items() if not count}
        for addition in additions:
            if addition.end is not None and addition.epoch is not None and addition.run_id in added:
                self._note_end(TranslatingConnection(connection), addition.run_id, addition.end)
        return added


class PostgresWriter(EventWriter):
    """See `EventWriter`. Used in one event loop."""

    def __init__(self, log: "PostgresLog", epoch: int | None, redactor: Redactor, recorded: int) -> None:
        super().__init__(redactor, recorded)
        self._log, self._epoch = log, epoch
        self._state: RunState | None = None

    def ends_with(self, state: RunState) -> None:
        self._state = state

    async def _write(self, lines: Sequence[bytes]) -> None:
        if self._log.before is not None and not all(seq_of_text(line[:-1]) for line in lines):
            await anyio.to_thread.run_sync(self._log.before)
        loop = asyncio.get_running_loop()
        written: asyncio.Future[MassgenError | None] = loop.create_future()

        def done(fault: MassgenError | None) -> None:
            with suppress(RuntimeError):  # nobody waits any more
                loop.call_soon_threadsafe(lambda: written.done() or written.set_result(fault))

        state = self._state
        with_last = state is not None and self._settled + len(lines) >= state.seq  # of those that are recorded by now
        ended = state if with_last and state and state.end else None
        self._log.appender.add(Addition(self._log.run_id, self._epoch, self._settled + 1, lines, ended, done))
        if (fault := await written) is not None:
            raise fault


class PostgresReader(EventReader):
    """See `EventReader`."""

    def __init__(self, database: PostgresDatabase, run_id: str, after: int, *, text: bool) -> None:
        super().__init__(after, text=text)
        self._database, self._run_id = database, run_id

    def lines(self) -> Generator[bytes]:
        last = self._seq
        while True:
            with self._database.reading() as db:
                query = "SELECT seq, body FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?"
                found = db.execute(query, (self._run_id, last, READ_AT_ONCE)).fetchall()
            for last, body in found:  # noqa: B007 - the last one is where to go on
                yield body.encode()
            if len(found) < READ_AT_ONCE:
                return


@dataclass(frozen=True, slots=True)
class PostgresLog(EventLog):
    """See `EventLog`. `epoch`: of the worker that has taken the run; None: whoever appends, if nobody takes it then.
    `before`: what puts files where everybody finds them; called in a thread before events are added that may tell of
    them.
    """

    database: PostgresDatabase
    appender: Appender
    run_id: str
    epoch: int | None = None
    before: Callable[[], None] | None = None

    def taken(self, epoch: int, before: Callable[[], None] | None = None) -> "PostgresLog":
        return replace(self, epoch=epoch, before=before)

    def make(self) -> None:
        """It needs nothing."""

    def begun(self) -> bool:
        return self._last() > 0

    def _last(self) -> int:
        with self.database.reading() as db:
            (last,) = db.execute(
                "SELECT coalesce(max(seq), 0) FROM events WHERE run = ?", (self.run_id,)
            ).fetchone() or (0,)
        return int(last)

    def append(self, *, redactor: Redactor = NO_KEYS) -> PostgresWriter:
        epoch = self.epoch
        if epoch is None:
            with self.database.reading() as db:
                found = db.execute("SELECT epoch FROM runs WHERE run_id = ?", (self.run_id,)).fetchone()
            epoch = None if found is None else int(found[0])
        return PostgresWriter(self, epoch, redactor, self._last())

    def follow(self, after: int = 0, *, text: bool = True) -> PostgresReader:
        return PostgresReader(self.database, self.run_id, after, text=text)

    def fill(self, lines: Iterable[bytes]) -> None:
        """Let it be these lines, with their ends, of a run that nobody executes."""
        rest = iter(lines)
        with self.database.transaction() as db:
            db.execute("DELETE FROM events WHERE run = ?", (self.run_id,))
            seq = 0
            while batch := [line[:-1].decode() for line in islice(rest, READ_AT_ONCE)]:
                added = "SELECT ?, seq, body FROM unnest(?::int[], ?::text[]) AS added (seq, body)"
                seqs = [*range(seq + 1, seq + len(batch) + 1)]
                db.execute(f"INSERT INTO events (run, seq, body) {added}", (self.run_id, seqs, batch))
                seq += len(batch)

    def forget(self) -> None:
        """Delete every event."""
        with self.database.transaction() as db:
            db.execute("DELETE FROM events WHERE run = ?", (self.run_id,))
