"""A server, a runner and a run on a disk that fills up, is emptied, and becomes read-only: a program of its own.

`python -m tests.runs.small_disk DIRECTORY [mount]`; with `mount` on a small tmpfs, for which it must be in a mount
namespace of its own, otherwise by limits on the sizes of files.
"""

import resource
import subprocess
import sys
from pathlib import Path

import anyio

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

SCRIPTED = {"question": "q", "models": ["scripted/x"]}
LONG = "kept " * 1_900
"""A reply that needs more room than is left in the last block of a journal."""


class Disk:
    def __init__(self, home: TempHome, *, mounted: bool) -> None:
        self._home = home
        self.mounted = mounted
        if mounted:
            home.path.mkdir()
            self._mount("-t", "tmpfs", "-o", "size=4m,mode=0700", "none")

    def fill(self) -> None:
        if not self.mounted:
            return self._limit(100)
        with (self._home.path / "filler").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                return None

    def empty(self) -> None:
        if not self.mounted:
            return self._limit(resource.RLIM_INFINITY)
        (self._home.path / "filler").unlink()
        return None

    def remount(self, how: str) -> None:
        """Read-only (`ro`) or not (`rw`). Not while anybody has a file open for writing."""
        if self.mounted:
            self._mount("-o", f"remount,{how},size=4m", "none")

    def _limit(self, size: int) -> None:
        for pid in [*self._home.processes(SERVER_MODULE), *self._home.processes(RUNNER_MODULE)]:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def _mount(self, *arguments: str) -> None:
        subprocess.run(["mount", *arguments, str(self._home.path)], check=True)


async def outlive(home: TempHome, disk: Disk) -> None:
    gate = home.work / "go-on"
    config = home.config("slow", agent("solo", {"answer": LONG, **after(gate)}))
    async with home.client() as client:
        earlier = (await call(client, "start_run", **SCRIPTED, wait_seconds=30))["run_id"]
        running = (await call(client, "start_run", question="q", config=config))["run_id"]
        await wait_until(lambda: happened(home.run_directory(running), "model_call_started"))
        disk.fill()
        gate.touch()
        assert (await expect_error(client, "start_run", **SCRIPTED))[0] == "disk_full"
        assert (await call(client, "get_result", run_id=earlier))["status"] == "completed"
        await anyio.sleep(2)  # the run's reply comes in this time, and finds no room
        assert (await call(client, "get_status", run_id=running))["status"] == "running"
        assert not happened(home.run_directory(running), "model_replied")
        disk.empty()
        assert (await call(client, "wait_run", run_id=running, timeout_seconds=40))["status"] == "completed"
        assert await whole_answer(client, running) == LONG
        await wait_until(lambda: not home.processes(RUNNER_MODULE))
    disk.remount("ro")
    async with home.client() as client:
        if not disk.mounted:
            disk.fill()
        for tool, arguments in (("start_run", SCRIPTED), ("control_run", {"run_id": earlier, "action": "cancel"})):
            code, told = await expect_error(client, tool, **arguments)
            assert code in ("store_unavailable", "disk_full"), told
        disk.remount("rw")
        if not disk.mounted:
            disk.empty()
        assert (await call(client, "get_result", run_id=earlier))["status"] == "completed"
        assert (await call(client, "start_run", **SCRIPTED, wait_seconds=30))["status"] == "completed"
    assert len(home.runs) == 3, "refused starts leave nothing behind"


def main() -> None:
    work = Path(sys.argv[1]) / "small"
    work.mkdir()
    home = TempHome(Path(sys.argv[1]) / "disk", work, starts_anew=True)
    try:
        anyio.run(outlive, home, Disk(home, mounted="mount" in sys.argv))
    finally:
        home.close()
    print("outlived")


if __name__ == "__main__":
    main()
