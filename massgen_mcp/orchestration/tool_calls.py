"""Runs the ordinary tools that a model calls, and journals what goes back to it.

Must not know the workflow tools: those are actions of the coordination.
"""

import time
from collections.abc import AsyncGenerator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import anyio

from massgen_mcp.backends.base import ToolCall
from massgen_mcp.events.agent_work import ToolFinished, ToolStarted
from massgen_mcp.markers import draw_nonce
from massgen_mcp.nearest import nearest
from massgen_mcp.orchestration.live_run import LiveRun
from massgen_mcp.orchestration.team import Member
from massgen_mcp.tools.base import KeyedTool, RunsOnce, Tool, ToolRefused, ToolResult, decoded

MAX_RESULT_CHARACTERS = 100_000
MAX_CALLS_PER_REPLY = 32


INTERRUPTED = (
    "Interrupted: this was begun when the process that worked on the run was lost. It may have been done in part or "
    "wholly, and it goes on no more. Look at what is there before you call it again."
)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """An agent's use of its tools in one turn."""

    member: Member
    live_run: LiveRun
    only_plan: bool = False
    """Don't run tools that have side effects; the model is told that its call is part of its plan."""
    ending: Sequence[str] = ()
    """Names of the tools that end the turn, for a call of a tool that there is not."""


async def run_tools(
    use: ToolUse,
    calls: tuple[ToolCall, ...],
    *,
    reply_id: str,
    done: int = 0,
    begun: AbstractSet[str] = frozenset(),
) -> AsyncGenerator[ToolFinished]:
    """Run the calls of one reply in their order, except the first `done` ones; those that only read and follow each
    other run at the same time. Every call gets its result, the surplus ones a refusal. Those in `begun`, by id, were
    begun in a process that was lost, and must not be run twice. `reply_id`: of the model call that was replied to.
    """
    place = done
    while place < len(calls):
        together = _count_reads(use.member, calls[place:MAX_CALLS_PER_REPLY], begun) or 1
        batch = [
            _Call(use, call, f"{reply_id}/{number}", number, call.id in begun)
            for number, call in enumerate(calls[place : place + together], start=place)
        ]
        async with anyio.create_task_group() as tasks:
            for one in batch:
                tasks.start_soon(one.run)
        for one in batch:
            yield use.live_run.record(one.make_event())
        place += together


def _count_reads(member: Member, calls: Sequence[ToolCall], begun: AbstractSet[str]) -> int:
    """Count the calls at the beginning that change nothing, so that they can run at the same time."""
    readers = {tool.spec.name for tool in member.offered if _is_reading(tool)}
    changing = (place for place, call in enumerate(calls) if call.name not in readers or call.id in begun)
    return next(changing, len(calls))


def _is_reading(tool: Tool) -> bool:
    return not (tool.side_effects or tool.keeps_state or isinstance(tool, KeyedTool | RunsOnce))


@dataclass(slots=True)
class _Call:
    """One call of a reply on its way to a result. `key` tells it from every other call of the run."""

    use: ToolUse
    call: ToolCall
    key: str
    place: int
    begun: bool
    result: ToolResult = field(default_factory=lambda: ToolResult(""))
    valid: bool = True
    seconds: float = 0.0

    async def run(self) -> None:
        began = time.monotonic()
        if self.place >= MAX_CALLS_PER_REPLY:
            text = f"At most {MAX_CALLS_PER_REPLY} calls in one reply; this one did not run."
            self.result = ToolResult(text, is_error=True)
        elif self.begun:
            self.result = ToolResult(INTERRUPTED, is_error=True)
        else:
            self.result, self.valid = await _run(self.use, self.call, self.key)
        self.seconds = time.monotonic() - began

    def make_event(self) -> ToolFinished:
        text = _cut(self.result.text)
        return ToolFinished(
            agent=self.use.member.name,
            call_id=self.call.id,
            name=self.call.name,
            result=text,
            is_error=self.result.is_error,
            valid=self.valid,
            seconds=self.seconds,
            nonce=draw_nonce([text]) if self.result.foreign else "",
        )


async def _run(use: ToolUse, call: ToolCall, key: str) -> tuple[ToolResult, bool]:
    """The result, and whether the call was a valid one. `key` tells the call from every other one of the run."""
    member = use.member
    tool = next((tool for tool in member.offered if tool.spec.name == call.name), None)
    if tool is None and (why := member.withheld.get(call.name)):
        return ToolResult(why, is_error=True), False
    if tool is None:
        return ToolResult(_unknown_tool(member, call.name, use.ending), is_error=True), False
    try:
        arguments = decoded(call)
    except ToolRefused as error:
        return ToolResult(str(error), is_error=True), False
    if use.only_plan and tool.side_effects:
        planned = f"Not executed: this is planning. Describe in your answer that {call.name} is to be called."
        return ToolResult(planned), True
    if isinstance(tool, KeyedTool):
        return await tool.run_once(arguments, key), True
    if isinstance(tool, RunsOnce):
        shown = tool.shown(arguments)
        use.live_run.record(ToolStarted(agent=member.name, call_id=call.id, name=call.name, shown=shown))
        await use.live_run.settle()
    return await tool.run(arguments), True


def _unknown_tool(member: Member, name: str, ending: Sequence[str]) -> str:
    """Return what is answered to a call of a tool that there is not: the names of all that there are."""
    names = [spec.name for spec in member.listed]
    parts = [f"There is no tool named {name[:60]!r}."]
    if near := nearest(name, [*names, *ending]):
        parts.append(f"Did you mean {near}?")
    parts.append(f"Your tools: {', '.join(names) or 'none'}.")
    if ending:
        parts.append(f"End your turn with: {', '.join(ending)}.")
    return " ".join(parts)


def _cut(text: str) -> str:
    if len(text) <= MAX_RESULT_CHARACTERS:
        return text
    return f"{text[:MAX_RESULT_CHARACTERS]}\n[cut: {len(text) - MAX_RESULT_CHARACTERS} more characters]"
