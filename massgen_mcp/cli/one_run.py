"""One run in this process, told on standard output: as stable lines for programs, or as a plain account for people."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio

from massgen_mcp.cli.massgen import EXIT_EXECUTION, EXIT_INTERRUPTED, EXIT_OK, EXIT_TIMEOUT
from massgen_mcp.config.loader import find_config, load_config, require_keys
from massgen_mcp.config.models import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.events import LogRecord, RunFailed, RunTimedOut
from massgen_mcp.runs.directory import RunDirectory, timestamp, write_durably
from massgen_mcp.runs.execute import RunHandle, execute_run
from massgen_mcp.runs.manager import check_question, new_run_id
from massgen_mcp.views.log_text import log_line, plain, preview
from massgen_mcp.views.snapshot import RunSnapshot

LOGS = Path(".massgen") / "massgen_logs"

Say = Callable[[str], None]


async def run_once(question: str, config_source: str | None, automation: bool, output_file: Path | None) -> int:
    """Returns the exit code. Raises `MassgenError` for whatever keeps the run from beginning."""
    check_question(question)
    source = find_config(config_source, cwd=Path.cwd(), environ=os.environ)
    config = load_config(source, environ=os.environ)
    require_keys(config, os.environ)
    _check_output(output_file)
    run = _new_run_directory(question, config)
    say(f"LOG_DIR: {run.path}")
    say(f"STATUS: {run.status}")
    say(f"QUESTION: {preview(question)}")
    say("[Coordination in progress - monitor status.json for real-time updates]")
    snapshot = await _execute(run, tell=None if automation else say)
    return _report(snapshot, automation=automation, output_file=output_file)


def say(line: str) -> None:
    """One line on standard output, whatever a model put into it."""
    print(plain(line), flush=True)  # noqa: T201 - the command's output


async def _execute(run: RunDirectory, tell: Say | None) -> RunSnapshot:
    """Execute the run; the first signal cancels it properly, the second one ends the process."""
    handles: list[RunHandle] = []

    def on_record(record: LogRecord) -> None:
        if tell and (line := log_line(record)) and " | DEBUG | " not in line:
            tell(line)

    async def heed(signals: AsyncIterator[signal.Signals]) -> None:
        cancelled = False
        async for _ in signals:
            if cancelled or not handles:
                os._exit(EXIT_INTERRUPTED)
            handles[0].conductor.cancel()
            cancelled = True

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(heed, signals)
            await execute_run(run, new_run_id(), environ=os.environ, on_start=handles.append, on_record=on_record)
            tasks.cancel_scope.cancel()
    return handles[0].snapshot


def _report(run: RunSnapshot, *, automation: bool, output_file: Path | None) -> int:
    for agent, reason, message in run.degraded:
        say(f"WARNING: {agent} fell out ({reason}): {preview(message)}")
    seconds = run.elapsed(run.updated_at or 0.0)
    answer = run.best_answer
    if run.winner and run.final_answer:
        say(f"WINNER: {run.winner.agent}")
    say(f"DURATION: {seconds:.1f}s")
    if answer is not None:
        say(f"ANSWER_PREVIEW: {preview(answer)}")
        if output_file is not None:
            write_durably(output_file.absolute(), answer.encode("utf-8", "replace"))
            say(f"OUTPUT_FILE: {output_file.absolute()}")
    match run.state:
        case "completed":
            say(f"COMPLETED: {len(run.agents)} agents, {seconds:.1f}s total")
            if not automation and answer is not None:
                sys.stdout.write("\n" + "\n".join(plain(line) for line in answer.splitlines()) + "\n")
            return EXIT_OK
        case "timed_out":
            say(f"TIMED_OUT: {_cause(run)}")
            return EXIT_TIMEOUT
        case "cancelled":
            say("CANCELLED: interrupted")
            return EXIT_INTERRUPTED
        case _:
            say(f"FAILED: {_cause(run)}")
            return EXIT_EXECUTION


def _cause(run: RunSnapshot) -> str:
    match run.end:
        case RunFailed() as end:
            return f"{end.reason}: {preview(end.message, 500)}"
        case RunTimedOut() as end:
            return preview(end.message, 500)
        case _:
            return run.state


def _new_run_directory(question: str, config: Config) -> RunDirectory:
    """A directory of this run alone, however many are started in the same moment."""
    parent = Path.cwd() / LOGS
    while True:
        try:
            return RunDirectory.create(parent / f"log_{timestamp()}", question, config)
        except FileExistsError:
            continue


def _check_output(path: Path | None) -> None:
    if path is not None and not path.absolute().parent.is_dir():
        raise MassgenError("invalid_arguments", f"--output-file: the directory {path.absolute().parent} does not exist")
