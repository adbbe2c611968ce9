"""Executes one run in this process: builds the team from the frozen config, puts journal, views and files around it.

The composition root of a run; the runner, the command line and Python all come through here.
"""

import logging
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import cast

import anyio

from massgen_mcp import __version__
from massgen_mcp.backends.registry import Premises, destination_of, make_backend
from massgen_mcp.backends.traffic import Lane, Traffic
from massgen_mcp.config.models import Config
from massgen_mcp.errors import FailureReason, MassgenError, storage_fault
from massgen_mcp.events import AgentInfo, LogRecord, RunFailed, RunStarted, public_agent_name
from massgen_mcp.money.tariff import tariff_of
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Assignment
from massgen_mcp.runs.assembly import assemble
from massgen_mcp.runs.directory import RunDirectory
from massgen_mcp.runs.journal import JournalReader, JournalWriter
from massgen_mcp.runs.store import Control
from massgen_mcp.runs.tracing import trace_of
from massgen_mcp.views.coordination_record import coordination_events, coordination_table
from massgen_mcp.views.log_text import log_line
from massgen_mcp.views.plain_text import plain_lines
from massgen_mcp.views.snapshot import TERMINAL_STATES, RunSnapshot
from massgen_mcp.views.status_json import status_json

logger = logging.getLogger("massgen_mcp.run")

STATUS_INTERVAL = 0.1
"""`status.json` is written at most this often, in seconds ..."""
STATUS_HEARTBEAT = 2.0
"""... and at least this often while a run goes on."""


@dataclass(frozen=True, slots=True)
class RunHandle:
    """What others may do with a run while it is executed, from the same event loop."""

    conductor: Conductor
    snapshot: RunSnapshot

    async def heed(self, controls: Iterable[Control]) -> list[int]:
        """Do what is wanted; returns the numbers of the controls that are in the run's journal now."""
        done: list[int] = []
        for control in controls:
            match control.action:
                case "cancel":
                    self.conductor.cancel()
                    continue  # it stays wanted until the run has ended
                case "finish_now":
                    self.conductor.finish_now()
                case "steer":
                    self.conductor.steer(control.number, control.message)
                case "raise_budget":
                    self.conductor.raise_budget(control.number, float(control.message))
                case "answer":
                    self.conductor.answer(control.message)
            await self.conductor.settle()
            done.append(control.number)
        return done


async def execute_run(
    run: RunDirectory,
    run_id: str,
    *,
    environ: Mapping[str, str],
    on_start: Callable[[RunHandle], None] = lambda _: None,
    on_record: Callable[[LogRecord], None] = lambda _: None,
    traffic: Traffic | None = None,
) -> RunSnapshot:
    """Take a run from its stored request, or from where its journal ends, to its terminal event; returns what it looks
    like then.

    Runs that are given the same `traffic` spare the providers together; without it a run does so alone.
    Raises `MassgenError` for a damaged run directory or a store that fails.
    """
    request = run.read_request()
    question, config = request.question, request.config
    snapshot = RunSnapshot()
    async with AsyncExitStack() as cleanup:
        journal = JournalWriter(run.events)
        cleanup.callback(journal.close)
        past = JournalReader(run.events).read()
        for record in past:
            snapshot.apply(record)
        if snapshot.state in TERMINAL_STATES:
            _write_records(run, snapshot, journal)  # the process was lost after the run had ended
            return snapshot
        journal.listen(snapshot.apply)
        log = cleanup.enter_context(run.log.open("a", encoding="utf-8", errors="replace"))
        journal.listen(lambda record: _write_log(log.write, record))
        journal.listen(on_record)
        if trace := await trace_of(run_id, _infos(config), environ):
            journal.listen(trace.heard)
            cleanup.push_async_callback(trace.flush)
        backends = [
            make_backend(agent.backend, environ, _premises(run, config, place))
            for place, agent in enumerate(config.agents)
        ]
        for backend in backends:
            cleanup.push_async_callback(backend.aclose)
        lanes = _lanes(config, environ, traffic or Traffic(), cleanup)
        tariffs = [tariff_of(agent.backend, environ) for agent in config.agents]
        assignment = assemble(run, run_id, request, backends, lanes, tariffs)
        _open_workspaces(assignment, cleanup)
        run.write_metadata(_metadata(run_id, question, config))
        conductor = Conductor(assignment, journal)
        on_start(RunHandle(conductor, snapshot))
        status = _StatusFile(run, snapshot, journal)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(status.keep_fresh)
            try:
                if past:
                    await conductor.resume(past)
                else:
                    journal.record(_started(run_id, question, config))
                await conductor.conduct()
            except Exception as error:  # the boundary of a run: it ends, whoever runs it goes on
                if storage_fault(error) is not None:
                    raise  # nothing can be told now; its journal is whole, so it can go on later
                log.writelines(plain_lines(traceback.format_exception(error)))
                journal.record(RunFailed(reason="internal", message=_root_cause(error)))
                await journal.settle()
            tasks.cancel_scope.cancel()
        _write_records(run, snapshot, journal)
    return snapshot


async def break_off(directory: RunDirectory, reason: FailureReason, message: str) -> RunSnapshot:
    """The run ends as failed, by no fault of its team, in its journal too if that can still be written."""
    snapshot = RunSnapshot()
    try:
        for record in JournalReader(directory.events).read():
            snapshot.apply(record)
        if snapshot.state not in TERMINAL_STATES:
            journal = JournalWriter(directory.events)
            journal.listen(snapshot.apply)
            try:
                journal.record(RunFailed(reason=reason, message=message))
                await journal.settle()
            finally:
                journal.close()
    except (MassgenError, OSError) as further:
        logger.warning("the journal of a broken run cannot be written: %s", further)
    if snapshot.state not in TERMINAL_STATES:
        snapshot.state = "failed"
    return snapshot


def _open_workspaces(assignment: Assignment, cleanup: AsyncExitStack) -> None:
    """They are closed with the run. Who works alone is the winner from the start, and may not present at all."""
    for member in assignment.team:
        if member.workspace is not None:
            cleanup.callback(member.workspace.close)
            if len(assignment.team) == 1:
                cleanup.enter_context(member.workspace.writing_context())


def _write_records(run: RunDirectory, snapshot: RunSnapshot, journal: JournalWriter) -> None:
    """What is written once, when everything has happened."""
    records = JournalReader(run.events).read()
    run.write_record(coordination_events(snapshot, records), coordination_table(snapshot, records))
    _StatusFile(run, snapshot, journal).write()


def _premises(run: RunDirectory, config: Config, place: int) -> Premises:
    name = public_agent_name(place)
    orchestrator = config.orchestrator
    return Premises(
        private=run.private_of(name),
        workspace=run.workspace_of(name) if orchestrator.enable_filesystem else None,
        may_write=not orchestrator.coordination.enable_planning_mode,
    )


def _lanes(config: Config, environ: Mapping[str, str], traffic: Traffic, cleanup: AsyncExitStack) -> list[Lane | None]:
    """One per agent; None for those that call nobody."""
    lanes: list[Lane | None] = []
    for agent in config.agents:
        destination = destination_of(agent.backend, environ)
        limits = config.limits_of(agent.backend.type)
        lanes.append(destination and cleanup.enter_context(traffic.lane(destination, limits)))
    return lanes


def _root_cause(error: BaseException) -> str:
    """What went wrong, without the groups that task groups wrap around it."""
    while isinstance(error, BaseExceptionGroup):
        (error, *_) = cast("BaseExceptionGroup[BaseException]", error).exceptions
    return f"{type(error).__name__}: {error}"


class _StatusFile:
    """Writes `status.json` whenever the run changed, and as a sign of life; lets readers see the journal as often."""

    def __init__(self, run: RunDirectory, snapshot: RunSnapshot, journal: JournalWriter) -> None:
        self._run = run
        self._snapshot = snapshot
        self._journal = journal

    def write(self) -> None:
        document = status_json(
            self._snapshot, log_dir=str(self._run.path), session_id=self._run.path.name, now=time.time()
        )
        self._run.write_status(document)

    async def keep_fresh(self) -> None:
        written, written_at = -1, 0.0
        while True:
            overdue = anyio.current_time() - written_at >= STATUS_HEARTBEAT
            if self._snapshot.seq != written or overdue:
                written, written_at = self._snapshot.seq, anyio.current_time()
                with suppress(OSError, MassgenError):  # whoever must have the journal on disk will hear of it
                    self.write()
                    await self._journal.drain()
            await anyio.sleep(STATUS_INTERVAL)


def _started(run_id: str, question: str, config: Config) -> RunStarted:
    return RunStarted(
        run_id=run_id,
        question=question,
        agents=_infos(config),
        max_usd=config.budget.max_usd,
        max_tokens=config.budget.max_tokens,
    )


def _infos(config: Config) -> tuple[AgentInfo, ...]:
    return tuple(
        AgentInfo(name=public_agent_name(place), id=agent.id, backend=agent.backend.type, model=agent.backend.model)
        for place, agent in enumerate(config.agents)
    )


def _metadata(run_id: str, question: str, config: Config) -> dict[str, object]:
    return {
        "run_id": run_id,
        "query": question,
        "timestamp": time.time(),
        "massgen_mcp_version": __version__,
        "python_version": sys.version.split()[0],
        "config": config.model_dump(mode="json", exclude_defaults=True),
    }


def _write_log(write: Callable[[str], object], record: LogRecord) -> None:
    if line := log_line(record):
        write(f"{line}\n")
