"""Task plans, memories and skills, as agents of a run use them."""

from pathlib import Path
from typing import Any

from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.events.coordination import AnswerSubmitted
from tests.teams import run_team, team, upon

SKILL = "---\nname: proofs\ndescription: How to check a proof.\n---\nRead it backwards.\n"


def use(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"call": tool, "arguments": arguments}


async def test_an_agent_keeps_a_task_plan_and_shows_it_with_its_answer(tmp_path: Path) -> None:
    tasks = [
        {"id": "read", "description": "Read it"},
        {"id": "prove", "description": "Prove it", "depends_on": ["read"]},
    ]
    planner = [
        use("create_task_plan", tasks=tasks),
        use("update_task", id="read", status="done"),
        use("get_task_plan", show="ready"),
        {"answer": "proven"},
    ]
    coordination = {"enable_agent_task_planning": True, "task_planning_filesystem_mode": True}
    ended = await run_team(tmp_path, team(planner, [], orchestrator={"coordination": coordination}))
    _, _, ready = ended.of(ToolFinished, "agent_a")
    assert "prove" in ready.result
    assert not ready.is_error
    path = ended.of(AnswerSubmitted, "agent_a")[0].path
    assert path is not None
    assert "Prove it" in (ended.directory.path / path / "workspace" / "tasks" / "plan.md").read_text()


async def test_a_plan_cannot_outgrow_its_limit(tmp_path: Path) -> None:
    planner = [use("create_task_plan", tasks=[{"description": f"task {n}"} for n in range(3)]), {"answer": "done"}]
    coordination = {"enable_agent_task_planning": True, "max_tasks_per_plan": 2}
    ended = await run_team(tmp_path, team(planner, [], orchestrator={"coordination": coordination}))
    assert ended.of(ToolFinished)[0].is_error


async def test_a_short_term_memory_reaches_every_agent_and_a_long_term_one_is_loaded_by_name(tmp_path: Path) -> None:
    author = [
        use("save_memory", name="units", content="All lengths are in metres."),
        use("save_memory", name="table", content="1 2 3", tier="long_term", description="measured values"),
        {"answer": "one"},
    ]
    reader = [
        {"answer": "two", **upon(tmp_path, "answer_submitted")},
        use("load_memory", name="table"),
        {"vote": "All lengths"},
    ]
    coordination = {"enable_memory_filesystem_mode": True}
    ended = await run_team(tmp_path, team(author, reader, orchestrator={"coordination": coordination}))
    assert "1 2 3" in ended.of(ToolFinished, "agent_b")[0].result
    memory = ended.directory.path / "workspaces" / "agent_a" / "memory"
    assert "metres" in (memory / "short_term" / "units.md").read_text()
    assert (memory / "long_term" / "table.md").is_file()


async def test_a_skill_of_the_users_directory_is_read_on_demand(tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "proofs"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    student = [use("read_skill", name="proofs"), use("read_skill", name="file_search"), {"answer": "checked"}]
    coordination = {
        "use_skills": True,
        "skills_directory": str(tmp_path / "skills"),
        "massgen_skills": ["file_search"],
    }
    ended = await run_team(tmp_path, team(student, [], orchestrator={"coordination": coordination}))
    own, builtin = ended.of(ToolFinished, "agent_a")
    assert "Read it backwards." in own.result
    assert "search_files" in builtin.result


async def test_none_of_these_tools_is_offered_unless_it_is_asked_for(tmp_path: Path) -> None:
    tools = ("create_task_plan", "save_memory", "read_skill")
    curious = [*(use(tool) for tool in tools), {"answer": "42"}]
    ended = await run_team(tmp_path, team(curious, []))
    assert all("There is no tool named" in event.result for event in ended.of(ToolFinished))
