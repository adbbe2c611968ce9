"""Scripts that agents write run where somebody agreed to them, whichever way of deciding asks for them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.checks.writers import ADDS_TWO, DOUBLE, SQUARES, TELLING, Step, doubling
from tests.checks.writers import agent as steps
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, agent, call, events_of, expect_error, home

__all__ = ["doubling", "home"]
VOTE: Step = {"vote": "doubles"}
LINE = "starts: scripts that agents write, in a sandbox"
CLAIM: Step = {"claim": "one is one", "answers": ["agent1"], "script": "echo 1", "prints": "1"}


@pytest.fixture
def there(home: TempHome, doubling: Path, monkeypatch: pytest.MonkeyPatch) -> TempHome:
    """The home of somebody who works in a directory with a config in it."""
    team(doubling)
    monkeypatch.chdir(doubling)
    return replace(home, work=doubling)


def team(place: Path, **orchestrator: Any) -> Path:
    """The config of a directory; its agents write tests if they are asked for some, and else vote for the same."""
    names = {"adds": ADDS_TWO, "squares": SQUARES, "doubles": DOUBLE}
    agents = [agent(name, *steps(code, name, TELLING, VOTE)) for name, code in names.items()]
    path = place / ".massgen" / "config.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"agents": agents, "orchestrator": {"context_paths": [{"path": "."}], **orchestrator}}))
    return path


def scripts_run(run: Path) -> bool:
    return any("expected" in str(event) for event in events_of(run) if event["type"] == "check_finished")


async def decided(home: TempHome, **arguments: Any) -> tuple[str, bool, str]:
    """By a run over MCP: its outcome, whether a script ran in it, and what the caller was told at its start."""
    async with home.client() as client:
        started = await call(client, "start_run", question="Double.", **arguments)
        await call(client, "wait_run", run_id=started["run_id"])
        result = await call(client, "get_result", run_id=started["run_id"])
    return result["outcome"], scripts_run(home.run_directory(started["run_id"])), started.get("ignored") or ""


def accept(home: TempHome) -> None:
    done = run_command(home, SERVER_MODULE, "trust", ".")
    assert done.returncode == 0, done.stderr
    assert LINE in done.stdout


async def test_a_found_config_that_nobody_accepted_decides_by_votes_and_runs_no_script(there: TempHome) -> None:
    outcome, ran, note = await decided(there)
    assert (outcome, ran) == ("consensus", False)
    assert "massgen won't run agent-written scripts, because you haven't allowed it" in note
    assert f"`massgen validate --trust {there.work}/.massgen/config.yaml`" in note
    accept(there)
    outcome, ran, note = await decided(there)
    assert (outcome, ran) == ("tested", True)
    assert "agent-written scripts" not in note


async def test_what_the_call_itself_names_needs_no_yes(there: TempHome) -> None:
    assert (await decided(there, decide="checks"))[:2] == ("tested", True)


async def test_a_config_that_an_agent_names_is_no_freer_than_one_that_was_found(there: TempHome) -> None:
    named = {"config": str(team(there.work)), "context_paths": [str(there.work)]}
    assert (await decided(there, **named))[:2] == ("consensus", False)
    assert (await decided(there, **named, decide="auto"))[:2] == ("tested", True)


@pytest.mark.parametrize("settings", [{"decide": "checks"}, {"write_check": True}])
async def test_what_cannot_go_on_without_scripts_waits_for_a_yes(there: TempHome, settings: dict[str, Any]) -> None:
    team(there.work, **settings)
    async with there.client() as client:
        code, told = await expect_error(client, "start_run", question="Double.")
    assert (code, f"  ! {LINE}" in told) == ("config_untrusted", True)
    assert there.runs == []


async def test_without_a_yes_no_claim_of_a_written_answer_is_tried(there: TempHome) -> None:
    path = team(there.work, decide="synthesise", by="doubles")
    config = json.loads(path.read_text())
    writes: Step = {"call": "submit_synthesis", "arguments": {"content": "All in all.", "claims": [CLAIM]}}
    config["agents"][2] = agent("doubles", *steps(DOUBLE, "doubles", writes))
    path.write_text(json.dumps(config))
    assert (await decided(there))[:2] == ("synthesised", False)
    accept(there)
    assert (await decided(there))[:2] == ("synthesised", True)


def test_the_command_line_obeys_the_same_rule(there: TempHome) -> None:
    def run(*options: str) -> tuple[str, bool]:
        done = run_command(there, COMMAND_MODULE, "--automation", *options, "Double.")
        assert done.returncode == 0, done.stderr
        lines = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
        told = "massgen won't run agent-written scripts, because you haven't allowed it" in done.stdout + done.stderr
        return lines["OUTCOME"].partition(",")[0], told

    assert run() == ("consensus", True)
    assert run("--decide", "checks") == ("tested", False)
    assert run("--trust") == ("tested", False)
    assert run() == ("tested", False), "the yes is remembered"
