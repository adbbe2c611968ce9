"""Every level of the sandbox that this machine has holds, by attempts that succeed as soon as a wall is missing."""

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from massgen_mcp.sandbox.levels import interpreter
from massgen_mcp.sandbox.network import Network, NetworkFailed
from massgen_mcp.sandbox.policy import LevelName
from massgen_mcp.sandbox.probe import SCRIPT, judged, report_on, try_level
from massgen_mcp.sandbox.targets import Targets
from tests.needs import needs
from tests.sandbox.table import LEVELS, USERS, User, report_as
from tests.sandbox.twins import WALLS, put_in_place

REAL = shutil.which("bwrap") or ""
HARMLESS = {
    *("write_outside", "read_outside", "write_shown", "truncate_shown", "read_hidden", "our_variables", "kill_victim"),
    *("tcp_loopback", "unix_socket", "abstract_socket", "read_shared_memory", "stay_behind"),
}
"""Attempts that touch nothing but what was set up for them, even where they succeed."""


def test_this_machine_has_a_level() -> None:
    assert LEVELS, "install bubblewrap"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_nothing_that_must_be_impossible_is_possible_in_a_level(level: LevelName, user: User) -> None:
    report = report_as(user, level)
    possible = {name for name, outcome in report.outcomes.items() if outcome == "open"}
    assert {name for name in possible if not name.startswith(("works_", "usual_"))} == set()
    assert {name for name in report.outcomes if name.startswith("works_")} | {"usual_network"} <= possible
    assert (report.holds, report.why) == (True, "")
    assert set(report.outcomes) >= HARMLESS


@needs("bwrap")
@pytest.mark.parametrize("wall", WALLS)
async def test_without_one_of_its_walls_a_level_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: str
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("MASSGEN_TEST_KEY", "of-this-process")
    put_in_place(tmp_path, wall, REAL, ("MASSGEN_TEST_KEY", "of-this-process"))
    if wall == "network":  # the shared one is no setting of bubblewrap's

        async def refuse(*_: object) -> Network:
            raise NetworkFailed("there is none")

        monkeypatch.setattr(Network, "open", refuse)
    report = await try_level("bubblewrap")
    through = {name for name, outcome in report.outcomes.items() if outcome == "open"}
    assert not report.holds
    assert {name for name in through if not name.startswith(("works_", "usual_"))} == WALLS[wall], report


def test_without_a_sandbox_the_same_attempts_succeed_and_no_level_would_hold() -> None:
    with Targets("sandbox-exec") as targets:  # its plan names paths of the host
        plan = {**targets.plan, "only": sorted(HARMLESS)}
        done = subprocess.run(
            [interpreter(), "-I", "-S", "-c", SCRIPT.read_text()],
            input=json.dumps(plan) + "\n",
            env={**os.environ, **targets.policy.environ},
            capture_output=True,
            text=True,
            check=True,
        )
        told = {name: outcome.partition(":")[0] for name, outcome in json.loads(done.stdout).items()}
        os.waitid(os.P_PID, targets.plan["victim"], os.WEXITED | os.WNOWAIT)  # it was sent SIGKILL, and may still live
        seen = targets.look()
        end_marked(targets.policy.environ["MASSGEN_PROBE"])
    assert {name for name, outcome in told.items() if outcome != "open"} == {"stay_behind"}
    assert {name for name, outcome in seen.items() if outcome == "open"} == set(seen) - {"usual_network"}
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
async def test_a_level_is_asked_of_the_file_only_if_it_held_and_until_something_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = tmp_path / "known.json"
    with monkeypatch.context() as without:
        without.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        put_in_place(tmp_path, "shared memory", REAL)
        assert (await report_on("bubblewrap", known)).why == "a command can escape from it: read_shared_memory"
    assert not known.exists()
    first = await report_on("bubblewrap", known)
    kept = json.loads(known.read_text())
    (key,) = kept
    kept[key]["why"] = "as the file says"
    known.write_text(json.dumps(kept))
    assert (await report_on("bubblewrap", known)).why == "as the file says"
    known.write_text(json.dumps({f"of another boot {key}": kept[key]}))
    assert await report_on("bubblewrap", known) == first


def end_marked(mark: str) -> None:
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)
