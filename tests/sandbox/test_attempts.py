"""More than 200 further attempts at every level and as every user: what the probes at run time do not try."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from massgen_mcp.sandbox.levels import interpreter
from massgen_mcp.sandbox.policy import LevelName
from massgen_mcp.sandbox.targets import Targets
from tests.needs import needs
from tests.sandbox.table import LEVELS, USERS, Further, User, attempted, attempts_as
from tests.sandbox.tool_home import UNSEEN

SCRIPT = Path(__file__).with_name("attempts.py")
HARMLESS = (
    *("mptcp to a mapped address", "fast open by sendto", "fast open by sendmsg", "fast open by sendmmsg"),
    *("fast open by connect", "udp by connect", "udp by sendmmsg", "unix socket as a file outside", "list attributes"),
    *("statx", "faccessat2", "statvfs", "openat2", "open a path only", "inotify", "dnotify", "lock", "chdir"),
    *("pidfd_send_signal", "tgkill", "ioprio_set", "socket: uevents", "socket: netfilter"),
    *("overwrite outside", "overwrite what is shown", "read by a symlink", "read by a symlinked directory"),
    *("read by dots", "write by a hard link", "truncate", "times", "times of what is shown", "chmod of what is shown"),
    *("tcp to a mapped address", "tcp to the own address", "listen for others", "signal", "signal to the parent"),
    *("command line of the parent", "files of the parent", "environment of the parent", "memory of the victim"),
    *("raw", "tcp 6", "mptcp", "unix socket in what is shown", "System V memory of the host", "priority of the victim"),
    *("open to read and truncate", "openat2 to read and truncate", "creat over what is shown"),
    *("fchmod", "fchown", "futimens", "open it again to write", "chmod by its descriptor"),
    *("truncate by its descriptor", "System V memory, large", "System V semaphores, many", "System V messages"),
    *(f"{name} in the machine's /tmp" for name in ("open", "list", "stat", "readlink", "access", "link", "unlink")),
    *(f"{name} in the machine's /tmp" for name in ("mkdir", "rmdir", "rename in", "chdir", "watch")),
    "the workspace by its own path",
)
"""Attempts that succeed where there is no sandbox, and touch nothing but what was set up for them."""


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_none_of_them_gets_out(level: LevelName, user: User) -> None:
    outcomes = attempts_as(user, level, SCRIPT)
    assert len(outcomes) > 260
    assert len([name for name in outcomes if name.startswith("login ")]) == len(UNSEEN)
    assert {name for name, outcome in outcomes.items() if outcome is not False} == set()


def test_without_a_sandbox_they_succeed() -> None:
    # Its plan names paths of the host.
    with Targets("sandbox-exec") as targets, Further(targets) as further:
        plan = {**targets.plan, **further.plan, "only": HARMLESS}
        done = subprocess.run(
            [interpreter(), "-I", "-S", str(SCRIPT)],
            input=json.dumps(plan) + "\n",
            capture_output=True,
            text=True,
            check=True,
        )
        seen = {**targets.look(), **further.look()}
    told = json.loads(done.stdout)
    of_root = set[str]() if os.geteuid() == 0 else {"raw"}
    assert {name for name in HARMLESS if told[name] is not True} == {"udp by connect", "udp by sendmmsg"} | of_root
    assert {name for name, outcome in seen.items() if outcome in ("open", True)} >= {
        *("host_sockets_reached", "host_files_appeared", "host_files_changed"),
        *("the host sees: a port was opened for the host", "the host sees: files of the machine changed"),
        "the host sees: a socket was reached",
    }


@needs("bwrap")
async def test_where_the_aim_is_listed_the_attempts_at_it_succeed() -> None:
    names = ("proxy: CONNECT localhost:{tcp} HTTP/1.1", "proxy: CONNECT localhost:0{tcp} HTTP/1.1")
    told = await attempted("bubblewrap", SCRIPT, names, opened=True)
    assert [told[name] for name in names] == [True, True]
    assert told["the host sees: host_sockets_reached"] is True
