"""A command gets no more memory, room on the disk, files and processes than it may, whichever way it takes them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from massgen_mcp.sandbox import LevelName
from massgen_mcp.sandbox.specification import GIB
from tests.commands import ROOT
from tests.sandbox.greed import ALL, ALL_BOMBS, DISK, greedy
from tests.sandbox.table import LEVELS, ORDINARY, USERS, User, as_ordinary

REFUSED = {"System V memory", "System V semaphores", "System V messages"}
"""Only little of each can be had, with whatever bounds."""


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
async def test_no_way_to_take_more_than_there_may_be_goes_round_the_limits(
    tmp_path: Path, level: LevelName, user: User
) -> None:
    told = await told_of(user, level, tmp_path)
    assert len(told) == 19
    assert {name for name, text in told.items() if text.startswith("[exit code 0,")} == set()
    assert "more memory than allowed" in told["files in memory"]
    assert {name for name in REFUSED if told[name].endswith("refused")} == REFUSED
    for name in ("files without a name", "a directory that nobody lists", "the directory for temporary files"):
        assert "take more space" in told[name], told[name]
    assert "more files than allowed" in told["files"]


@pytest.mark.skipif(os.geteuid() != 0 or "bubblewrap" not in LEVELS, reason="hides control groups from itself as root")
def test_where_root_can_make_no_control_group_its_memory_and_processes_are_counted(tmp_path: Path) -> None:
    """No limit of the kernel's holds for all processes of root's."""
    names = ("files in memory", "shared pages", "processes", "processes that breed", "threads")
    module = [sys.executable, "-m", "tests.sandbox.greed", "bubblewrap", str(tmp_path), *names]
    hiding = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
    done = subprocess.run(
        [str(shutil.which("unshare")), "--mount", "/bin/sh", "-c", hiding, "sh", *module],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    assert {name for name, text in told.items() if text.startswith("[exit code 0,")} == set()
    assert "more memory than allowed" in told["files in memory"]
    assert "more processes than allowed" in told["processes"]


async def test_whoever_may_take_enough_gets_all_of_it(tmp_path: Path) -> None:
    """Without bounds that bind each of them holds what it says, so it is the bounds that end them."""
    memory = ("files in memory", "shared pages", "tables of pages", "files in memory, of a process that hides")
    names = (*memory, *DISK, "processes", "threads")
    told = await greedy(tmp_path, LEVELS[0], names, memory=8 * GIB, disk=8 * GIB, processes=2_000, hold=0)
    held = {name for name, text in told.items() if ALL in text}
    assert held == set(names)


async def told_of(user: User, level: LevelName, directory: Path) -> dict[str, str]:
    if user == "root" or os.geteuid() != 0:
        return await greedy(directory, level, tuple(ALL_BOMBS))
    with TemporaryDirectory() as place:  # pytest's own directories are closed to others
        os.chown(place, ORDINARY, ORDINARY)
        return json.loads(as_ordinary("tests.sandbox.greed", level, place))
