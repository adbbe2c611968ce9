"""Executes one run in this process: builds the team from the frozen config, puts journal, views and files around it.

The composition root of a run; the runner, the command line and Python all come through here.
"""

import logging
import math
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from massgen_mcp import __version__
from massgen_mcp.backends.base import Backend
from massgen_mcp.backends.limiter import ProviderLimiter, ProviderLimiters
from massgen_mcp.backends.registry import destination_of, make_backend
from massgen_mcp.backends.unusable import UnusableBackend
from massgen_mcp.config.held_keys import redactor_for
from massgen_mcp.config.limits import limits_of
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.models.commands import CommandsConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import FailureReason, JournalNewer, storage_fault
from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.events.parts import AgentInfo, public_agent_name
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import TERMINAL, BaseTaken, RunFailed, RunStarted, ServerLost
from massgen_mcp.home import find_home, inside_run
from massgen_mcp.money.tariff import tariff_of
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.faults import fault_of
from massgen_mcp.orchestration.nested_runs import NestedHost
from massgen_mcp.orchestration.team import RunSpec
from massgen_mcp.redaction import Redactor
from massgen_mcp.request.sandboxes import chosen_sandboxes
from massgen_mcp.request.server_places import servers_told
from massgen_mcp.run_state.state import RunState, folded
from massgen_mcp.runs.agent_servers import opened_servers
from massgen_mcp.runs.assembly import CommandAccess, assemble
from massgen_mcp.runs.command_sandbox import told_of
from massgen_mcp.runs.engine import EventWriter, RunFiles
from massgen_mcp.runs.engine.rows import Action, Control, Request
from massgen_mcp.runs.judging import Judging, prepare_judging
from massgen_mcp.runs.publishing import Publisher, write_status
from massgen_mcp.runs.run_log import RunLog, guarded
from massgen_mcp.runs.tracing import trace_of
from massgen_mcp.runs.working_copies import prepare_copies
from massgen_mcp.sandbox import Choice
from massgen_mcp.tools.commands import CommandHost
from massgen_mcp.views.coordination_record import coordination_events, coordination_table, is_recorded

logger = logging.getLogger("massgen_mcp.run")
MAX_LOSS = 2000
"""Characters of why an MCP server was lost."""


@dataclass(frozen=True, slots=True)
class RunHandle:
    """What others may do with a run while it is executed, from the same event loop."""

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
            if control.action == "admit":
                await self._conductor.admit(control.message)
            else:
                self.do(control.action, control.message, control.number)
            if control.action != "cancel":  # that stays wanted until the run has ended
                await self._conductor.settle()
                done.append(control.number)
        return done


async def execute_run(
    run: RunFiles,
    run_id: str,
    *,
    environ: Mapping[str, str],
    on_start: Callable[[RunHandle], None] = lambda _: None,
    on_record: Callable[[LogRecord], None] = lambda _: None,
    on_news: Callable[[bool], None] = lambda _: None,
    heartbeat: float = math.inf,
    limiters: ProviderLimiters | None = None,
    nested_host: Callable[[Request], NestedHost] | None = None,
) -> RunState:
    """Take a run from its stored request, or from where its journal ends, to its terminal event; returns what it looks
    like then.

    `on_news` and `heartbeat` as `Publisher` has them. Runs that are given the same `limiters` spare the providers
    together; without it a run does so alone. `nested_host`: who executes runs that are started inside this one; without
    it none can be.
    Raises `MassgenError` for a damaged run directory or a store that fails, and `JournalNewer` for a run that a newer
    version worked on; nothing is changed then.
    """
    request = run.read_request()
    config = request.config
    backends_of = [agent.backend for agent in config.agents]
    redactor = redactor_for(environ, backends_of, config.server_variables)
    async with AsyncExitStack() as cleanup:
        past, journal = await anyio.to_thread.run_sync(_opened, run, redactor)
        cleanup.callback(journal.close)
        log = cleanup.enter_context(RunLog.open(run.log, redactor))
        if past and isinstance(past[-1].event, TERMINAL):
            state = await anyio.to_thread.run_sync(folded, past)
            # The process was lost after the run had ended.
            await anyio.to_thread.run_sync(_write_records, run, state, _Recorded(past), log)
            return state
        backends = [
            _backend(agent.backend, environ, run.private_of(public_agent_name(place)), redactor, log)
            for place, agent in enumerate(config.agents)
        ]
        for backend in backends:
            cleanup.push_async_callback(_quietly, backend.aclose, log)
        chosen = _limiters(config, environ, limiters or ProviderLimiters(), cleanup)
        tariffs = [tariff_of(agent.backend, environ) for agent in config.agents]
        choices = await chosen_sandboxes(config, environ)
        access = await _command_access(run, choices, environ, cleanup)
        losses = _Losses(log)
        servers = await opened_servers(config, inside_run(environ, run_id), redactor, losses.heard, cleanup)
        where = servers_told(config, servers.choices) if servers else ()
        host = nested_host and nested_host(request)
        hidden = (find_home(environ).path,)
        prepare = partial(prepare_copies, run, config, begun=bool(past), hidden=hidden)
        copies, base_taken = await anyio.to_thread.run_sync(prepare)
        judging = await prepare_judging(run, config, environ, copies)
        team = assemble(run, run_id, request, backends, chosen, tariffs, access, servers, host, copies, judging.judge)
        run_spec = replace(team, report=log.report)
        _open_workspaces(run_spec, cleanup)

        def begun() -> tuple[RunState, _Recorded]:
            with _told_in(log):
                run.write_metadata(_metadata(run_id, request, choices, where))
            return run_spec.begin(past), _Recorded(past)

        state, recorded = await anyio.to_thread.run_sync(begun)
        conductor = Conductor(run_spec, journal, past, state)
        for listener in (log.heard, recorded.heard, on_record):
            journal.listen(guarded(listener, log))
        await _trace(run_id, config, environ, journal, log, cleanup)
        on_start(RunHandle(conductor, state, tuple(past)))
        publisher = Publisher(run, state, journal, log, on_news=on_news, heartbeat=heartbeat)
        journal.listen(publisher.heard)
        async with anyio.create_task_group() as tasks:
            _accompany(tasks, publisher, run_spec)
            try:
                if past:
                    await conductor.resume()
                else:
                    journal.record(_started(run_id, request, choices, where))
                _tell_of_base(journal, state, base_taken)
                losses.record_in(journal, state)
                await _conduct(conductor, journal, state, judging)
            except Exception as error:  # the boundary of a run: it ends, whoever runs it goes on
                if storage_fault(error) is not None:
                    raise  # nothing can be told now; its journal is whole, so it can go on later
                told = log.report(error)
                if state.end is None:
                    journal.record(_failed(state, told))
                await journal.settle()
            tasks.cancel_scope.cancel()
        if state.end is not None:
            await anyio.to_thread.run_sync(_write_records, run, state, recorded, log)
    return state


def _opened(run: RunFiles, redactor: Redactor) -> tuple[list[LogRecord], EventWriter]:
    return run.event_log.read_to_continue(), run.event_log.append(redactor=redactor)


def _accompany(tasks: anyio.abc.TaskGroup, publisher: Publisher, run_spec: RunSpec) -> None:
    """What goes on beside the run, as long as it does."""
    tasks.start_soon(publisher.publish)
    if run_spec.nested_runs is not None:
        tasks.start_soon(run_spec.nested_runs.attend)


def _tell_of_base(journal: EventWriter, state: RunState, taken: BaseTaken | None) -> None:
    if taken is not None and state.base is None:
        journal.record(taken)


async def _conduct(conductor: Conductor, journal: EventWriter, state: RunState, judging: Judging) -> None:
    """To the run's end; at once, where its checks have no sandbox: they do not run without."""
    if judging.denied:
        journal.record(_failed(state, judging.denied, "sandbox_denied"))
        await journal.settle()
        return
    if judging.problem and state.checked_base is None:
        journal.record(FilesChecked(subject="base", problem=judging.problem))
    await conductor.conduct()


def _failed(state: RunState, message: str, reason: FailureReason = "internal") -> RunFailed:
    """The end of a run that cannot go on here, with the best answer that can still be had."""
    winner = answer = None
    with suppress(Exception):
        winner, answer = state.best()
    return RunFailed(reason=reason, message=message, winner=winner, answer=answer)


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
    with _told_in(log):
        if trace := await trace_of(run_id, _infos(config), environ):
            journal.listen(guarded(trace.heard, log))
            cleanup.push_async_callback(_quietly, trace.flush, log)


async def _quietly(close: Callable[[], Awaitable[None]], log: RunLog) -> None:
    with _told_in(log):
        await close()


@contextmanager
def _told_in(log: RunLog) -> Generator[None]:
    """What fails inside is told in the log and ends nothing, but for a failure of the storage."""
    try:
        yield
    except Exception as error:
        if storage_fault(error) is not None:
            raise
        log.report(error)


async def break_off(directory: RunFiles, reason: FailureReason, message: str, environ: Mapping[str, str]) -> RunState:
    """The run ends as failed, by no fault of its team, in its journal too if that can still be written.

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
            try:
                winner, answer = state.best()
                journal.record(RunFailed(reason=reason, message=message, winner=winner, answer=answer))
                await journal.settle()
            finally:
                journal.close()
    except JournalNewer:
        raise
    except Exception as further:  # noqa: BLE001 - what broke the run may break its fold, too; whoever runs it goes on
        logger.warning("the journal of a broken run cannot be written: %s", further)
    if state.end is None:
        state.end_with(RunFailed(reason=reason, message=message))
    return state


def _open_workspaces(run_spec: RunSpec, cleanup: AsyncExitStack) -> None:
    """They are closed with the run."""
    for member in run_spec.team:
        if member.workspace is not None:
            cleanup.callback(member.workspace.close)


def _write_records(run: RunFiles, state: RunState, recorded: "_Recorded", log: RunLog) -> None:
    """What is written once, when everything has happened."""
    with _told_in(log):
        run.write_record(coordination_events(state, recorded.records), coordination_table(state, recorded.records))
    with _told_in(log):
        write_status(run, state)


class _Losses:
    """The MCP servers that could not be started or were lost. They start before the run's first event is written."""

    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._events: list[ServerLost] = []
        self._written: tuple[EventWriter, RunState] | None = None

    def heard(self, server: str, agents: tuple[str, ...], why: str) -> None:
        self._log.note(f"MCP server {server}: {why}")
        self._events.append(ServerLost(server=server, agents=agents, message=why[:MAX_LOSS]))
        self._write()

    def record_in(self, journal: EventWriter, state: RunState) -> None:
        """From now on they are a part of the run, as long as it goes on."""
        self._written = journal, state
        self._write()

    def _write(self) -> None:
        if self._written is None:
            return
        journal, state = self._written
        while self._events and state.end is None:
            journal.record(self._events.pop(0))


class _Recorded:
    """The events that the coordination's records tell of, `past` included."""

    def __init__(self, past: Iterable[LogRecord]) -> None:
        self.records = list(filter(is_recorded, past))

    def heard(self, record: LogRecord) -> None:
        if is_recorded(record):
            self.records.append(record)


async def _command_access(
    run: RunFiles, choices: Mapping[CommandsConfig, Choice], environ: Mapping[str, str], cleanup: AsyncExitStack
) -> CommandAccess | None:
    """No command sees the state directory or the run's own, even where a person named a directory that holds them."""
    if not any(choice.level for choice in choices.values()):
        return None
    host = await cleanup.enter_async_context(CommandHost.open())
    return CommandAccess(host, choices, (find_home(environ).path, run.path))


def _limiters(
    config: Config, environ: Mapping[str, str], limiters: ProviderLimiters, cleanup: AsyncExitStack
) -> list[ProviderLimiter | None]:
    """One per agent; None for those that call nobody."""
    chosen: list[ProviderLimiter | None] = []
    for agent in config.agents:
        destination = destination_of(agent.backend, environ)
        limits = limits_of(config, agent.backend, environ)
        chosen.append(destination and cleanup.enter_context(limiters.limiter(destination, limits)))
    return chosen


def _started(
    run_id: str, request: Request, choices: Mapping[CommandsConfig, Choice], servers: tuple[str, ...]
) -> RunStarted:
    config = request.config
    return RunStarted(
        run_id=run_id,
        question=request.question,
        parent=request.nesting.parent if request.nesting else None,
        agents=_infos(config),
        max_usd=config.budget.max_usd,
        max_tokens=config.budget.max_tokens,
        sandbox=told_of(choices.values()),
        servers=servers,
    )


def _infos(config: Config) -> tuple[AgentInfo, ...]:
    return tuple(
        AgentInfo(name=public_agent_name(place), id=agent.id, backend=agent.backend.type, model=agent.backend.model)
        for place, agent in enumerate(config.agents)
    )


def _sandbox(choices: Collection[Choice]) -> dict[str, object]:
    """What the agents' commands run in; of several sandboxes all that is to be said."""
    return {
        "level": ", ".join(dict.fromkeys(choice.level for choice in choices if choice.level)) or None,
        "why": "; ".join(dict.fromkeys(choice.why for choice in choices if choice.why)),
        "notes": [*dict.fromkeys(note for choice in choices for note in choice.notes)],
    }


def _metadata(
    run_id: str, request: Request, choices: Mapping[CommandsConfig, Choice], servers: tuple[str, ...]
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
