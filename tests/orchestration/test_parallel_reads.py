"""Calls of one reply that only read run at the same time; those that change something run alone and in their order."""

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

import anyio

from massgen_mcp.backends.base import (
    JsonObject,
    ModelRequest,
    Part,
    StopPart,
    ToolCall,
    ToolCallPart,
    ToolResultMessage,
    ToolSpec,
)
from massgen_mcp.coordination.state import Rules
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from massgen_mcp.tools.base import ToolResult
from tests.in_memory import EventList, NullAnswerStore


@dataclass
class Caller:
    """A model that makes these calls in one reply, and then answers."""

    calls: Sequence[str]
    model: str = "caller"
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        self.requests.append(request)
        if len(self.requests) > 1:
            yield ToolCallPart(ToolCall("answer", "new_answer", json.dumps({"content": "Done."})))
        else:
            for place, name in enumerate(self.calls):
                yield ToolCallPart(ToolCall(f"call_{place}", name, json.dumps({"place": place})))
        yield StopPart("tool_calls")

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass
class Watched:
    """A tool that lasts until nothing else can run; keeps how many run at the same time with it."""

    name: str
    side_effects: bool
    running: list[str]
    seen: list[tuple[str, ...]]
    keeps_state: bool = False

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, "A tool.", {"type": "object"})

    async def run(self, arguments: JsonObject) -> ToolResult:
        self.running.append(self.name)
        await anyio.wait_all_tasks_blocked()
        self.seen.append(tuple(self.running))
        self.running.remove(self.name)
        return ToolResult(f"{self.name} {arguments['place']}")


async def played(*calls: str) -> tuple[list[tuple[str, ...]], list[str]]:
    """What ran at the same time as each call, and the results as the model got them."""
    running: list[str] = []
    seen: list[tuple[str, ...]] = []
    tools = tuple(Watched(name, name == "change", running, seen) for name in ("read", "change"))
    caller = Caller(calls)
    run_spec = RunSpec("Do it.", (Member("agent_a", caller, tools=tools),), Rules(), TeamLimits(), NullAnswerStore())
    await Conductor(run_spec, EventList()).conduct()
    results = [one.text for one in caller.requests[1].messages if isinstance(one, ToolResultMessage)]
    return seen, results


async def test_reads_of_one_reply_run_at_the_same_time_and_return_together() -> None:
    seen, results = await played("read", "read", "read")
    assert max(map(len, seen)) == 3
    assert results == ["read 0", "read 1", "read 2"]


async def test_a_change_waits_for_the_reads_before_it_and_the_reads_behind_it_for_the_change() -> None:
    seen, results = await played("read", "read", "change", "read", "change", "change")
    assert max(map(len, seen)) == 2
    assert [one for one in seen if "change" in one] == [("change",)] * 3
    assert results == ["read 0", "read 1", "change 2", "read 3", "change 4", "change 5"]


async def test_surplus_calls_are_refused_each_for_itself() -> None:
    seen, results = await played(*["read"] * 40)
    assert (len(seen), len(results)) == (32, 40)
    assert all("did not run" in result for result in results[32:])
