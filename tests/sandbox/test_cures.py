"""What a person reads where no sandbox holds: the cure, and that a config with commands or checks is refused."""

import json
import logging
import os
import zlib
from pathlib import Path

import pytest

from massgen_mcp.config.loader import parse_text
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.runs.doctor.command_sandbox import sandbox_checks
from massgen_mcp.runs.engine.files import RunFiles
from massgen_mcp.sandbox import Wishes, choose, levels
from tests.sandbox.table import LEVELS
from tests.teams import run_team, team

FORBIDDEN = "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n"


async def advice() -> str:
    """The cure that the doctor names."""
    (check,) = await sandbox_checks()
    assert (
        check.level,
        "no sandbox works here, so massgen rejects configs with commands or checks (" in check.message,
    ) == ("warn", True)
    return check.advice


async def test_the_doctor_says_what_to_install_or_to_allow_and_never_to_open_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AppArmor is a double: the file that tells of it, and the error that bubblewrap then ends with."""
    monkeypatch.setenv("PATH", str(tmp_path))
    restricted = tmp_path / "restricted"
    monkeypatch.setattr(levels, "RESTRICTED", restricted)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    told = [await advice()]
    (tmp_path / "bwrap").write_text(FORBIDDEN)
    (tmp_path / "bwrap").chmod(0o755)
    told.append(await advice())
    restricted.write_text("1\n")
    told.append(await advice())
    assert "`sudo apt install bubblewrap`" in told[0]
    assert "--security-opt seccomp=unconfined" in told[1]
    assert "/etc/apparmor.d/bwrap-userns-restrict" in told[2]
    assert "apparmor_parser -r" in told[2]
    for text in told:
        assert "sysctl" not in text
        assert "or set `sandbox: docker` or `podman` under `commands`" in text


async def test_a_level_that_was_removed_means_auto_with_a_warning_in_a_config(tmp_path: Path) -> None:
    text = """
agents:
  - {id: a, backend: {type: scripted}}
  - {id: b, backend: {type: scripted}, commands: {enabled: true, sandbox: sandlock}}
orchestrator: {commands: {enabled: true, sandbox: sandlock, network: ["pypi.org:443"]}}
"""
    parsed = parse_text(text, "team.yaml", environ={}, base_dir=tmp_path)
    assert [commands.sandbox for commands in parsed.config.all_commands] == ["auto", "auto"]
    assert parsed.note is not None
    assert (
        "orchestrator.commands.sandbox: sandlock didn't protect read-only files, so massgen no longer supports it"
        in parsed.note
    )
    assert "agents[1].commands.sandbox: sandlock didn't protect read-only files" in parsed.note
    choice = await choose(Wishes(network=("pypi.org:443",)), None)
    assert choice.level == LEVELS[0], "not another one for the sake of the network"


async def test_a_run_that_was_stored_with_a_level_that_was_removed_goes_on_with_auto(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = [{"call": "run_command", "arguments": {"command": "echo fine"}}, {"answer": "42"}]
    ended = await run_team(tmp_path, team(script, orchestrator={"commands": {"enabled": True}}), environ={})
    run: RunFiles = ended.directory
    document = json.loads(run.request.read_bytes())
    assert ended.of(RunCompleted)
    document["config"]["orchestrator"]["commands"]["sandbox"] = "sandlock"
    del document["crc"]
    seal = zlib.crc32(json.dumps(document, sort_keys=True).encode())
    run.request.write_text(json.dumps({**document, "crc": f"{seal:08x}"}))
    with caplog.at_level(logging.WARNING, logger="massgen_mcp.config"):
        again = run.read_request()
    assert again.config.orchestrator.commands.sandbox == "auto"
    assert "sandbox: sandlock didn't protect read-only files, so massgen no longer supports it" in caplog.text
