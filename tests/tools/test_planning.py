"""The task list as a model meets it, and its rules under random use."""

import json
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from massgen_mcp.backends.base import JsonObject
from massgen_mcp.tools.base import Tool, ToolRefused
from massgen_mcp.tools.planning import NewTask, TaskPlan, UpdateTask, planning_tools
from massgen_mcp.workspace.directory import Workspace
from tests.tools.calls import ok, refused

CHAIN: JsonObject = {
    "tasks": [
        {"description": "read the data"},
        {"description": "fit a model", "depends_on": ["1"]},
        {"description": "write it up", "depends_on": ["1", "2"]},
    ]
}


@pytest.fixture
def tools() -> dict[str, Tool]:
    return {tool.spec.name: tool for tool in planning_tools(max_tasks=4, workspace=None)}


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.create(tmp_path / "ws") as made:
        yield made


def test_the_specs_are_small_and_hold_no_references(tools: dict[str, Tool]) -> None:
    specs = json.dumps([[tool.spec.name, tool.spec.description, tool.spec.parameters] for tool in tools.values()])

    assert list(tools) == ["create_task_plan", "add_task", "update_task", "get_task_plan"]
    assert len(specs) < 1300
    assert "$ref" not in specs
    assert '"title"' not in specs
    assert not any(tool.side_effects for tool in tools.values())


async def test_a_plan_is_shown_as_it_was_made_with_its_tasks_numbered(tools: dict[str, Tool]) -> None:
    shown = "[ ] 1: read the data\n[ ] 2 (after 1): fit a model\n[ ] 3 (after 1, 2): write it up"

    assert await ok(tools, "create_task_plan", CHAIN) == shown
    assert await ok(tools, "get_task_plan", {}) == shown


async def test_a_new_plan_replaces_the_earlier_one_and_may_be_empty(tools: dict[str, Tool]) -> None:
    await ok(tools, "create_task_plan", CHAIN)

    assert await ok(tools, "create_task_plan", {"tasks": [{"id": "b", "description": "B"}]}) == "[ ] b: B"
    assert await ok(tools, "create_task_plan", {"tasks": []}) == "[no tasks]"
    assert await ok(tools, "get_task_plan", {}) == "[no tasks]"


async def test_a_task_begins_only_when_what_it_depends_on_is_done(tools: dict[str, Tool]) -> None:
    await ok(tools, "create_task_plan", CHAIN)

    for status in ("in_progress", "done"):
        text = await refused(tools, "update_task", {"id": "3", "status": status})
        assert text == "task 3 cannot begin before these are done: 1, 2"
    assert await ok(tools, "update_task", {"id": "1", "status": "in_progress"}) == "changed 1; ready: none"
    assert "before these are done: 1" in await refused(tools, "update_task", {"id": "2", "status": "done"})
    assert await ok(tools, "update_task", {"id": "1", "status": "done"}) == "changed 1; ready: 2"
    assert await ok(tools, "update_task", {"id": "2", "status": "in_progress"}) == "changed 2; ready: none"
    assert "[>] 2 (after 1): fit a model" in await ok(tools, "get_task_plan", {})


async def test_ready_and_blocked_tasks_are_the_pending_ones_divided(tools: dict[str, Tool]) -> None:
    await ok(tools, "create_task_plan", CHAIN)
    await ok(tools, "update_task", {"id": "1", "status": "done"})

    assert await ok(tools, "get_task_plan", {"show": "ready"}) == "[ ] 2 (after 1): fit a model"
    assert await ok(tools, "get_task_plan", {"show": "blocked"}) == "[ ] 3 (after 1, 2): write it up"


async def test_a_task_others_began_on_stays_done(tools: dict[str, Tool]) -> None:
    await ok(tools, "create_task_plan", CHAIN)
    await ok(tools, "update_task", {"id": "1", "status": "done"})
    await ok(tools, "update_task", {"id": "2", "status": "in_progress"})

    assert "2 began on it" in await refused(tools, "update_task", {"id": "1", "status": "pending"})
    await ok(tools, "update_task", {"id": "2", "status": "pending"})
    await ok(tools, "update_task", {"id": "1", "status": "pending"})
    assert await ok(tools, "get_task_plan", {"show": "ready"}) == "[ ] 1: read the data"


async def test_a_task_is_added_last_and_described_anew(tools: dict[str, Tool]) -> None:
    await ok(tools, "create_task_plan", CHAIN)

    assert await ok(tools, "add_task", {"description": "check\n  it", "depends_on": ["3", "3"]}) == "added 4"
    await ok(tools, "update_task", {"id": "4", "description": "check it twice"})
    assert (await ok(tools, "get_task_plan", {})).endswith("\n[ ] 4 (after 3): check it twice")


async def test_numbers_are_taken_for_ids_and_a_taken_number_is_passed_over(tools: dict[str, Tool]) -> None:
    tasks: JsonObject = {"tasks": [{"id": 2, "description": "a"}, {"description": "b"}, {"description": "c"}]}

    assert await ok(tools, "create_task_plan", tasks) == "[ ] 2: a\n[ ] 3: b\n[ ] 4: c"
    assert await ok(tools, "update_task", {"id": 2, "status": "done"}) == "changed 2; ready: 3, 4"
    assert await ok(tools, "add_task", {"description": "d", "depends_on": [2]}) == "added 5"


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("add_task", {"description": "x", "id": "2"}, "two tasks with the id 2"),
        ("add_task", {"description": "x", "depends_on": ["9"]}, "'9', which is no task; there is 1, 2, 3, 4"),
        ("add_task", {"description": "x", "id": "a", "depends_on": ["a"]}, "these tasks wait for each other: a, a"),
        ("add_task", {"description": "x", "id": "../a"}, "'../a' is not usable"),
        ("add_task", {"description": " \n"}, "1 to 500 characters, not 0"),
        ("add_task", {"description": "x" * 501}, "1 to 500 characters, not 501"),
        ("update_task", {"id": "9", "status": "done"}, "no task '9'; see get_task_plan"),
        ("update_task", {"id": "1"}, "nothing to change"),
        ("update_task", {"id": "1", "status": "finished"}, "'pending', 'in_progress', 'done'"),
        ("update_task", {"id": "1", "description": " "}, "1 to 500 characters"),
        ("get_task_plan", {"show": "mine"}, "'show': Input should be 'all', 'ready' or 'blocked'"),
        ("create_task_plan", {"tasks": [{"id": "a"}]}, "'tasks.0.description' is missing"),
        (
            "create_task_plan",
            {"tasks": [{"id": "a", "description": "x"}, {"id": "a", "description": "y"}]},
            "two tasks with the id a",
        ),
        (
            "create_task_plan",
            {"tasks": [{"id": n, "description": n, "depends_on": [d]} for n, d in ("ab", "bc", "ca")]},
            "these tasks wait for each other: a, c, b, a",
        ),
    ],
)
async def test_what_breaks_a_rule_is_refused_and_leaves_the_plan_as_it_was(
    tools: dict[str, Tool], name: str, arguments: JsonObject, answer: str
) -> None:
    before = await ok(tools, "create_task_plan", CHAIN)

    assert answer in await refused(tools, name, arguments)
    assert await ok(tools, "get_task_plan", {}) == before


async def test_a_plan_has_no_more_tasks_than_its_limit(tools: dict[str, Tool]) -> None:
    await ok(tools, "create_task_plan", CHAIN)
    await ok(tools, "add_task", {"description": "4"})

    assert "at most 4; join some" in await refused(tools, "add_task", {"description": "5"})
    five: JsonObject = {"tasks": [{"description": f"{number}"} for number in range(5)]}
    assert "that makes 5 tasks" in await refused(tools, "create_task_plan", five)


async def test_with_a_workspace_every_change_is_written_for_others_to_read(workspace: Workspace) -> None:
    tools = {tool.spec.name: tool for tool in planning_tools(max_tasks=4, workspace=workspace)}
    await ok(tools, "create_task_plan", CHAIN)
    await ok(tools, "update_task", {"id": "1", "status": "done"})

    written = json.loads(workspace.root.read_bytes("tasks/plan.json", 10_000))
    assert written["tasks"][1] == {"id": "2", "description": "fit a model", "depends_on": ["1"], "status": "pending"}
    assert written["tasks"][0]["status"] == "done"
    assert workspace.root.read_bytes("tasks/plan.md", 10_000).decode() == (
        "# Plan\n\n- [x] 1: read the data\n- [ ] 2 (after 1): fit a model\n- [ ] 3 (after 1, 2): write it up\n"
    )


async def test_reading_the_plan_writes_nothing(workspace: Workspace, tmp_path: Path) -> None:
    tools = {tool.spec.name: tool for tool in planning_tools(max_tasks=4, workspace=workspace)}
    await ok(tools, "get_task_plan", {})

    assert list((tmp_path / "ws").iterdir()) == []


async def test_a_plan_that_cannot_be_written_is_refused_and_not_kept(workspace: Workspace, tmp_path: Path) -> None:
    tools = {tool.spec.name: tool for tool in planning_tools(max_tasks=4, workspace=workspace)}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "ws" / "tasks").symlink_to(elsewhere)

    assert "symbolic link" in await refused(tools, "create_task_plan", CHAIN)
    assert await ok(tools, "get_task_plan", {}) == "[no tasks]"
    assert list(elsewhere.iterdir()) == []


async def test_two_agents_have_two_plans(tools: dict[str, Tool]) -> None:
    other = {tool.spec.name: tool for tool in planning_tools(max_tasks=4, workspace=None)}
    await ok(tools, "create_task_plan", CHAIN)

    assert await ok(other, "get_task_plan", {}) == "[no tasks]"


IDS = st.sampled_from(["", "1", "2", "3", "a", "b", "c"])
NEW = st.builds(NewTask, description=st.just("x"), id=IDS, depends_on=st.lists(IDS, max_size=3).map(tuple))
UPDATES = st.builds(
    UpdateTask, id=IDS, status=st.sampled_from(["", "pending", "in_progress", "done"]), description=st.just("y")
)
CHANGES = st.lists(st.one_of(NEW, UPDATES, st.lists(NEW, max_size=6)), max_size=20)


@given(CHANGES, st.integers(0, 5))
def test_no_sequence_of_changes_leads_to_an_unsound_plan(
    changes: list[NewTask | UpdateTask | list[NewTask]], limit: int
) -> None:
    plan = TaskPlan(limit)
    for change in changes:
        try:
            match change:
                case NewTask():
                    plan = plan.added(change)
                case UpdateTask():
                    plan = plan.updated(change)
                case list():
                    plan = TaskPlan(limit).added(*change)
        except ToolRefused:
            continue
        by_id = {task.id: task for task in plan.tasks}
        assert len(by_id) == len(plan.tasks) <= limit
        TopologicalSorter({task.id: task.depends_on for task in plan.tasks}).prepare()
        for task in plan.tasks:
            assert all(by_id[name].status == "done" for name in task.depends_on) or task.status == "pending"
        divided = {task.id for task in [*plan.shown("ready"), *plan.shown("blocked")]}
        assert divided == {task.id for task in plan.tasks if task.status == "pending"}
