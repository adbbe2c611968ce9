"""The orchestrator without files and processes: what was said to each model can be read back."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from massgen_mcp.backends.base import AssistantMessage, ModelRequest, Part, PastCall
from massgen_mcp.backends.scripted import ScriptedBackend
from massgen_mcp.config.models.backends import ScriptedBackendConfig
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.parts import Event, public_agent_name
from massgen_mcp.events.record import LogRecord
from massgen_mcp.money.tariff import Tariff
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.tools.base import Tool
from tests.in_memory import EventList, NullAnswerStore


@dataclass
class Listener:
    """A scripted agent that remembers what it was asked."""

    inner: ScriptedBackend
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])

    @property
    def model(self) -> str:
        return self.inner.model

    def fast_forward(self, past: Sequence[PastCall]) -> None:
        self.inner.fast_forward(past)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        self.requests.append(request)
        async for part in self.inner.stream(request):
            yield part

    async def aclose(self) -> None:
        await self.inner.aclose()


@dataclass
class Speaker:
    """A model that says the same parts to every request."""

    parts: tuple[Part, ...]
    model: str = "speaker"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        del request
        for part in self.parts:
            yield part

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass
class Performance:
    listeners: list[Listener]
    events: list[Event]

    def asked(self, place: int) -> list[ModelRequest]:
        """The requests that the agent at `place` got, in order."""
        return self.listeners[place].requests


async def perform(
    *scripts: list[dict[str, Any]],
    question: str = "What is six times seven?",
    rules: Rules | None = None,
    policy: OrchestratorConfig | None = None,
    tools: tuple[Tool, ...] = (),
    presentation: str | None = None,
    journal: EventList | None = None,
    history: tuple[EarlierTurn, ...] = (),
    past: Sequence[LogRecord] = (),
    during: Callable[[Conductor], None] = lambda _: None,
    tariff: Tariff | None = None,
) -> Performance:
    """Let scripted agents coordinate, one per script; `past` is a journal that they go on with. `tariff`: that of the
    model for which they pass.
    """
    listeners = [
        Listener(
            ScriptedBackend(
                ScriptedBackendConfig.model_validate(
                    {"type": "scripted", "script": script, "presentation": presentation}
                )
            )
        )
        for script in scripts
    ]
    team = tuple(
        Member(public_agent_name(place), listener, tools=tools, tariff=tariff or Tariff())
        for place, listener in enumerate(listeners)
    )
    journal = journal or EventList()
    run_spec = RunSpec(
        question,
        team,
        rules or Rules(seed="test"),
        TeamLimits(),
        NullAnswerStore(),
        policy or OrchestratorConfig(),
        history=history,
    )
    conductor = Conductor(run_spec, journal, past)
    if past:
        await conductor.resume()
    during(conductor)
    await conductor.conduct()
    return Performance(listeners, journal.events)


def text_of(request: ModelRequest) -> str:
    """Everything a model reads of a request, tools excepted."""
    said = [m.text for m in request.messages if not isinstance(m, AssistantMessage)]
    return "\n".join([request.system, *said])
