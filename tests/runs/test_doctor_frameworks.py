"""The doctor says which agents of other programs and frameworks can work here, and how to get what is missing."""

import json
import sys
import time
from pathlib import Path

import pytest

from massgen_mcp.runs.doctor.members import check_members
from massgen_mcp.runs.doctor.result import DoctorCheck


async def members(environ: dict[str, str], cwd: Path) -> dict[str, DoctorCheck]:
    return {check.name: check for check in await check_members(cwd, environ)}


async def claude(environ: dict[str, str]) -> DoctorCheck:
    return (await members(environ, Path("/")))["Agent CLI claude_code"]


def with_claude(directory: Path, script: str) -> dict[str, str]:
    """Variables of somebody whose `claude` is this script."""
    program = directory / "claude"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{directory}:/usr/bin:/bin"}


async def test_the_claude_code_on_path_and_its_logins_are_named_and_no_key_shown(tmp_path: Path) -> None:
    environ = with_claude(tmp_path, "echo '9.9.9 (Claude Code)'")
    bare = await claude(environ)
    told = f"claude_code (no login; it has no built-in tools); 9.9.9 (Claude Code) at {tmp_path}/claude"
    assert (bare.level, bare.message) == ("ok", told)
    assert "CLAUDE_CODE_OAUTH_TOKEN (from `claude setup-token`)" in bare.advice
    keyed = await claude({**environ, "ANTHROPIC_API_KEY": "sk-ant-never-to-be-seen"})
    assert "(ANTHROPIC_API_KEY is set; " in keyed.message
    login = {"claudeAiOauth": {"accessToken": "never-to-be-seen", "expiresAt": (time.time() + 3600) * 1000}}
    (tmp_path / ".credentials.json").write_text(json.dumps(login))
    own = await claude({**environ, "CLAUDE_CONFIG_DIR": str(tmp_path)})
    assert "(you are logged in; " in own.message
    assert own.advice == "set MASSGEN_OWN_LOGINS=yes to allow it in the default team, with your own login"
    assert not [check for check in (bare, keyed, own) if "never-to-be-seen" in check.message]


async def test_what_is_broken_or_missing_comes_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await claude(with_claude(tmp_path, "exit 1"))).level == "warn"
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    monkeypatch.setitem(sys.modules, "ag2", None)
    found = await members({"PATH": str(tmp_path / "nothing")}, tmp_path)
    clis, ag2 = found["Agent CLIs"], found["AG2"]
    assert (clis.level, ag2.level) == ("ok", "ok"), "nobody needs them"
    assert "npm install -g @anthropic-ai/claude-code" in clis.advice
    assert "massgen-mcp[ag2]" in ag2.advice
