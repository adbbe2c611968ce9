"""`python -m tests.soak.hostile_holder LEVEL DIRECTORY COMMAND`: runs a command as an agent does, until it is killed.

With `bare` as its level it stands for a product that only starts a shell.
"""

import subprocess
import sys
from pathlib import Path
from typing import cast

import anyio

from massgen_mcp.sandbox import LevelName
from tests.sandbox.at_work import hands


def hold_bare(directory: Path, command: str) -> None:
    directory.mkdir()
    subprocess.run(["/bin/sh", "-c", command], check=False, cwd=directory)


async def hold(level: str, directory: Path, command: str) -> None:
    async with hands(directory, cast("LevelName", level)) as agent:
        await agent.run(command, timeout_seconds=60)


if __name__ == "__main__":
    if sys.argv[1] == "bare":
        hold_bare(Path(sys.argv[2]), sys.argv[3])
    else:
        anyio.run(hold, sys.argv[1], Path(sys.argv[2]), sys.argv[3])
