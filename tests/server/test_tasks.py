"""`start_run` as a task of the Tasks extension, through the SDK's client: the parent is woken with the result."""

import re
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ElicitRequestParams,
    ElicitResult,
    SubscriptionFilter,
    SubscriptionsListenRequest,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from tests.harness import (
    RUNNER_MODULE,
    SERVER_MODULE,
    TempHome,
    agent,
    call,
    end,
    happened,
    http_server,
    wait_until,
)
from tests.server.task_client import Handle, KnowsTasks, ask_task, begin, task_that

MODERN = "2026-07-28"
ASK: dict[str, Any] = {"call": "ask_the_asker", "arguments": {"question": "Metres or feet?"}}
DEAR = {"input_usd_per_million": 1_000, "output_usd_per_million": 1_000}


async def never_asked(context: Any, params: ElicitRequestParams) -> ElicitResult:
    """A client that can be asked says so by having this; as tasks, its questions come another way."""
    pytest.fail(f"asked {params} in {context}")


def asking(home: TempHome) -> str:
    """A config whose run asks before it answers, and so stands still until somebody decides."""
    return home.config("asking", agent("solo", ASK, {"answer": "in metres"}), orchestrator={"allow_questions": True})


@asynccontextmanager
async def task_client(home: TempHome, **abilities: Any) -> AsyncGenerator[Client]:
    async with home.client(MODERN, extensions=[KnowsTasks()], **abilities) as client:
        yield client


async def test_a_client_that_knows_tasks_gets_the_runs_handle_at_once_and_its_result_at_the_end(home: TempHome) -> None:
    async with task_client(home) as client:
        handle = await begin(client, question="q", config="scripted")
        assert handle.status == "working"
        assert handle.ttl_ms is None, "nobody knows yet when it ends"
        for told in ("Team: ada (scripted/scripted), bo", "Reach: no hosts, no keys", "Estimate: usually $0 to $0"):
            assert told in (handle.status_message or ""), "a person sees it, as nobody sees the reply"
        assert handle.poll_interval_ms
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", handle.created_at)
        assert (await call(client, "get_status", run_id=handle.task_id))["run_id"] == handle.task_id
        task = await task_that(client, handle.task_id, "completed")
        shown = await call(client, "get_result", run_id=handle.task_id)
    assert task["result"]["structuredContent"]["answer"] == shown["answer"]
    assert task["result"]["content"], "for clients that show their model the text alone"
    assert task["createdAt"] == handle.created_at
    assert task["ttlMs"] > 6 * 24 * 3600 * 1000, "the result is kept for days"
    assert len(str(task).encode()) < 100_000, "clients cut what is longer"


async def test_to_a_client_that_resolves_tasks_the_call_just_takes_longer(home: TempHome) -> None:
    async with task_client(home) as client:
        result = await client.call_tool("start_run", {"question": "q", "config": "scripted"})
    assert not result.is_error
    assert "Neither" in str(result.structured_content)


async def test_the_task_outlives_the_server_and_the_runner_that_it_began_with(home: TempHome) -> None:
    config = asking(home)
    async with task_client(home, elicitation_callback=never_asked) as first:
        handle = await begin(first, question="q", config=config)
        await task_that(first, handle.task_id, "input_required")
        for module in (SERVER_MODULE, RUNNER_MODULE):
            for pid in home.processes(module):
                end(pid, signal.SIGKILL)
    async with task_client(home, elicitation_callback=never_asked) as second:
        asked = await task_that(second, handle.task_id, "input_required")
        ((key, request),) = asked["inputRequests"].items()
        assert (request["method"], "Metres or feet?" in request["params"]["message"]) == ("elicitation/create", True)
        answer = {key: {"action": "accept", "content": {"answer": "Metres."}}}
        ack = await ask_task(second, "tasks/update", handle.task_id, inputResponses=answer)
        assert ack == {}
        done = await task_that(second, handle.task_id, "completed")
    assert done["result"]["structuredContent"]["answer"] == "in metres"
    given = (home.run_directory(handle.task_id) / "events.jsonl").read_text()
    assert "Metres." in given


async def test_only_what_takes_long_becomes_a_task(home: TempHome) -> None:
    async with task_client(home) as client:
        planned = await client.session.call_tool("start_run", {"question": "q", "config": "scripted", "dry_run": True})
        refused = await client.session.call_tool("start_run", {"question": "q", "config": "no-such-team"})
        waited = await client.session.call_tool(
            "start_run", {"question": "q", "config": "scripted", "wait_seconds": 45}, allow_claimed=True
        )
        listed = await client.session.call_tool("list_runs", {}, allow_claimed=True)
    for reply in (planned, refused, waited, listed):
        assert not isinstance(reply, Handle)
    assert refused.is_error


async def test_a_client_that_does_not_declare_tasks_never_sees_one(home: TempHome) -> None:
    async with home.client(MODERN) as client:
        run_id = (await call(client, "start_run", question="q", config="scripted"))["run_id"]
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            with pytest.raises(MCPError) as refusal:
                await ask_task(client, method, run_id, inputResponses={})
            assert refusal.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY
        assert (await call(client, "wait_run", run_id=run_id, timeout_seconds=45))["status"] == "completed"
    async with home.client("legacy", extensions=[KnowsTasks()]) as client:
        assert client.server_capabilities.extensions is None, "the handshake revisions do not have them"
        started = await call(client, "start_run", question="q", config="scripted")
        assert started["status"] in ("queued", "running")
        with pytest.raises(MCPError) as refusal:
            await ask_task(client, "tasks/get", started["run_id"])
        assert refusal.value.code == METHOD_NOT_FOUND


async def test_cancelling_the_task_cancels_the_run_and_may_be_repeated(home: TempHome) -> None:
    config = home.config("slow", agent("solo", {"answer": "late", "delay_seconds": 3600}))
    async with task_client(home) as client:
        handle = await begin(client, question="q", config=config)
        assert await ask_task(client, "tasks/cancel", handle.task_id) == {}
        task = await task_that(client, handle.task_id, "cancelled")
        assert "result" not in task
        assert await ask_task(client, "tasks/cancel", handle.task_id) == {}
        assert (await call(client, "get_status", run_id=handle.task_id))["status"] == "cancelled"


async def test_a_failed_run_is_a_completed_task_whose_result_says_why(home: TempHome) -> None:
    config = home.config("dear", agent("solo", price=DEAR), budget={"max_usd": 0.001})
    async with task_client(home) as client:
        handle = await begin(client, question="q", config=config)
        task = await task_that(client, handle.task_id, "completed", "failed")
    assert task["status"] == "completed", "failed is for errors of the protocol"
    assert task["result"]["structuredContent"]["status"] == "failed"


async def test_unknown_and_expired_tasks_are_refused_as_such(home: TempHome) -> None:
    async with task_client(home) as client:
        for task_id in ("run-nope", "nope", "../x"):
            for method in ("tasks/get", "tasks/cancel", "tasks/update"):
                with pytest.raises(MCPError) as refusal:
                    await ask_task(client, method, task_id, inputResponses={})
                assert refusal.value.code == INVALID_PARAMS
        handle = await begin(client, question="q", config="scripted")
        await wait_until(lambda: happened(home.run_directory(handle.task_id), "run_completed"))
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
        prune = [home.python, "-m", SERVER_MODULE, "prune", "--older-than", "0"]
        await anyio.run_process(prune, env=home.environ)
        with pytest.raises(MCPError, match="expired") as refusal:
            await ask_task(client, "tasks/get", handle.task_id)
        assert refusal.value.code == INVALID_PARAMS


async def test_a_run_at_its_cap_asks_the_person_through_its_task(home: TempHome) -> None:
    config = home.config(
        "dear", agent("one", price=DEAR), agent("two", price=DEAR), budget={"max_usd": 0.5, "at_cap": "ask"}
    )
    async with task_client(home, elicitation_callback=never_asked) as client:
        handle = await begin(client, question="q", config=config)
        asked = await task_that(client, handle.task_id, "input_required")
        ((key, request),) = asked["inputRequests"].items()
        assert request["params"]["requestedSchema"]["required"] == ["decision"]
        for wrong in (
            {},
            {"decision": "steer"},
            {"decision": "raise_budget"},
            {"decision": "raise_budget", "max_usd": 0.1},
        ):
            answers = {key: {"action": "accept", "content": wrong}}
            with pytest.raises(MCPError) as refusal:
                await ask_task(client, "tasks/update", handle.task_id, inputResponses=answers)
            assert refusal.value.code == INVALID_PARAMS
        unknown = {"nobody-asked": {"action": "accept", "content": {"decision": "cancel"}}}
        assert await ask_task(client, "tasks/update", handle.task_id, inputResponses=unknown) == {}
        assert (await ask_task(client, "tasks/get", handle.task_id))["inputRequests"].keys() == {key}
        raised = {key: {"action": "accept", "content": {"decision": "raise_budget", "max_usd": 500}}}
        await ask_task(client, "tasks/update", handle.task_id, inputResponses=raised)
        done = await task_that(client, handle.task_id, "completed")
    assert done["result"]["structuredContent"]["status"] == "completed"


async def test_a_person_who_declines_lets_the_run_decide_by_itself(home: TempHome) -> None:
    async with task_client(home, elicitation_callback=never_asked) as client:
        handle = await begin(client, question="q", config=asking(home))
        asked = await task_that(client, handle.task_id, "input_required")
        answers = {key: {"action": "decline"} for key in asked["inputRequests"]}
        await ask_task(client, "tasks/update", handle.task_id, inputResponses=answers)
        done = await task_that(client, handle.task_id, "completed")
    assert done["result"]["structuredContent"]["status"] == "completed"


async def test_where_nobody_can_be_asked_the_task_ends_and_the_parent_hears_what_is_asked(home: TempHome) -> None:
    async with task_client(home) as client:
        handle = await begin(client, question="q", config=asking(home))
        task = await task_that(client, handle.task_id, "completed", "input_required")
        assert task["status"] == "completed"
        told = task["result"]["structuredContent"]
        assert told["status"] == "input_required"
        assert "Metres or feet?" in told["next_step"]
        assert "control_run" in told["next_step"]
        await call(client, "control_run", run_id=handle.task_id, action="answer", message="Metres.")
        assert (await call(client, "wait_run", run_id=handle.task_id, timeout_seconds=45))["status"] == "completed"


async def test_a_client_that_listens_is_told_of_its_tasks_without_asking(home: TempHome) -> None:
    knows = KnowsTasks()
    async with home.client(MODERN, extensions=[knows], elicitation_callback=never_asked) as client:
        handle = await begin(client, question="q", config=asking(home))
        async with listening(client, handle.task_id, "run-nope"):
            await wait_until(lambda: [one for one in knows.news if one["status"] == "input_required"])
            (key,) = knows.news[-1]["inputRequests"]
            answer = {key: {"action": "accept", "content": {"answer": "Metres."}}}
            await ask_task(client, "tasks/update", handle.task_id, inputResponses=answer)
            await wait_until(lambda: knows.news[-1]["status"] == "completed")
        shown = await ask_task(client, "tasks/get", handle.task_id)
    told = {key: value for key, value in knows.news[-1].items() if key != "_meta"}
    assert told == shown, "a notification is what tasks/get would say"
    assert {one["taskId"] for one in knows.news} == {handle.task_id}


async def test_only_a_client_that_declares_tasks_may_listen_to_them(home: TempHome) -> None:
    async with home.client(MODERN) as client:
        with pytest.raises(MCPError) as refusal:
            async with listening(client, "run-nope"):
                await anyio.sleep_forever()
        assert refusal.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY


async def test_over_http_the_task_is_named_in_the_header_too(home: TempHome) -> None:
    async with http_server(home) as server, server.client(MODERN, extensions=[KnowsTasks()]) as client:
        handle = await begin(client, question="q", config="scripted")
        assert (await task_that(client, handle.task_id, "completed"))["taskId"] == handle.task_id


@asynccontextmanager
async def listening(client: Client, *task_ids: str) -> AsyncGenerator[None]:
    """With a `subscriptions/listen` open that names these tasks, for as long as the context lasts."""
    wanted = SubscriptionFilter.model_validate({"taskIds": list(task_ids)})
    request = SubscriptionsListenRequest(params=SubscriptionsListenRequestParams(notifications=wanted))
    failure: list[MCPError] = []
    async with anyio.create_task_group() as tasks:

        async def listen() -> None:
            try:
                await client.session.send_request(request, SubscriptionsListenResult)
            except MCPError as error:
                failure.append(error)
                tasks.cancel_scope.cancel()

        tasks.start_soon(listen)
        yield
        tasks.cancel_scope.cancel()
    if failure:
        raise failure[0]
