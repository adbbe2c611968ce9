"""A run of another person answers as one that nobody has: every tool, resource, task, completion, page and route."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.shared.subscriptions import ResourcesListChanged

from massgen_mcp.home import find_home
from massgen_mcp.people import set_current_user
from massgen_mcp.runs.engine import RUN_ID_PREFIX
from tests.cluster.stage import STORES, Store
from tests.harness import TempHome, home, wait_until
from tests.people.matrix import ask_for_all
from tests.people.stage import KEY, SESSION, Shared, sharing, told, with_runs_of_bob
from tests.teams import team

__all__ = ["home"]

pytestmark = pytest.mark.long

SILENT = {
    *("logging/setLevel", "ping", "prompts/list", "resources/list", "resources/templates/list", "server/discover"),
    *("prompts/get analyze_runs", "prompts/get delegate", "prompts/get fix_failing_test", "prompts/get review_changes"),
    *("prompts/get root_cause", "prompts/get second_opinion", "tools/list", "tools/call list_configs"),
    *("resources/read ", "resources/read artifacts/../", "tools/call list_runs", "tools/call start_run"),
    *("GET /", "GET /new", "GET /compare", "GET /runs/{run_id}", "GET /statistics"),
    *("GET /api/checks", "GET /api/form", "GET /api/statistics", "POST /api/login", "DELETE /api/login"),
    *("GET /login", "GET /login/callback"),
}
"""Doors that say nothing of one run that is named to them; what is registered and not here has to tell bob something of
his own, or it was not asked rightly.
"""


@asynccontextmanager
async def bobs_runs(home: TempHome, store: Store) -> AsyncGenerator[Shared]:
    """A server with runs of bob, and one of ann, who has marked it."""
    async with sharing(home, store) as shared:
        await with_runs_of_bob(shared)
        own = await shared.start("ann", team([{"answer": "anns-answer"}]))
        await shared.ended("ann", own)
        yield shared


@pytest.mark.parametrize("store", STORES)
async def test_no_registered_door_tells_one_person_of_another_ones_runs(home: TempHome, store: Store) -> None:
    async with bobs_runs(home, store) as shared:
        found = await ask_for_all(shared, "ann")
        assert found.leaks == []
        assert found.asked > 1000
        with shared.asked_by("bob"):
            for run_id, state in zip(shared.runs.values(), ("completed", "running", "input_required"), strict=False):
                assert (await shared.service.watcher.get_run(run_id)).state == state, "nobody has interfered"
        log = shared.service.access.engine.store.audit
        entries = log.list_entries(person=None, run_id=shared.runs["going"], limit=9)
        assert {entry.person for entry in entries} == {"bob"}


async def test_every_door_was_asked_in_a_way_that_tells_bob_something(home: TempHome) -> None:
    async with bobs_runs(home, "local") as shared:
        assert (await ask_for_all(shared, "bob")).silent == SILENT


async def test_a_door_that_is_added_without_ownership_is_found(home: TempHome) -> None:
    """Each of these goes past the run service."""
    async with bobs_runs(home, "local") as shared:
        server, runs = shared.built.server, find_home(home.environ).runs

        @server.tool()
        async def peek(run_id: str) -> str:
            """Whether there are files of a run."""
            return str((runs / run_id).exists())

        @server.resource("massgen://runs/{run_id}/peek")
        async def peek_at(run_id: str) -> str:
            return str((runs / run_id).exists())

        server.serve_method("runs/peek", dict, peek)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        found = "\n".join((await ask_for_all(shared, "ann", called="peek|get_status")).leaks)
        assert "'name': 'peek'" in found
        assert "massgen://runs/ID/peek" in found
        assert "runs/peek" in found
        assert "get_status" not in found


@pytest.mark.parametrize("store", STORES)
async def test_lists_sessions_keys_and_statistics_are_each_persons_own(home: TempHome, store: Store) -> None:
    async with bobs_runs(home, store) as shared, shared.client("ann") as client, shared.browser("ann") as browser:
        for given in ({}, {"session_id": SESSION}, {"state": "completed"}, {"state": "running"}):
            listed = (await client.call_tool("list_runs", given)).structured_content
            assert listed
            assert len(listed["runs"]) == int(given in ({}, {"state": "completed"}))
        counted = (await browser.get("/api/statistics")).json()
        assert counted["figures"]["runs"] == 1, counted["figures"]
        begun = {"question": "bobs-question", "team": "scripted", "session_id": SESSION, "idempotency_key": KEY}
        first = (await client.call_tool("start_run", begun)).structured_content
        again = (await client.call_tool("start_run", begun)).structured_content
        assert first
        assert again
        assert first["run_id"] == again["run_id"]
        assert first["run_id"] not in shared.runs.values()
        assert "earlier turn" not in str(first)
        with shared.asked_by("ann"):
            assert await shared.service.watcher.list_turns(shared.runs["ended"]) == []
            assert await shared.service.watcher.find_run_id(first["run_id"][:10]) == first["run_id"]
            for run_id in shared.runs.values():
                with pytest.raises(Exception, match="there is no run"):
                    await shared.service.watcher.find_run_id(run_id)
                with pytest.raises(Exception, match="there is no run"):
                    await shared.service.outcomes.mark(run_id, "right")
        with set_current_user(None):
            assert len(await shared.service.watcher.list_runs(limit=50)) == len(shared.runs) + 2, (
                "who owns the machine sees all"
            )


@pytest.mark.parametrize("store", STORES)
async def test_a_nested_run_is_its_persons(home: TempHome, store: Store) -> None:
    async with bobs_runs(home, store) as shared:
        with shared.asked_by("bob"):
            assert (await shared.service.watcher.get_run(shared.runs["nested"])).row.owner == "bob"


@pytest.mark.parametrize("store", STORES)
async def test_nobody_hears_of_what_another_does(home: TempHome, store: Store) -> None:
    async with bobs_runs(home, store) as shared, shared.client("ann") as client:
        uris = [f"massgen://runs/{run_id}/{view}" for run_id in shared.runs.values() for view in ("status", "events")]
        heard: list[Any] = []
        subscribed = client.listen(resource_subscriptions=uris, resources_list_changed=True)
        async with subscribed as subscription, anyio.create_task_group() as tasks:

            async def take() -> None:
                async for event in subscription:
                    heard.append(event)  # noqa: PERF401 - one by one, as they come

            tasks.start_soon(take)
            async with shared.client("bob") as bobs:
                await bobs.call_tool("start_run", {"question": "q", "team": "scripted"})
                await bobs.call_tool(
                    "control_run", {"run_id": shared.runs["going"], "action": "steer", "message": "bobs-message"}
                )
                await bobs.call_tool("control_run", {"run_id": shared.runs["asks"], "action": "cancel"})
            async with shared.client("ann") as other:
                await other.call_tool("start_run", {"question": "q", "team": "scripted"})
            await wait_until(lambda: heard)
            tasks.cancel_scope.cancel()
        assert heard == [ResourcesListChanged()], "of her own run alone"
        tasked = {"notifications": {"taskIds": [*shared.runs.values()], "resourcesListChanged": True}}
        with anyio.move_on_after(0.5):
            assert RUN_ID_PREFIX not in await told(client, "subscriptions/listen", tasked)
