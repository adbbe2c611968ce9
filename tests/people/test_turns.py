"""Runs of several people begin in turn, however many one of them has queued; quotas hold, whichever server is asked."""

import anyio
import pytest

from massgen_mcp.errors import MassgenError
from massgen_mcp.people import Person, User, set_current_user
from tests.cluster.stage import STORES, Store, cluster
from tests.harness import PATIENCE_SECONDS, POLL_SECONDS, TempHome, after, home
from tests.needs import needs
from tests.people.stage import sharing
from tests.postgres import shared_server
from tests.run_requests import asked
from tests.teams import silent_team, team

__all__ = ["home"]


@pytest.mark.parametrize("store", STORES)
async def test_whoever_queues_many_runs_lets_others_in_between(home: TempHome, store: Store) -> None:
    alone = home.with_variables(MASSGEN_MCP_MAX_RUNNING="1")
    async with sharing(alone, store, concurrency=1) as shared:
        first = await shared.start("ann", team([{"answer": "a", **after(shared.gate)}]))
        with anyio.fail_after(PATIENCE_SECONDS):
            while (await shared.service.watcher.get_run(first)).state != "running":
                await anyio.sleep(POLL_SECONDS)
        runs = [
            (name, await shared.start(name, team([{"answer": "a"}]))) for name in (*["ann"] * 5, "bob", "bob", "ann")
        ]
        shared.gate.touch()
        for name, run_id in runs:
            await shared.ended(name, run_id)
        rows = [view.row for view in await shared.service.watcher.list_runs(limit=50)]
        order = [row.owner for row in sorted(rows, key=lambda row: row.started or 0)]
        assert " ".join(order) == "ann ann ann bob ann bob ann ann ann"


@needs("postgres")
async def test_no_more_runs_are_begun_through_several_servers_at_once_than_a_quota_allows(home: TempHome) -> None:
    with cluster(home, shared_server()) as machines:
        services, told = [machines.service(), machines.service()], list[str]()
        ann = User("ann", Person(runs_per_day=3), machines.home.environ)

        async def start(number: int) -> None:
            with set_current_user(ann):
                try:
                    service = services[number % 2]
                    await service.start(await service.prepare(asked("q", silent_team(1))))
                except MassgenError as error:
                    told.append(error.code)

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(start, number)
        with set_current_user(ann):
            assert (told, len(await services[0].watcher.list_runs(limit=20))) == (["quota_reached"] * 9, 3)
