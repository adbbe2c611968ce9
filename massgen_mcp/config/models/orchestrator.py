"""How a team works together: rounds, votes, the files that it is given, and the checks of its answers."""

import unicodedata
from pathlib import PurePath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.common import Settings
from massgen_mcp.events.parts import LEAST_ANSWERS, ChecksPolicy, Decide, Effort

DEFAULT_SKILLS = ".agent/skills"


def _inside(path: str) -> str:
    if path.startswith(("/", "~")) or not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise ValueError("a path below the directory, such as target or web/dist")
    return path


def _nameable(path: str) -> str:
    """As agents are shown it, and may name it."""
    if any(unicodedata.category(character) == "Cc" for character in path) or "\\" in PurePath(path).name:
        raise ValueError(
            "a path with control characters or a backslash cannot be shown to agents; give it another name"
        )
    return path


class ContextPath(Settings, frozen=True):
    """A file or directory of the user's. All agents may read it, and each works on its own copy of a directory."""

    path: Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_nameable)]
    """Absolute, or relative to the working directory. Absolute after loading."""
    permission: Literal["read", "write"] = "read"
    """`write`: the winner's changes may be applied to it. `read`: they are only given as a patch."""
    copy_ignored: tuple[Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_inside)], ...] = Field(
        default=(), max_length=20
    )
    """Directories in it that git ignores, such as `target`, and that every copy gets of its own, to be written to."""
    keep_outputs: tuple[Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_inside)], ...] = Field(
        default=(), max_length=20
    )
    """Build outputs that belong to the project, such as `*.so` or `lib/vendored`; `*` means all. Others that git
    doesn't ignore are in no copy and in no patch.
    """


class CoordinationSettings(Settings, frozen=True):
    """What agents do besides answering and voting; keys and defaults as in MassGen."""

    enable_planning_mode: bool = False
    """Until the winner presents, tools with side effects are described and not executed."""
    planning_mode_instruction: str = Field(
        default="During coordination, describe what you would do without actually executing actions. Only provide "
        "concrete implementation details without calling external APIs or tools.",
        max_length=10_000,
    )
    """What agents are told in planning mode."""
    max_orchestration_restarts: int = Field(default=0, ge=0, le=10)
    """Further attempts that a winner may ask for after judging its own final answer insufficient."""
    enable_agent_task_planning: bool = False
    """Agents get tools for a task plan of their own."""
    max_tasks_per_plan: int = Field(default=10, ge=1, le=200)
    """Tasks in one plan, at most."""
    task_planning_filesystem_mode: bool = False
    """Task plans are also written to `tasks/` of the workspace."""
    enable_memory_filesystem_mode: bool = False
    """Agents keep notes as files: short-term ones are shown to all, long-term ones on demand."""
    use_skills: bool = False
    """Agents can read the skills of `skills_directory` and of `massgen_skills`."""
    massgen_skills: tuple[Literal["file_search"], ...] = ()
    """Built-in skills to offer, by name."""
    skills_directory: str = Field(default=DEFAULT_SKILLS, min_length=1, max_length=4096)
    """Where the user's skills are. Absolute after loading."""

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


class OrchestratorConfig(Settings, frozen=True):
    """How a team coordinates."""

    coordination: CoordinationSettings = CoordinationSettings()
    """What agents do besides answering and voting."""
    voting_sensitivity: Literal["lenient", "balanced", "strict"] = "lenient"
    """How easily agents are content with what is there."""
    answer_novelty_requirement: Literal["lenient", "balanced", "strict"] = "lenient"
    """How different a new answer must be: `balanced` refuses one that shares more than 70 % of its word pairs with
    another answer, `strict` more than 50 %, `lenient` none.
    """
    decide: Decide = "auto"
    """How the winner is found (see docs/coordination.md): by votes; by tests that the agents write; one agent writes
    from all answers; the agent that `judge` names compares them. `auto` takes what fits the answers.
    """
    by: str | None = None
    """Id of the agent that writes with `synthesise`. None: it is drawn."""
    judge: str | None = None
    """Id of the agent that compares answers with `decide: judge`. It answers and votes never."""
    refute: bool = False
    """After a vote on changed files, an agent of another provider writes tests against the winner."""
    write_check: bool = False
    """An agent first writes a test that fails on the unchanged files, and agents are then asked one after the other
    until an answer passes it. Needs three that answer, and `run_scripts`.
    """
    effort: Effort = "high"
    """`high`: all agents are asked at once. `auto`: three of them, and others as far as they could change the outcome.
    `low`: the same, beginning with two. Lists of models that no config names get `auto`.
    """
    max_agents: int | None = Field(default=None, ge=1, le=100)
    """So many agents are asked at most. None: all of them, with `auto` and `low` seven."""
    order: Literal["drawn", "listed"] = "drawn"
    """In which order they are asked where not all are at once: by lot, or as the config lists them."""
    run_scripts: bool = True
    """Whether scripts that agents write run, in the sandbox of checks; in a config that is found they need a yes."""
    early_decision: Literal["off", "proven", "majority"] = "proven"
    """Whether to stop before everybody has voted: when nothing can change the winner, or at a majority."""
    final_answer_strategy: Literal["winner_present", "winner_reuse", "auto"] = "winner_present"
    """The winner writes the final answer anew, its answer is reused, or (auto) anew only if that can add something. The
    answer of a model that takes no tools and has no files to work on is always reused.
    """
    answer_format: Literal["text", "findings"] = "text"
    """`findings`: every answer is a JSON document of findings, each with its file and line (see docs/review.md)."""
    skip_coordination_rounds: bool = False
    """For debugging: the first agent writes the final answer straight away."""
    debug_final_answer: str | None = Field(default=None, min_length=1, max_length=100_000)
    """For debugging: taken as the first attempt's final answer instead of asking the winner."""
    max_new_answers_per_agent: int | None = Field(default=5, ge=1, le=100)
    """After this many answers an agent may only vote. None: no limit but the run's time."""
    max_enforcement_retries: int = Field(default=3, ge=0, le=20)
    """Rule violations in a row that are given back to the model before the agent is dropped."""
    max_steps_per_round: int = Field(default=500, ge=1, le=1000)
    """Model calls in one round; an agent that exceeds it is dropped. A backstop: money and time are the limits."""
    first_answer_wait_seconds: float = Field(default=300, ge=0, le=86_400)
    """How long agents that have answered wait for the others' first answers before they judge what is there."""
    show_reasons: bool = False
    """Who may improve on the answers also reads the reasons of void votes. Valid votes are shown to nobody."""
    perspectives: bool = True
    """In a team that asks one model only, each agent without a `system_message` gives its first answer from one view:
    builder, sceptic, reader, analyst or explorer.
    """
    enable_filesystem: bool = True
    """False: agents have no workspace and no file tools."""
    enable_nlip: bool = False
    """As `enable_nlip` of every agent."""
    allow_questions: bool = False
    """Agents may ask whoever started the run; it is `input_required` until `control_run` answers, or ten minutes."""
    context_paths: tuple[ContextPath, ...] = Field(default=(), max_length=20)
    """Files and directories of yours that the team works with."""
    commands: CommandsConfig = CommandsConfig()
    """Commands of all agents that have no settings of their own."""
    setup: CheckCommand | None = None
    """A shell command, such as `npm ci`, that prepares the unchanged files once (see docs/code-work.md)."""
    setup_timeout_seconds: float = Field(default=1800, gt=0, le=86_400)
    """For `setup`."""
    checks: tuple[CheckCommand, ...] = Field(default=(), max_length=10)
    """Shell commands that judge the files of each answer, in a sandbox: see docs/code-work.md. Exit code 0 passes."""
    checks_policy: ChecksPolicy = "informative"
    """What follows from their outcome: see docs/code-work.md."""
    checks_timeout_seconds: float = Field(default=600, gt=0, le=86_400)
    """For one check."""
    protect: tuple[ProtectedPath, ...] | None = Field(default=None, max_length=200)
    """Files that checks take from the base, as patterns. None: a list of ours (see docs/code-work.md)."""

    def procedure(self, agents: int, *, can_run: bool) -> Decide:
        """How so many agents find the winner: tests need scripts that run, and three authors; findings are joined."""
        if self.decide == "auto" and self.answer_format == "findings":
            return "synthesise"
        tests = self.decide in ("auto", "checks")
        return "vote" if tests and not (can_run and agents >= LEAST_ANSWERS) else self.decide

    @model_validator(mode="after")
    def _a_judge_to_decide(self) -> Self:
        if self.decide == "judge" and self.judge is None:
            raise ValueError("decide: judge needs `judge`, the id of an agent that gives no answer")
        return self

    @model_validator(mode="after")
    def _scripts_for_a_check(self) -> Self:
        if self.write_check and not (self.enable_filesystem and self.run_scripts):
            raise ValueError("write_check needs scripts that run: set enable_filesystem and run_scripts to true")
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
    """The whole run."""
    round_timeout_seconds: float = Field(default=900, gt=0, le=86_400)
    """One agent's round: from seeing a ballot to one accepted action."""
    first_round_timeout_seconds: float | None = Field(default=None, gt=0, le=86_400)
    """The same for an agent's first round. Default: `round_timeout_seconds`."""
    call_timeout_seconds: float = Field(default=300, gt=0, le=86_400)
    """One model call, from sending the request to the end of its stream, retries included."""


MAX_USD = 100_000.0
USUAL_MAX_TOKENS = 10_000_000
USUAL_MAX_CALLS = 1_000
TOKENS_PER_USD = 1_000_000


class BudgetConfig(Settings, frozen=True):
    """What a run may cost (see docs/budget.md)."""

    max_usd: float = Field(default=10, gt=0, le=MAX_USD)
    """US dollars that the run may cost."""
    max_tokens: int | None = Field(default=None, ge=1_000, le=10_000_000_000)
    """Input and output of all calls together. Default: 10 million, and a million for each dollar of `max_usd` above 10;
    of the default, input from a provider's cache uses up only as much as it costs. Where `max_tokens` is set, all input
    counts in full, and calls of models without a known price count for it alone; else they also count for `max_usd`, at
    the highest known price of similar models.
    """
    max_calls: int = Field(default=USUAL_MAX_CALLS, ge=0, le=1_000_000)
    """Calls without a price, which `max_usd` cannot limit: those of agent CLIs by your subscription, and others that
    count for `max_tokens` alone.
    """
    at_cap: Literal["finish", "ask"] = "finish"
    """Vote on the answers that are there, or wait for `raise_budget`, `finish_now` or the run's time limit."""

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
    """That agents may start runs of their own (see docs/nested-runs.md). Without it they may not."""

    max_depth: int = Field(default=1, ge=1, le=5)
    """So many levels of runs may lie below this one. 1: what it starts starts nothing."""
    max_runs: int = Field(default=3, ge=1, le=100)
    """So many runs may this one start, by all its agents together."""
    share_of_budget: float = Field(default=0.5, gt=0, le=0.9)
    """They may spend this part of the budget, all together; the rest is for the team's own work."""


class ProviderLimits(Settings, frozen=True):
    """How much all runs of a runner together may ask of one provider with one key. Of two runs that disagree, the
    smaller number holds while both go on.
    """

    concurrency: int | None = Field(default=None, ge=1, le=10_000)
    """Calls under way at once. Default: 100; 4 for `claude_code`, whose calls are processes; 1 for a model server of
    this machine.
    """
    requests_per_minute: int | None = Field(default=None, ge=1, le=1_000_000)
    """Calls begun in any 60 s, retries included. None: no limit of ours."""
