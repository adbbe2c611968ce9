"""A run's team and its limits, as the composition root hands them to orchestration; and from which side each agent
looks at the question where several ask the same model.

The same words to the same model bring much the same answer, with the same errors. Only first answers are written from a
perspective: what is judged later is judged by everybody alike.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import anyio

from massgen_mcp.backends.abilities import Abilities
from massgen_mcp.backends.base import Backend, ToolSpec
from massgen_mcp.backends.calling import RetryPolicy
from massgen_mcp.backends.limiter import ProviderLimiter
from massgen_mcp.checks.judge import FileJudge
from massgen_mcp.config.models.config import AgentSettings, AgentTexts
from massgen_mcp.config.models.orchestrator import BudgetConfig, OrchestratorConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.events.coordination import ModelReplaced
from massgen_mcp.events.parts import AgentInfo
from massgen_mcp.events.record import LogRecord
from massgen_mcp.money.budget import Budget
from massgen_mcp.money.tariff import Tariff
from massgen_mcp.orchestration.ask_caller import CallerQuestions
from massgen_mcp.orchestration.live_run import AnswerStore, FaultReport, name_only
from massgen_mcp.orchestration.nested_runs import NestedRuns
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.run_state.state import RunState
from massgen_mcp.tools.base import Tool
from massgen_mcp.tools.commands import AgentCommands
from massgen_mcp.tools.mcp_servers import Toolbox
from massgen_mcp.workspace.directory import Workspace

FALLBACK_REASONS: tuple[DropReason, ...] = ("quota_exhausted", "rate_limited", "unreachable", "provider_error")
"""The failures of a model, retries included, after which an agent's fallback goes on."""


FIRST_ANSWER_SECONDS = 300.0
"""So long others wait for a first answer, ..."""
TIMES_USUAL = 3
"""... or so many times as long as the agent's model usually takes; at most half of the run's time."""


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """How one agent's model is called."""

    backend: Backend
    limiter: ProviderLimiter | None = None
    """None: its calls share nothing with others."""
    tariff: Tariff = field(default_factory=Tariff)
    fallback: "ModelAccess | None" = None
    """How the model is called that may take its place."""
    type: str = ""
    """The type of its backend."""


@dataclass(frozen=True, slots=True)
class Member:
    """One agent at work: its public name, its model, its instructions, its tools."""

    name: str
    backend: Backend
    system_message: str | None = None
    templates: AgentTexts = field(default_factory=AgentTexts)
    """The user's texts in place of ours."""
    perspective: str | None = None
    """From which side it looks at the question for its first answer."""
    tools: tuple[Tool, ...] = ()
    withheld: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tools that its config asks for and that it does not get, by name, and what it is told when it calls them."""
    notes: tuple[str, ...] = ()
    """What its system message says about what is at hand, beyond the files."""
    workspace: Workspace | None = None
    commands: AgentCommands | None = None
    """What it runs in the sandbox."""
    toolbox: Toolbox | None = None
    """What it has of the user's MCP servers."""
    limiter: ProviderLimiter | None = None
    """What its calls share with all others to the same provider. None: they share nothing."""
    abilities: Abilities = field(default_factory=Abilities)
    """What its model was found not to take, where nothing is shared."""
    tariff: Tariff = field(default_factory=Tariff)
    """What its model costs."""
    backend_type: str = ""
    own_tools: tuple[str, ...] = ()
    """The provider's tools that it asks for. Some models refuse ours beside them."""
    fallback: "Member | None" = None
    """The same agent with another model, for when a quota, a balance or an outage ends its own."""
    is_fallback: bool = False

    def with_model(self, model: ModelAccess) -> "Member":
        """Return the same agent as its fallback, with this model."""
        return replace(
            self,
            backend=model.backend,
            limiter=model.limiter,
            tariff=model.tariff,
            backend_type=model.type,
            own_tools=(),
            abilities=Abilities(),
            fallback=None,
            is_fallback=True,
        )

    @property
    def offered(self) -> tuple[Tool, ...]:
        """All its tools at this moment."""
        return (*self.tools, *self.toolbox.tools()) if self.toolbox is not None else self.tools

    @property
    def listed(self) -> tuple[ToolSpec, ...]:
        """The descriptions of the tools that a model is told of at this moment."""
        return tuple(tool.spec for tool in self.offered if tool.spec.listed)

    async def end_commands(self) -> None:
        """End what it runs in the background, whoever cancels meanwhile."""
        if self.commands is not None:
            with anyio.CancelScope(shield=True):
                await self.commands.end_all()

    async def ready(self) -> None:
        """Until its tools are there, as far as they come in time."""
        if self.toolbox is not None:
            await self.toolbox.ready()
            await self.toolbox.refresh()


@dataclass(frozen=True, slots=True)
class TeamLimits:
    """All in seconds, except the counts."""

    run_seconds: float = 1800
    round_seconds: float = 900
    first_round_seconds: float | None = None
    """Of an agent's first round. None: as of every other one."""
    call_seconds: float = 300
    first_answer_wait_seconds: float | None = None
    """None: as `get_first_answer_wait` says."""
    usual_seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """How long agents usually take for a first answer, by name."""
    enforcement_retries: int = 3
    steps_per_round: int = 500
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    def get_first_answer_wait(self, agents: Iterable[str]) -> float:
        """Return how long the others wait for the first answers of these agents."""
        if self.first_answer_wait_seconds is not None:
            return self.first_answer_wait_seconds
        usual = (TIMES_USUAL * self.usual_seconds.get(agent, 0.0) for agent in agents)
        return min(max(FIRST_ANSWER_SECONDS, *usual), self.run_seconds / 2)


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What a team is asked to do, and under which rules."""

    question: str
    team: tuple[Member, ...]
    rules: Rules
    limits: TeamLimits
    answer_store: AnswerStore
    policy: OrchestratorConfig = field(default_factory=OrchestratorConfig)
    """How the team works, beyond rules and limits: wording, and the phases after coordination."""
    shared_notes: Callable[[str], str] = lambda _: ""
    """What the whole team should see now (its short-term memory), in words for a model; takes the markers' nonce."""
    history: tuple[EarlierTurn, ...] = ()
    """Earlier turns of the session, oldest first."""
    commented: str = ""
    """Lines of earlier changes that the question comments on."""
    context_names: tuple[str, ...] = ()
    """Virtual paths of the caller's files, for the prompts."""
    copies: tuple[str, ...] = ()
    """Directories in every workspace, of which the caller's are called `context/NAME`."""

    budget: BudgetConfig | None = None
    """What the run may cost. None: whatever it takes."""
    caller_questions: CallerQuestions | None = None
    """Where agents may ask the caller, if they may."""
    nested_runs: NestedRuns | None = None
    """Where agents may start runs, if they may."""
    judge: FileJudge | None = None
    """What checks the files of answers, if the run has checks."""
    report: FaultReport = name_only
    """Where errors of our own go, with their traces."""

    def begin(self, past: Iterable[LogRecord] = ()) -> RunState:
        """The state of a run like this before its first event, which tells more about the agents, or after `past`."""
        agents = (AgentInfo(name=each.name, id=each.name, backend="", model=each.backend.model) for each in self.team)
        caps = self.budget
        budget = Budget(caps.max_usd, caps.most_tokens, caps.max_calls) if caps else Budget()
        state = RunState.begin(agents, self.rules, budget)
        for record in past:
            state.apply(record)
        return state

    def member(self, name: str) -> Member:
        return next(member for member in self.team if member.name == name)


def with_perspective(member: Member, view: str | None) -> Member:
    """Return the member, and its fallback, that look at the question from this side."""
    fallback = member.fallback and replace(member.fallback, perspective=view)
    return replace(member, perspective=view, fallback=fallback)


def get_acting(member: Member, state: RunState) -> Member:
    """Return the member as it works now: its fallback, where that has taken its place."""
    replaced = state.agents[member.name].replaced is not None
    return member.fallback if replaced and member.fallback is not None else member


def make_replacement(member: Member, fault: BackendError) -> ModelReplaced | None:
    """Return the fact that the member's fallback goes on, if the fault is one after which it does."""
    fallback = member.fallback
    if fallback is None or fault.reason not in FALLBACK_REASONS:
        return None
    return ModelReplaced(
        agent=member.name,
        reason=fault.reason,
        message=str(fault),
        backend=fallback.backend_type,
        model=fallback.backend.model,
    )


PERSPECTIVES: dict[str, str] = {
    "builder": "Take the view of a builder: find the simplest answer that works, and carry it through, step by step.",
    "sceptic": (
        "Take the view of a sceptic: look for what the obvious answer overlooks (hidden assumptions, exceptions, "
        "errors) before you settle on one."
    ),
    "reader": (
        "Take the view of the person who will use the answer: what do they need in order to act on it? Leave no part "
        "of the question out."
    ),
    "analyst": "Take the view of an analyst: derive the answer from what can be checked or computed, not from custom.",
    "explorer": "Take the view of an explorer: work out two different ways to an answer, and compare them.",
}
"""By name, in the order in which a team gets them. A larger team begins again from the first."""


def perspectives(agents: Sequence[AgentSettings]) -> list[str | None]:
    """One per agent. None for each whose model no other agent asks, and for each that has instructions of its own: its
    user has given it a view with those.
    """
    models = [agent.asked for agent in agents]
    texts, views = list(PERSPECTIVES.values()), list[str | None]()
    for place, agent in enumerate(agents):
        shared = models.count(agent.asked) > 1 and not agent.system_message
        view = texts[models[:place].count(agent.asked) % len(texts)]
        views.append(view if shared else None)
    return views
