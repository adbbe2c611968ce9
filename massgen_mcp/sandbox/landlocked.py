"""The level of sandlock: Landlock and a supervisor of system calls, for machines without namespaces for users.

Only describes how a command is started; must not start one, nor import sandlock into this process.
"""

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

from massgen_mcp.sandbox import filters
from massgen_mcp.sandbox.policy import SCRATCH, WORKSPACE, Policy, devices, inside, readable


def library() -> str | None:
    """The directory that sandlock is installed in, if it is, and if we know this machine's system calls."""
    if not filters.known_machine():
        return None
    found = importlib.util.find_spec("sandlock")
    return str(Path(found.origin).parent.parent) if found is not None and found.origin else None


def launch(argv: list[str], policy: Policy, environ: dict[str, str]) -> dict[str, object]:
    """What the supervisor needs to start `argv` under `policy`."""
    found = library()
    if found is None:
        raise FileNotFoundError("sandlock")
    shown = policy.shown
    denied = [place for one in inside(policy.hidden, (*shown, *policy.linked)) for place in _both(one)]
    seen = [*readable(), *policy.toolchains, Path("/proc"), *devices()]
    taken = [*seen, *map(Path, (WORKSPACE, SCRATCH, *(one.place for one in shown)))]
    elsewhere = {one.host for one in (*shown, *policy.linked) if str(one.host) != one.place}
    own = (policy.workspace, policy.scratch, *elsewhere)  # to execute programs in them, at their places inside alone
    options: dict[str, object] = {
        "chroot": "/",
        "fs_readable": [str(path) for path in (*seen, *own)],
        "fs_writable": ["/dev/null"],
        "fs_denied": [
            *map(str, policy.hidden),
            *(str(one) for path in own if (one := _apart(path, taken)) is not None),
            *denied,
        ],
        "fs_mount": {
            WORKSPACE: str(policy.workspace),
            SCRATCH: str(policy.scratch),
            **{place: str(one.host) for one in shown if one.writable for place in _both(one.place)},
        },
        "fs_mount_ro": {
            **{place: str(one.host) for one in shown if not one.writable for place in _both(one.place)},
            **{one.place: str(one.host) for one in policy.linked},
        },
        "cwd": str(policy.workspace),
        "clean_env": True,
        "env": {name: _instead(value, policy) for name, value in environ.items()},
        "net_allow": [f"tcp://{endpoint}" for endpoint in policy.network],
        "extra_deny_syscalls": ["listen"] if policy.network else [],  # it binds what is not bound, and nobody is asked
        "max_memory": policy.bounds.memory_bytes,
        "max_open_files": policy.bounds.open_files,
    }
    return {
        "argv": argv,
        "environ": {},
        "sandlock": options,
        "library": found,
        "own_group": os.geteuid() == 0,
        "count_user": os.geteuid() != 0,
        "filter": filters.without_the_host(internet=bool(policy.network)).decode("latin-1"),
    }


def _both(place: str) -> tuple[str, str]:
    """A place, and the same below the workspace: its links to the places lead nowhere here."""
    return place, f"{WORKSPACE}{place}"


def _instead(value: str, policy: Policy) -> str:
    """For a directory of the command's own, which lies in its scratch directory here."""
    return f"{SCRATCH}/{Path(value).name}" if value in policy.empty else value


def _apart(path: Path, taken: Iterable[Path]) -> Path | None:
    """The highest directory above it, or itself, in which nothing is that a command finds; None if it lies in such."""
    if any(path.is_relative_to(other) for other in taken):
        return None
    above = (path, *path.parents)
    return next((one for one in reversed(above) if not any(other.is_relative_to(one) for other in taken)), None)
