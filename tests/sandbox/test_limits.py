"""A command gets no more memory and no more room on the disk than it may, whichever way it takes them."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from massgen_mcp.sandbox import LevelName
from massgen_mcp.sandbox.policy import GIB
from tests.sandbox.greed import ALL, DISK, MEMORY, greedy
from tests.sandbox.table import LEVELS, ORDINARY, USERS, User, as_ordinary

NAMES = (*MEMORY, *DISK)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
async def test_no_way_to_take_more_memory_or_room_than_there_may_be_goes_round_the_limits(
    tmp_path: Path, level: LevelName, user: User
) -> None:
    told = await told_of(user, level, tmp_path)
    assert {name for name, text in told.items() if text.startswith("[exit code 0,")} == set()
    assert "more memory than it may" in told["files in memory"]
    for name in ("files without a name", "a directory that nobody lists"):
        assert "take more room" in told[name], told[name]


async def test_whoever_may_take_enough_gets_all_of_it(tmp_path: Path) -> None:
    """Without bounds that bind each of them holds what it says, so it is the bounds that end them."""
    level = LEVELS[0]
    told = await greedy(tmp_path, level, NAMES, memory=8 * GIB, disk=8 * GIB)
    held = {name for name, text in told.items() if ALL in text}
    uncounted = {"files in memory, of a program that cannot be read"} if os.geteuid() else set[str]()
    assert held >= set(NAMES) - {"files beside the devices"} - uncounted


async def told_of(user: User, level: LevelName, directory: Path) -> dict[str, str]:
    if user == "root" or os.geteuid() != 0:
        return await greedy(directory, level, NAMES)
    with TemporaryDirectory() as place:  # pytest's own directories are closed to others
        os.chown(place, ORDINARY, ORDINARY)
        return json.loads(as_ordinary("tests.sandbox.greed", level, place))
