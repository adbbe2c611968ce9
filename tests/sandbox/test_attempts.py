"""More than 150 further attempts at every level and as every user: what the probes at run time do not try."""

import json
import subprocess
from pathlib import Path

import pytest

from massgen_mcp.sandbox.levels import interpreter
from massgen_mcp.sandbox.policy import LevelName
from massgen_mcp.sandbox.targets import Targets
from tests.sandbox.table import LEVELS, USERS, Further, User, attempts_as
from tests.sandbox.tool_home import UNSEEN

SCRIPT = Path(__file__).with_name("attempts.py")
SEEN = {"sandlock": {"statvfs", "chdir"}, "bubblewrap": set[str](), "sandbox-exec": set[str]()}
"""What is no way out, and is told by the level's own words."""
HARMLESS = (
    *("mptcp to a mapped address", "fast open by sendto", "fast open by sendmsg", "fast open by sendmmsg"),
    *("fast open by connect", "udp by connect", "udp by sendmmsg", "unix socket as a file outside", "list attributes"),
    *("statx", "faccessat2", "statvfs", "openat2", "open a path only", "inotify", "dnotify", "lock", "chdir"),
    *("pidfd_send_signal", "tgkill", "ioprio_set", "socket: uevents", "socket: netfilter"),
    *("overwrite outside", "overwrite what is shown", "read by a symlink", "read by a symlinked directory"),
    *("read by dots", "write by a hard link", "truncate", "times", "times of what is shown", "chmod of what is shown"),
    *("tcp to a mapped address", "tcp to the own address", "listen for others", "signal", "signal to the parent"),
    *("command line of the parent", "files of the parent"),
)
"""Attempts that succeed where there is no sandbox, and touch nothing but what was set up for them."""


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_none_of_them_gets_out(level: LevelName, user: User) -> None:
    outcomes = attempts_as(user, level, SCRIPT)
    assert len(outcomes) > 160
    assert len([name for name in outcomes if name.startswith("login ")]) == len(UNSEEN)
    assert {name for name, outcome in outcomes.items() if outcome is not False} <= SEEN[level]


def test_without_a_sandbox_they_succeed() -> None:
    # Its plan names paths of the host.
    with Targets("sandbox-exec") as targets, Further(targets.plan["key"]) as further:
        plan = {**targets.plan, **further.plan, "only": HARMLESS}
        done = subprocess.run(
            [interpreter(), "-I", "-S", str(SCRIPT)],
            input=json.dumps(plan) + "\n",
            capture_output=True,
            text=True,
            check=True,
        )
        seen = targets.look()
    told = json.loads(done.stdout)
    assert {name for name in HARMLESS if told[name] is not True} == {"udp by connect", "udp by sendmmsg"}
    assert {name for name, outcome in seen.items() if outcome == "open"} >= {
        "host_sockets_reached",
        "host_files_appeared",
        "host_files_changed",
    }
    assert further.reached
