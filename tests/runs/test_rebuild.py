"""A list of runs that was lost is made again from the directories of the runs, while servers and runners go on."""

import json
from typing import Any

import pytest
from mcp import Client

from tests.commands import run_command
from tests.harness import RUNNER_MODULE, SERVER_MODULE, TempHome, agent, call, events_of, happened, wait_until

DONE = {"question": "Is it done?", "models": ["scripted/x"], "idempotency_key": "once", "session_id": "talk"}


def rebuild(home: TempHome) -> dict[str, Any]:
    done = run_command(home, SERVER_MODULE, "doctor", "--rebuild", "--json")
    (check,) = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "rebuild"]
    return check


async def rows(client: Client) -> list[dict[str, Any]]:
    return (await call(client, "list_runs"))["runs"]


async def begun(client: Client, home: TempHome) -> str:
    """A run that goes on until it is cancelled."""
    stuck = home.config("stuck", agent("one", {"hang": True}))
    run_id = (await call(client, "start_run", question="And this?", config=stuck))["run_id"]
    await wait_until(lambda: happened(home.run_directory(run_id), "model_call_started"))
    return run_id


def lose_list(home: TempHome) -> None:
    for path in home.path.glob("runs.sqlite3*"):
        if "damaged" not in path.name:
            path.unlink()


@pytest.mark.parametrize("how", ["deleted", "emptied", "garbage"])
async def test_a_lost_list_is_made_again_and_no_run_is_executed_twice(home: TempHome, how: str) -> None:
    database = home.path / "runs.sqlite3"
    async with home.client() as client:
        done = (await call(client, "start_run", **DONE, wait_seconds=30))["run_id"]
        going = await begun(client, home)
        before = await rows(client)
        lose_list(home)
        if how != "deleted":
            database.write_bytes(b"" if how == "emptied" else b"no SQLite file" * 500)
        check = rebuild(home)
        assert check["message"].startswith("2 runs are back in the list")
        assert ("damaged" in check["message"]) == (how == "garbage")
        await wait_until(lambda: _running(home, going))
        again = await rows(client)
        assert [_kept(row) for row in again] == [_kept(row) for row in before]
        assert (await call(client, "start_run", **DONE))["run_id"] == done, "the key is the same run's"
        assert rebuild(home)["message"] == "0 runs are back in the list"
        await call(client, "control_run", run_id=going, action="cancel")
        assert (await call(client, "wait_run", run_id=going))["status"] == "cancelled"
        kinds = [event["type"] for event in events_of(home.run_directory(going))]
        assert (kinds.count("model_call_started"), "run_resumed" in kinds) == (1, False)


async def test_a_key_that_was_used_again_meanwhile_stays_with_the_later_run_and_damaged_lists_are_kept(
    home: TempHome,
) -> None:
    asked = {"question": "Is it done?", "models": ["scripted/x"], "idempotency_key": "once", "wait_seconds": 30}
    garbage = [b"no SQLite file" * 500, b"nor is this" * 500]
    async with home.client() as client:
        first = (await call(client, "start_run", **asked))["run_id"]
        before = [_kept(row) for row in await rows(client)]
        lose_list(home)
        later = (await call(client, "start_run", **asked))["run_id"]
        before += [_kept(row) for row in await rows(client)]
        for found, damage in zip((1, 2, 2), (*garbage, None), strict=True):
            assert rebuild(home)["message"].startswith(f"{found} runs are back in the list")
            assert sorted(map(_kept, await rows(client)), key=lambda row: row["run_id"] == later) == before
            assert (await call(client, "start_run", **asked))["run_id"] == later != first
            if damage is not None:
                lose_list(home)
                (home.path / "runs.sqlite3").write_bytes(damage)
    assert [path.read_bytes() for path in sorted(home.path.glob("runs.sqlite3.damaged-*"))] == garbage


async def test_a_runner_whose_list_was_lost_ends_later_runs_all_the_same(home: TempHome) -> None:
    async with home.client() as client:
        going = await begun(client, home)
        lose_list(home)
        later = await begun(client, home)
        rebuild(home)
        await wait_until(lambda: _running(home, going))
        lose_list(home)
        assert rebuild(home)["message"] == "2 runs are back in the list"
        for run_id in (going, later):
            await call(client, "control_run", run_id=run_id, action="cancel")
            assert (await call(client, "wait_run", run_id=run_id))["status"] == "cancelled"
    await wait_until(lambda: not home.processes(RUNNER_MODULE))


async def test_a_run_that_had_not_begun_waits_for_somebody_to_resume_it(home: TempHome) -> None:
    one = home.with_variables(MASSGEN_MCP_MAX_RUNNING="1")
    async with one.client() as client:
        going = await begun(client, one)
        waiting = (await call(client, "start_run", question="Later?", models=["scripted/x"]))["run_id"]
        lose_list(home)
        assert waiting in rebuild(one)["advice"]
        await call(client, "control_run", run_id=going, action="cancel")
        assert (await call(client, "get_status", run_id=waiting))["status"] == "interrupted"
        await call(client, "control_run", run_id=waiting, action="resume")
        assert (await call(client, "wait_run", run_id=waiting))["status"] == "completed"


def _running(home: TempHome, run_id: str) -> bool:
    done = run_command(home, SERVER_MODULE, "runs", "--json")
    return [run["status"] for run in json.loads(done.stdout)["runs"] if run["run_id"] == run_id] == ["running"]


def _kept(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row.get(name) for name in ("run_id", "status", "question", "config", "session_id", "winner")}
