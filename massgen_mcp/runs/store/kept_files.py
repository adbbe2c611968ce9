"""What of a run's directory goes elsewhere with the run, where another machine goes on with it or shows it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR

PULLED = ".pulled"
"""In a directory: the name of the last archive that was read into it."""
PULLING = f"{PULLED}.lock"
OWN = {"private", PULLED, PULLING}
MADE_AGAIN = {"node_modules", ".venv", "venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".cache"}
"""Directories in workspaces that programs fill."""
REQUEST = "config.json"


def places(root: Path, *, everything: bool) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """What of a run's directory is kept, each with what changes when it does."""
    for directory, names, files in os.walk(root):
        below = os.path.relpath(directory, root)
        below = "" if below == "." else f"{below}/"
        names[:] = [name for name in names if _is_kept(below, name)]
        for name in (*names, *files):
            if not below and name not in names and (name in OWN or not (everything or name == REQUEST)):
                continue
            with suppress(OSError):  # it is gone
                found = os.lstat(Path(directory, name))
                same = (
                    (found.st_mode, 0, 0)
                    if S_ISDIR(found.st_mode)
                    else (found.st_mode, found.st_size, found.st_mtime_ns)
                )
                yield f"{below}{name}", same


def _is_kept(below: str, name: str) -> bool:
    """Of a directory."""
    if not below:
        return name not in OWN
    if not is_work(below):
        return (below, name) != ("changes/", "setup")  # it runs again
    return name not in MADE_AGAIN and not (below == "workspaces/" and name.endswith(".scratch"))


def is_work(place: str) -> bool:
    return place.partition("/")[0] == "workspaces"
