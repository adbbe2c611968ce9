"""What a model is told near the end of its time and of the run's money, so that it ends with what it has."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from massgen_mcp.backends.base import ModelRequest, Part, StopPart, ToolCall, ToolCallPart, UsagePart
from massgen_mcp.config.models.orchestrator import BudgetConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from massgen_mcp.tools.planning import planning_tools
from tests.in_memory import EventList, NullAnswerStore
from tests.virtual_time import VIRTUAL_TIME


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return VIRTUAL_TIME


@dataclass
class Diligent:
    """A model that looks at its plan, ten seconds each time, until it is told to come to an end."""

    model: str = "diligent"
    told: list[str] = field(default_factory=list[str])
    """The last message of every request."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        self.told.append(request.messages[-1].text)
        await anyio.sleep(10)
        ends = "come to an end" in self.told[-1]
        call = ("new_answer", '{"content": "so far"}') if ends else ("get_task_plan", "{}")
        yield ToolCallPart(ToolCall(f"c{len(self.told)}", *call))
        yield UsagePart(input_tokens=900, output_tokens=100)
        yield StopPart("tool_calls")

    async def aclose(self) -> None:
        """Nothing is open."""


async def ended(limits: TeamLimits, budget: BudgetConfig | None = None) -> tuple[list[str], Conductor]:
    model = Diligent()
    member = Member("agent_a", model, tools=planning_tools(max_tasks=5, workspace=None))
    spec = RunSpec("?", (member,), Rules(seed="q"), limits, NullAnswerStore(), budget=budget)
    conductor = Conductor(spec, EventList())
    await conductor.conduct()
    return model.told, conductor


@pytest.mark.parametrize(
    "limits", [TeamLimits(round_seconds=95), TeamLimits(run_seconds=95), TeamLimits(first_round_seconds=95)]
)
async def test_an_agent_whose_time_runs_out_is_told_and_answers_in_time(limits: TeamLimits) -> None:
    told, conductor = await ended(limits)
    assert [text for text in told if "seconds are left" in text] == [told[-1]]
    assert told[-1].startswith("About 15 seconds are left")
    assert conductor.state.final_answer == "so far"


async def test_an_agent_of_a_run_whose_money_runs_out_is_told(anyio_backend: object) -> None:
    del anyio_backend
    told, conductor = await ended(TeamLimits(), BudgetConfig(max_tokens=20_000))
    assert told[-1] == "60% of what the whole run may cost is spent: come to an end, with what you have."
    assert len(told) == 13
    assert conductor.state.final_answer == "so far"


async def test_an_agent_with_enough_of_all_is_told_nothing(anyio_backend: object) -> None:
    del anyio_backend
    told, _ = await ended(TeamLimits(steps_per_round=10))
    assert not [text for text in told if "come to an end" in text]
