"""`refute: true` is ignored in a run, with a warning; records of runs with a challenged winner stay readable."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from massgen_mcp.coordination.procedures import next_step
from massgen_mcp.coordination.state import Coordination, Rules
from massgen_mcp.events.coordination import StageOpened, WinnerChosen
from massgen_mcp.events.record import AnyEvent, LogRecord
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.firmness import cautions
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, agent, home

__all__ = ["home"]

JOURNALS = Path(__file__).with_name("challenged")
EVENTS = TypeAdapter[AnyEvent](AnyEvent)


def read_events(name: str) -> list[AnyEvent]:
    return [EVENTS.validate_json(line) for line in (JOURNALS / f"{name}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("decide", ["auto", "vote", "synthesise"])
def test_it_is_ignored_with_a_warning_whatever_decides(home: TempHome, decide: str) -> None:
    team = [agent(name, {"answer": "It is 42."}, {"vote": "own"}) for name in ("ada", "bo", "cleo")]
    config = home.config("team", *team, orchestrator={"decide": decide, "refute": True})
    done = run_command(home, COMMAND_MODULE, "--automation", "--config", config, "What is it?")
    assert done.returncode == 0, done.stderr
    assert "`refute` is ignored" in done.stdout + done.stderr
    (journal,) = home.work.rglob("events.jsonl")
    assert '"kind":"refute"' not in journal.read_text()


@pytest.mark.parametrize(
    ("name", "label", "told"),
    [
        ("mended", "agent1.2", ""),
        ("refuted", "agent1.1", "The answer fails a test that an agent from another vendor wrote"),
    ],
)
def test_the_record_of_a_challenged_winner_is_read_as_before(name: str, label: str, told: str) -> None:
    run = RunState()
    for number, event in enumerate(read_events(name), start=1):
        run.apply(LogRecord(seq=number, time=float(number), event=event))
    assert run.winner is not None
    assert (run.winner.label, run.winner.challenge) == (label, name)
    assert ("refuted" in run.work_done.weak) == (name == "refuted")
    assert told in " ".join(cautions(run))


@pytest.mark.parametrize("name", ["mended", "refuted"])
def test_a_run_that_was_interrupted_in_a_challenge_ends_with_the_winner_of_the_vote(name: str) -> None:
    state, begun = Coordination.begin(("agent_a", "agent_b", "agent_c"), Rules()), 0
    for event in read_events(name):
        if isinstance(event, WinnerChosen):
            break
        state = state.after(event)
        if isinstance(event, StageOpened) or begun:
            begun += 1
            due = next_step(state)
            assert isinstance(due, WinnerChosen)
            assert (due.agent, due.label, due.outcome) == ("agent_a", "agent1.1", "consensus")
            assert state.after(due).label("agent_a") == "agent1.1"
    assert begun > 3
