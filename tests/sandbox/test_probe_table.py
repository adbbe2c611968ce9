"""Every level of the sandbox that this machine has, against everything that must be impossible in one."""

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from massgen_mcp.sandbox.levels import interpreter
from massgen_mcp.sandbox.policy import LevelName
from massgen_mcp.sandbox.probe import SCRIPT, judged, report_on
from massgen_mcp.sandbox.targets import Targets
from tests.needs import needs
from tests.sandbox.table import LEVELS, USERS, User, report_as

HARMLESS = {
    *("read_outside", "write_outside", "list_outside", "read_hidden"),
    *("hard_link_outside", "chmod_outside", "parent_environ"),
    *("tcp_loopback", "udp_loopback", "unix_socket", "abstract_socket", "write_shown"),
    *("any_environ", "limit_victim", "kill_victim", "rename_out", "stay_behind"),
    *("mptcp_loopback", "tcp_fast_open", "watch_outside"),
}
"""Attempts that touch nothing but what was set up for them, even where they succeed."""


def test_this_machine_has_a_level() -> None:
    assert LEVELS, "install bubblewrap, or the group of packages for development"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_nothing_that_must_be_impossible_is_possible_in_a_level(level: LevelName, user: User) -> None:
    report = report_as(user, level)
    possible = {name for name, outcome in report.outcomes.items() if outcome == "open"}
    assert {name for name in possible if not name.startswith(("works_", "usual_"))} == set()
    assert {name for name in report.outcomes if name.startswith("works_")} | {"usual_move"} <= possible
    assert (report.holds, report.why) == (True, "")
    assert set(report.outcomes) >= HARMLESS
    assert len(report.outcomes) > 60


def test_without_a_sandbox_the_same_attempts_succeed_and_no_level_would_hold() -> None:
    with Targets("sandbox-exec") as targets:  # its plan names paths of the host
        plan = {**targets.plan, "only": sorted(HARMLESS)}
        done = subprocess.run(
            [interpreter(), "-I", "-S", "-c", SCRIPT.read_text()],
            input=json.dumps(plan) + "\n",
            env=dict(targets.policy.environ),
            capture_output=True,
            text=True,
            check=True,
        )
        told = {name: outcome.partition(":")[0] for name, outcome in json.loads(done.stdout).items()}
        os.waitid(os.P_PID, targets.plan["victim"], os.WEXITED | os.WNOWAIT)  # it was sent SIGKILL, and may still live
        seen = targets.look()
        end_marked(targets.policy.environ["MASSGEN_PROBE"])
    assert {name for name, outcome in told.items() if outcome != "open"} == {"udp_loopback", "stay_behind"}
    assert {name for name, outcome in seen.items() if outcome == "open"} >= {
        *("host_files_changed", "host_files_appeared", "host_sockets_reached", "host_victim_ended"),
        *("host_processes_left",),
    }
    for name in (name for name, outcome in (told | seen).items() if outcome == "open"):
        report = judged("bubblewrap", {**told, **dict.fromkeys(told | seen, "closed"), name: "open"})
        assert not report.holds
        assert name in report.why


async def test_a_level_that_cannot_start_a_command_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    report = await report_on("bubblewrap", None)
    assert not report.holds
    assert "before the command began" in report.why
    assert "Permission denied" in report.why


@needs("bwrap")
async def test_a_level_that_did_not_hold_is_tried_again_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(f"""#!/bin/sh
options="$1 $2"; shift 2
exec {shutil.which("bwrap")} $options --ro-bind /dev/shm /dev/shm "$@"
""")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    report = await report_on("bubblewrap", tmp_path / "known.json")
    assert report.why == "it lets a command through: read_shared_memory"
    assert not (tmp_path / "known.json").exists()


async def test_what_is_known_of_a_level_is_asked_of_the_file_until_something_changes(tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    level = LEVELS[-1]
    first = await report_on(level, known)
    kept = json.loads(known.read_text())
    (key,) = kept
    kept[key]["why"] = "as the file says"
    known.write_text(json.dumps(kept))
    assert (await report_on(level, known)).why == "as the file says"
    known.write_text(json.dumps({f"of another boot {key}": kept[key]}))
    assert await report_on(level, known) == first
    known.write_text("damaged")
    assert await report_on(level, known) == first


def end_marked(mark: str) -> None:
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)
