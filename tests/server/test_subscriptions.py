"""Clients are told what has changed, in the way of each era, by push: nobody has to look."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.types import INVALID_PARAMS, ResourceListChangedNotification, ResourceUpdatedNotification

from tests.harness import PATIENCE_SECONDS, TempHome, agent, call, http_server, wait_until

pytestmark = pytest.mark.filterwarnings(
    "ignore:resources/.*subscribe is removed"  # the SDK's client warns of what the older revisions have
)

ASK: dict[str, Any] = {"call": "ask_the_asker", "arguments": {"question": "Metres or feet?"}}


def asking(home: TempHome) -> str:
    return home.config("asking", agent("solo", ASK, {"answer": "in metres"}), orchestrator={"allow_questions": True})


class Told:
    """What a client of a handshake revision is told; give `heard` to it as its message handler."""

    def __init__(self) -> None:
        self.updated: list[str] = []
        self.lists = 0

    async def heard(self, message: object) -> None:
        match message:
            case ResourceUpdatedNotification(params=params):
                self.updated.append(str(params.uri))
            case ResourceListChangedNotification():
                self.lists += 1
            case _:
                pass


async def started(client: Client, config: str) -> str:
    run_id = (await call(client, "start_run", question="q", config=config))["run_id"]
    status = await call(client, "wait_run", run_id=run_id, timeout_seconds=45)
    assert status["status"] == "input_required"
    return run_id


async def drive_legacy(home: TempHome, client: Client, told: Told) -> None:
    """Subscribe to a run that stands still, let it go on, and hear of it until its end."""
    await wait_until(lambda: told.lists == 0)
    run_id = await started(client, asking(home))
    await wait_until(lambda: told.lists == 1)
    status, result = f"massgen://runs/{run_id}/status", f"massgen://runs/{run_id}/result"
    log = f"massgen://runs/{run_id}/log"
    for uri in (status, result, log):
        await client.subscribe_resource(uri)  # pyright: ignore[reportDeprecated] - what older clients use
    await client.unsubscribe_resource(log)  # pyright: ignore[reportDeprecated] - what older clients use
    await call(client, "control_run", run_id=run_id, action="answer", message="Metres.")
    await wait_until(lambda: {status, result} <= set(told.updated))
    await call(client, "wait_run", run_id=run_id, timeout_seconds=45)
    assert log not in told.updated


async def test_a_client_of_a_handshake_revision_subscribes_and_is_told(home: TempHome) -> None:
    told = Told()
    async with home.client("legacy", message_handler=told.heard) as client:
        capabilities = client.server_capabilities
        assert capabilities.resources
        assert (capabilities.resources.subscribe, capabilities.resources.list_changed) == (True, True)
        await drive_legacy(home, client, told)


async def test_the_same_over_http_where_the_session_has_a_stream(home: TempHome) -> None:
    told = Told()
    async with http_server(home) as server, server.client("legacy", message_handler=told.heard) as client:
        await drive_legacy(home, client, told)


@asynccontextmanager
async def heard(client: Client, *uris: str, lists: bool = False) -> AsyncGenerator[list[object]]:
    """What a client of 2026-07-28 hears on a stream of its own."""
    events: list[object] = []
    async with client.listen(resource_subscriptions=uris, resources_list_changed=lists) as subscription:

        async def take() -> None:
            async for event in subscription:
                events.append(event)  # noqa: PERF401 - one by one, as they come

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            yield events
            tasks.cancel_scope.cancel()


async def test_a_client_of_2026_07_28_listens_and_is_told(home: TempHome) -> None:
    async with home.client("2026-07-28") as client:
        async with heard(client, lists=True) as changes:
            run_id = await started(client, asking(home))
            await wait_until(lambda: changes == [ResourcesListChanged()])
        status, other = f"massgen://runs/{run_id}/status", "massgen://runs/run-nope/status"
        async with heard(client, status, other) as changes:
            await call(client, "control_run", run_id=run_id, action="answer", message="Metres.")
            await call(client, "wait_run", run_id=run_id, timeout_seconds=45)
            await wait_until(lambda: changes and changes[-1] == ResourceUpdated(status))
        assert set(changes) == {ResourceUpdated(status)}


async def test_only_what_can_change_is_announced_and_granted(home: TempHome) -> None:
    async with (
        home.client("2026-07-28") as client,
        client.listen(tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True) as open_,
    ):
        assert open_.honored.model_dump(exclude_none=True) == {"resources_list_changed": True}
    async with home.client("auto") as client:
        shown = client.server_capabilities.model_dump(exclude_none=True)
    assert shown == {
        "completions": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}, "io.modelcontextprotocol/ui": {}},
        "logging": {},
        "prompts": {},
        "resources": {"list_changed": True, "subscribe": True},
        "tools": {},
    }


async def test_a_client_cannot_follow_without_end(home: TempHome) -> None:
    uris = [f"massgen://runs/run-{number}/status" for number in range(101)]
    async with home.client("2026-07-28") as client:
        with pytest.raises(MCPError, match="at most 100") as refusal:
            async with client.listen(resource_subscriptions=uris):
                pytest.fail("too many")
        assert refusal.value.code == INVALID_PARAMS


async def test_another_server_process_tells_of_the_run_that_this_one_follows(home: TempHome) -> None:
    async with home.client("2026-07-28") as first, home.client("2026-07-28") as second:
        run_id = await started(first, asking(home))
        status = f"massgen://runs/{run_id}/status"
        async with heard(second, status) as changes:
            await call(first, "control_run", run_id=run_id, action="answer", message="Metres.")
            with anyio.fail_after(PATIENCE_SECONDS):
                await wait_until(lambda: changes)
