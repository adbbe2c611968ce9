"""What comes around the coordination: strategies for the final answer, planning, further attempts, debugging aids."""

from pathlib import Path
from typing import Any, Literal

import pytest

from massgen_mcp.backends.base import StopPart, TextPart
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import ModelCallAborted, ModelCallStarted, RuleViolated, ToolFinished
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerEvaluated,
    AnswerPresented,
    AnswerSubmitted,
    PresentationStarted,
    WinnerChosen,
)
from massgen_mcp.events.parts import Event
from massgen_mcp.events.run import AttemptStarted, FinishRequested, RunCompleted, RunFailed
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from tests.in_memory import EventList, NullAnswerStore
from tests.stage import Speaker
from tests.teams import Act, run_team, team, upon

AGREED = ([{"answer": "42"}, {"vote": "own"}], [{"answer": "43"}, {"vote": "42"}])
SPLIT = ([{"answer": "42"}, {"vote": "own"}], [{"answer": "43"}, {"vote": "own"}])


def restart(reason: str = "too short", instructions: str = "explain it") -> dict[str, Any]:
    return {"call": "restart_orchestration", "arguments": {"reason": reason, "instructions": instructions}}


# -- who writes the final answer -------------------------------------------------------------------------------------


async def test_with_winner_reuse_the_winners_answer_is_the_final_one_and_no_call_is_spent(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team(*SPLIT, orchestrator={"final_answer_strategy": "winner_reuse"}))
    assert ended.snapshot.final_answer == "42"
    assert not ended.of(PresentationStarted)
    assert len(ended.of(ModelCallStarted)) == 6, "an answer, a vote and one in the run-off by each"
    assert ended.of(AnswerPresented)[0].reused


@pytest.mark.parametrize(("scripts", "presents"), [(AGREED, False), (SPLIT, True)])
async def test_with_auto_the_winner_presents_only_if_there_is_dissent_to_merge(
    tmp_path: Path, scripts: tuple[Any, ...], presents: bool
) -> None:
    ended = await run_team(tmp_path, team(*scripts, orchestrator={"final_answer_strategy": "auto"}))
    assert bool(ended.of(PresentationStarted)) == presents


async def test_with_auto_an_answer_that_has_no_other_beside_it_is_the_final_answer_as_it_stands(tmp_path: Path) -> None:
    config = team([{"fail": "auth"}], [{"answer": "42"}], orchestrator={"final_answer_strategy": "auto"})
    ended = await run_team(tmp_path, config)
    assert [(event.outcome, event.answer) for event in ended.of(RunCompleted)] == [("single_survivor", "42")]
    assert [event.reused for event in ended.of(AnswerPresented)] == [True]
    assert ended.of(PresentationStarted) == []


async def test_with_winner_present_the_winner_always_writes_anew(tmp_path: Path) -> None:
    ended = await run_team(tmp_path, team(*AGREED))
    assert ended.of(PresentationStarted)


# -- early decision, and calls that cannot count any more ------------------------------------------------------------


async def test_a_proven_decision_cuts_off_the_call_that_can_change_nothing(tmp_path: Path) -> None:
    quick = [{"answer": "42"}, {"vote": "42"}]
    slow = [{"answer": "43"}, {"hang": True}]
    config = team(quick, [{"answer": "41"}, {"vote": "42"}], slow, orchestrator={"max_new_answers_per_agent": 1})
    ended = await run_team(tmp_path, config)
    assert ended.of(WinnerChosen)[0].early
    assert ended.snapshot.outcome == "majority"
    assert len(ended.of(ModelCallAborted, "agent_c")) == 1


async def test_with_early_decision_off_every_vote_is_awaited(tmp_path: Path) -> None:
    quick = [{"answer": "42"}, {"vote": "42"}]
    slow = [{"answer": "43"}, {"vote": "own", "delay_seconds": 0.2}]
    settings = {"max_new_answers_per_agent": 1, "early_decision": "off"}
    ended = await run_team(tmp_path, team(quick, [{"answer": "41"}, {"vote": "42"}], slow, orchestrator=settings))
    assert not ended.of(WinnerChosen)[0].early
    assert sum(ended.of(WinnerChosen)[0].votes.values()) == 3
    assert len(ended.of(ModelCallStarted)) == 7


async def test_the_eager_variant_ends_at_a_majority(tmp_path: Path) -> None:
    quick = [{"answer": "42"}, {"vote": "42"}]
    config = team(
        quick,
        [{"answer": "41"}, {"vote": "42"}],
        [{"answer": "43"}, {"hang": True}],
        orchestrator={"early_decision": "majority"},
    )
    assert (await run_team(tmp_path, config)).of(WinnerChosen)[0].early


async def test_a_vote_in_flight_on_an_outdated_ballot_is_cut_off_if_its_agent_may_only_vote(tmp_path: Path) -> None:
    voter = [{"answer": "one"}, {"answer": "one and a half"}, {"hang": True}, {"vote": "own"}]
    reviser = [{"answer": "two"}, {"answer": "three", **upon(tmp_path, "model_call_started", 5)}, {"vote": "own"}]
    config = team(voter, reviser, orchestrator={"max_new_answers_per_agent": 2}, timeouts={"round_timeout_seconds": 5})
    ended = await run_team(tmp_path, config)
    assert len(ended.of(ModelCallAborted, "agent_a")) == 1
    assert not ended.of(RuleViolated)
    assert not ended.of(AgentDropped)
    assert ended.snapshot.state == "completed"


@pytest.mark.parametrize(("stop", "told"), [("length", "cut off"), ("refusal", "refused"), ("end", "Whole.")])
async def test_a_final_answer_that_is_not_whole_is_none(stop: Literal["length", "refusal", "end"], told: str) -> None:
    """Without coordination there is no earlier answer to fall back on, so the run says what was wrong."""
    speaker = Speaker((TextPart("Whole."), StopPart(stop)))
    journal = EventList()
    policy = OrchestratorConfig(skip_coordination_rounds=True)
    team = (Member("agent_a", speaker), Member("agent_b", speaker))
    await Conductor(RunSpec("q", team, Rules(), TeamLimits(), NullAnswerStore(), policy), journal).conduct()
    end = journal.events[-1]
    assert isinstance(end, RunCompleted if stop == "end" else RunFailed)
    assert told in str(end)


# -- planning mode ---------------------------------------------------------------------------------------------------


async def test_in_planning_mode_only_the_winner_executes_and_only_when_it_presents(tmp_path: Path) -> None:
    write = {"call": "write_file", "arguments": {"path": "out.txt", "content": "done"}}
    planner = [write, {"answer": "I would write out.txt"}, {"vote": "own"}, write, {"say": "Written."}]
    other = [{"answer": "nothing to do"}, {"vote": "out.txt"}]
    settings = {"coordination": {"enable_planning_mode": True}}
    ended = await run_team(tmp_path, team(planner, other, orchestrator=settings))
    planned, executed = ended.of(ToolFinished, "agent_a")
    assert "Not executed" in planned.result
    assert not executed.is_error
    path = ended.of(AnswerSubmitted, "agent_a")[0].path
    assert path is not None
    assert not (ended.directory.path / path / "workspace" / "out.txt").exists()
    assert (ended.directory.path / "final" / "agent_a" / "workspace" / "out.txt").read_text() == "done"


async def test_in_planning_mode_reading_is_still_allowed(tmp_path: Path) -> None:
    reader = [{"call": "list_files"}, {"answer": "42"}, {"vote": "own"}]
    ended = await run_team(tmp_path, team(reader, [], orchestrator={"coordination": {"enable_planning_mode": True}}))
    assert "Not executed" not in ended.of(ToolFinished)[0].result


# -- further attempts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("filesystem", [True, False])
async def test_a_winner_may_ask_for_another_attempt_with_instructions(tmp_path: Path, filesystem: bool) -> None:
    winner = [
        {"answer": "42"},
        {"vote": "own"},
        {"say": "Short."},
        restart(),
        {"answer": "42 because"},
        {"vote": "own"},
        {"say": "Explained."},
        {"call": "submit"},
    ]
    other = [{"answer": "41"}, {"vote": "42"}, {"answer": "40"}, {"vote": "42"}]
    settings = {"coordination": {"max_orchestration_restarts": 2}, "enable_filesystem": filesystem}
    ended = await run_team(tmp_path, team(winner, other, orchestrator=settings))
    assert [event.attempt for event in ended.of(AttemptStarted)] == [1, 2]
    assert ended.of(AttemptStarted)[1].instructions == "explain it"
    assert [event.sufficient for event in ended.of(AnswerEvaluated)] == [False, True]
    assert ended.snapshot.final_answer == "Explained."
    paths = [event.path for event in ended.of(AnswerSubmitted, "agent_a")]
    assert [str(path).split("/")[:2] for path in paths] == [["turn_1", "attempt_1"], ["turn_1", "attempt_2"]]
    kept = [(answer.label, answer.path) for answer in ended.snapshot.answers if answer.agent == "agent_a"]
    assert kept == [("agent1.1", path) for path in paths]


async def test_restarts_are_bounded(tmp_path: Path) -> None:
    stubborn = [{"answer": "42"}, {"vote": "own"}, {"say": "So."}, restart()] * 5
    other = [{"answer": "41"}, {"vote": "42"}] * 5
    settings = {"coordination": {"max_orchestration_restarts": 1}}
    ended = await run_team(tmp_path, team(stubborn, other, orchestrator=settings))
    assert [event.attempt for event in ended.of(AttemptStarted)] == [1, 2]
    assert len(ended.of(AnswerEvaluated)) == 1
    assert ended.snapshot.state == "completed"


async def test_without_restarts_nobody_is_asked_to_judge(tmp_path: Path) -> None:
    assert not (await run_team(tmp_path, team(*AGREED))).of(AnswerEvaluated)


@pytest.mark.parametrize(
    "judgement", [{"say": "fine"}, {"fail": "auth"}, {"call": "restart_orchestration", "arguments": {"why": "?"}}]
)
async def test_whatever_is_no_clear_wish_for_a_restart_counts_as_content(
    tmp_path: Path, judgement: dict[str, Any]
) -> None:
    winner = [{"answer": "42"}, {"vote": "own"}, {"say": "So."}, judgement]
    settings = {"coordination": {"max_orchestration_restarts": 1}}
    ended = await run_team(tmp_path, team(winner, [{"answer": "41"}, {"vote": "42"}], orchestrator=settings))
    assert ended.of(AnswerEvaluated)[0].sufficient
    assert ended.snapshot.final_answer == "So."


async def test_an_attempt_that_comes_to_nothing_leaves_the_answer_before_it_standing(tmp_path: Path) -> None:
    winner = [{"answer": "42"}, {"vote": "own"}, {"say": "First."}, restart(), {"fail": "auth"}]
    other = [{"answer": "41"}, {"vote": "42"}, {"fail": "auth"}]
    settings = {"coordination": {"max_orchestration_restarts": 1}}
    ended = await run_team(tmp_path, team(winner, other, orchestrator=settings))
    assert isinstance(ended.events[-1], RunCompleted)
    assert ended.snapshot.final_answer == "First."
    assert len(ended.snapshot.degraded) == 2


async def test_who_fell_out_of_one_attempt_is_not_called_in_the_next(tmp_path: Path) -> None:
    winner = [{"answer": "42"}, {"vote": "own"}, {"say": "So."}, restart(), {"answer": "43"}, {"vote": "own"}]
    broken = [{"fail": "auth"}, {"answer": "never"}]
    other = [{"answer": "41"}, {"vote": "42"}, {"answer": "40"}, {"vote": "43"}]
    settings = {"coordination": {"max_orchestration_restarts": 1}}
    ended = await run_team(tmp_path, team(winner, broken, other, orchestrator=settings))
    assert len(ended.of(ModelCallStarted, "agent_b")) == 1
    assert len(ended.of(AgentDropped)) == 1


async def test_cutting_a_further_attempt_short_gives_the_answer_of_the_one_before(tmp_path: Path) -> None:
    winner = [{"answer": "42"}, {"vote": "own"}, {"say": "First."}, restart(), {"hang": True}]
    other = [{"answer": "41"}, {"vote": "42"}, {"hang": True}]
    settings = {"coordination": {"max_orchestration_restarts": 1}}
    act = _AfterSecond(AttemptStarted, "cancel")
    ended = await run_team(tmp_path, team(winner, other, orchestrator=settings), act=act)
    assert ended.snapshot.state == "cancelled"
    assert ended.snapshot.best_answer == "First."


@pytest.mark.parametrize("moment", [WinnerChosen, PresentationStarted, AnswerPresented, ModelCallStarted])
async def test_after_the_winner_is_chosen_finishing_now_means_no_further_attempt(
    tmp_path: Path, moment: type[Event]
) -> None:
    """The last moment is the call in which the winner judges its own answer."""
    winner = [{"answer": "42"}, {"vote": "own"}, {"say": "So."}, restart(), {"answer": "43"}, {"vote": "own"}]
    other = [{"answer": "41"}, {"vote": "42"}, {"answer": "40"}, {"vote": "43"}]
    settings = {"coordination": {"max_orchestration_restarts": 1}}
    act = Act(moment, "finish_now", lambda event: getattr(event, "purpose", "evaluate") == "evaluate")
    ended = await run_team(tmp_path, team(winner, other, orchestrator=settings), act=act)
    assert [event.attempt for event in ended.of(AttemptStarted)] == [1]
    assert ended.of(FinishRequested)
    assert (ended.snapshot.state, ended.snapshot.final_answer) == ("completed", "So.")


# -- debugging aids --------------------------------------------------------------------------------------------------


async def test_skipping_coordination_goes_straight_to_the_first_agents_presentation(tmp_path: Path) -> None:
    config = team([{"say": "Straight."}], [], orchestrator={"skip_coordination_rounds": True})
    ended = await run_team(tmp_path, config)
    assert ended.snapshot.final_answer == "Straight."
    assert len(ended.of(ModelCallStarted)) == 1
    assert ended.of(RunCompleted)[0].winner == "agent_a"


async def test_skipping_coordination_has_nothing_to_fall_back_on(tmp_path: Path) -> None:
    config = team([{"fail": "auth"}], [], orchestrator={"skip_coordination_rounds": True})
    end = (await run_team(tmp_path, config)).events[-1]
    assert isinstance(end, RunFailed)
    assert end.reason == "auth"


async def test_a_debug_final_answer_replaces_the_presentation_of_the_first_attempt_only(tmp_path: Path) -> None:
    winner = [{"answer": "42"}, {"vote": "own"}, restart(), {"answer": "43"}, {"vote": "own"}, {"say": "Real."}]
    other = [{"answer": "41"}, {"vote": "42"}, {"answer": "40"}, {"vote": "43"}]
    settings = {"debug_final_answer": "Bad on purpose.", "coordination": {"max_orchestration_restarts": 1}}
    ended = await run_team(tmp_path, team(winner, other, orchestrator=settings))
    assert [event.answer for event in ended.of(AnswerPresented)] == ["Bad on purpose.", "Real."]


# -- novelty ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "refused"), [("lenient", []), ("balanced", []), ("strict", ["not_novel"])])
async def test_an_answer_that_hardly_differs_is_refused_as_the_config_says(
    tmp_path: Path, level: str, refused: list[str]
) -> None:
    first = "the quick brown fox jumps over the lazy dog near the river bank"
    second = "the quick brown fox jumps over the lazy cat near the river bank today"
    author = [{"answer": "something else entirely"}, {"answer": second}, {"vote": "own"}, {"vote": "own"}]
    other = [{"answer": first}, {"vote": "own", "delay_seconds": 0.05}, {"vote": "own"}]
    ended = await run_team(tmp_path, team(author, other, orchestrator={"answer_novelty_requirement": level}))
    codes = [event.code for event in ended.of(RuleViolated, "agent_a") if event.code == "not_novel"]
    assert codes == refused


class _AfterSecond(Act):
    """Acts at the second time the event comes by."""

    _times = 0

    def heard(self, record: Any) -> None:
        if self._when(record.event):
            self._times += 1
        if self._times == 2:
            super().heard(record)
