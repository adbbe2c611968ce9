"""An agent CLI over ACP as a member of a team, from the command line. The CLI is a fake one."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.acp.acting import FAKE
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, agent, events_of, happened, home, poll_until
from tests.interrupted import kill, log_directory, paid, started, the_only_run

__all__ = ["home"]

ANSWER, FINAL = "Forty-two.", "All in all: forty-two."
PLAN: dict[str, Any] = {
    "mark": ANSWER,
    "answer": [{"call": "new_answer", "arguments": {"content": ANSWER}}],
    "vote": [
        {"call": "vote", "arguments": {"agent_id": "nobody", "reason": "x"}},
        {"call": "vote", "arguments": {"agent_id": "OWN", "reason": "It is right."}},
    ],
    "present": [{"say": FINAL}],
}
OTHER = agent("ada", {"answer": "Forty-one."}, {"vote": "two"})


class Team:
    """A team of the fake CLI and a scripted agent, in the config of the user's own."""

    def __init__(self, home: TempHome, plan: dict[str, Any]) -> None:
        program = home.work / "program" / "fake_agent.py"
        program.parent.mkdir()
        shutil.copy(FAKE, program)
        self.log = home.work / "told.jsonl"
        self.home = home.with_variables(FAKE_PLAN=json.dumps(plan), FAKE_LOG=str(self.log))
        cli = {"type": "acp", "command": [str(program)], "env": ["FAKE_PLAN", "FAKE_LOG"], "enclosure": "off"}
        self.config = self.home.config("config", {"id": "cody", "backend": cli}, OTHER)

    def told(self, key: str) -> list[Any]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
        return [line[key] for line in lines if key in line]

    def run(self, *arguments: str) -> str:
        done = run_command(self.home, COMMAND_MODULE, "--automation", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


def test_a_team_of_a_cli_and_a_model_answers_votes_and_presents(home: TempHome) -> None:
    team = Team(home, PLAN)
    printed = team.run("--config", team.config, "What is it?")
    assert f"ANSWER_PREVIEW: {FINAL}" in printed
    assert "at an unknown price" in printed
    assert f"starts the agent CLI {home.work}/program/fake_agent.py" in printed
    methods = team.told("method")
    assert [methods.count(name) for name in ("initialize", "session/new", "session/prompt")] == [1, 3, 3]
    (refused,) = filter(None, team.told("result"))  # nothing, where the turn was ended before
    assert refused["isError"], "the refusal came within the turn, and acceptance ended it"


def test_files_that_a_project_plants_for_a_cli_are_not_where_it_runs(home: TempHome) -> None:
    planted = {".codex/config.toml": "[mcp_servers.evil]", ".gemini/settings.json": "{}", ".mcp.json": "{}"}
    project = home.work / "project"
    for name, text in planted.items():
        (project / name).parent.mkdir(exist_ok=True, parents=True)
        (project / name).write_text(text)
    team = Team(home, PLAN)
    settings = {"orchestrator": {"context_paths": [{"path": str(project), "permission": "read"}]}}
    config = json.loads(Path(team.config).read_text())
    Path(team.config).write_text(json.dumps({**config, **settings}))
    team.run("--config", team.config, "What is it?")
    directories = {params["cwd"] for params in team.told("params") if "cwd" in params}
    assert not [one for one in directories if Path(one).is_relative_to(project)]
    assert team.told("files") == [[], [], []]


def test_a_killed_run_goes_on_with_a_new_process_and_pays_no_reply_twice(home: TempHome) -> None:
    gate = home.work / "gate"
    team = Team(home, {**PLAN, "vote": [{"await": str(gate)}, *PLAN["vote"]]})
    with started(team.home, team.config) as massgen:
        directory = log_directory(massgen)
        poll_until(lambda: happened(directory, "answer_submitted") and team.told("method").count("session/new") == 2)
        kill(team.home)
    before = paid(directory)
    gate.touch()
    printed = team.run("--resume", str(the_only_run(team.home)["run_id"]))
    assert f"ANSWER_PREVIEW: {FINAL}" in printed
    called = paid(directory)
    assert called[: len(before)] == before
    assert len(called) == len(set(called))
    assert len(set(team.told("pid"))) == 2
    assert [event["agent"] for event in events_of(directory) if event["type"] == "answer_submitted"].count(
        "agent_a"
    ) == 1


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        ({"preset": "codex", "command": ["x"]}, "expected one of: preset"),
        ({}, "expected one of: preset"),
        ({"command": ["x"], "login": "own"}, "login: own needs a preset"),
        ({"command": ["x"], "model": "g"}, "massgen can't set the model for your own command"),
        ({"preset": "codex", "enclosure": "off"}, "only your own config"),
    ],
)
def test_a_config_that_cannot_be_meant_is_refused_with_the_reason(
    home: TempHome, backend: dict[str, Any], words: str
) -> None:
    config = home.config("other", {"id": "cody", "backend": {"type": "acp", **backend}})
    assert words in run_command(home, COMMAND_MODULE, "--validate", config).stderr


def test_the_key_of_another_provider_and_a_login_that_is_not_there_are_refused(home: TempHome) -> None:
    program = home.work / "bin" / "codex-acp"
    program.parent.mkdir()
    program.touch(mode=0o755)
    home = home.with_variables(PATH=str(program.parent), HOME=str(home.work), OPENAI_API_KEY="sk-0123456789abcdef")
    for backend, words in (
        ({"preset": "codex", "env": ["ANTHROPIC_API_KEY"]}, "is a provider's key, and"),
        ({"preset": "codex", "login": "own"}, "own requires you to be logged in"),
        ({"preset": "claude_code"}, "npm install -g @agentclientprotocol/claude-agent-acp"),
    ):
        config = home.config("other", {"id": "cody", "backend": {"type": "acp", **backend}})
        done = run_command(home, COMMAND_MODULE, "--automation", "--config", config, "What?")
        assert words in done.stdout + done.stderr
