"""Executes one run in this process: builds the team from the frozen config, puts journal, views and files around it.

The composition root of a run; the runner, the command line and Python all come through here.
"""

import logging
import math
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio.abc
import anyio.to_thread

from massgen_mcp import __version__
from massgen_mcp.backends.base import Backend
from massgen_mcp.backends.limiter import ProviderLimiters
from massgen_mcp.backends.registry import UnusableBackend, destination_of, make_backend
from massgen_mcp.config.access.fallbacks import get_fallback
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.access.limits import limits_of
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import FailureReason, JournalNewer, MassgenError, storage_fault
from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.events.parts import AgentInfo, public_agent_name
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import TERMINAL, BaseTaken, RunFailed, RunStarted, SetupFinished
from massgen_mcp.home import find_home, inside_run
from massgen_mcp.money.tariff import tariff_of
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.live_run import fault_of
from massgen_mcp.orchestration.nested_runs import NestedHost
from massgen_mcp.orchestration.team import Member, ModelAccess, RunSpec
from massgen_mcp.redaction import Redactor
from massgen_mcp.request.runnable import chosen_sandboxes, describe_missing_sandbox, server_places
from massgen_mcp.run_state.state import RunState, folded
from massgen_mcp.runs.doctor.command_sandbox import sandbox_names
from massgen_mcp.runs.engine import Action, CallerAnswer, Control, EventWriter, FrozenRequest, RunFiles
from massgen_mcp.runs.host.agent_servers import ServerLosses, opened_servers
from massgen_mcp.runs.host.assembly import CommandAccess, RunResources, assemble
from massgen_mcp.runs.host.judging import Judging, prepare_judging
from massgen_mcp.runs.host.publishing import Publisher, RunLog, guarded, logged_in, nlip_writer
from massgen_mcp.runs.host.setting_up import failed_setup, hand_on_setup, set_up_copies
from massgen_mcp.runs.host.tracing import trace_of
from massgen_mcp.runs.host.working_copies import WorkingCopies, prepare_copies, with_originals
from massgen_mcp.runs.view.status_file import write_status
from massgen_mcp.sandbox import NO_TOOLS, ProjectTools, SandboxChoice, project_tools
from massgen_mcp.tools.commands import CommandHost
from massgen_mcp.views.coordination_record import coordination_events, coordination_table, is_recorded


@dataclass(frozen=True, slots=True)
class RunHandle:
    """Of one run; used from the event loop that executes it."""

    _conductor: Conductor
    state: RunState
    """The one that the conductor decides on; always up to date."""
    past: tuple[LogRecord, ...] = ()
    """What had happened before this process went on with the run."""

    def do(self, action: Action, message: str = "", number: int = 0) -> None:
        """End the run (`cancel`), decide with the answers that are there (`finish_now`), show `message` to all agents
        (`steer`), make it the new cap (`raise_budget`), or answer with it what the run asks (`answer`). `number` tells
        a remark or a raise from every other one of the run: what is given twice, as after a kill, is heeded once.
        """
        match action:
            case "cancel":
                self._conductor.cancel()
            case "finish_now":
                self._conductor.finish_now()
            case "steer":
                self._conductor.steer(number, message)
            case "raise_budget":
                self._conductor.raise_budget(number, float(message))
            case "answer":
                self._conductor.answer(message)

    async def heed(self, controls: Iterable[Control]) -> list[int]:
        """Carry out these controls; returns the numbers of those that are in the run's journal now."""
        done: list[int] = []
        for control in controls:
            if control.action == "move":
                continue  # whoever executes the run leaves it
            match control.action:
                case "admit":
                    await self._conductor.admit(control.message)
                case "answer":
                    answer = CallerAnswer.read(control.message)
                    self._conductor.answer(answer.text, answer.question)
                case action:
                    self.do(action, control.message, control.number)
            if control.action != "cancel":  # that stays wanted until the run has ended
                await self._conductor.settle()
                done.append(control.number)
        return done


class RunObserver:
    """Follow one run while it is executed. Every method does nothing here; a subclass overrides those it needs."""

    heartbeat: float = math.inf
    """As `Publisher` has it."""

    def on_setup(self, cut_short: Callable[[], None]) -> None:
        """Take the function that cuts the setup short, while there is one."""

    def on_start(self, handle: RunHandle) -> None:
        """Take the handle by which the run is controlled."""

    async def before_models(self) -> None:
        """Return as soon as a model may be asked."""

    def on_record(self, record: LogRecord) -> None:
        """Take a new record of the journal."""

    def on_news(self, milestone: bool) -> None:
        """Take notice that there are new records."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """The process around a run."""

    environ: Mapping[str, str]
    observer: RunObserver = field(default_factory=RunObserver)
    limiters: ProviderLimiters = field(default_factory=ProviderLimiters)
    """Runs with the same limiters keep the limits of the providers together."""
    nested_host: Callable[[FrozenRequest], NestedHost] | None = None
    """Makes the executor of runs that are started inside this one; None: none can be."""


async def execute_run(run: RunFiles, run_id: str, context: RunContext) -> RunState:
    """Take a run from its stored request, or from where its journal ends, to its terminal event; returns its state
    then.

    Raises `MassgenError` for a damaged run directory or a store that fails, and `JournalNewer` for a run that a newer
    version worked on; nothing is changed then.
    """
    environ, observer = context.environ, context.observer
    request = run.read_request()
    config = request.config
    backends_of = [agent.backend for agent in config.agents]
    redactor = redactor_for(environ, backends_of, config.server_variables)
    async with AsyncExitStack() as cleanup:
        past, journal = await anyio.to_thread.run_sync(_opened_log, run, redactor)
        cleanup.callback(journal.close)
        log = cleanup.enter_context(RunLog.open(run.log, redactor))
        if past and isinstance(past[-1].event, TERMINAL):
            state = await anyio.to_thread.run_sync(folded, past)
            # The process was lost after the run had ended.
            await anyio.to_thread.run_sync(_write_records, run, state, _Recorded(past), log)
            return state
        opened = _Models(run, request, environ, redactor, log, context.limiters, cleanup)
        models = tuple(opened.open_model(place, agent.backend) for place, agent in enumerate(config.agents))
        choices = await chosen_sandboxes(config, environ)
        contexts = [Path(one.path) for one in config.orchestrator.context_paths]
        tools = await anyio.to_thread.run_sync(project_tools, contexts, environ) if contexts else NO_TOOLS
        access = await _command_access(run, choices, environ, tools, cleanup)
        losses = ServerLosses(log)
        servers = await opened_servers(config, inside_run(environ, run_id), redactor, losses.heard, cleanup)
        where = server_places(config, servers.choices) if servers else ()
        host = context.nested_host and context.nested_host(request)
        hidden = (find_home(environ).path,)
        prepare = partial(prepare_copies, run, request, environ, begun=bool(past), hidden=hidden)
        copies, base_taken, moved, request = await anyio.to_thread.run_sync(_prepared, run, request, prepare)
        config = request.config
        copies, set_up = await set_up_copies(run, config, environ, copies, tools, observer.on_setup)
        judging = await prepare_judging(run, config, environ, copies, tools, failed_setup(set_up))
        resources = RunResources(models, access, servers, host, copies, judging.judge)
        run_spec = replace(assemble(run, run_id, request, resources), report=log.report)
        _open_workspaces(run_spec, cleanup)

        def begun() -> tuple[RunState, _Recorded, Callable[[LogRecord], None] | None]:
            with logged_in(log):
                run.write_metadata(run_metadata(run_id, request, choices, where))
            state = run_spec.begin(past)
            return state, _Recorded(past), nlip_writer(run, config, state, cleanup)

        state, recorded, nlip = await anyio.to_thread.run_sync(begun)
        conductor = Conductor(run_spec, journal, past, state)
        journal.ends_with(state)
        for listener in filter(None, (partial(log.write_record, state), recorded.heard, nlip, observer.on_record)):
            journal.listen(guarded(listener, log))
        await _trace(run_id, config, environ, journal, log, cleanup)
        observer.on_start(RunHandle(conductor, state, tuple(past)))
        publisher = Publisher(run, state, journal, log, on_news=observer.on_news, heartbeat=observer.heartbeat)
        journal.listen(publisher.heard)
        async with anyio.create_task_group() as tasks:
            _accompany(tasks, publisher, run_spec)
            try:
                if past:
                    await conductor.resume()
                else:
                    journal.record(started_event(run_id, request, choices, where))
                _tell_of_base(journal, state, base_taken, set_up)
                losses.record_in(journal, state)
                await observer.before_models()
                denied = _find_denial(choices.values()) or judging.denied
                obstacle = await _find_obstacle(denied, moved, run_spec.team)
                await _conduct(conductor, journal, state, judging, obstacle)
            except Exception as error:  # the boundary of a run: it ends, whoever runs it goes on
                if storage_fault(error) is not None:
                    raise  # nothing can be told now; its journal is whole, so it can go on later
                message = log.report(error)
                if state.end is None:
                    journal.record(failure_of(state, message))
                await journal.settle()
            tasks.cancel_scope.cancel()
        if state.end is not None:
            await anyio.to_thread.run_sync(_leave, run, state, recorded, log, find_home(environ).path)
    return state


def _opened_log(run: RunFiles, redactor: Redactor) -> tuple[list[LogRecord], EventWriter]:
    return run.event_log.read_to_continue(), run.event_log.append(redactor=redactor)


def _prepared(
    run: RunFiles, request: FrozenRequest, prepare: Callable[[], tuple[WorkingCopies | None, BaseTaken | None]]
) -> tuple[WorkingCopies | None, BaseTaken | None, str | None, FrozenRequest]:
    """The copies of a run and what is to be told of them, or why they cannot begin as they were to; and the request as
    `with_originals` has it.
    """
    try:
        (copies, taken), moved = prepare(), None
    except MassgenError as error:
        if error.code != "invalid_action":
            raise
        copies, taken, moved = None, None, str(error)
    return copies, taken, moved, with_originals(run, request, copies)


def _accompany(tasks: anyio.abc.TaskGroup, publisher: Publisher, run_spec: RunSpec) -> None:
    """What goes on beside the run, as long as it does."""
    tasks.start_soon(publisher.publish)
    if run_spec.nested_runs is not None:
        tasks.start_soon(run_spec.nested_runs.attend)


def _tell_of_base(journal: EventWriter, state: RunState, taken: BaseTaken | None, set_up: SetupFinished | None) -> None:
    if taken is not None and state.base is None:
        journal.record(taken)
    if set_up is not None and state.setup is None:
        journal.record(set_up)


async def _find_obstacle(
    denied: str | None, moved: str | None, team: Iterable[Member]
) -> tuple[str, FailureReason] | None:
    """Return why a run cannot work here: its commands or checks have no sandbox (`denied`), it cannot begin with the
    changes that it was to go on with (`moved`), or a required MCP server is not there.
    """
    if denied:
        return denied, "sandbox_denied"
    if lacking := moved or await _lacking(team):
        return lacking, "config_invalid"
    return None


async def _conduct(
    conductor: Conductor,
    journal: EventWriter,
    state: RunState,
    judging: Judging,
    obstacle: tuple[str, FailureReason] | None,
) -> None:
    """Conduct the run to its end, at once where there is an obstacle."""
    if obstacle is not None:
        journal.record(failure_of(state, *obstacle))
        await journal.settle()
        return
    if judging.problem and state.checked_base is None:
        journal.record(FilesChecked(subject="base", problem=judging.problem))
    await conductor.conduct()


def _find_denial(choices: Iterable[SandboxChoice]) -> str:
    """Why agents' commands cannot run here; empty if they can."""
    return next((describe_missing_sandbox(choice) for choice in choices if choice.level is None), "")


async def _lacking(team: Iterable[Member]) -> str | None:
    for member in team:
        if member.toolbox is not None and (lacks := await member.toolbox.lacking()):
            return f"{member.name}: {lacks}"
    return None


def _backend(
    config: BackendConfig, environ: Mapping[str, str], private: Path, redactor: Redactor, log: RunLog
) -> Backend:
    """One agent's backend; if it cannot be made, one that says why when it is called."""
    try:
        return make_backend(config, environ, private, redactor)
    except Exception as error:  # noqa: BLE001 - one agent's fault is one agent's
        return UnusableBackend(config.model, fault_of(error, log.report))


async def _trace(
    run_id: str,
    config: Config,
    environ: Mapping[str, str],
    journal: EventWriter,
    log: RunLog,
    cleanup: AsyncExitStack,
) -> None:
    """Send the run's spans to where the operator wants them, if anywhere."""
    with logged_in(log):
        if trace := await trace_of(run_id, agent_infos(config), environ):
            journal.listen(guarded(trace.spans.heard, log))
            cleanup.push_async_callback(_quietly, trace.flush, log)


async def _quietly(close: Callable[[], Awaitable[None]], log: RunLog) -> None:
    with logged_in(log):
        await close()


def _open_workspaces(run_spec: RunSpec, cleanup: AsyncExitStack) -> None:
    """They are closed with the run."""
    for member in run_spec.team:
        if member.workspace is not None:
            cleanup.callback(member.workspace.close)


def _write_records(run: RunFiles, state: RunState, recorded: "_Recorded", log: RunLog) -> None:
    """What is written once, when everything has happened."""
    with logged_in(log):
        run.write_record(coordination_events(state, recorded.records), coordination_table(state, recorded.records))
    with logged_in(log):
        write_status(run, state)


def _leave(run: RunFiles, state: RunState, recorded: "_Recorded", log: RunLog, home: Path) -> None:
    _write_records(run, state, recorded, log)
    hand_on_setup(run, home)


class _Recorded:
    """The events that the coordination's records tell of, `past` included."""

    def __init__(self, past: Iterable[LogRecord]) -> None:
        self.records = list(filter(is_recorded, past))

    def heard(self, record: LogRecord) -> None:
        if is_recorded(record):
            self.records.append(record)


async def _command_access(
    run: RunFiles,
    choices: Mapping[CommandsConfig, SandboxChoice],
    environ: Mapping[str, str],
    tools: ProjectTools,
    cleanup: AsyncExitStack,
) -> CommandAccess | None:
    """No command sees the state directory or the run's own, even where a person named a directory that holds them."""
    if not any(choice.level for choice in choices.values()):
        return None
    host = await cleanup.enter_async_context(CommandHost.open())
    return CommandAccess(host, choices, (find_home(environ).path, run.path), tools=tools)


@dataclass(frozen=True, slots=True)
class _Models:
    """Opens the models of a run's agents; `cleanup` closes them."""

    run: RunFiles
    request: FrozenRequest
    environ: Mapping[str, str]
    redactor: Redactor
    log: RunLog
    limiters: ProviderLimiters
    cleanup: AsyncExitStack

    def open_model(self, place: int, config: BackendConfig) -> ModelAccess:
        """Without a limiter for a model that calls nobody; with the fallback, if there is one."""
        backend = _backend(config, self.environ, self.run.private_of(public_agent_name(place)), self.redactor, self.log)
        self.cleanup.push_async_callback(_quietly, backend.aclose, self.log)
        destination = destination_of(config, self.environ)
        limits = limits_of(self.request.config, config, self.environ)
        limiter = destination and self.cleanup.enter_context(self.limiters.limiter(destination, limits))
        tariff = tariff_of(config, self.environ, bounded=self.request.bounded)
        access = ModelAccess(backend, limiter, tariff, type=config.type)
        if (fallback := get_fallback(config)) is not None:
            return replace(access, fallback=self.open_model(place, fallback))
        return access


# ---------------------------------------------------------------------------------------------------------------------
# What a run says of itself when it begins: its first event, and `execution_metadata.yaml`.


def started_event(
    run_id: str, request: FrozenRequest, choices: Mapping[CommandsConfig, SandboxChoice], servers: tuple[str, ...]
) -> RunStarted:
    config = request.config
    return RunStarted(
        run_id=run_id,
        question=request.question,
        parent=request.nesting.parent if request.nesting else None,
        agents=agent_infos(config),
        max_usd=config.budget.max_usd,
        max_tokens=config.budget.most_tokens,
        max_calls=config.budget.max_calls,
        weighs_cache=config.budget.weighs_cache,
        sandbox=sandbox_names(choices.values()),
        servers=servers,
        checks_policy=config.orchestrator.checks_policy if config.orchestrator.checks else None,
    )


def agent_infos(config: Config) -> tuple[AgentInfo, ...]:
    return tuple(
        AgentInfo(name=public_agent_name(place), id=agent.id, backend=agent.kind, model=agent.backend.model)
        for place, agent in enumerate(config.agents)
    )


def run_metadata(
    run_id: str, request: FrozenRequest, choices: Mapping[CommandsConfig, SandboxChoice], servers: tuple[str, ...]
) -> dict[str, object]:
    nesting = {"parent_run_id": request.nesting.parent, "depth": request.nesting.depth} if request.nesting else {}
    sandbox = {"sandbox": _sandbox(choices.values())} if choices else {}
    return {
        **sandbox,
        **({"mcp_servers": [*servers]} if servers else {}),
        "run_id": run_id,
        **nesting,
        "query": request.question,
        "timestamp": time.time(),
        "massgen_mcp_version": __version__,
        "python_version": sys.version.split()[0],
        "config": request.config.model_dump(mode="json", exclude_defaults=True),
    }


def _sandbox(choices: Collection[SandboxChoice]) -> dict[str, object]:
    """What the agents' commands run in; of several sandboxes all that is to be said."""
    return {
        "level": ", ".join(dict.fromkeys(choice.level for choice in choices if choice.level)) or None,
        "why": "; ".join(dict.fromkeys(choice.why for choice in choices if choice.why)),
        "notes": [*dict.fromkeys(note for choice in choices for note in choice.notes)],
    }


# ---------------------------------------------------------------------------------------------------------------------
# The end of a run that cannot go on: failed, by no fault of its team, with the best answer that can still be had.


logger = logging.getLogger("massgen_mcp.run")


def failure_of(state: RunState, message: str, reason: FailureReason = "internal") -> RunFailed:
    """The event of that end."""
    winner = answer = None
    with suppress(Exception):
        winner, answer = state.best()
    return RunFailed(reason=reason, message=message, winner=winner, answer=answer)


async def abort_run(directory: RunFiles, reason: FailureReason, message: str, environ: Mapping[str, str]) -> RunState:
    """End a run that nobody executes, in its journal too if that can still be written.

    Raises `JournalNewer`.
    """
    state = RunState()

    def fold() -> None:
        for record in directory.event_log.read_to_continue():
            state.apply(record)

    try:
        await anyio.to_thread.run_sync(fold)
        if state.end is None:
            journal = directory.event_log.append(redactor=redactor_for(environ))
            journal.listen(state.apply)
            journal.ends_with(state)
            try:
                journal.record(failure_of(state, message, reason))
                await journal.settle()
            finally:
                journal.close()
    except JournalNewer:
        raise
    except Exception as further:  # noqa: BLE001 - what broke the run may break its fold, too; whoever runs it goes on
        logger.warning("cannot write the journal of a failed run: %s", further)
    if state.end is None:
        state.end_with(RunFailed(reason=reason, message=message))
    return state
