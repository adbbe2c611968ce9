"""The doctor looks at everything that runs need, changes nothing, and says what to do."""

import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from massgen_mcp.home import Home
from massgen_mcp.runs.doctor.checks import check_all
from massgen_mcp.runs.doctor.result import DoctorCheck
from massgen_mcp.runs.store.opening import local_engine
from massgen_mcp.runs.store.sqlite.database import SCHEMA_VERSION
from tests.harness import RUNNER_MODULE, TempHome, agent, call, end, happened, wait_until


def found(home: TempHome, name: str, environ: dict[str, str] | None = None) -> list[DoctorCheck]:
    return [check for check in check_all(local_engine(Home(home.path)), environ or {}) if check.name.startswith(name)]


def contents(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in path.rglob("*") if file.is_file() and "-shm" not in file.name}


def test_a_machine_without_runs_is_well_and_stays_untouched(home: TempHome) -> None:
    checks = check_all(local_engine(Home(home.path)), {"OPENAI_API_KEY": "sk-secret"})
    assert [check for check in checks if check.level != "ok"] == []
    assert not home.path.exists()
    assert {"version", "keys", "state directory", "writable", "free space", "run store", "runs"} <= {
        check.name for check in checks
    }


def test_keys_are_told_by_name_only(home: TempHome) -> None:
    (check,) = found(home, "keys", {"OPENAI_API_KEY": "sk-secret"})
    assert (check.level, "OPENAI_API_KEY" in check.message) == ("ok", True)
    (check,) = found(home, "keys")
    assert (check.level, "OPENAI_API_KEY" in check.advice) == ("warn", True)
    _, blank = found(home, "keys", {"OPENAI_API_KEY": "sk-secret\n"})
    assert (blank.level, "OPENAI_API_KEY" in blank.message) == ("warn", True)
    assert "sk-secret" not in str(check_all(local_engine(Home(home.path)), {"OPENAI_API_KEY": " sk-secret"}))
    _, broken = found(home, "keys", {"OPENAI_API_KEY": "sk-secret\nsk-secret"})
    assert (broken.level, "OPENAI_API_KEY doesn't contain a usable key" in broken.message) == ("fail", True)
    assert "sk-secret" not in str(broken)


async def test_runs_and_runners_are_told_as_they_are(home: TempHome) -> None:
    stuck = home.config("stuck", agent("one", {"hang": True}))
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", config=stuck))["run_id"]
        run = home.run_directory(run_id)
        await wait_until(lambda: happened(run, "model_call_started") and (run / "status.json").exists())
        before = contents(run)
        (check,) = found(home, "runner")
        assert (check.level, check.message) == ("ok", "alive, 1 running, 0 queued")
        assert contents(run).keys() == before.keys()
        (runner,) = home.processes(RUNNER_MODULE)
    end(runner, signal.SIGKILL)
    await wait_until(lambda: found(home, "runner")[0].level == "warn")  # its lock falls when it is gone altogether
    (check,) = found(home, "runner")
    assert check.message == "none, 1 running, 0 queued"
    assert "keys" in check.advice


async def test_a_run_without_its_directory_and_a_directory_without_its_run_are_named(home: TempHome) -> None:
    async with home.client() as client:
        run_id = (await call(client, "start_run", question="q", models=["scripted/x"], wait_seconds=30))["run_id"]
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
    home.run_directory(run_id).rename(home.run_directory("run-stray"))
    lost, stray = found(home, "runs")
    assert (run_id in lost.message, "run-stray" in stray.message) == (True, True)
    assert (lost.level, stray.level) == ("warn", "warn")


@pytest.mark.parametrize("kind", ["garbage", "newer", "missing", "emptied", "lost"])
async def test_a_store_that_cannot_be_used_comes_with_what_to_do(home: TempHome, kind: str) -> None:
    async with home.client() as client:
        await call(client, "start_run", question="q", models=["scripted/x"], wait_seconds=30)
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
    database = home.path / "runs.sqlite3"
    match kind:
        case "garbage":
            database.write_bytes(b"no SQLite file" * 500)
        case "newer":
            with closing(sqlite3.connect(database)) as db:
                db.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
        case "missing":
            with closing(sqlite3.connect(database)) as db, db:
                db.execute("DROP TABLE controls")
        case "emptied":
            database.write_bytes(b"")
        case _:
            database.unlink()
    (check,) = found(home, "run store")
    wanted = "upgrade" if kind == "newer" else "--rebuild"
    assert (check.level, wanted in check.advice) == ("fail", True)


def test_a_state_directory_that_is_none_or_is_open_to_others_is_told(home: TempHome) -> None:
    home.path.mkdir(mode=0o755)
    os.chmod(home.path, 0o755)  # noqa: PTH101, S103 - whatever the umask is
    (check,) = found(home, "state directory")
    assert (check.level, check.advice) == ("warn", f"chmod 700 {home.path}")
    shutil.rmtree(home.path)
    home.path.write_text("a file")
    (check,) = found(home, "state directory")
    assert check.level == "fail"
    assert {check.level for check in found(home, "writable")} == {"fail"}
