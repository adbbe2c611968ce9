"""An answer that is written from all answers, and a judge that compares them, wherever the run is cut off."""

import json
from collections import Counter
from typing import Any

import pytest

from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import ModelCallStarted, ModelReplied, RuleViolated
from massgen_mcp.events.coordination import AnswerSubmitted, StageOpened, VoteCast, WinnerChosen
from massgen_mcp.events.parts import Event
from massgen_mcp.events.run import RunCompleted
from tests.orchestration.test_resume import journaled
from tests.stage import Performance, perform

Step = dict[str, Any]
VENDORS = {"agent_a": "one", "agent_b": "two", "agent_c": "three", "agent_d": "four"}


def written(content: str, *claims: Step) -> Step:
    return {"call": "submit_synthesis", "arguments": {"content": content, "claims": list(claims)}}


def answers(*texts: str, then: tuple[Step, ...] = ()) -> list[list[Step]]:
    return [[{"answer": text}, *then] for text in texts]


def stages(events: list[Event]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(one.kind, one.because, one.agents) for one in events if isinstance(one, StageOpened)]


def end(performance: Performance) -> tuple[str, str]:
    (won,) = [event for event in performance.events if isinstance(event, WinnerChosen)]
    last = performance.events[-1]
    assert isinstance(last, RunCompleted)
    assert last.outcome == won.outcome
    return last.answer, last.outcome


def calls(performance: Performance) -> int:
    return sum(isinstance(event, ModelCallStarted) for event in performance.events)


SYNTHESISE = Rules(seed="test", decide="synthesise", writer="agent_b")


async def test_one_agent_writes_from_all_and_says_where_each_claim_stands() -> None:
    text = written(
        "It is 42.",
        {"claim": "six times seven is 42", "answers": ["agent1", "agent2", "agent3"]},
        {"claim": "it is odd", "answers": ["agent1"], "contradicted_by": ["agent2"]},
    )
    performance = await perform([{"answer": "a"}], [{"answer": "b"}, text], [{"answer": "c"}], rules=SYNTHESISE)
    answer, outcome = end(performance)
    assert outcome == "synthesised"
    assert answer.startswith("It is 42.\n")
    assert "- six times seven is 42 (in 3 of 3: " in answer
    assert " alone; contradicted by agent" in answer
    assert calls(performance) == 4
    assert stages(performance.events) == [("synthesise", "answered", ("agent_b",))]


async def test_a_name_that_does_not_exist_goes_back_once_and_is_left_out_then() -> None:
    wrong = written("It is 42.", {"claim": "it is 42", "answers": ["agent1", "agent9"]})
    performance = await perform([{"answer": "a"}], [{"answer": "b"}, wrong, wrong], rules=SYNTHESISE)
    refused = [event.message for event in performance.events if isinstance(event, RuleViolated)]
    assert len(refused) == 1
    assert "agent9" in refused[0]
    answer, outcome = end(performance)
    assert outcome == "synthesised"
    assert answer.endswith("alone)")
    assert calls(performance) == 4


async def test_of_findings_every_one_has_a_claim_and_says_where_it_stands() -> None:
    finding = {"file": "a.py", "line": 1, "severity": "major", "title": "t", "detail": "d"}
    document = json.dumps({"summary": "s", "findings": [finding]})
    claim = {"claim": "t", "answers": ["agent1", "agent2"]}
    scripts = answers(document, document.replace('"s"', '"other"'))
    scripts[1] += [written(document, claim, claim), written(document, claim)]
    policy = OrchestratorConfig(answer_format="findings")
    performance = await perform(*scripts, rules=SYNTHESISE, policy=policy)
    answer, _ = end(performance)
    assert '"standing": "in 2 of 2: agent' in answer
    assert '"answers": [' in answer
    assert [one.code for one in performance.events if isinstance(one, RuleViolated)] == ["wrong_format"]


FAILS: list[Step] = [{"fail": "auth"}] * 3


async def test_if_the_writer_fails_one_more_is_drawn_and_then_the_others_vote() -> None:
    rules = Rules(seed="test", decide="synthesise", writer="agent_a")
    performance = await perform(
        [{"answer": "a"}, *FAILS], [{"answer": "b"}], [{"answer": "c"}], [{"answer": "d"}], rules=rules
    )
    assert end(performance)[1] == "synthesised"
    second = stages(performance.events)[1][2]
    assert second != ("agent_a",)
    scripts = [[{"answer": name}, *(FAILS if name == "a" or f"agent_{name}" in second else [])] for name in "abcd"]
    performance = await perform(*scripts, rules=rules)
    assert end(performance)[1] == "plurality", "two of the four agents that were asked"
    assert [kind for kind, _, _ in stages(performance.events)] == ["synthesise", "synthesise", "vote"]


async def test_a_writer_that_votes_or_answers_plainly_is_told_what_is_wanted() -> None:
    scripts = answers("a", "b")
    scripts[1] += [{"vote": "own"}, {"answer": "again"}]
    performance = await perform(*scripts, rules=SYNTHESISE)
    refused = [event.message for event in performance.events if isinstance(event, RuleViolated)]
    assert refused == ["Only a call of `submit_synthesis` is accepted now."] * 2
    assert end(performance)[1] == "synthesised"


JUDGE = Rules(seed="test", decide="judge", judge="agent_d", vendors=VENDORS)


async def test_a_judge_that_gives_no_answer_compares_in_both_orders_and_the_best_one_wins() -> None:
    judge: list[Step] = [{"vote": "good"}] * 4
    performance = await perform(*answers("bad", "good", "worse"), judge, rules=JUDGE)
    assert end(performance) == ("good", "judged")
    assert calls(performance) == 3 + 2 * 2 + 1
    compared = [one.subjects for one in performance.events if isinstance(one, StageOpened)]
    assert compared[1] == compared[0][::-1]
    assert {event.agent for event in performance.events if isinstance(event, VoteCast)} == {"agent_d"}


async def test_a_judge_whose_verdict_follows_the_order_decides_nothing_and_the_authors_vote() -> None:
    judge: list[Step] = [{"vote": "first"}] * 4
    performance = await perform(*answers("bad", "good", "worse", then=({"vote": "good"},)), judge, rules=JUDGE)
    assert end(performance) == ("good", "majority")
    assert stages(performance.events)[-1] == ("vote", "no_verdict", ("agent_a", "agent_b", "agent_c"))


async def test_no_verdict_is_asked_about_an_answer_of_the_judges_own_vendor() -> None:
    rules = Rules(seed="test", decide="judge", judge="agent_d", vendors={**VENDORS, "agent_a": "four"})
    performance = await perform(
        *answers("bad", "good", "worse", then=({"vote": "good"},)), [{"vote": "first"}] * 4, rules=rules
    )
    compared = [one.subjects for one in performance.events if isinstance(one, StageOpened) and one.kind == "compare"]
    assert not any("agent1.1" in pair for pair in compared)
    assert end(performance) == ("good", "majority")


async def test_a_judge_that_fails_leaves_what_is_not_beaten_to_the_authors() -> None:
    performance = await perform(*answers("bad", "good", "worse", then=({"vote": "good"},)), FAILS, rules=JUDGE)
    assert end(performance) == ("good", "majority")


SCRIPTS: dict[str, tuple[Rules, list[list[Step]]]] = {
    "synthesise": (SYNTHESISE, answers("a", "b", "c")),
    "writer fails": (SYNTHESISE, [[{"answer": "a"}], [{"answer": "b"}, *FAILS], [{"answer": "c"}]]),
    "judge": (JUDGE, [*answers("bad", "good", "worse"), [{"vote": "good"}] * 4]),
    "split": (JUDGE, [*answers("bad", "good", "worse", then=({"vote": "good"},)), [{"vote": "first"}] * 4]),
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_cut_off_in_any_stage_a_run_goes_on_without_asking_again(name: str) -> None:
    rules, scripts = SCRIPTS[name]
    whole = await perform(*scripts, rules=rules)
    for cut in range(1, len(whole.events)):
        before = whole.events[:cut]
        rest = await perform(*scripts, rules=rules, past=journaled(before))
        everything = [*before, *rest.events]
        assert isinstance(everything[-1], RunCompleted), (cut, everything[-1])
        replied = Counter(event.call_id for event in everything if isinstance(event, ModelReplied))
        assert set(replied.values()) == {1}, (cut, replied)
        assert everything[-1] == whole.events[-1], cut
        opened = [event for event in everything if isinstance(event, StageOpened)]
        assert opened == [event for event in whole.events if isinstance(event, StageOpened)], cut
        labels = [event.label for event in everything if isinstance(event, AnswerSubmitted)]
        assert len(labels) == len(set(labels)), cut
