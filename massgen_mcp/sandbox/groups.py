"""Control groups of one command, where this user may make them: what the kernel itself bounds, whatever a command does.

Loaded by `supervisor` from beside it, which is why it knows no other module of ours.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

ROOT = "/sys/fs/cgroup"
OF_LEVEL_BYTES = 64 * 1024 * 1024
"""What the programs of a level may take beside the command, which are in the same group."""


class Groups(NamedTuple):
    """The groups of one command, which it enters before it begins."""

    processes: str | None
    memory: str | None
    """The same directory as `processes` with version 2."""

    def enter(self) -> None:
        """Move this process into them, and with it all that it starts from now on."""
        for group in self._each():
            with open(f"{group}/cgroup.procs", "r+") as file:
                file.write("0")

    def ran_out(self) -> bool:
        """Whether the kernel ended a process because there was no more memory for the group."""
        for name in ("memory.events", "memory.oom_control"):
            with suppress(OSError), open(f"{self.memory}/{name}") as file:
                return any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in file)
        return False

    def remove(self) -> None:
        """A group is busy for a moment after its last process has ended."""
        for group in self._each():
            deadline = time.monotonic() + 1
            while not _delete_group(group) and time.monotonic() < deadline:
                time.sleep(0.005)

    def _each(self) -> set[str]:
        return {group for group in self if group is not None}


def make(processes: int, memory_bytes: int) -> Groups:
    """Groups with these bounds; None for a bound that this user cannot have."""
    memory = str(memory_bytes + OF_LEVEL_BYTES)
    for parent in _list_parents():
        bounds = {"pids.max": str(processes), "memory.max": memory}
        if group := _make(parent, bounds, {"memory.swap.max": "0", "memory.oom.group": "1"}):
            return Groups(group, group)
    return Groups(
        _make(_find_group("pids"), {"pids.max": str(processes)}, {}) or _make(ROOT, {"pids.max": str(processes)}, {}),
        _make(_find_group("memory"), {"memory.limit_in_bytes": memory}, {"memory.memsw.limit_in_bytes": memory}),
    )


def _list_parents() -> Iterator[str]:
    """The groups of version 2 above this process, nearest first, that hand on both bounds."""
    path = _find_group("")
    while path.startswith(ROOT):
        with suppress(OSError), open(f"{path}/cgroup.subtree_control") as file:
            if {"memory", "pids"} <= set(file.read().split()):
                yield path
        path = os.path.dirname(path)


def _find_group(controller: str) -> str:
    """The group that this process is in, of a controller of version 1, or (with none) of version 2."""
    mounted = f"{ROOT}/{controller}".rstrip("/")
    with suppress(OSError), open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controller in controllers.split(",") and os.path.isdir(mounted + path):
                return (mounted + path).rstrip("/")
    return mounted


def _make(parent: str, bounds: dict[str, str], helpful: dict[str, str]) -> str | None:
    """A new group below `parent` with these bounds; None where that cannot be. Removes those of the dead."""
    group = f"{parent}/massgen-{os.getpid()}"
    with suppress(OSError):
        for name in os.listdir(parent):  # of supervisors that were killed
            if name.startswith("massgen-") and not os.path.exists(f"/proc/{name.removeprefix('massgen-')}"):
                _delete_group(f"{parent}/{name}")
        os.mkdir(group)
        try:
            for name, value in bounds.items():
                _write(f"{group}/{name}", value)
        except OSError:
            _delete_group(group)
            return None
        for name, value in helpful.items():  # not every kernel counts what is swapped out
            with suppress(OSError):
                _write(f"{group}/{name}", value)
        return group
    return None


def _write(path: str, value: str) -> None:
    with open(path, "r+") as file:  # never a new file, where no controller is
        file.write(value)


def _delete_group(group: str) -> bool:
    """Whether the group is gone."""
    try:
        os.rmdir(group)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
