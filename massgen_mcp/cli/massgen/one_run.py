"""One run in this process, from the command line to the exit code."""

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio

from massgen_mcp.cli.asking import on_terminal
from massgen_mcp.cli.exits import EXIT_INTERRUPTED, EXIT_OK, exit_of_foreground
from massgen_mcp.cli.live.display import LET_GO, Display
from massgen_mcp.cli.live.telling import draw_attention
from massgen_mcp.cli.massgen.applying import apply_at_end, can_ask, find_consent
from massgen_mcp.cli.massgen.display import DebugLog, OwnTerminal, choose_display, shown_live
from massgen_mcp.cli.massgen.earlier_runs import (
    describe_interrupted,
    interrupted_here,
    note_background,
    note_left,
    open_session,
    run_to_continue,
)
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.massgen.questions import STANDARD_INPUT, mentioned_paths, unread_mentions, whole_question
from massgen_mcp.cli.massgen.reporting import Account, Lines, at_most
from massgen_mcp.cli.massgen.team import agreed_to_checks, given_for_workers, given_of, look_before, output_file
from massgen_mcp.cli.output import print_either, print_error
from massgen_mcp.cli.process import leave_on_interrupt
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.config.adjusted import given_path
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.record import LogRecord
from massgen_mcp.home import STORE_VARIABLE
from massgen_mcp.money.estimate import estimate, get_team_prices, has_models
from massgen_mcp.request.build import RunRequest, adjusted_team, build_request
from massgen_mcp.request.team import describe_start
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.doctor.command_sandbox import sandbox_note
from massgen_mcp.runs.host.announcing import notify
from massgen_mcp.runs.host.execute import RunHandle
from massgen_mcp.runs.host.foreground import continue_here, run_here
from massgen_mcp.runs.host.foreground_run import ForegroundRun
from massgen_mcp.views.plain_text import plain

Reporter = Lines | Account
"""What prints before and after a run: for programs, or for people."""


async def run_once(options: Options) -> int:
    """Returns the exit code. Raises `MassgenError` for whatever keeps the run from beginning."""
    question = whole_question(options.question or "")
    reporter = _reporter(options)
    looks_back = on_terminal() and not (options.automation or options.no_logs)
    if looks_back and (runs := await interrupted_here(Path.cwd())):
        reporter.aside(describe_interrupted(runs, f"massgen resume --here {runs[0].row.run_id}"))
    if options.background and os.environ.get(STORE_VARIABLE):
        return await _start_elsewhere(options, question)
    session = open_session(Path.cwd(), options.session_id) if options.session_id is not None else None
    session_id = session.session_id if session else None
    given = replace(
        given_of(options, question, cwd=Path.cwd(), environ=os.environ),
        context_paths=[given_path(str(directory.resolve()), "write") for directory in options.context],
        session_id=session_id,
    )
    reads = on_terminal() and not options.automation
    if "@" in question and reads:
        team = await adjusted_team(given)
        given = replace(
            given, team=team, context_paths=[*given.context_paths, *mentioned_paths(question, team.config, Path.cwd())]
        )
    request = await build_request(given)
    notes = await look_before(options, request.team)
    if options.question != STANDARD_INPUT:
        notes += unread_mentions(question, Path.cwd(), read=reads)
    if options.dry_run:
        return await _show_plan(request, notes, as_json=options.json)
    if can_ask(options, os.environ) and not await agreed_to_checks(request.team, reporter.aside, yes=options.yes):
        reporter.aside("Nothing was started.")
        return EXIT_INTERRUPTED
    if options.background:
        return await _start_in_background(request, notes, reporter, as_json=options.json)
    with run_here(request) as run:
        notes += filter(None, [run.begins_with])
        reporter.begin(run, request.question, request.config, request.describe_start(Path.cwd()), notes)
        if has_models(request.config):
            expected = await anyio.to_thread.run_sync(estimate, request.config, request.question, os.environ)
            reporter.aside(f"Estimate: {replace(expected, usual=await run.usual_runs(request))}")
        if commands := await sandbox_note(request.config, os.environ):
            reporter.aside(commands)
        code = await _report(run, options, request.config, reporter)
    _tell_report_faults(run)
    return code


async def _start_elsewhere(options: Options, question: str) -> int:
    """Start a run for the workers of a shared store, and print its id. Returns the exit code."""
    request = await build_request(given_for_workers(options, question, cwd=Path.cwd(), environ=os.environ))
    with run_service() as service:
        view, reused = await service.start(await service.prepare(request))
    run_id = view.row.run_id
    print_either([run_id], json.dumps({"run_id": run_id, "reused": reused}), as_json=options.json)
    return EXIT_OK


async def _show_plan(request: RunRequest, notes: list[str], *, as_json: bool) -> int:
    """Print the team, what it may do and what it may cost. Whatever would stop the run was raised before."""
    config = request.config
    expected = await anyio.to_thread.run_sync(estimate, config, request.question, os.environ)
    agents = {agent.id: agent.models for agent in config.agents}
    start, cost = request.describe_start(Path.cwd()), str(expected)
    commands = ""
    if not as_json:
        commands = await sandbox_note(config, os.environ)
    plan = {"agents": agents, "team": start, "estimate": cost, "limits": at_most(config), "notes": notes}
    lines = [
        f"Team: {', '.join(f'{name} ({models})' for name, models in agents.items())}; {start}",
        *(f"Note: {note}" for note in notes),
        commands,
        f"Estimate: {cost}",
        f"Limits: {at_most(config)}",
        "No model was called. To start the run, repeat the command without --dry-run.",
    ]
    print_either(filter(None, lines), json.dumps(plan), as_json=as_json)
    return EXIT_OK


def _tell_report_faults(run: ForegroundRun) -> None:
    for fault in run.report_faults:
        again = ""
        if run.listed:
            again = f"; try again with `massgen result {run.run_id} --page`"
        print_error(f"cannot write {run.directory.report}: {fault}{again}")


async def _start_in_background(request: RunRequest, notes: list[str], reporter: Reporter, *, as_json: bool) -> int:
    """Start the run in a runner, and print its id. Returns the exit code."""
    prices = await anyio.to_thread.run_sync(get_team_prices, request.config, os.environ)
    for note in (*notes, *prices.notes):
        reporter.aside(f"Note: {note}")
    with run_service(here=True) as service:
        view, reused = await service.start(await service.prepare(request))
    run_id = view.row.run_id
    note_background(Path.cwd(), run_id)
    print_either([run_id], json.dumps({"run_id": run_id, "reused": reused}), as_json=as_json)
    reporter.aside(f"The run continues in the background: massgen watch {run_id}, then massgen result {run_id}")
    return EXIT_OK


async def continue_run(options: Options) -> int:
    """Continue the interrupted run that `options.resume` names in this process. Returns the exit code.

    Raises `MassgenError` for whatever keeps it from going on.
    """
    if (output := output_file(options)) is not None:
        output.check()
    view = await run_to_continue(options.resume or "", Path.cwd())
    reporter = _reporter(options)
    with continue_here(view.row, environ=os.environ) as run:
        request = view.directory.read_request()
        start = describe_start(request.config, view.row.config, os.environ, Path.cwd())
        reporter.begin(run, request.question, request.config, start, [])
        code = await _report(run, options, request.config, reporter)
    _tell_report_faults(run)
    return code


def _reporter(options: Options) -> Reporter:
    if options.automation:
        return Lines(options)
    return Account(options)


async def _report(run: ForegroundRun, options: Options, config: Config, reporter: Reporter) -> int:
    """Execute the run, write the output file, tell how it ended, and apply what it changed if there is consent.
    Returns the exit code.
    """
    consent, terminal = find_consent(options, config, os.environ), OwnTerminal()
    if usual_time := await run.usual_time():
        reporter.aside(f"This team usually takes {usual_time}.")
    snapshot = await execute_shown(run, options, terminal, usual_time)
    fault = write_answer(snapshot, options)
    applied = await apply_at_end(run, snapshot, options, consent) if consent != "asked" else []
    reporter.end(snapshot, run, applied)
    await tell_end(run.run_id, snapshot, options)
    if consent == "asked" and not terminal.left:
        applied = await apply_at_end(run, snapshot, options, consent)
        for outcome in applied:
            reporter.aside(outcome.text)
    if fault is not None:
        raise fault
    return exit_of_foreground(snapshot, refused=any(outcome.failed for outcome in applied))


async def tell_end(run_id: str, run: RunState, options: Options) -> None:
    """Tell a person who looks elsewhere, and start the program that the person named."""
    if shown_live(options, os.environ):
        draw_attention(run, os.environ)
    if failed := await notify(run_id, run, os.environ, options.notify):
        print_error(failed)


def write_answer(run: RunState, options: Options) -> MassgenError | None:
    """Write the answer to the file that the person named. Returns why that failed: the answer itself is told first."""
    if run.best_answer is None or (output := output_file(options)) is None:
        return None
    try:
        output.write(run.best_answer.encode("utf-8", "replace"))
    except OSError as error:
        return MassgenError("invalid_arguments", f"--output: cannot write the answer: {error.strerror}")
    return None


async def execute_shown(run: ForegroundRun, options: Options, terminal: OwnTerminal, usual_time: str = "") -> RunState:
    """Execute the run, shown as asked; the first signal cancels it properly, the second one ends the process. A run
    that is kept goes on when its terminal is closed. `usual_time`: what runs of its team usually take.
    """
    display = choose_display(options, os.environ, usual_time)
    debug_log = DebugLog(run.directory.path) if options.debug else None
    handles: list[RunHandle] = []
    snapshot = RunState()
    stopped = f"Stopped. {run.run_id}: `massgen status {run.run_id}` shows its progress"

    def started(handle: RunHandle) -> None:
        handles.append(handle)
        display.started(handle)

    def on_record(record: LogRecord) -> None:
        display.record(record)
        if debug_log is not None:
            debug_log.record(record)

    async def heed(signals: AsyncIterator[signal.Signals]) -> None:
        cancelled = False
        async for number in signals:
            if number == LET_GO and not run.listed:
                display.note("the run can't continue without this terminal, because --no-logs keeps no record of it")
                continue
            if number in (signal.SIGHUP, LET_GO) and run.listed:
                _go_on_without(run, display, terminal, give_back=number == LET_GO)
                continue
            if cancelled or terminal.left or not handles:
                display.close()
                run.forget()
                print_error(stopped)
                os._exit(EXIT_INTERRUPTED)
            handles[0].do("cancel")
            cancelled = True

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, LET_GO) as signals:
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
    terminal.outlive()
    _leave_if_pressed_again(snapshot, stopped)
    return snapshot


def _leave_if_pressed_again(run: RunState, stopped: str) -> None:
    """Whoever has cancelled a run may press Ctrl-C again while its end is told."""
    if run.state == "cancelled":
        leave_on_interrupt(EXIT_INTERRUPTED, stopped)


def _go_on_without(run: ForegroundRun, display: Display, terminal: OwnTerminal, *, give_back: bool) -> None:
    """`give_back`: somebody is still there, and is told how to come back."""
    if terminal.left:
        return
    note_left(Path.cwd(), run.run_id)
    if give_back:
        display.note(f"The run continues in the background: massgen watch {run.run_id}")
        display.close()
    terminal.leave()
    if give_back:
        terminal.let_shell_go_on()
    else:
        with suppress(Exception):  # what a display does to leave a terminal fails where there is none any more
            display.close()


async def _refreshed(display: Display) -> None:
    """A display that fails leaves the run alone."""
    try:
        await display.refresh()
    except Exception as error:  # noqa: BLE001 - what only looks at a run must not end it
        with suppress(Exception):
            display.close()
        print_error(f"the display failed ({type(error).__name__}: {plain(str(error))}); the run continues")
