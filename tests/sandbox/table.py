"""`python -m tests.sandbox.table LEVEL`: tries a level of the sandbox as whoever runs this, and prints the report.

Also which levels and users a machine has, for the tests.
"""

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import asdict
from pathlib import Path
from typing import Literal, cast

import anyio
import pytest

from massgen_mcp.sandbox.levels import BY_ITSELF, interpreter, present
from massgen_mcp.sandbox.policy import LevelName
from massgen_mcp.sandbox.probe import LevelReport, try_level
from tests.commands import ROOT

ORDINARY = 60_000 + os.getpid() % 5_000
"""Nobody else's number: the kernel bounds all processes of a user together, and tests run at the same time."""
LEVELS: tuple[LevelName, ...] = tuple(level for level in BY_ITSELF if present(level) is None)
"""Those that this machine has."""
User = Literal["root", "ordinary"]
USERS: tuple[User, ...] = ("root", "ordinary") if os.geteuid() == 0 else ("ordinary",)


def report_as(user: User, level: LevelName) -> LevelReport:
    """What trying the level comes to for this user. Skips the test where the ordinary user cannot run our Python."""
    if user == "root" or os.geteuid() != 0:
        return anyio.run(try_level, level)
    return LevelReport(**json.loads(as_ordinary("tests.sandbox.table", level)))


def as_ordinary(module: str, *arguments: str) -> str:
    """What the module prints for an ordinary user; skips the test where such a one cannot run our Python."""
    command = [_python_of_others(), "-B", "-m", module, *arguments]
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": f"{ROOT}:{_packages()}"}
    done = subprocess.run(
        command,
        env=environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        user=ORDINARY,
        group=ORDINARY,
        extra_groups=[],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _packages() -> str:
    return sysconfig.get_path("purelib")


def _python_of_others() -> str:
    """An interpreter of this version that other users may start."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for path in (interpreter(), f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        if Path(path).exists() and _reaches(Path(path).resolve()) and _reaches(Path(_packages())):
            return path
    return pytest.skip("no interpreter of this version, or not this project, can be read by other users here")


def _reaches(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in path.parents)


if __name__ == "__main__":
    print(json.dumps(asdict(anyio.run(try_level, cast("LevelName", sys.argv[1])))))
