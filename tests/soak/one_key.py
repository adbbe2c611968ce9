"""Many clients start the same thing under one idempotency key at the same moment: exactly one run comes of it."""

import sqlite3
from contextlib import closing

from tests.harness import SERVER_MODULE, TempHome
from tests.soak.crowd import call_at_once, crowd, percentile


async def one_key(home: TempHome, *, clients: int, starts: int, module: str = SERVER_MODULE) -> str:
    """`clients` server processes with a client each, `starts` calls in flight on each; returns the figures."""
    arguments = {"question": "q", "models": ["scripted/x"], "idempotency_key": "the one"}
    async with crowd(home, clients, module=module) as servers:
        replies = await call_at_once(servers, "start_run", [[arguments] * starts] * clients)
    assert len(replies) == clients * starts
    refusals = {reply.refusal for reply in replies if reply.content is None}
    assert not refusals, refusals
    contents = [reply.content for reply in replies if reply.content is not None]
    runs = {content["run_id"] for content in contents}
    fresh = sum(not content["reused"] for content in contents)
    with closing(sqlite3.connect(home.path / "runs.sqlite3")) as store:
        (rows,) = store.execute("SELECT count(*) FROM runs").fetchone()
    assert (len(runs), fresh, rows, len(home.runs)) == (1, 1, 1, 1), (
        f"{len(runs)} run ids, {fresh} fresh starts, {rows} rows, {len(home.runs)} directories"
    )
    seconds = [reply.seconds for reply in replies]
    return (
        f"{clients} servers x {starts} starts: 1 run, {len(replies) - 1} reused; "
        f"reply p50 {percentile(seconds, 0.5):.2f} s, p99 {percentile(seconds, 0.99):.2f} s"
    )
