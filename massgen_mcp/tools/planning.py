"""An agent's own task list: tasks that depend on each other, and the tools that keep them.

`Plan` is pure: every change gives a new plan that is sound, or a refusal in words for the model. Must not know whose
plan it is, nor what its tasks are about.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Generic, Literal, TypeAlias, TypeVar

from anyio import to_thread
from pydantic import BeforeValidator, Field, WithJsonSchema

from massgen_mcp.backends.base import JsonObject, ToolSpec
from massgen_mcp.tools.base import Arguments, Text, Tool, ToolRefused, ToolResult, parse_arguments, tool_spec
from massgen_mcp.workspace.directory import Workspace
from massgen_mcp.workspace.guard import PathRefused

PLAN_JSON = "tasks/plan.json"
PLAN_TEXT = "tasks/plan.md"
MAX_DESCRIPTION = 500

Status = Literal["pending", "in_progress", "done"]
Show = Literal["all", "ready", "blocked"]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
_MARKS: dict[Status, str] = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}


def _spelled(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


TaskId = Annotated[Text, BeforeValidator(_spelled)]
"""Models like to number their tasks; 1 is taken for "1"."""


class NewTask(Arguments):
    description: Text
    id: TaskId = ""
    depends_on: tuple[TaskId, ...] = ()


class CreateTaskPlan(Arguments):
    tasks: list[Annotated[NewTask, WithJsonSchema(tool_spec("", "", NewTask).parameters)]]


class UpdateTask(Arguments):
    id: TaskId
    status: Annotated[Status | Literal[""], WithJsonSchema({"enum": list(_MARKS)}), Field(validate_default=False)] = ""
    description: Text = ""


class GetTaskPlan(Arguments):
    show: Show = "all"


@dataclass(frozen=True, slots=True)
class Task:
    id: str
    description: str
    depends_on: tuple[str, ...] = ()
    status: Status = "pending"


@dataclass(frozen=True, slots=True)
class Plan:
    """At most `max_tasks` tasks. Whatever a method returns is sound: ids are unique, every dependency is a task of the
    plan, no task waits for itself, and what has begun depends only on what is done. All methods raise `ToolRefused`.
    """

    max_tasks: int
    tasks: tuple[Task, ...] = ()

    def replaced(self, wanted: Sequence[NewTask]) -> "Plan":
        """A new plan in place of this one. Tasks without an id get their number, or the next free one."""
        return self._grown((), wanted)

    def added(self, wanted: NewTask) -> "Plan":
        """This plan with one more task, the last."""
        return self._grown(self.tasks, [wanted])

    def updated(self, task_id: str, status: Status | None = None, description: str | None = None) -> "Plan":
        """This plan with another status or description of one task; None leaves it."""
        known = {task.id: task for task in self.tasks}
        if task_id not in known:
            raise ToolRefused(f"there is no task {task_id[:40]!a}; {_nearest(task_id, known)}")
        task = known[task_id]
        if status is not None:
            self._check_move(task, status)
            task = replace(task, status=status)
        if description is not None:
            task = replace(task, description=_described(description))
        return replace(self, tasks=tuple(task if old.id == task_id else old for old in self.tasks))

    def waits_for(self, task: Task) -> list[str]:
        """The dependencies of a task that are not done."""
        done = {other.id for other in self.tasks if other.status == "done"}
        return [name for name in task.depends_on if name not in done]

    def shown(self, show: Show = "all") -> list[Task]:
        """All tasks, or of the pending ones those that can begin (`ready`) or cannot yet (`blocked`)."""
        if show == "all":
            return list(self.tasks)
        blocked = show == "blocked"
        return [task for task in self.tasks if task.status == "pending" and bool(self.waits_for(task)) == blocked]

    def _check_move(self, task: Task, status: Status) -> None:
        if status != "pending" and (open_ones := self.waits_for(task)):
            raise ToolRefused(f"task {task.id} cannot begin before these are done: {', '.join(open_ones)}")
        if status != "done" and task.status == "done":
            begun = [other.id for other in self.tasks if task.id in other.depends_on and other.status != "pending"]
            if begun:
                raise ToolRefused(
                    f"task {task.id} stays done: {', '.join(begun)} began on it; set that to pending first"
                )

    def _grown(self, existing: tuple[Task, ...], wanted: Sequence[NewTask]) -> "Plan":
        count = len(existing) + len(wanted)
        if count > self.max_tasks:
            raise ToolRefused(f"that makes {count} tasks, a plan has at most {self.max_tasks}; join some into one")
        ids = _ids([task.id for task in existing], [task.id for task in wanted])
        made = [
            Task(task_id, _described(task.description), tuple(dict.fromkeys(task.depends_on)))
            for task_id, task in zip(ids, wanted, strict=True)
        ]
        tasks = (*existing, *made)
        _check_dependencies(tasks)
        return replace(self, tasks=tasks)


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)
Change: TypeAlias = Callable[[Plan, ArgumentsT], tuple[Plan, str]]


@dataclass(slots=True)
class PlanKeeper:
    """The plan as it stands. With a workspace every new plan is first written there, for others to read."""

    plan: Plan
    workspace: Workspace | None

    async def keep(self, plan: Plan) -> None:
        if self.workspace is not None and plan is not self.plan:
            await to_thread.run_sync(_write, self.workspace, plan)
        self.plan = plan


@dataclass(frozen=True, slots=True)
class PlanTool(Generic[ArgumentsT]):
    """One tool over a plan; `change` is pure. Calls of one agent are made one after the other."""

    spec: ToolSpec
    keeper: PlanKeeper
    kind: type[ArgumentsT]
    change: Change[ArgumentsT]
    side_effects: bool = False

    async def run(self, arguments: JsonObject) -> ToolResult:
        try:
            plan, text = self.change(self.keeper.plan, parse_arguments(self.kind, arguments))
            await self.keeper.keep(plan)
        except (PathRefused, ToolRefused) as refused:
            return ToolResult(str(refused), is_error=True)
        return ToolResult(text)


def planning_tools(*, max_tasks: int, workspace: Workspace | None) -> tuple[Tool, ...]:
    """The four tools over one agent's plan, empty at first. With a workspace the plan also stands in its `tasks/`."""
    keeper = PlanKeeper(Plan(max_tasks), workspace)

    def tool(name: str, description: str, kind: type[ArgumentsT], change: Change[ArgumentsT]) -> Tool:
        return PlanTool(tool_spec(name, description, kind), keeper, kind, change)

    return (
        tool(
            "create_task_plan", "Replace your task plan. Tasks without id are numbered from 1.", CreateTaskPlan, _create
        ),
        tool("add_task", "Add a task to your plan.", NewTask, _add),
        tool("update_task", "Change a task of your plan.", UpdateTask, _update),
        tool("get_task_plan", "Show your plan: all, or what is ready or blocked.", GetTaskPlan, _get),
    )


def plan_text(tasks: Iterable[Task]) -> str:
    """One line per task."""
    return "\n".join(
        f"{_MARKS[task.status]} {task.id}{f' (after {", ".join(task.depends_on)})' if task.depends_on else ''}: "
        f"{task.description}"
        for task in tasks
    )


def _create(plan: Plan, wanted: CreateTaskPlan) -> tuple[Plan, str]:
    made = plan.replaced(wanted.tasks)
    return made, plan_text(made.tasks) or "[no tasks]"


def _add(plan: Plan, wanted: NewTask) -> tuple[Plan, str]:
    made = plan.added(wanted)
    return made, f"added {made.tasks[-1].id}"


def _update(plan: Plan, wanted: UpdateTask) -> tuple[Plan, str]:
    if not wanted.status and not wanted.description:
        raise ToolRefused("nothing to change: give status or description")
    made = plan.updated(wanted.id, wanted.status or None, wanted.description or None)
    ready = ", ".join(task.id for task in made.shown("ready")) or "none"
    return made, f"changed {wanted.id}; ready: {ready}"


def _get(plan: Plan, wanted: GetTaskPlan) -> tuple[Plan, str]:
    return plan, plan_text(plan.shown(wanted.show)) or "[no tasks]"


def _write(workspace: Workspace, plan: Plan) -> None:
    data = json.dumps({"tasks": [asdict(task) for task in plan.tasks]}, ensure_ascii=False, indent=1)
    lines = [f"- {line}\n" for line in plan_text(plan.tasks).splitlines()]
    for path, text in ((PLAN_JSON, data + "\n"), (PLAN_TEXT, "".join(["# Plan\n\n", *lines]))):
        place = workspace.resolve_writable(path)
        place.root.write_bytes(place.rel, text.encode())


def _described(text: str) -> str:
    text = " ".join(text.split())
    if not text:
        raise ToolRefused("a task needs a description")
    if len(text) > MAX_DESCRIPTION:
        raise ToolRefused(
            f"a description has at most {MAX_DESCRIPTION} characters; put details into a file or an answer"
        )
    return text


def _ids(existing: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The ids of the wanted tasks, "" replaced by a number."""
    taken = set(existing)
    for name in wanted:
        if not name:
            continue
        if not _ID.fullmatch(name):
            raise ToolRefused(f"the id {name[:40]!a} is not usable: 1 to 32 letters, digits, '_', '.' and '-'")
        if name in taken:
            raise ToolRefused(f"there are two tasks with the id {name}; ids are unique")
        taken.add(name)
    ids: list[str] = []
    for place, name in enumerate(wanted, len(existing) + 1):
        number = place
        while not name and str(number) in taken:
            number += 1
        ids.append(name or str(number))
        taken.add(ids[-1])
    return ids


def _check_dependencies(tasks: Sequence[Task]) -> None:
    graph = {task.id: task.depends_on for task in tasks}
    for task in tasks:
        for name in task.depends_on:
            if name not in graph:
                raise ToolRefused(f"task {task.id} depends on {name[:40]!a}, which is no task; {_nearest(name, graph)}")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        raise ToolRefused(f"these tasks wait for each other: {' > '.join(circle)}; leave one dependency out") from error


def _nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    if near := difflib.get_close_matches(name[:64], names, n=1):
        return f"did you mean {near[0]}?"
    return f"there is {', '.join(names) or 'none yet'}"
