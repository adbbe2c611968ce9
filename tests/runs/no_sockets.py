"""Runs where no socket can be made, because every directory for them is full: a program of its own.

`unshare --mount python -m tests.runs.no_sockets DIRECTORY`. A full directory is a file system without room for one more
name.
"""

import os
import subprocess
import sys
from pathlib import Path

import anyio

from tests.harness import PATIENCE_SECONDS, RUNNER_MODULE, TempHome, after, agent, call, happened, wait_until
from tests.interrupted import log_directory, started


def fill(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=1,mode=0700", "none", str(directory)], check=True)


async def outlive(home: TempHome) -> None:
    config = home.config("stuck", agent("solo", {"answer": "early"}, {"hang": True}), agent("bo", {"hang": True}))
    async with home.client() as client:
        gate = home.work / "go-on"
        held = home.config("held", agent("solo", {"answer": "late", **after(gate)}))
        run_id = (await call(client, "start_run", question="q", config=held))["run_id"]
        await wait_until(lambda: home.processes(RUNNER_MODULE))
        gate.touch()
        assert (await call(client, "wait_run", run_id=run_id, timeout_seconds=40))["status"] == "completed"
        with started(home, config) as massgen:
            directory = log_directory(massgen)
            await wait_until(lambda: happened(directory, "answer_submitted"))
            (row,) = (await call(client, "list_runs", state="running"))["runs"]
            await call(client, "control_run", run_id=row["run_id"], action="cancel")
            waited = await call(client, "wait_run", run_id=row["run_id"], timeout_seconds=40)
            assert waited["status"] == "cancelled"
            assert massgen.wait(timeout=PATIENCE_SECONDS) == 4
    assert not [*home.path.rglob("*.news"), *home.work.rglob("*.news")], "nobody could be told"


def main() -> None:
    place = Path(sys.argv[1])
    runtime, work = place / "runtime", place / "work"
    work.mkdir()
    for directory in (runtime, Path("/tmp") / f"massgen-mcp-{os.getuid()}"):  # noqa: S108 - where sockets lie
        fill(directory)
    home = TempHome(place / "home", work, {"XDG_RUNTIME_DIR": str(runtime), "TMPDIR": "/tmp"}, starts_anew=True)  # noqa: S108
    try:
        anyio.run(outlive, home)
    finally:
        home.close()
    print("outlived")


if __name__ == "__main__":
    main()
