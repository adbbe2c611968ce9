"""How a team works together: rounds, votes, the files that it is given, and the checks of its answers."""

import unicodedata
from pathlib import PurePath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.common import Settings
from massgen_mcp.events.parts import LEAST_ANSWERS, STRATEGIES, ChecksPolicy, Decide, Effort

DEFAULT_SKILLS = ".agent/skills"


def _inside(path: str) -> str:
    if path.startswith(("/", "~")) or not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise ValueError("expected a path inside the directory, such as target or web/dist")
    return path


def _nameable(path: str) -> str:
    """As agents are shown it, and may name it."""
    if any(unicodedata.category(character) == "Cc" for character in path) or "\\" in PurePath(path).name:
        raise ValueError("massgen can't show agents a path with control characters or a backslash; rename it")
    return path


class ContextPath(Settings, frozen=True):
    """One of your files or directories. All agents can read it; each gets its own copy of a directory to work on."""

    path: Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_nameable)]
    """Absolute, or relative to the working directory."""
    permission: Literal["read", "write"] = "read"
    """`write`: the winner's changes may be applied. `read`: the changes are available only as a patch."""
    copy_ignored: tuple[Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_inside)], ...] = Field(
        default=(), max_length=20
    )
    """Ignored directories, such as `target`, to copy for each agent; the copies are writable."""
    keep_outputs: tuple[Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_inside)], ...] = Field(
        default=(), max_length=20
    )
    """Build outputs to keep in copies and patches, such as `*.so` or `lib/vendored`; `*` keeps all. Other untracked
    build outputs are removed.
    """


class CoordinationSettings(Settings, frozen=True):
    """Planning, memory and skills, with MassGen's keys and defaults."""

    enable_planning_mode: bool = False
    """Until the winner writes the final answer, agents describe tool calls with side effects instead of making them."""
    planning_mode_instruction: str = Field(
        default="During coordination, describe what you would do without actually executing actions. Only provide "
        "concrete implementation details without calling external APIs or tools.",
        max_length=10_000,
    )
    """The instruction for agents in planning mode."""
    max_orchestration_restarts: int = Field(default=0, ge=0, le=10)
    """How many times the winner may request another attempt because its own final answer is insufficient."""
    enable_agent_task_planning: bool = False
    """Agents get tools for their own task plans."""
    max_tasks_per_plan: int = Field(default=10, ge=1, le=200)
    """Maximum number of tasks in a plan."""
    task_planning_filesystem_mode: bool = False
    """Agents' task plans are stored in `tasks/` in their workspaces."""
    enable_memory_filesystem_mode: bool = False
    """Agents keep notes as files. All agents see short-term notes; long-term notes are read on demand."""
    use_skills: bool = False
    """Agents can read the skills in `skills_directory` and `massgen_skills`."""
    massgen_skills: tuple[Literal["file_search"], ...] = ()
    """Built-in skills to offer, by name."""
    skills_directory: str = Field(default=DEFAULT_SKILLS, min_length=1, max_length=4096)
    """The directory that contains your skills."""

    @property
    def planning_instruction(self) -> str | None:
        """In planning mode: what agents are told until the winner presents."""
        return self.planning_mode_instruction if self.enable_planning_mode else None


def _without_nul(text: str) -> str:
    if "\0" in text or not text.strip():
        raise ValueError("expected text without NUL characters")
    return text


CheckCommand = Annotated[str, StringConstraints(min_length=1, max_length=2000), AfterValidator(_without_nul)]

ProtectedPath = Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(_without_nul)]


def _read_order(order: object) -> object:
    """Read `drawn`, as older configs call a random order."""
    return "random" if order == "drawn" else order


class OrchestratorConfig(Settings, frozen=True):
    """Rules for how the team works together."""

    coordination: CoordinationSettings = CoordinationSettings()
    """Planning, memory and skills."""
    voting_sensitivity: Literal["lenient", "balanced", "strict"] = "lenient"
    """How critically agents judge existing answers."""
    answer_novelty_requirement: Literal["lenient", "balanced", "strict"] = "lenient"
    """How different a new answer must be. `balanced` rejects answers that share more than 70 % of their word pairs with
    another answer, `strict` those that share more than 50 %; `lenient` accepts all.
    """
    decide: Decide = "auto"
    """How the team decides (see docs/coordination.md): `vote`, `checks` (tests that the agents write), `synthesise`
    (one agent combines all answers) or `judge` (one agent compares them). `auto` chooses a method that fits
    the answers.
    """
    by: str | None = None
    """With `decide: synthesise`: the id of the agent that combines the answers. None: a random agent."""
    judge: str | None = None
    """With `decide: judge`: the id of the agent that compares the answers. It never answers or votes."""
    refute: bool = False
    """Ignored, with a warning, because tests meant to refute winners rejected one correct winner in twenty."""
    write_check: bool = False
    """An agent first writes a test that fails on the unchanged files. Then agents answer one after another until an
    answer passes. Needs `run_scripts` and at least three agents that answer.
    """
    effort: Effort = "high"
    """`high`: all agents answer in parallel. `auto`: three agents start, and more follow if they could change the
    outcome. `low`: like `auto`, but two agents start. The default for a list of models (without a config) is `auto`.
    """
    max_agents: int | None = Field(default=None, ge=1, le=100)
    """Maximum number of agents that answer. None: all, or seven if `effort` is `auto` or `low`."""
    order: Annotated[Literal["random", "listed"], BeforeValidator(_read_order)] = "random"
    """The order in which agents start if they don't start together: random, or as in the config."""
    run_scripts: bool = True
    """Allow scripts that agents write as tests to run in the sandbox. If massgen found the config in a directory, you
    must consent to this.
    """
    early_decision: Literal["off", "proven", "majority"] = "proven"
    """When to stop voting early. `proven`: no vote can change the winner. `majority`: an answer has a majority."""
    final_answer_strategy: Literal["winner_present", "winner_reuse", "auto"] = "winner_present"
    """`winner_present`: the winner rewrites its answer. `winner_reuse`: massgen returns the answer unchanged or, after
    a tie, all tied answers. `auto`: the winner rewrites its answer unless all agents agreed. A model without tools or
    files rewrites its answer only after a tie.
    """
    answer_format: Literal["text", "findings"] = "text"
    """`findings`: every answer is a JSON list of findings, each with a file and line (see docs/review.md)."""
    skip_coordination_rounds: bool = False
    """For debugging: the first agent writes the final answer immediately."""
    debug_final_answer: str | None = Field(default=None, min_length=1, max_length=100_000)
    """For debugging: text used as the first attempt's final answer."""
    max_new_answers_per_agent: int | None = Field(default=5, ge=1, le=100)
    """Maximum number of answers per agent. After that, the agent can only vote. None: no limit."""
    max_enforcement_retries: int = Field(default=3, ge=0, le=20)
    """Maximum number of consecutive rule violations before an agent is dropped."""
    max_steps_per_round: int = Field(default=500, ge=1, le=1000)
    """Maximum number of model calls in a round; agents that exceed it are dropped. The budget or time limit usually
    ends a round first.
    """
    first_answer_wait_seconds: float | None = Field(default=None, ge=0, le=86_400)
    """How long finished agents wait for another agent's first answer. None: three times as long as that agent's model
    usually takes in your runs, but at least 300 and at most half the run's time limit.
    """
    show_reasons: bool = False
    """Agents that can still answer see the reasons that came with voided votes. Valid votes stay hidden."""
    perspectives: bool = True
    """In a team with only one model, each agent without a `system_message` writes its first answer in a different
    role: builder, sceptic, reader, analyst or explorer.
    """
    enable_filesystem: bool = True
    """False: agents have no workspace and no file tools."""
    enable_nlip: bool = False
    """Sets `enable_nlip` for all agents."""
    allow_questions: bool = False
    """Agents may ask you questions. The run is `input_required` until you answer, for at most ten minutes."""
    context_paths: tuple[ContextPath, ...] = Field(default=(), max_length=20)
    """Your files and directories that the team can read."""
    commands: CommandsConfig = CommandsConfig()
    """Command settings for agents that don't set their own."""
    setup: CheckCommand | None = None
    """A shell command, such as `npm ci`, that runs once to prepare the copies (see docs/code-work.md)."""
    setup_timeout_seconds: float = Field(default=1800, gt=0, le=86_400)
    """Time limit for `setup`."""
    checks: tuple[CheckCommand, ...] = Field(default=(), max_length=10)
    """Shell commands that test each answer's files in a sandbox; exit code 0 means passed (see docs/code-work.md)."""
    checks_policy: ChecksPolicy = "informative"
    """How the checks affect the decision (see docs/code-work.md)."""
    checks_timeout_seconds: float = Field(default=600, gt=0, le=86_400)
    """Time limit for each check."""
    protect: tuple[ProtectedPath, ...] | None = Field(default=None, max_length=200)
    """Patterns for files that massgen restores before checks. None: a built-in list (see docs/code-work.md)."""

    def choose_strategy(self, agents: int, *, can_run: bool) -> Decide:
        """Choose the strategy for this number of agents: tests need scripts that run and three authors; findings are
        merged.
        """
        if self.decide == "auto" and self.answer_format == "findings":
            return "synthesise"
        tests = STRATEGIES[self.decide].may_test
        return "vote" if tests and not (can_run and agents >= LEAST_ANSWERS) else self.decide

    @model_validator(mode="after")
    def _a_judge_to_decide(self) -> Self:
        if self.decide == "judge" and self.judge is None:
            raise ValueError(
                "`decide: judge` also needs the key `judge`, the id of an agent that doesn't answer the question itself"
            )
        return self

    @model_validator(mode="after")
    def _scripts_for_a_check(self) -> Self:
        if self.write_check and not (self.enable_filesystem and self.run_scripts):
            raise ValueError("write_check runs scripts: set enable_filesystem and run_scripts to true")
        return self

    @model_validator(mode="after")
    def _files_for_checks(self) -> Self:
        for key, value in (("checks", self.checks), ("setup", self.setup)):
            if value and not self.enable_filesystem:
                raise ValueError(f"{key} needs the agents' files, but enable_filesystem is false")
        return self


# -- limits of time, cost and calls, and of the runs that agents start ------------------------------------------------


class TimeoutSettings(Settings, frozen=True):
    """Limits in seconds; each names itself in the message when it is hit."""

    orchestrator_timeout_seconds: float = Field(default=1800, gt=0, le=7 * 86_400)
    """Time limit for the whole run."""
    round_timeout_seconds: float = Field(default=900, gt=0, le=86_400)
    """Time limit for each of an agent's rounds; a round ends with an answer or a vote."""
    first_round_timeout_seconds: float | None = Field(default=None, gt=0, le=86_400)
    """Time limit for an agent's first round. Default: `round_timeout_seconds`."""
    call_timeout_seconds: float = Field(default=300, gt=0, le=86_400)
    """Time limit for one model call, including retries."""


MAX_USD = 100_000.0
USUAL_MAX_TOKENS = 10_000_000
USUAL_MAX_CALLS = 1_000
TOKENS_PER_USD = 1_000_000


class BudgetConfig(Settings, frozen=True):
    """Limits on the cost of a run (see docs/budget.md)."""

    max_usd: float = Field(default=10, gt=0, le=MAX_USD)
    """Maximum cost of the run in US dollars."""
    max_tokens: int | None = Field(default=None, ge=1_000, le=10_000_000_000)
    """Maximum number of input and output tokens. Default: 10 million, plus a million for each dollar of `max_usd` above
    10. By default, cached input counts in proportion to its price, and calls without a known price count towards
    `max_usd` at the highest price of similar models. If you set a limit, cached input counts in full, and calls
    without a known price count only towards this limit and `max_calls`.
    """
    max_calls: int = Field(default=USUAL_MAX_CALLS, ge=0, le=1_000_000)
    """Maximum number of calls that `max_usd` can't limit because they have no price: calls that agent CLIs make with
    your subscription, and calls that count only towards `max_tokens`.
    """
    at_cap: Literal["finish", "ask"] = "finish"
    """`finish`: when a limit is reached, agents vote on the existing answers. `ask`: the run then waits for your
    decision, at most until its time limit.
    """

    @property
    def weighs_cache(self) -> bool:
        """Whether cached input counts by its price."""
        return self.max_tokens is None

    @property
    def most_tokens(self) -> int:
        if self.max_tokens is not None:
            return self.max_tokens
        return max(USUAL_MAX_TOKENS, int(self.max_usd * TOKENS_PER_USD))

    @property
    def bounds_prices(self) -> bool:
        """Whether calls of unknown price count for `max_usd`, too."""
        return self.max_tokens is None


class NestedConfig(Settings, frozen=True):
    """Permission for agents to start runs (see docs/nested-runs.md)."""

    max_depth: int = Field(default=1, ge=1, le=5)
    """Maximum depth of nested runs. 1: nested runs can't start runs themselves."""
    max_runs: int = Field(default=3, ge=1, le=100)
    """Maximum number of runs that all agents together may start."""
    share_of_budget: float = Field(default=0.5, gt=0, le=0.9)
    """The share of this run's budget that all nested runs together may spend."""


class ProviderLimits(Settings, frozen=True):
    """Limits, per provider and key, that all runs of one background process share. If two runs set different limits,
    the lower one applies while both are active.
    """

    concurrency: int | None = Field(default=None, ge=1, le=10_000)
    """Maximum number of parallel calls. Default: 100; 4 for `claude_code`; 1 for a local model server."""
    requests_per_minute: int | None = Field(default=None, ge=1, le=1_000_000)
    """Maximum number of calls started in any 60 seconds, including retries. None: no limit."""
