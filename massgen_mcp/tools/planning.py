"""An agent's own task list: tasks that depend on each other, and the tools that keep them.

`TaskPlan` is pure: every change gives a new plan that is sound, or a refusal in words for the model.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import count
from typing import Annotated, Literal

from anyio import to_thread
from pydantic import WithJsonSchema

from massgen_mcp.tools.base import (
    Arguments,
    ArgumentsT,
    CheckedTool,
    Tool,
    ToolRefused,
    ToolResult,
    WellFormedText,
    tool_spec,
)
from massgen_mcp.workspace.directory import Workspace

MAX_DESCRIPTION = 500

TaskStatus = Literal["pending", "in_progress", "done"]
Show = Literal["all", "ready", "blocked"]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
_MARKS: dict[TaskStatus, str] = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}


class NewTask(Arguments, coerce_numbers_to_str=True):  # models like to number their tasks
    description: WellFormedText
    id: WellFormedText = ""
    depends_on: tuple[WellFormedText, ...] = ()


class CreateTaskPlan(Arguments):
    tasks: list[Annotated[NewTask, WithJsonSchema(tool_spec("", "", NewTask).parameters)]]


class UpdateTask(Arguments, coerce_numbers_to_str=True):
    id: WellFormedText
    status: Annotated[Literal[TaskStatus, ""], WithJsonSchema({"type": "string", "enum": list(_MARKS)})] = ""
    description: WellFormedText = ""


class GetTaskPlan(Arguments):
    show: Show = "all"


@dataclass(frozen=True, slots=True)
class PlannedTask:
    id: str
    description: str
    depends_on: tuple[str, ...] = ()
    status: TaskStatus = "pending"

    def __str__(self) -> str:
        after = f" (after {', '.join(self.depends_on)})" if self.depends_on else ""
        return f"{_MARKS[self.status]} {self.id}{after}: {self.description}"


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """At most `max_tasks` tasks with unique ids and without a circle; what has begun depends only on what is done.

    A method returns another plan of that kind or raises `ToolRefused`.
    """

    max_tasks: int
    tasks: tuple[PlannedTask, ...] = ()

    def added(self, *wanted: NewTask) -> "TaskPlan":
        """This plan with more tasks at its end. Those without an id get their number."""
        if (total := len(self.tasks) + len(wanted)) > self.max_tasks:
            raise ToolRefused(f"that makes {total} tasks, a plan has at most {self.max_tasks}; join some into one")
        ids = _ids([task.id for task in self.tasks], [task.id for task in wanted])
        made = [
            PlannedTask(task_id, _described(task.description), tuple(dict.fromkeys(task.depends_on)))
            for task_id, task in zip(ids, wanted, strict=True)
        ]
        return replace(self, tasks=_reachable((*self.tasks, *made)))

    def updated(self, wanted: UpdateTask) -> "TaskPlan":
        """This plan with another status or description of one task; "" leaves it."""
        task = next((task for task in self.tasks if task.id == wanted.id), None)
        if task is None:
            raise ToolRefused(f"there is no task {wanted.id[:40]!a}; see get_task_plan")
        if not wanted.status and not wanted.description:
            raise ToolRefused("nothing to change: give status or description")
        if wanted.status:
            self._check_move(task, wanted.status)
            task = replace(task, status=wanted.status)
        if wanted.description:
            task = replace(task, description=_described(wanted.description))
        return replace(self, tasks=tuple(task if old.id == task.id else old for old in self.tasks))

    def waits_for(self, task: PlannedTask) -> list[str]:
        """The dependencies of a task that are not done."""
        done = {other.id for other in self.tasks if other.status == "done"}
        return [name for name in task.depends_on if name not in done]

    def shown(self, show: Show = "all") -> list[PlannedTask]:
        """All tasks, or of the pending ones those that can begin (`ready`) or cannot yet (`blocked`)."""
        if show == "all":
            return list(self.tasks)
        blocked = show == "blocked"
        return [task for task in self.tasks if task.status == "pending" and bool(self.waits_for(task)) == blocked]

    def _check_move(self, task: PlannedTask, status: TaskStatus) -> None:
        if status != "pending" and (missing := self.waits_for(task)):
            raise ToolRefused(f"task {task.id} cannot begin before these are done: {', '.join(missing)}")
        begun = [other.id for other in self.tasks if task.id in other.depends_on and other.status != "pending"]
        if status != "done" and begun:
            raise ToolRefused(f"task {task.id} stays done: {', '.join(begun)} began on it; make that pending first")


def planning_tools(*, max_tasks: int, workspace: Workspace | None) -> tuple[Tool, ...]:
    """The four tools over one agent's plan, empty at first. With a workspace every new plan is first written to its
    `tasks/`, for others to read. The calls of one agent are made one after the other.
    """
    plan = TaskPlan(max_tasks)

    def tool(
        name: str,
        description: str,
        kind: type[ArgumentsT],
        change: Callable[[TaskPlan, ArgumentsT], tuple[TaskPlan, str]],
    ) -> CheckedTool[ArgumentsT]:
        async def act(wanted: ArgumentsT) -> ToolResult:
            nonlocal plan
            changed, text = change(plan, wanted)
            if workspace is not None and changed is not plan:
                await to_thread.run_sync(_write_plan, workspace, changed)
            plan = changed
            return ToolResult(text)

        return CheckedTool(tool_spec(name, description, kind), kind, act, keeps_state=True)

    return (
        tool(
            "create_task_plan",
            "Replace your task plan. Ids default to 1, 2, ...",
            CreateTaskPlan,
            lambda _, wanted: _plan_text(TaskPlan(max_tasks).added(*wanted.tasks)),
        ),
        tool("add_task", "Add a task to your plan.", NewTask, _add),
        tool("update_task", "Change a task of your plan.", UpdateTask, _update),
        tool(
            "get_task_plan",
            "Show your task plan, or its ready or blocked tasks.",
            GetTaskPlan,
            lambda plan, wanted: _plan_text(plan, wanted.show),
        ),
    )


def _plan_text(plan: TaskPlan, show: Show = "all") -> tuple[TaskPlan, str]:
    return plan, "\n".join(map(str, plan.shown(show))) or "[no tasks]"


def _add(plan: TaskPlan, wanted: NewTask) -> tuple[TaskPlan, str]:
    plan = plan.added(wanted)
    return plan, f"added {plan.tasks[-1].id}"


def _update(plan: TaskPlan, wanted: UpdateTask) -> tuple[TaskPlan, str]:
    plan = plan.updated(wanted)
    return plan, f"changed {wanted.id}; ready: {', '.join(task.id for task in plan.shown('ready')) or 'none'}"


def _write_plan(workspace: Workspace, plan: TaskPlan) -> None:
    data = json.dumps({"tasks": [asdict(task) for task in plan.tasks]}, ensure_ascii=False, indent=1)
    text = "".join(["# Plan\n\n", *(f"- {task}\n" for task in plan.tasks)])
    for path, content in (("tasks/plan.json", data), ("tasks/plan.md", text)):
        place = workspace.resolve_writable(path)
        place.root.write_bytes(place.rel, content.encode())


def _described(text: str) -> str:
    text = " ".join(text.split())
    if text and len(text) <= MAX_DESCRIPTION:
        return text
    raise ToolRefused(f"a description must have 1 to {MAX_DESCRIPTION} characters, not {len(text)}")


def _ids(existing: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The ids of the wanted tasks, where "" becomes the place in the plan, or the next free number."""
    taken, made = set(existing), list[str]()
    for name in filter(None, wanted):
        if not _ID.fullmatch(name):
            raise ToolRefused(f"the id {name[:40]!a} is not usable: 1 to 32 letters, digits, '_', '.' and '-'")
        if name in taken:
            raise ToolRefused(f"there are two tasks with the id {name}; ids are unique")
        taken.add(name)
    for place, name in enumerate(wanted, len(existing) + 1):
        made.append(name or next(number for number in map(str, count(place)) if number not in {*taken, *made}))
    return made


def _reachable(tasks: tuple[PlannedTask, ...]) -> tuple[PlannedTask, ...]:
    """These tasks, if each can be reached through its dependencies."""
    graph = {task.id: task.depends_on for task in tasks}
    if strange := [(task.id, name) for task in tasks for name in task.depends_on if name not in graph]:
        task_id, name = strange[0]
        raise ToolRefused(f"task {task_id} depends on {name[:40]!a}, which is no task; there is {', '.join(graph)}")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise ToolRefused(f"these tasks wait for each other: {', '.join(error.args[1])}; drop a dependency") from error
    return tasks
