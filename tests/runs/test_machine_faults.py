"""Faults of the machine, provoked for real: a typed error, no other run affected, and no repair by hand afterwards."""

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from massgen_mcp.runs.store.sqlite.database import MIGRATIONS, SCHEMA_VERSION
from tests.faults import ROOT, can_mount
from tests.harness import (
    RUNNER_MODULE,
    SERVER_MODULE,
    TempHome,
    after,
    agent,
    call,
    expect_error,
    happened,
    wait_until,
    whole_answer,
)

pytestmark = pytest.mark.long

SCRIPTED = {"question": "q", "models": ["scripted/x"]}
LONG = "kept " * 4_000


async def ended(client: Client, **arguments: Any) -> str:
    started = await call(client, "start_run", **SCRIPTED, **arguments, wait_seconds=30)
    assert started["status"] == "completed"
    return started["run_id"]


# -- room -------------------------------------------------------------------------------------------------------------


async def test_a_full_disk_refuses_starts_and_lets_runs_wait_and_all_goes_on_when_there_is_room(
    home: TempHome,
) -> None:
    """No file of server and runner may grow much: what a full disk or a quota does, without being root."""
    gate = home.work / "go-on"
    config = home.config("slow", agent("solo", {"answer": LONG, **after(gate)}))
    async with home.client() as client:
        earlier = await ended(client)
        running = (await call(client, "start_run", question="q", config=config))["run_id"]
        await wait_until(lambda: happened(home.run_directory(running), "model_call_started"))
        (log,) = (home.path / "runners").rglob("*.log")
        sizes = [path.stat().st_size for path in (log, home.run_directory(running) / "events.jsonl")]
        limited = [*home.processes(RUNNER_MODULE), *home.processes(SERVER_MODULE)]
        for pid in limited:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (max(sizes) + 2_000, resource.RLIM_INFINITY))
        assert (await expect_error(client, "start_run", question=LONG, models=["scripted/x"]))[0] == "disk_full"
        assert (await call(client, "get_result", run_id=earlier))["status"] == "completed"
        gate.touch()
        await wait_until(lambda: b"is waiting: " in log.read_bytes())
        assert (await call(client, "get_status", run_id=running))["status"] == "running"
        for pid in limited:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert (await call(client, "wait_run", run_id=running, timeout_seconds=40))["status"] == "completed"
        assert (await call(client, "get_result", run_id=running))["resumed"] == 1
        assert await whole_answer(client, running) == LONG
        await ended(client)
    assert len(home.runs) == 3, "a refused start leaves nothing behind"


def test_a_full_and_then_read_only_file_system_is_outlived_by_a_server(tmp_path: Path) -> None:
    """A small file system of its own where this user may mount one; otherwise the same by limits on file sizes."""
    command = [sys.executable, "-W", "error", "-m", "tests.runs.small_disk", str(tmp_path)]
    if can_mount():
        command = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), *command]
    done = subprocess.run(
        [*command, *(["mount"] if can_mount() else [])], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "outlived" in done.stdout


async def test_too_many_open_files_are_an_error_of_the_call_and_not_the_end_of_the_server(home: TempHome) -> None:
    async with home.client() as client:
        earlier = await ended(client)
        (server,) = home.processes(SERVER_MODULE)
        _, hard = resource.prlimit(server, resource.RLIMIT_NOFILE)
        resource.prlimit(server, resource.RLIMIT_NOFILE, (3, hard))
        for tool, arguments in (("start_run", SCRIPTED), ("get_result", {"run_id": earlier})):
            code, told = await expect_error(client, tool, **arguments)
            assert code == "store_unavailable"
            assert "open" in told
        resource.prlimit(server, resource.RLIMIT_NOFILE, (hard, hard))
        assert (await call(client, "get_result", run_id=earlier))["status"] == "completed"
        await ended(client)


# -- places that cannot be used ---------------------------------------------------------------------------------------


async def test_a_server_serves_before_its_state_directory_can_be_made_and_works_as_soon_as_it_can(
    home: TempHome,
) -> None:
    home.path.write_text("a file where the directory should be")
    async with home.client() as client:
        for tool, arguments in (("start_run", SCRIPTED), ("list_runs", {}), ("get_status", {"run_id": "run-x"})):
            code, told = await expect_error(client, tool, **arguments)
            assert code == "store_unavailable", told
        home.path.unlink()
        await ended(client)


async def test_a_runs_directory_that_is_a_file_is_an_error_of_starts_alone(home: TempHome) -> None:
    async with home.client() as client:
        earlier = await ended(client)
        (home.path / "runs").rename(home.path / "elsewhere")
        (home.path / "runs").write_text("")
        assert (await expect_error(client, "start_run", **SCRIPTED))[0] == "store_unavailable"
        assert [row["run_id"] for row in (await call(client, "list_runs"))["runs"]] == [earlier]
        (home.path / "runs").unlink()
        (home.path / "elsewhere").rename(home.path / "runs")
        assert (await call(client, "get_result", run_id=earlier))["status"] == "completed"
        await ended(client)


# -- the store --------------------------------------------------------------------------------------------------------


def garbage_header(database: Path) -> None:
    with database.open("r+b") as file:
        file.write(b"this is no SQLite file, not any more")


def garbage_middle(database: Path) -> None:
    with database.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)


def missing_table(database: Path) -> None:
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("DROP TABLE controls")


def newer(database: Path) -> None:
    with closing(sqlite3.connect(database)) as db:
        db.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")


def a_directory(database: Path) -> None:
    database.unlink()
    database.mkdir()


def half(database: Path) -> None:
    os.truncate(database, database.stat().st_size // 2)


@pytest.mark.parametrize(
    ("damage", "advice"),
    [
        (garbage_header, "massgen doctor --rebuild"),
        (garbage_middle, "massgen doctor --rebuild"),
        (missing_table, "massgen doctor --rebuild"),
        (newer, "upgrade massgen-mcp"),
        (a_directory, "doctor"),
        (half, "massgen doctor --rebuild"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
async def test_a_store_that_cannot_be_used_is_a_typed_error_until_it_is_put_right(
    home: TempHome, damage: Callable[[Path], None], advice: str
) -> None:
    database = home.path / "runs.sqlite3"
    async with home.client() as client:
        earlier = await ended(client)
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
    async with home.client() as client:
        good = home.work / "good.sqlite3"
        shutil.copy(database, good)
        damage(database)
        for tool, arguments in (("list_runs", {}), ("get_result", {"run_id": earlier}), ("start_run", SCRIPTED)):
            code, told = await expect_error(client, tool, **arguments)
            assert code == "store_unavailable"
            assert advice in told
        for path in home.path.glob("runs.sqlite3*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copy(good, database)
        assert (await call(client, "get_result", run_id=earlier))["status"] == "completed"
        await ended(client)
        assert len((await call(client, "list_runs"))["runs"]) == 2


async def test_a_server_goes_on_with_a_new_store_when_the_broken_one_was_moved_away(home: TempHome) -> None:
    async with home.client() as client:
        first = await ended(client)
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
        garbage_header(home.path / "runs.sqlite3")
        for path in home.path.glob("runs.sqlite3*"):
            path.rename(home.work / path.name)
        await ended(client)
        assert (await expect_error(client, "get_status", run_id=first))[0] == "unknown_run"
    assert (home.run_directory(first) / "events.jsonl").exists(), "a lost store takes no run with it"


async def test_a_store_that_another_process_is_just_making_is_waited_for(home: TempHome) -> None:
    home.path.mkdir()
    database = home.path / "runs.sqlite3"
    started: dict[str, object] = {}

    async def start(client: Client) -> None:
        started.update(await call(client, "start_run", **SCRIPTED, wait_seconds=30))

    async with home.client() as client:
        (server,) = home.processes(SERVER_MODULE)
        with closing(sqlite3.connect(database, isolation_level=None)) as maker:
            maker.execute("BEGIN IMMEDIATE")  # SQLite refuses others at once who would make the same file a WAL now
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(start, client)
                await wait_until(lambda: str(database) in open_files(server))
                maker.execute("COMMIT")
    assert started["status"] == "completed"


def open_files(pid: int) -> set[str]:
    found: set[str] = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found.add(str(entry.readlink()))
    return found


async def test_a_torn_write_ahead_log_costs_no_run_that_was_there_before(home: TempHome) -> None:
    async with home.client() as client:
        earlier = await ended(client)
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
    (home.path / "runs.sqlite3-wal").write_bytes(os.urandom(5000))
    async with home.client() as client:
        assert (await call(client, "get_result", run_id=earlier))["status"] == "completed"
        await ended(client)


async def test_a_store_of_the_first_version_is_brought_up_to_date(home: TempHome) -> None:
    home.path.mkdir()
    with closing(sqlite3.connect(home.path / "runs.sqlite3")) as db, db:
        for statement in MIGRATIONS[0]:
            db.execute(statement)
        db.execute(
            "INSERT INTO runs (run_id, state, question, config, fingerprint, request_hash, created, ended)"
            " VALUES ('run-old', 'completed', 'an old question', 'c', 'f', 'h', 1.0, 2.0)"
        )
    async with home.client() as client, home.client() as other:
        for each in (client, other):
            (row,) = (await call(each, "list_runs"))["runs"]
            assert (row["run_id"], row["question"]) == ("run-old", "an old question")
        await ended(client, session_id="s")


# -- clocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [-30 * 86400.0, 8000 * 365 * 86400.0 * -1 + 3.0e11])
async def test_a_clock_that_jumps_in_the_middle_of_a_run_ends_nothing_and_counts_no_negative_time(
    home: TempHome, jump: float
) -> None:
    hook, offset = home.work / "hook", home.work / "offset"
    hook.mkdir()
    offset.write_text("0")
    (hook / "sitecustomize.py").write_text(JUMPING)
    jumping = home.with_variables(PYTHONPATH=f"{hook}:{ROOT}", TEST_CLOCK_OFFSET=str(offset))
    gate = home.work / "go-on"
    config = home.config("held", agent("solo", {"answer": "kept", **after(gate)}))
    async with jumping.client() as client:
        earlier = await ended(client)
        running = (await call(client, "start_run", question="q", config=config))["run_id"]
        await wait_until(lambda: happened(home.run_directory(running), "model_call_started"))
        offset.write_text(str(jump))
        gate.touch()
        assert (await call(client, "get_status", run_id=running))["elapsed_seconds"] >= 0
        assert (await call(client, "wait_run", run_id=running, timeout_seconds=30))["status"] == "completed"
        result = await call(client, "get_result", run_id=running)
        assert (result["answer"], result["seconds"] >= 0) == ("kept", True)
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
        later = await ended(client)
        for run_id in (earlier, running, later):
            assert (await call(client, "get_result", run_id=run_id))["status"] == "completed"


JUMPING = """
import os, time
real = time.time
def jumped():
    with open(os.environ["TEST_CLOCK_OFFSET"]) as file:
        return real() + float(file.read() or 0)
time.time = jumped
"""
