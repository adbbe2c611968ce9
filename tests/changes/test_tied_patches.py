"""Patches of a tie: none is applied, whoever asks, and each can be chosen by the command that is shown for it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import massgen_mcp as massgen
from tests.changes.conftest import Repository, repository
from tests.changes.test_apply import write
from tests.commands import run_command
from tests.editors.editor import editor
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, agent, home

__all__ = ["home", "repository"]

OWN = {"vote": "own"}
TIED = "the votes are tied between ada and bo; choose a patch: "


def tied_team(repository: Repository, *, permission: str = "write", **orchestrator: Any) -> dict[str, Any]:
    """Two agents that change one file differently, and vote for themselves, also in the run-off."""
    agents = [
        agent(name, write("project/code", f"{name}\n"), {"answer": f"{name} has done it."}, OWN, OWN)
        for name in ("ada", "bo")
    ]
    paths = [{"path": str(repository.path), "permission": permission}]
    return {"agents": agents, "orchestrator": {"context_paths": paths, **orchestrator}}


def find_commands(text: str) -> list[list[str]]:
    """Return the arguments of the commands that a text shows for the tied patches."""
    shown = re.findall(r"`massgen (apply \S+ --agent \S+?)`", text)
    return [command.split() for command in dict.fromkeys(shown)]


def apply_each(home: TempHome, repository: Repository, text: str) -> None:
    """Run each command that the text shows, and take back what it did."""
    assert TIED in text, text
    assert (repository.path / "code").read_text() == "old\n"
    commands = find_commands(text)
    assert [command[-1] for command in commands] == ["ada", "bo"], text
    for *command, name in commands:
        done = run_command(home, SERVER_MODULE, *command, name)
        assert done.returncode == 0, done.stderr
        assert (repository.path / "code").read_text() == f"{name}\n"
        assert run_command(home, SERVER_MODULE, "apply", command[1], "--undo").returncode == 0
        assert (repository.path / "code").read_text() == "old\n"


@pytest.mark.parametrize("options", [("--automation",), ("--apply", "--no-display"), ("--quiet", "--apply")])
def test_the_command_line_applies_none_and_names_the_command_for_each(
    home: TempHome, repository: Repository, options: tuple[str, ...]
) -> None:
    repository.commit(code="old\n")
    team = tied_team(repository)
    config = home.config("team", *team["agents"], orchestrator=team["orchestrator"])
    done = run_command(home, COMMAND_MODULE, *options, "--config", config, "Change it")
    assert done.returncode == 0, done.stderr
    line = next(line for line in (done.stdout + done.stderr).splitlines() if line.startswith("NOT_APPLIED: "))
    apply_each(home, repository, line)
    unnamed = run_command(home, SERVER_MODULE, "apply", find_commands(line)[0][1])
    assert unnamed.returncode != 0
    assert TIED in unnamed.stderr
    assert (repository.path / "code").read_text() == "old\n"


async def test_python_applies_none_and_names_the_command_for_each(
    home: TempHome, repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repository.commit(code="old\n")
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    result = await massgen.run("Change it", config_dict=tied_team(repository), enable_logging=True)
    assert result["weak"] == ["tied"]
    assert result["applied"]["status"] == "clean"
    assert TIED.lower() in result["applied"]["note"].lower()
    commands = find_commands(result["applied"]["note"])
    assert [command[-1] for command in commands] == ["ada", "bo"]
    assert (repository.path / "code").read_text() == "old\n"


async def test_an_editor_offers_no_edit_and_names_the_command_for_each(home: TempHome, repository: Repository) -> None:
    repository.commit(code="old\n")
    team = tied_team(repository)
    home.config("config", *team["agents"])
    asked: list[dict[str, Any]] = []

    def allows(call: dict[str, Any]) -> str:
        asked.append(call)
        return "apply"

    async with editor(home, allows) as person:
        session = await person.session(str(repository.path))
        assert await person.ask(session, "Change it") == "end_turn"
        await person.valid()
    assert asked == []
    apply_each(home, repository, person.said().partition("Not applied: ")[2])


def test_reused_answers_state_every_tied_position(home: TempHome, repository: Repository) -> None:
    """No agent writes a final answer; one of the answers alone would hide the other."""
    repository.commit(code="old\n")
    team = tied_team(repository, final_answer_strategy="winner_reuse")
    config = home.config("team", *team["agents"], orchestrator=team["orchestrator"])
    done = run_command(home, COMMAND_MODULE, "--json", "--config", config, "Change it")
    result = json.loads(done.stdout)
    answer = result["answer"] if "answer" in result else result["final_answer"]
    places = [answer.index(part) for part in ("ada has done it.", "bo has done it.", "What would settle it")]
    assert places == sorted(places)
    assert answer.startswith("The team is split")
