"""Builds a run's team out of its frozen config: who has which workspace, tools, notes and limits."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from massgen_mcp.backends.base import Backend
from massgen_mcp.backends.limiter import ProviderLimiter
from massgen_mcp.changes.copies import known_as
from massgen_mcp.checks.judge import CheckRules, FileJudge
from massgen_mcp.checks.protected import Protection
from massgen_mcp.config.models.ag2 import Ag2BackendConfig
from massgen_mcp.config.models.agents import AgentSettings
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.orchestrator import CoordinationSettings, OrchestratorConfig
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.parts import public_agent_name
from massgen_mcp.money.tariff import Tariff
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.ask_caller import CallerQuestions, QuestionTool
from massgen_mcp.orchestration.delegating import DELEGATE, DELEGATION_TOOLS, delegation_tools
from massgen_mcp.orchestration.nested_runs import NestedHost, NestedRuns
from massgen_mcp.orchestration.perspectives import perspectives
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.engine.rows import Request
from massgen_mcp.runs.host.agent_servers import ServerAccess
from massgen_mcp.runs.host.answers import AnswerGallery
from massgen_mcp.runs.host.working_copies import WorkingCopies
from massgen_mcp.sandbox import Image, LevelName, ResourceLimits, SandboxChoice, VisiblePath
from massgen_mcp.tools.base import Tool
from massgen_mcp.tools.command_rules import CommandRules
from massgen_mcp.tools.commands import AgentCommands, CommandHost
from massgen_mcp.tools.files import file_tools
from massgen_mcp.tools.group_chat import NextSpeakerTool
from massgen_mcp.tools.memory import MemoryBoard, memory_tools
from massgen_mcp.tools.planning import planning_tools
from massgen_mcp.tools.skills import Skill, builtin_skills, discover_skills, skill_tools, skills_note
from massgen_mcp.workspace.directory import Workspace

NO_LIST = "Not started: this run is in no list, so no run can be started inside it. Work it out yourself."
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CommandAccess:
    """What the agents of a run need to run commands."""

    host: CommandHost
    choices: Mapping[CommandsConfig, SandboxChoice]
    hidden: tuple[Path, ...]
    """What no command ever sees."""
    linked: tuple[VisiblePath, ...] = ()
    """What lies in the context paths alone, where the copies of agents have links to it."""
    known_as: tuple[tuple[str, str], ...] = ()
    """Where the context paths lie on this machine, each with the place of its copy."""

    def commands(
        self, config: CommandsConfig, workspace: Workspace, place: Path, scratch: Path
    ) -> tuple[AgentCommands, tuple[str, ...]] | None:
        """The commands of one agent, and what it should know of them. None for an agent without any."""
        choice = self.choices.get(config)
        if choice is None or choice.level is None:
            return None
        rules = _command_rules(config, choice.level, choice.image, self.hidden)
        rules = replace(rules, linked=self.linked, known_as=self.known_as)
        notes = (f"Commands: {'; '.join(choice.notes)}.",) if choice.notes else ()
        return AgentCommands(workspace, place, scratch, rules, self.host), notes


def _command_rules(
    config: CommandsConfig, level: LevelName, unpacked: Image | None, hidden: tuple[Path, ...]
) -> CommandRules:
    return CommandRules(
        level,
        usual_seconds=config.timeout_seconds,
        most_seconds=max(config.timeout_seconds, config.max_seconds),
        bounds=_bounds(config),
        network=config.network,
        open_network=config.open_network,
        readable=_readable(config),
        hidden=hidden,
        image=config.image,
        unpacked=unpacked,
        allowed=config.allowed,
        blocked=config.blocked,
    )


def check_rules(
    config: OrchestratorConfig, level: LevelName, unpacked: Image | None, hidden: tuple[Path, ...]
) -> CheckRules:
    """What the config says of checks; the sandbox is that of commands. `hidden`: what no check ever sees."""
    commands = config.commands
    return CheckRules(
        level,
        replace(_bounds(commands), seconds=config.checks_timeout_seconds),
        Protection(config.protect, config.checks),
        network=commands.network,
        open_network=commands.open_network,
        toolchains=_readable(commands),
        hidden=hidden,
        image=commands.image,
        unpacked=unpacked,
    )


def _bounds(config: CommandsConfig) -> ResourceLimits:
    return ResourceLimits(
        memory_bytes=config.max_memory_mb * MIB,
        processes=config.max_processes,
        disk_bytes=config.max_disk_mb * MIB,
        processors=config.max_cpus,
    )


def _readable(config: CommandsConfig) -> tuple[Path, ...]:
    return tuple(Path(path) for path in config.readable)


def assemble(
    run: RunFiles,
    run_id: str,
    request: Request,
    backends: list[Backend],
    provider_limiters: list[ProviderLimiter | None],
    tariffs: list[Tariff],
    command_access: CommandAccess | None = None,
    server_access: ServerAccess | None = None,
    nested_host: NestedHost | None = None,
    copies: WorkingCopies | None = None,
    judge: FileJudge | None = None,
) -> RunSpec:
    """The team with its tools and rules. Workspaces and memories that are there are gone on with. Backends, limiters
    and tariffs are one per agent. `command_access`, `server_access`: None where agents run no commands, or have no
    MCP servers. `nested_host`: who executes runs that agents start; None: nobody does. `copies`: those of the caller's
    directories that lie in the workspaces. `judge`: what checks answers.
    """
    config = request.config
    orchestrator, timeouts = config.orchestrator, config.timeout_settings
    if command_access is not None and copies is not None:
        command_access = replace(command_access, linked=copies.shared, known_as=known_as(copies.base))
    board, skills = MemoryBoard(), _skills(orchestrator.coordination)
    caller_questions = CallerQuestions() if orchestrator.allow_questions else None
    nested_runs = _nested_runs(request, nested_host)
    views = perspectives(config.agents) if orchestrator.perspectives else [None] * len(config.agents)
    team = tuple(
        replace(
            _member(
                run,
                public_agent_name(place),
                agent,
                backend,
                config,
                board,
                skills,
                caller_questions,
                command_access,
                server_access,
            ),
            limiter=limiter,
            own_tools=agent.backend.asked_tools,
            tariff=tariff,
            perspective=perspective,
            withheld=_withheld(request, nested_runs),
        )
        for place, (agent, backend, limiter, tariff, perspective) in enumerate(
            zip(config.agents, backends, provider_limiters, tariffs, views, strict=True)
        )
    )
    if nested_runs is not None:
        team = tuple(
            replace(member, tools=(*member.tools, *delegation_tools(nested_runs, member.name, member.workspace)))
            for member in team
        )
    mounts = next((member.workspace.mounts for member in team if member.workspace is not None), ())
    return RunSpec(
        question=request.question,
        history=request.history,
        team=team,
        rules=Rules(
            max_answers=orchestrator.max_new_answers_per_agent,
            early_decision=orchestrator.early_decision,
            novelty=orchestrator.answer_novelty_requirement,
            seed=run_id,
            checks=None if judge is None else orchestrator.checks_policy,
        ),
        limits=TeamLimits(
            run_seconds=timeouts.orchestrator_timeout_seconds,
            round_seconds=timeouts.round_timeout_seconds,
            first_round_seconds=timeouts.first_round_timeout_seconds,
            call_seconds=timeouts.call_timeout_seconds,
            first_answer_wait_seconds=orchestrator.first_answer_wait_seconds,
            enforcement_retries=orchestrator.max_enforcement_retries,
            steps_per_round=orchestrator.max_steps_per_round,
        ),
        answer_store=AnswerGallery(run, copies),
        policy=orchestrator,
        shared_notes=board.text,
        caller_questions=caller_questions,
        nested_runs=nested_runs,
        judge=judge,
        budget=config.budget,
        context_names=tuple(mount.name for mount in mounts),
        copies=copies.names if copies is not None else (),
    )


def _nested_runs(request: Request, host: NestedHost | None) -> NestedRuns | None:
    nested = request.config.nested
    if nested is None or host is None or request.levels == 0:
        return None
    timeouts = request.config.timeout_settings
    return NestedRuns(
        host,
        nested,
        run_seconds=timeouts.orchestrator_timeout_seconds,
        round_seconds=timeouts.round_timeout_seconds,
    )


def _withheld(request: Request, nested_runs: NestedRuns | None) -> dict[str, str]:
    if request.config.nested is None or nested_runs is not None:
        return {}
    return {DELEGATE: request.depth_reached() if request.levels == 0 else NO_LIST}


def _member(
    run: RunFiles,
    name: str,
    agent: AgentSettings,
    backend: Backend,
    config: Config,
    board: MemoryBoard,
    skills: tuple[Skill, ...],
    caller_questions: CallerQuestions | None,
    command_access: CommandAccess | None,
    server_access: ServerAccess | None,
) -> Member:
    orchestrator = config.orchestrator
    coordination = orchestrator.coordination
    workspace, commands, tools, notes = None, None, list[Tool](), tuple[str, ...]()
    if config.has_workspace(agent):
        context = [Path(context.path) for context in orchestrator.context_paths]
        workspace = Workspace.create_or_open(run.workspace_of(name), context=context)
        if not agent.exclude_file_operation_mcps:
            tools += file_tools(workspace)
        own, scratch = run.workspace_of(name), run.scratch_of(name)
        if command_access and (found := command_access.commands(config.commands_of(agent), workspace, own, scratch)):
            commands, notes = found
            tools += commands.tools()
    if workspace is not None and coordination.enable_memory_filesystem_mode:
        board.restore(name, workspace)
        tools += memory_tools(workspace, board, agent=name)
    if coordination.enable_agent_task_planning:
        kept_in = workspace if coordination.task_planning_filesystem_mode else None
        tools += planning_tools(max_tasks=coordination.max_tasks_per_plan, workspace=kept_in)
    tools += skill_tools(skills)
    if isinstance(agent.backend, Ag2BackendConfig) and agent.backend.group_config is not None:
        tools.append(NextSpeakerTool())
    if caller_questions is not None:
        tools.append(QuestionTool(caller_questions, name))
    if skills:
        notes = (skills_note(skills), *notes)
    toolbox = None
    if server_access is not None:
        taken = frozenset((*(tool.spec.name for tool in tools), *prompts.TOOLS_OF_ROUNDS, *DELEGATION_TOOLS))
        toolbox = server_access.toolbox(run, name, agent, workspace, taken)
    return Member(
        name,
        backend,
        agent.system_message,
        agent.message_templates,
        tools=tuple(tools),
        notes=notes,
        workspace=workspace,
        commands=commands,
        toolbox=toolbox,
    )


def _skills(coordination: CoordinationSettings) -> tuple[Skill, ...]:
    """The built-in skills that are asked for, then the user's own."""
    if not coordination.use_skills:
        return ()
    directory = Path(coordination.skills_directory)
    own = discover_skills([directory]) if directory.is_dir() else ()
    builtin = builtin_skills(coordination.massgen_skills)
    taken = {skill.name for skill in builtin}
    return (*builtin, *(skill for skill in own if skill.name not in taken))
