"""One run in this process, told on standard output: as stable lines for programs, or as a plain account for people."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import anyio

from massgen_mcp.cli.asking import on_terminal
from massgen_mcp.cli.exits import EXIT_EXECUTION, EXIT_INTERRUPTED, EXIT_OK, EXIT_TIMEOUT
from massgen_mcp.cli.massgen.applying import apply_at_end, asks_first
from massgen_mcp.cli.massgen.debug_log import DebugLog
from massgen_mcp.cli.massgen.display import Display, choose_display
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.massgen.questions import whole_question
from massgen_mcp.cli.massgen.resuming import describe_interrupted, interrupted_here, run_to_continue
from massgen_mcp.cli.massgen.sessions import open_session
from massgen_mcp.cli.massgen.team import given_of, output_file
from massgen_mcp.cli.output import print_error, print_line, print_text
from massgen_mcp.config.models import Config
from massgen_mcp.events import LogRecord, RunFailed, RunTimedOut, public_agent_name
from massgen_mcp.home import write_durably
from massgen_mcp.request.build import build_request
from massgen_mcp.request.team import describe_start
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.command_sandbox import sandbox_note
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.execute import RunHandle
from massgen_mcp.runs.foreground import ForegroundRun, continue_here, run_here
from massgen_mcp.views.checks import check_notes
from massgen_mcp.views.plain_text import plain, preview
from massgen_mcp.views.spent import money_notes, spent_text

MAX_LINES = 20
"""What --automation prints, whatever happens."""
OPENING_LINES = 6
"""Those before the agents begin, without a note on the config."""


async def run_once(options: Options) -> int:
    """Returns the exit code. Raises `MassgenError` for whatever keeps the run from beginning."""
    question = whole_question(options.question or "")
    if on_terminal() and not (options.automation or options.no_logs) and (runs := await interrupted_here(Path.cwd())):
        print_line(describe_interrupted(runs, f"massgen --resume {runs[0].row.run_id}"))
    session = open_session(Path.cwd(), options.session_id) if options.session_id is not None else None
    session_id = session.session_id if session else None
    given = given_of(options, question, cwd=Path.cwd(), environ=os.environ, session_id=session_id)
    request = await build_request(given)
    with run_here(request) as run:
        _announce(run.directory, request.question, request.config, request.describe_start(Path.cwd()))
        if request.team.note:
            print_line(f"NOTE: {request.team.note}")
        if commands := await sandbox_note(request.config, os.environ):
            print_error(commands)
        snapshot = await execute_shown(run, options)
        return await _conclude(run, snapshot, options, OPENING_LINES + bool(request.team.note))


async def resume_run(options: Options) -> int:
    """Go on with the interrupted run that `--resume` names, and tell it as a new one. Returns the exit code.

    Raises `MassgenError` for whatever keeps it from going on.
    """
    if (output := output_file(options)) is not None:
        output.check()
    view = await run_to_continue(options.resume or "", Path.cwd())
    directory = view.directory
    with continue_here(view.row, environ=os.environ) as run:
        request = directory.read_request()
        told = describe_start(request.config, view.row.config, os.environ, Path.cwd())
        _announce(directory, request.question, request.config, told)
        snapshot = await execute_shown(run, options)
        return await _conclude(run, snapshot, options)


async def _conclude(run: ForegroundRun, ended: RunState, options: Options, before: int = OPENING_LINES) -> int:
    """Tell how it ended, and bring what it changed into their files. Returns the exit code. `before`: lines so far."""
    asked = asks_first(options)
    applied = [] if asked else await apply_at_end(run, ended, options)
    code = _report(ended, run.directory, options, run.note, applied, before)
    for line in await apply_at_end(run, ended, options) if asked else ():
        print_line(line)
    return code


def _announce(directory: RunFiles, question: str, config: Config, team: str) -> None:
    """The lines before the agents work."""
    print_line(f"LOG_DIR: {directory.path}")
    print_line(f"STATUS: {directory.status}")
    print_line(f"AGENTS: {_members(config)}")
    print_line(f"QUESTION: {preview(question)}")
    print_line("[Coordination in progress - monitor status.json for real-time updates]")
    print_line(f"TEAM: {team}")


async def execute_shown(run: ForegroundRun, options: Options) -> RunState:
    """Execute the run, shown as asked; the first signal cancels it properly, the second one ends the process."""
    display = choose_display(options, os.environ)
    debug_log = DebugLog(run.directory.path) if options.debug else None
    handles: list[RunHandle] = []
    snapshot = RunState()

    def started(handle: RunHandle) -> None:
        handles.append(handle)
        display.started(handle)

    def on_record(record: LogRecord) -> None:
        display.record(record)
        if debug_log is not None:
            debug_log.record(record)

    async def heed(signals: AsyncIterator[signal.Signals]) -> None:
        cancelled = False
        async for _ in signals:
            if cancelled or not handles:
                display.close()
                run.forget()
                os._exit(EXIT_INTERRUPTED)
            handles[0].do("cancel")
            cancelled = True

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(heed, signals)
                tasks.start_soon(_refreshed, display)
                snapshot = await run.execute(on_start=started, on_record=on_record)
                tasks.cancel_scope.cancel()
        finally:
            display.close()
            if debug_log is not None:
                debug_log.close()
    return snapshot


async def _refreshed(display: Display) -> None:
    """A display that fails leaves the run alone."""
    try:
        await display.refresh()
    except Exception as error:  # noqa: BLE001 - what only looks at a run must not end it
        with suppress(Exception):
            display.close()
        print_error(f"the display failed ({type(error).__name__}: {plain(str(error))}); the run continues")


def _members(config: Config) -> str:
    models = (f"{agent.backend.type}/{agent.backend.model}" for agent in config.agents)
    return ", ".join(f"{public_agent_name(place)} ({model})" for place, model in enumerate(models))


def _report(run: RunState, directory: RunFiles, options: Options, note: str, applied: list[str], before: int) -> int:
    """Tell how it ended, and write the output file. `note` comes first among the warnings. `applied`: what became of
    the changed files. `before`: lines so far.
    """
    answer = run.best_answer
    if answer is not None and options.output_file is not None:
        write_durably(options.output_file.absolute(), answer.encode("utf-8", "replace"))
    (*closing, last), code = _closing(run, directory, options)
    closing += [*applied, last]
    notes = [note] if note else []
    for warning in [*notes, *_warnings(run, MAX_LINES - before - len(closing) - len(notes))]:
        print_line(f"WARNING: {warning}")
    for line in closing:
        print_line(line)
    if code == EXIT_OK and not options.automation and answer is not None:
        print_line()
        print_text(answer)
    return code


def _closing(run: RunState, directory: RunFiles, options: Options) -> tuple[list[str], int]:
    """The lines from the winner on, and the exit code."""
    seconds = run.elapsed(run.updated_at or 0.0)
    winner = run.winner.agent if run.winner and run.final_answer else None
    lines = [f"WINNER: {winner}"] if winner else []
    lines.append(f"DURATION: {seconds:.1f}s")
    lines.append(f"COST: {spent_text(run.spent)}")
    if winner and not options.no_logs and not run.unkept:
        lines.append(f"ANSWER_FILE: {directory.final_of(winner) / 'answer.txt'}")
    if not options.no_logs:
        lines.append(f"REPORT: {directory.report}")
    if run.best_answer is not None:
        lines.append(f"ANSWER_PREVIEW: {preview(run.best_answer)}")
        if options.output_file is not None:
            lines.append(f"OUTPUT_FILE: {options.output_file.absolute()}")
    match run.state:
        case "completed":
            return [*lines, f"COMPLETED: {len(run.agents)} agents, {seconds:.1f}s total"], EXIT_OK
        case "timed_out":
            return [*lines, f"TIMED_OUT: {_cause(run)}"], EXIT_TIMEOUT
        case "cancelled":
            return [*lines, "CANCELLED: interrupted"], EXIT_INTERRUPTED
        case _:
            return [*lines, f"FAILED: {_cause(run)}"], EXIT_EXECUTION


def _warnings(run: RunState, limit: int) -> list[str]:
    """What went wrong on the way, in at most `limit` lines."""
    told = [f"{agent} was dropped ({reason}): {preview(message)}" for agent, reason, message in run.degraded]
    told += map(preview, run.server_losses)
    told += map(preview, check_notes(run))
    if run.budget_reached:  # calls of unknown price are in the line of the cost already
        told += money_notes(run)
    return told if len(told) <= limit else [*told[: limit - 1], f"and {len(told) - limit + 1} more"]


def _cause(run: RunState) -> str:
    match run.end:
        case RunFailed() as end:
            return f"{end.reason}: {preview(end.message, 500)}"
        case RunTimedOut() as end:
            return preview(end.message, 500)
        case _:
            return run.state
