"""What a run writes, and when: what has happened, and signs of life of many runs at one moment."""

import asyncio
import math
from contextvars import Context
from pathlib import Path
from typing import Any

import anyio
import pytest

import massgen_mcp
from massgen_mcp.runs.host import foreground_run
from tests.harness import PATIENCE_SECONDS, POLL_SECONDS, TempHome, agent, call, happened, wait_until

NEVER = 1e9
"""A moment on the loop's clock that no machine stays up for."""
STUCK = agent("solo", {"hang": True})
TEAM = {"agents": [STUCK, agent("other", {"hang": True})]}


class NotingLoop(asyncio.SelectorEventLoop):
    """Notes for which moments it was set."""

    def __init__(self) -> None:
        self.alarms: list[float] = []
        super().__init__()

    def call_at(  # pyright: ignore[reportIncompatibleMethodOverride] - as in asyncio, without its type variables
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self.alarms.append(when)
        return super().call_at(when, callback, *args, context=context)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": NotingLoop}


async def test_signs_of_life_of_all_runs_of_a_process_come_at_one_moment(
    home: TempHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.work)
    monkeypatch.setattr(foreground_run, "STATUS_HEARTBEAT", NEVER)
    monkeypatch.setattr(foreground_run, "CONTROL_INTERVAL", NEVER)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, NotingLoop)

    def far() -> list[float]:
        return [when for when in loop.alarms if NEVER / 2 < when < math.inf]

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for count in range(1, 4):
                tasks.start_soon(lambda: massgen_mcp.run("q", config_dict=TEAM, enable_logging=True))
                while len(far()) < 2 * count:
                    await anyio.sleep(POLL_SECONDS)
            tasks.cancel_scope.cancel()
    assert set(far()) == {NEVER}


def written(directory: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and when it was written."""
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in directory.rglob("*") if path.is_file()
    }


async def test_a_run_in_which_nothing_happens_is_not_written_while_another_one_goes_on(home: TempHome) -> None:
    """The other one lasts longer than the pauses between the signs of life that the command line gives."""
    async with home.client() as client:
        quiet = (await call(client, "start_run", question="q", config=home.config("stuck", STUCK)))["run_id"]
        directory = home.run_directory(quiet)
        await wait_until(lambda: happened(directory, "model_call_started"))
        status = directory / "status.json"
        await wait_until(lambda: status.exists() and '"streaming"' in status.read_text())
        short = home.config("short", agent("solo", {"answer": "done", "delay_seconds": 0.5}))
        await call(client, "start_run", question="q", config=short, wait_seconds=40)  # what was due is written now
        before = written(directory)
        seconds = foreground_run.STATUS_HEARTBEAT + 1
        busy = home.config("busy", agent("solo", {"answer": "done", "delay_seconds": seconds}))
        ended = await call(client, "start_run", question="q", config=busy, wait_seconds=40)
        assert ended["status"] == "completed"
        assert written(directory) == before
        await call(client, "control_run", run_id=quiet, action="cancel")
