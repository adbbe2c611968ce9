"""One model call, or one whole run of a lone agent, and what came of it."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from massgen_mcp.backends.base import Backend, ModelRequest, Part, ToolSpec, UserMessage
from massgen_mcp.backends.calling import CallHooks, ModelReply, RetryPolicy, call_model
from massgen_mcp.config.models.orchestrator import OrchestratorConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.events.agent_work import ModelCallRetried
from massgen_mcp.events.coordination import AgentDropped, AnswerSubmitted
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from tests.in_memory import EventList, NullAnswerStore

AT_ONCE = RetryPolicy(first_wait=0.0)
"""The policy of the product without its random waits; what a provider asks for is waited for."""

LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {"where": {"type": "string"}}})


@cache
def load_sdks() -> None:
    """Import what the first call of a process would import; that takes seconds and is nobody's slowness."""
    for name in ("openai.resources.chat.completions", "openai.resources.responses", "anthropic.resources.messages"):
        importlib.import_module(name)


def ask(text: str, *tools: ToolSpec) -> ModelRequest:
    return ModelRequest("You are terse.", (UserMessage(text),), tools)


async def parts_of(backend: Backend, request: ModelRequest) -> list[Part]:
    try:
        return [part async for part in backend.stream(request)]
    finally:
        await backend.aclose()


@dataclass
class Told:
    """What one call came to. Either `reply` or `error` is set."""

    reply: ModelReply | None = None
    error: BackendError | None = None
    heard: list[str] = field(default_factory=list[str])
    retries: list[tuple[BackendError, float]] = field(default_factory=list[tuple[BackendError, float]])
    """Failed attempts with the waits after them, in seconds."""


async def call(
    backend: Backend,
    request: ModelRequest,
    *,
    deadline: float = 30.0,
    policy: RetryPolicy = AT_ONCE,
    on_wait: Callable[[float], None] = lambda _: None,
) -> Told:
    """Make one call with the product's policy. `on_wait` hears of a wait before it begins."""
    told = Told()

    class Hooks(CallHooks):
        def on_text(self, text: str) -> None:
            told.heard.append(text)

        def on_retry(self, attempt: int, error: BackendError, wait_seconds: float) -> None:
            assert attempt == len(told.retries) + 1
            told.heard.clear()
            told.retries.append((error, wait_seconds))
            on_wait(wait_seconds)

    try:
        told.reply = await call_model(backend, request, Hooks(), policy=policy, deadline_seconds=deadline)
    except BackendError as error:
        told.error = error
    finally:
        await backend.aclose()
    return told


@dataclass(frozen=True)
class RunEnd:
    """How a run ended. `answer` None: it failed, because its agent fell out for `reason`."""

    answer: str | None
    reason: DropReason | None
    message: str
    submitted: tuple[str, ...]
    """Answers that the coordination accepted."""
    waits: tuple[float, ...]
    """Seconds before each further attempt of a call."""


async def run_alone(
    backend: Backend, *, presenting: bool = False, call_seconds: float = 20.0, policy: RetryPolicy = AT_ONCE
) -> RunEnd:
    """A whole run of one agent: it coordinates with itself, or, `presenting`, only writes the final answer."""
    journal = EventList()
    limits = TeamLimits(call_seconds=call_seconds, retry=policy)
    run_spec = RunSpec(
        "What is the capital of France?",
        (Member("agent_a", backend),),
        Rules(seed="wires"),
        limits,
        NullAnswerStore(),
        OrchestratorConfig(skip_coordination_rounds=presenting),
    )
    try:
        await Conductor(run_spec, journal).conduct()
    finally:
        await backend.aclose()
    ended = [event for event in journal.events if isinstance(event, RunCompleted)]
    dropped = [event for event in journal.events if isinstance(event, AgentDropped)]
    return RunEnd(
        answer=ended[0].answer if ended else None,
        reason=dropped[0].reason if dropped else None,
        message=dropped[0].message if dropped else "",
        submitted=tuple(event.content for event in journal.events if isinstance(event, AnswerSubmitted)),
        waits=tuple(event.wait_seconds for event in journal.events if isinstance(event, ModelCallRetried)),
    )
