"""A runner lives long: what a run opens it closes."""

import gc
import threading
from pathlib import Path

from tests.teams import run_team, team

SCRIPTS = (
    [{"call": "write_file", "arguments": {"path": "a", "content": "x"}}, {"answer": "one"}, {"vote": "own"}],
    [{"answer": "two"}, {"call": "list_files", "arguments": {"path": "peers"}}, {"vote": "own"}],
    [{"fail": "auth"}],
)


def open_files() -> int:
    """Without what earlier tests of this process left to the garbage collector."""
    gc.collect()
    return len(list(Path("/dev/fd").iterdir()))


async def test_runs_leave_no_open_files_and_no_threads_behind(tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    config = team(*SCRIPTS, orchestrator={"context_paths": [{"path": str(context)}]})
    await run_team(tmp_path / "first", config)  # makes what is made once per process
    before, threads = open_files(), threading.active_count()
    for number in range(20):
        await run_team(tmp_path / str(number), config)
    assert open_files() == before
    assert threading.active_count() < threads + 10, "a busy machine has more threads, but not more with each run"


async def test_a_run_that_breaks_leaves_no_open_files_behind(tmp_path: Path) -> None:
    config = team([{"answer": "one"}], [{"hang": True}], timeouts={"orchestrator_timeout_seconds": 0.05})
    await run_team(tmp_path / "first", config)
    before = open_files()
    for number in range(10):
        await run_team(tmp_path / str(number), config)
    assert open_files() == before
