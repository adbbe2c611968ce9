"""Known-bad twin of the server: it looks whether a key is taken, and then adds the run, as two steps."""

import time

from massgen_mcp.cli.massgen_mcp.main import main
from massgen_mcp.request.build import OnConflict
from massgen_mcp.runs.engine import Added, NewRun
from massgen_mcp.runs.engine.queue import RunQueue
from massgen_mcp.runs.store.sqlite import database


def naive_add(
    self: RunQueue, run: NewRun, *, on_conflict: OnConflict = "use_existing", max_queued: int | None = None
) -> Added:
    del on_conflict, max_queued
    scope = self._scope  # pyright: ignore[reportPrivateUsage] - a twin of the method
    with scope.database.reading() as db:
        found = db.execute("SELECT run_id FROM runs WHERE idempotency_key = ?", (run.idempotency_key,)).fetchone()
        if found:
            return Added(scope.get_row(db, found[0]), reused=True)
    time.sleep(2)  # so that the machine's speed does not hide what is wrong
    with scope.database.transaction() as db:
        db.execute(
            "INSERT INTO runs (run_id, state, question, config, fingerprint, idempotency_key, request_hash, created)"
            " VALUES (?, 'queued', ?, ?, ?, ?, ?, ?)",
            (
                run.run_id,
                run.question,
                run.config,
                run.fingerprint,
                run.idempotency_key,
                run.request_hash,
                time.time(),
            ),
        )
        return Added(scope.get_row(db, run.run_id))


if __name__ == "__main__":
    first = tuple(statement.replace("TEXT UNIQUE", "TEXT") for statement in database.MIGRATIONS[0])
    database.MIGRATIONS = (first, *database.MIGRATIONS[1:])
    RunQueue.add = naive_add
    main()
