"""Runs of several people begin in turn, however many one of them has queued."""

import anyio
import pytest

from tests.harness import PATIENCE_SECONDS, POLL_SECONDS, TempHome, after, home
from tests.needs import needs
from tests.people.stage import Store, sharing
from tests.teams import team

__all__ = ["home"]


@pytest.mark.parametrize("store", ["local", pytest.param("postgres", marks=needs("postgres"))])
async def test_whoever_queues_many_runs_lets_others_in_between(home: TempHome, store: Store) -> None:
    alone = home.with_variables(MASSGEN_MCP_MAX_RUNNING="1")
    async with sharing(alone, store, concurrency=1) as shared:
        first = await shared.start("ann", team([{"answer": "a", **after(shared.gate)}]))
        with anyio.fail_after(PATIENCE_SECONDS):
            while (await shared.service.look(first)).state != "running":
                await anyio.sleep(POLL_SECONDS)
        runs = [
            (name, await shared.start(name, team([{"answer": "a"}]))) for name in (*["ann"] * 5, "bob", "bob", "ann")
        ]
        shared.gate.touch()
        for name, run_id in runs:
            await shared.ended(name, run_id)
        rows = [view.row for view in await shared.service.recent(limit=50)]
        order = [row.owner for row in sorted(rows, key=lambda row: row.started or 0)]
        assert " ".join(order) == "ann ann ann bob ann bob ann ann ann"
