"""Builds a run's team out of its frozen config: who has which workspace, tools, notes and limits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from massgen_mcp.changes.copies import CopyHistory, known_as
from massgen_mcp.checks.judge import FileJudge
from massgen_mcp.config.access.fallbacks import get_fallback
from massgen_mcp.config.access.members import vendor_of
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.config import AgentSettings
from massgen_mcp.config.models.orchestrator import CoordinationSettings
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.parts import public_agent_name
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.ask_caller import CallerQuestions, question_tool
from massgen_mcp.orchestration.delegating import DELEGATE, DELEGATION_TOOLS, delegation_tools
from massgen_mcp.orchestration.nested_runs import NestedHost, NestedRuns
from massgen_mcp.orchestration.team import Member, ModelAccess, RunSpec, TeamLimits, perspectives, with_perspective
from massgen_mcp.runs.engine import FrozenRequest, RunFiles
from massgen_mcp.runs.host.agent_servers import ServerAccess
from massgen_mcp.runs.host.answers import AnswerGallery
from massgen_mcp.runs.host.judging import bounds_of, tools_of
from massgen_mcp.runs.host.working_copies import WorkingCopies
from massgen_mcp.sandbox import NO_TOOLS, ProjectTools, SandboxChoice, VisiblePath
from massgen_mcp.tools.base import Tool
from massgen_mcp.tools.command_policy import CommandRules
from massgen_mcp.tools.commands import AgentCommands, CommandHost
from massgen_mcp.tools.custom import function_tool
from massgen_mcp.tools.files import file_tools
from massgen_mcp.tools.group_chat import NEXT_SPEAKER_TOOL
from massgen_mcp.tools.memory import MemoryBoard, memory_tools
from massgen_mcp.tools.planning import planning_tools
from massgen_mcp.tools.skills import Skill, builtin_skills, discover_skills, skill_tools, skills_note
from massgen_mcp.workspace.directory import Workspace

NO_LIST = "Not started: this run isn't in the list of runs, so it can't start nested runs. Work it out yourself."


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
    installed: tuple[VisiblePath, ...] = ()
    """What the setup made, where the copies of agents have links to it."""
    history: CopyHistory | None = None
    """What git says in the copies."""
    tools: ProjectTools = NO_TOOLS
    """Of the projects in the context paths."""

    def commands(
        self, config: CommandsConfig, workspace: Workspace, place: Path, scratch: Path
    ) -> tuple[AgentCommands | None, tuple[str, ...]]:
        """The commands of one agent, and what it should know of them. None for an agent without any."""
        choice = self.choices.get(config)
        if choice is None or choice.level is None:
            return None, ()
        rules = CommandRules(
            level=choice.level,
            usual_seconds=config.timeout_seconds,
            most_seconds=max(config.timeout_seconds, config.max_seconds),
            bounds=bounds_of(config),
            network=config.network,
            open_network=config.open_network,
            hidden=self.hidden,
            image=config.image,
            unpacked=choice.image,
            allowed=config.allowed,
            blocked=config.blocked,
            linked=self.linked,
            installed=self.installed,
            known_as=self.known_as,
            tools=tools_of(config, self.tools),
            prepare=self.history.put_into if self.history is not None else None,
        )
        notes = (f"Commands: {'; '.join(choice.notes)}.",) if choice.notes else ()
        return AgentCommands(workspace, place, scratch, rules, self.host), notes


@dataclass(frozen=True, slots=True)
class RunResources:
    """What the process that executes a run opens for it, and closes after it."""

    models: tuple[ModelAccess, ...]
    """One per agent."""
    commands: CommandAccess | None = None
    """None: no agent runs commands."""
    servers: ServerAccess | None = None
    """None: no agent has MCP servers."""
    nested_host: NestedHost | None = None
    """Who executes runs that agents start; None: nobody does."""
    copies: WorkingCopies | None = None
    """Those of the caller's directories that lie in the workspaces."""
    judge: FileJudge | None = None
    """What checks answers."""


def assemble(run: RunFiles, run_id: str, request: FrozenRequest, resources: RunResources) -> RunSpec:
    """The team with its tools and rules. Workspaces and memories that are there are gone on with."""
    config, copies, judge = request.config, resources.copies, resources.judge
    orchestrator, timeouts = config.orchestrator, config.timeout_settings
    commands = resources.commands
    if commands is not None and copies is not None:
        history = CopyHistory(copies.kept.repository, copies.base, copies.kept.directory / "histories")
        commands = replace(
            commands,
            linked=copies.shared,
            installed=copies.installed,
            known_as=known_as(copies.base),
            history=history,
        )
    board = MemoryBoard()
    caller_questions = CallerQuestions() if orchestrator.allow_questions else None
    nested_runs = _nested_runs(request, resources.nested_host)
    parts = _TeamParts(
        run,
        request,
        replace(resources, commands=commands),
        board,
        _skills(orchestrator.coordination),
        caller_questions,
        nested_runs,
    )
    views = perspectives(config.agents) if orchestrator.perspectives else [None] * len(config.agents)
    team = tuple(
        with_perspective(parts.member(public_agent_name(place), agent, model), view)
        for place, (agent, model, view) in enumerate(zip(config.agents, resources.models, views, strict=True))
    )
    can_run = judge is not None and orchestrator.run_scripts
    names = {agent.id: public_agent_name(place) for place, agent in enumerate(config.agents)}
    mounts = next((member.workspace.mounts for member in team if member.workspace is not None), ())
    return RunSpec(
        question=request.question,
        history=request.history,
        commented=request.begins_with.commented if request.begins_with is not None else "",
        team=team,
        rules=Rules(
            max_answers=orchestrator.max_new_answers_per_agent,
            early_decision=orchestrator.early_decision,
            novelty=orchestrator.answer_novelty_requirement,
            seed=run_id,
            checks=orchestrator.checks_policy if judge is not None and orchestrator.checks else None,
            decide=orchestrator.choose_strategy(len(team), can_run=can_run),
            effort=orchestrator.effort,
            max_agents=orchestrator.max_agents,
            order=orchestrator.order,
            writer=names.get(orchestrator.by or ""),
            judge=names.get(orchestrator.judge or ""),
            write_check=orchestrator.write_check and can_run,
            can_run=can_run,
            vendors={names[agent.id]: vendor_of(agent.backend) for agent in config.agents},
            fallback_vendors={
                names[agent.id]: vendor_of(fallback)
                for agent in config.agents
                if (fallback := get_fallback(agent.backend)) is not None
            },
        ),
        limits=TeamLimits(
            run_seconds=timeouts.orchestrator_timeout_seconds,
            round_seconds=timeouts.round_timeout_seconds,
            first_round_seconds=timeouts.first_round_timeout_seconds,
            call_seconds=timeouts.call_timeout_seconds,
            first_answer_wait_seconds=orchestrator.first_answer_wait_seconds,
            usual_seconds={
                names[agent.id]: request.usual_seconds[agent.backend.model]
                for agent in config.agents
                if agent.backend.model in request.usual_seconds
            },
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


def _nested_runs(request: FrozenRequest, host: NestedHost | None) -> NestedRuns | None:
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


def _withheld(request: FrozenRequest, nested_runs: NestedRuns | None) -> dict[str, str]:
    if request.config.nested is None or nested_runs is not None:
        return {}
    return {DELEGATE: request.depth_reached() if request.levels == 0 else NO_LIST}


@dataclass(frozen=True, slots=True)
class _TeamParts:
    """What the members of a run's team are made of."""

    run: RunFiles
    request: FrozenRequest
    resources: RunResources
    board: MemoryBoard
    skills: tuple[Skill, ...]
    caller_questions: CallerQuestions | None
    nested_runs: NestedRuns | None

    def member(self, name: str, agent: AgentSettings, model: ModelAccess) -> Member:
        workspace = self._workspace(name, agent)
        commands, notes = self._commands(name, agent, workspace)
        tools = list[Tool]()
        if workspace is not None and not agent.exclude_file_operation_mcps:
            tools += file_tools(workspace)
        if commands is not None:
            tools += commands.tools() if self.request.config.runs_commands(agent) else ()
            tools += [function_tool(one, commands) for one in agent.custom_tools]
        tools += self._aids(name, agent, workspace)
        toolbox = None
        if self.resources.servers is not None:
            taken = frozenset((*(tool.spec.name for tool in tools), *prompts.TOOLS_OF_ROUNDS, *DELEGATION_TOOLS))
            toolbox = self.resources.servers.toolbox(self.run, name, agent, workspace, taken)
        if self.nested_runs is not None:
            tools += delegation_tools(self.nested_runs, name, workspace)
        member = Member(
            name,
            model.backend,
            agent.system_message,
            agent.message_templates,
            tools=tuple(tool for tool in tools if tool.spec.name not in agent.exclude_tools),
            withheld=_withheld(self.request, self.nested_runs),
            notes=(skills_note(self.skills), *notes) if self.skills else notes,
            workspace=workspace,
            commands=commands,
            toolbox=toolbox,
            limiter=model.limiter,
            tariff=model.tariff,
            backend_type=agent.kind,
            own_tools=agent.backend.asked_tools,
        )
        return replace(member, fallback=member.with_model(model.fallback)) if model.fallback is not None else member

    def _workspace(self, name: str, agent: AgentSettings) -> Workspace | None:
        config = self.request.config
        if not config.has_workspace(agent):
            return None
        context = [Path(context.path) for context in config.orchestrator.context_paths]
        return Workspace.create_or_open(self.run.workspace_of(name), context=context)

    def _commands(
        self, name: str, agent: AgentSettings, workspace: Workspace | None
    ) -> tuple[AgentCommands | None, tuple[str, ...]]:
        """With what the agent should know of them."""
        access, config = self.resources.commands, self.request.config.commands_of(agent)
        if access is None or workspace is None:
            return None, ()
        return access.commands(config, workspace, self.run.workspace_of(name), self.run.scratch_of(name))

    def _aids(self, name: str, agent: AgentSettings, workspace: Workspace | None) -> Iterator[Tool]:
        """Tools for memory, plans, skills, groups and questions."""
        coordination = self.request.config.orchestrator.coordination
        if workspace is not None and coordination.enable_memory_filesystem_mode:
            self.board.restore(name, workspace)
            yield from memory_tools(workspace, self.board, agent=name)
        if coordination.enable_agent_task_planning:
            kept_in = workspace if coordination.task_planning_filesystem_mode else None
            yield from planning_tools(max_tasks=coordination.max_tasks_per_plan, workspace=kept_in)
        yield from skill_tools(self.skills)
        if agent.backend.talks_in_a_group:
            yield NEXT_SPEAKER_TOOL
        if self.caller_questions is not None:
            yield question_tool(self.caller_questions, name)


def _skills(coordination: CoordinationSettings) -> tuple[Skill, ...]:
    """The built-in skills that are asked for, then the user's own."""
    if not coordination.use_skills:
        return ()
    directory = Path(coordination.skills_directory)
    own = discover_skills([directory]) if directory.is_dir() else ()
    builtin = builtin_skills(coordination.massgen_skills)
    taken = {skill.name for skill in builtin}
    return (*builtin, *(skill for skill in own if skill.name not in taken))
