"""The level of sandlock: Landlock and a supervisor of system calls, for machines without namespaces for users.

Only describes how a command is started; must not start one, nor import sandlock into this process.
"""

import importlib.util
import os
from pathlib import Path

from massgen_mcp.sandbox import filters
from massgen_mcp.sandbox.policy import SCRATCH, WORKSPACE, Policy, inside
from massgen_mcp.sandbox.toolchains import devices, readable


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
    options: dict[str, object] = {
        "chroot": "/",
        "fs_readable": [str(path) for path in (*readable(), *policy.toolchains, Path("/proc"), *devices())],
        "fs_writable": ["/dev/null"],
        "fs_denied": [*map(str, policy.hidden), *denied],
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
        "env": environ,
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
