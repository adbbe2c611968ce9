"""First answers that come late: how long others wait for them, what they change, and what is told where they are
missing.
"""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from massgen_mcp.backends.scripted import ScriptedBackend
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.backends import ScriptedBackendConfig
from massgen_mcp.config.models.orchestrator import BudgetConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.coordination import AnswerSubmitted, FirstAnswersClosed, StageOpened, WinnerChosen
from massgen_mcp.events.parts import public_agent_name
from massgen_mcp.events.record import LogRecord
from massgen_mcp.money.tariff import Tariff
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.views.firmness import cautions
from tests.harness import TempHome, agent, call, home
from tests.in_memory import EventList, NullAnswerStore
from tests.orchestration.test_budget import PRICE, Provider
from tests.teams import Ended, Script, run_team, team, upon

__all__ = ["home"]

WAIT = {"first_answer_wait_seconds": 0.3}


def write_claims(text: str) -> dict[str, Any]:
    claims = [{"claim": "It is so.", "answers": ["agent1"]}]
    return {"call": "submit_synthesis", "arguments": {"content": text, "claims": claims}}


async def play(path: Path, *scripts: Script, **orchestrator: Any) -> Ended:
    return await run_team(path, team(*scripts, orchestrator={**WAIT, **orchestrator}))


def list_order(ended: Ended, late: str = "agent_c") -> list[str]:
    """Return what was decided before and after the late answer, in short."""
    told: list[str] = []
    for event in ended.events:
        match event:
            case AnswerSubmitted() if event.agent == late:
                told.append("late answer")
            case StageOpened():
                told.append(f"{event.kind} of {len(event.subjects)}")
            case WinnerChosen():
                told.append(event.outcome)
            case _:
                pass
    return told


async def test_an_answer_that_comes_while_others_vote_is_voted_on(tmp_path: Path) -> None:
    ended = await play(
        tmp_path,
        [{"answer": "one"}, {"vote": "own"}, {"vote": "three"}],
        [{"answer": "two"}, {"vote": "one", **upon(tmp_path, "answer_submitted", 3)}, {"vote": "three"}],
        [{"answer": "three", **upon(tmp_path, "vote_cast", 1)}, {"vote": "own"}],
    )
    assert [event.awaited for event in ended.of(FirstAnswersClosed)] == [("agent_c",)]
    (late,) = ended.of(AnswerSubmitted, "agent_c")
    assert late.voided_votes == ("agent_a",)
    (won,) = ended.of(WinnerChosen)
    assert (won.agent, won.outcome, won.votes["agent3.1"]) == ("agent_c", "consensus", 3)
    assert (ended.snapshot.degraded, ended.snapshot.work_done.weak) == ([], ())


async def test_an_answer_that_comes_in_a_run_off_opens_the_vote_again(tmp_path: Path) -> None:
    gate = upon(tmp_path, "answer_submitted", 3)
    ended = await play(
        tmp_path,
        [{"answer": "one"}, {"vote": "own"}, {"vote": "own", **gate}, {"vote": "own"}],
        [{"answer": "two"}, {"vote": "own"}, {"vote": "own", **gate}, {"vote": "own"}],
        [{"answer": "three", **upon(tmp_path, "stage_opened", 1)}, {"vote": "two"}],
    )
    assert list_order(ended) == ["vote of 2", "late answer", "majority"]
    (won,) = ended.of(WinnerChosen)
    assert (won.agent, won.run_off) == ("agent_b", None)
    assert ended.snapshot.work_done.weak == ()


async def test_an_answer_that_comes_while_one_text_is_written_is_written_from(tmp_path: Path) -> None:
    gate = upon(tmp_path, "answer_submitted", 3)
    ended = await play(
        tmp_path,
        [{"answer": "one"}, {**write_claims("From two."), **gate}, write_claims("From three.")],
        [{"answer": "two"}],
        [{"answer": "three", **upon(tmp_path, "stage_opened", 1)}],
        decide="synthesise",
        by="agent1",
    )
    assert list_order(ended) == ["synthesise of 2", "late answer", "synthesise of 3", "synthesised"]
    assert ended.snapshot.final_answer is not None
    assert ended.snapshot.final_answer.startswith("From three.")


async def test_an_answer_that_comes_while_a_judge_compares_is_compared_too(tmp_path: Path) -> None:
    gate = upon(tmp_path, "answer_submitted", 3)
    scripts: list[Script] = [
        [{"answer": "one"}],
        [{"answer": "two"}],
        [{"answer": "three", **upon(tmp_path, "stage_opened", 1)}],
        [{"vote": "three", **gate}, *[{"vote": "three"}] * 5],
    ]
    backends = [{"type": "scripted", "script": one, "model": f"m{place}"} for place, one in enumerate(scripts)]
    settings = {**WAIT, "decide": "judge", "judge": "agent4"}
    data = {"agents": [{"backend": one} for one in backends], "orchestrator": settings}
    ended = await run_team(tmp_path, config_from_data(data, "test", environ={}))
    order = list_order(ended)
    assert order[:2] == ["compare of 2", "late answer"]
    (won,) = ended.of(WinnerChosen)
    compared = {label for stage in ended.of(StageOpened) for label in stage.subjects}
    assert compared == {"agent1.1", "agent2.1", "agent3.1"}
    assert ended.snapshot.work_done.weak == () or won.outcome != "judged"


async def play_within(path: Path, max_usd: float, *scripts: Script) -> RunState:
    """Play a team whose calls cost $0.15 each."""
    happened, times, journal = path / "happened", Counter[str](), EventList()
    happened.mkdir()

    def touch(record: LogRecord) -> None:
        times[record.event.type] += 1
        (happened / f"{record.event.type}.{times[record.event.type]}").touch()

    providers = [
        Provider(Random(1), output=(10_000, 10_000), inner=ScriptedBackend(one.backend))
        for one in team(*scripts).agents
        if isinstance(one.backend, ScriptedBackendConfig)
    ]
    members = tuple(
        Member(public_agent_name(place), provider, tariff=Tariff("m", price=PRICE))
        for place, provider in enumerate(providers)
    )
    limits, rules = TeamLimits(call_seconds=20, first_answer_wait_seconds=0.3), Rules(seed="s")
    budget = BudgetConfig(max_usd=max_usd, max_tokens=10**9)
    conductor = Conductor(RunSpec("q", members, rules, limits, NullAnswerStore(), budget=budget), journal)
    journal.listen(touch)
    await conductor.conduct()
    return conductor.state


@pytest.mark.parametrize(("max_usd", "counts"), [(1.35, False), (9.0, True)])
async def test_a_late_answer_counts_only_if_the_budget_has_room_for_the_votes_that_it_costs(
    tmp_path: Path, max_usd: float, counts: bool
) -> None:
    next_step = upon(tmp_path, "answer_submitted" if counts else "agent_dropped", 3 if counts else 1)
    run = await play_within(
        tmp_path,
        max_usd,
        [{"answer": "one"}, {"vote": "own"}, {"vote": "own"}],
        [{"answer": "two"}, {"vote": "one", **next_step}, {"vote": "one"}],
        [{"answer": "three", **upon(tmp_path, "vote_cast", 1)}, {"vote": "one"}],
    )
    assert run.state == "completed"
    if counts:
        assert (run.outcome, run.left_out) == ("consensus", ())
        return
    (row,) = run.degraded
    assert row[:2] == ("agent_c", "cut_off")
    assert "no room in its budget for more votes" in row[2]
    assert (run.outcome, run.left_out) == ("majority", ("agent_c",))
    assert "left_out" in run.work_done.weak
    assert any(
        "The run was decided without agent_c: no first answer arrived in time." in told for told in cautions(run)
    )


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        (TeamLimits(), 300),
        (TeamLimits(usual_seconds={"agent_a": 50}), 300),
        (TeamLimits(usual_seconds={"agent_a": 150}), 450),
        (TeamLimits(usual_seconds={"agent_b": 150}), 300),
        (TeamLimits(usual_seconds={"agent_a": 1_000}), 900),
        (TeamLimits(run_seconds=400), 200),
        (TeamLimits(first_answer_wait_seconds=7, usual_seconds={"agent_a": 150}), 7),
        (TeamLimits(first_answer_wait_seconds=5_000, run_seconds=60), 5_000),
    ],
)
def test_the_wait_is_long_enough_for_the_model_and_half_of_the_runs_time_at_most(
    limits: TeamLimits, seconds: float
) -> None:
    assert limits.get_first_answer_wait(["agent_a"]) == seconds


async def test_a_run_knows_how_long_its_models_took_in_the_users_own_runs(home: TempHome) -> None:
    quick, slow = {"answer": "42"}, {"answer": "42", "delay_seconds": 0.5}
    agents = [agent("ada", slow, {"vote": "own"}, model="slow"), agent("bo", quick, {"vote": "42"}, model="quick")]
    config = home.config("team", *agents)
    async with home.client() as client:
        for _ in range(6):
            await call(client, "start_run", question="q", config=config, wait_seconds=50)
        run_id = (await call(client, "list_runs"))["runs"][0]["run_id"]
    usual = RunFiles(home.run_directory(run_id)).read_request().usual_seconds
    assert set(usual) == {"slow", "quick"}
    assert usual["slow"] >= 0.5 > usual["quick"]
