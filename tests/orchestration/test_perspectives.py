"""What each agent of a team is told before it answers: the date, and, where all ask one model, a perspective."""

from datetime import UTC, datetime
from pathlib import Path

from massgen_mcp.events.run import RunStarted
from massgen_mcp.orchestration.team import PERSPECTIVES
from tests.system_messages import ask

TRIO = ("one", "one", "one")


def perspectives_in(systems: list[str]) -> list[list[str]]:
    return [[name for name, text in PERSPECTIVES.items() if text in system] for system in systems]


async def test_agents_of_one_model_answer_from_a_perspective_each_and_judge_alike(tmp_path: Path) -> None:
    model, _ = await ask(tmp_path, *TRIO)
    assert sorted(perspectives_in(model.tasks["new_answer"])) == [["builder"], ["reader"], ["sceptic"]]
    assert len(set(model.tasks["vote"])) == 1
    assert not any(perspectives_in([*model.tasks["vote"], *model.tasks["present"]]))
    assert len({system for systems in model.systems.values() for system in systems}) == 1, "in all rounds of all agents"


async def test_only_agents_that_ask_the_same_model_get_a_perspective(tmp_path: Path) -> None:
    model, _ = await ask(tmp_path, "one", "one", "two")
    assert sorted(perspectives_in(model.tasks["new_answer"])) == [[], ["builder"], ["sceptic"]]


async def test_agents_of_different_models_get_no_perspective(tmp_path: Path) -> None:
    model, _ = await ask(tmp_path, "one", "two", "three")
    assert perspectives_in(model.tasks["new_answer"]) == [[], [], []]


async def test_perspectives_can_be_switched_off(tmp_path: Path) -> None:
    model, _ = await ask(tmp_path, *TRIO, perspectives=False)
    assert perspectives_in(model.tasks["new_answer"]) == [[], [], []]


async def test_an_agent_with_instructions_of_its_own_keeps_to_those(tmp_path: Path) -> None:
    model, _ = await ask(tmp_path, *TRIO, system_messages=(None, "You are a lawyer.", None))
    told = zip(model.systems["new_answer"], model.tasks["new_answer"], strict=True)
    found = {"lawyer" in system: perspectives_in([task])[0] for system, task in told}
    assert found[True] == []
    assert found[False] != []


async def test_every_agent_is_told_the_date_of_the_run_in_every_phase(tmp_path: Path) -> None:
    model, ended = await ask(tmp_path, *TRIO)
    (began,) = [record.time for record in ended.records if isinstance(record.event, RunStarted)]
    today = f"Today is {datetime.fromtimestamp(began, UTC).date().isoformat()} (UTC)."
    assert all(today in system for systems in model.systems.values() for system in systems)
