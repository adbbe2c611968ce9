"""What somebody meets who comes with MassGen's configs and commands."""

import os
import subprocess
from dataclasses import replace
from typing import Any

from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, agent, call

SHOWN = "set display and log options when you start a run"
MASSGENS: dict[str, Any] = {
    "ui": {"display_type": "rich_terminal", "logging_enabled": True},
    "orchestrator": {"snapshot_storage": "snapshots", "fairness_enabled": True},
    "timeout_settings": {"initial_round_timeout_seconds": 600, "round_timeout_grace_seconds": 60},
}


def massgen(home: TempHome, *arguments: str) -> tuple[int, list[str]]:
    done = run_command(home, COMMAND_MODULE, *arguments, seconds=90)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_a_check_says_once_what_is_ignored(home: TempHome) -> None:
    code, lines = massgen(home, "--validate", home.config("team", agent("one"), agent("two"), **MASSGENS))
    assert code == 0
    (note,) = [line for line in lines if line.startswith("Note: ")]
    assert "team.yaml" not in note
    assert f"ignored: ui ({SHOWN}" in note
    assert "orchestrator.fairness_enabled (" in note
    assert "snapshot_storage" not in note, "it means something here: nothing"


def test_what_we_have_not_is_refused_in_groups_with_the_way_out(home: TempHome) -> None:
    asking = {"auto_discover_custom_tools": True, "enable_image_generation": True}
    backends = [{"id": name, "backend": {"type": "openai", "model": "gpt-5", **asking}} for name in ("a", "b")]
    code, lines = massgen(home, "--validate", home.config("team", *backends, **MASSGENS))
    assert code == 1
    assert len(lines) == 2, lines
    assert "agents[0].backend.auto_discover_custom_tools: massgen doesn't discover code or run hooks" in lines[0]
    assert lines[0].endswith("(also agents[1].backend.auto_discover_custom_tools)")
    assert "agents[0].backend.enable_image_generation: agents read and write only text" in lines[1]


def test_a_run_tells_what_of_its_config_was_ignored_within_twenty_lines(home: TempHome) -> None:
    config = home.config("team", agent("one"), agent("two"), **MASSGENS)
    code, lines = massgen(home, "--automation", "--config", config, "What is it?")
    assert code == 0
    assert len(lines) <= 20
    (note,) = [line for line in lines if line.startswith("NOTE: ")]
    assert note.startswith(f"NOTE: team.yaml: ignored: ui ({SHOWN}")
    assert lines.index(note) < next(at for at, line in enumerate(lines) if line.startswith("WINNER: "))


async def test_start_run_tells_it_too(home: TempHome) -> None:
    config = home.config("team", agent("one"), agent("two"), **MASSGENS)
    async with home.client() as client:
        planned = await call(client, "start_run", question="q", config=config, dry_run=True)
        assert planned["ignored"].startswith(f"team.yaml: ignored: ui ({SHOWN}")
        plain = await call(client, "start_run", question="q", config="scripted", dry_run=True)
        assert "ignored" not in plain


def test_massgens_old_way_of_starting_it_and_of_naming_configs_works(home: TempHome) -> None:
    anew = replace(home, starts_anew=True)
    done = run_command(anew, "massgen_mcp.cli", "--validate", "automation/batch.yaml")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("OK: automation/batch.yaml: openai (openai/")
    own = home.work / "automation" / "batch.yaml"
    own.parent.mkdir()
    own.write_text("agent: {backend: {type: scripted}}")
    _, lines = massgen(home, "--validate", "automation/batch.yaml")
    assert lines[0].startswith("OK: automation/batch.yaml: agent1 (scripted/"), "one's own file goes before"


def test_a_directory_whose_path_is_not_utf8_is_refused_in_words_and_works_without_files(home: TempHome) -> None:
    odd = os.fsencode(home.work) + b"/\xff\xfe"
    os.mkdir(odd)  # noqa: PTH102 - a path of bytes
    config = home.config("team", agent("one"))

    def massgen_there(*options: str) -> "subprocess.CompletedProcess[bytes]":
        command = [home.python, "-m", COMMAND_MODULE, "--automation", *options, "--config", config, "What is it?"]
        return subprocess.run(command, cwd=odd, env=home.environ, capture_output=True, check=False, timeout=90)

    refused = massgen_there()
    assert (refused.returncode, refused.stdout) == (1, b"")
    assert refused.stderr.startswith(b"ERROR unsafe_path: ")
    assert b"the path isn't valid UTF-8" in refused.stderr
    kept = massgen_there("--no-logs")
    assert kept.returncode == 0, kept.stderr
    assert b"COMPLETED: 1 agents" in kept.stdout
