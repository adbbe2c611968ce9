"""A directory may come with a `.massgen` in which a stranger left an unfinished run: nobody goes on with it here."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, after, agent, happened, home, poll_until
from tests.interrupted import kill, log_directory, started

__all__ = ["home"]


@pytest.fixture
def brought(home: TempHome, tmp_path: Path) -> tuple[TempHome, str, Path]:
    """A person with a copy of a stranger's directory, the id of the run in it, and what its program leaves."""
    canary = tmp_path / "ran"
    server = {"command": "/bin/sh", "args": ["-c", f"touch {canary}; sleep 5"], "sandbox": False}
    waiting = agent("ada", {"answer": "1", **after(tmp_path / "gate")}, mcp_servers={"x": server})
    stranger = replace(home, path=tmp_path / "of-the-stranger")
    with started(stranger, stranger.config("team", waiting)) as massgen:
        directory = log_directory(massgen)
        poll_until(lambda: canary.exists() and happened(directory, "run_started"))
        kill(stranger)
    stranger.close()
    person = replace(home, work=tmp_path / "copy")
    shutil.copytree(stranger.work, person.work)
    (run_id,) = {*re.findall(r"run-[a-z2-7]{26}", (directory / "events.jsonl").read_text())}
    canary.unlink()
    return person, run_id, canary


def test_no_command_goes_on_with_it_and_none_starts_its_program(brought: tuple[TempHome, str, Path]) -> None:
    person, run_id, canary = brought
    logs = person.work / ".massgen" / "massgen_logs"
    before = {path: path.read_bytes() for path in logs.rglob("*") if path.is_file()}
    for module, *arguments in (
        (COMMAND_MODULE, "--resume", run_id),
        (COMMAND_MODULE, "--resume", run_id, "--automation"),
        (SERVER_MODULE, "resume", run_id),
        (SERVER_MODULE, "resume", run_id, "--trust"),
    ):
        refused = run_command(person, module, *arguments)
        assert refused.returncode != 0, (arguments, refused.stdout)
        assert "unknown_run" in refused.stderr, (arguments, refused.stderr)
    assert run_id not in run_command(person, SERVER_MODULE, "runs", "--json").stdout
    assert "0 runs are back in the list" in run_command(person, SERVER_MODULE, "doctor", "--rebuild").stdout
    assert run_command(person, COMMAND_MODULE, "--config", "@examples/scripted", "--automation", "q").returncode == 0
    assert not canary.exists()
    assert {path: path.read_bytes() for path in before} == before
