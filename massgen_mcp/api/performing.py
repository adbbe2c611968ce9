"""Executes a checked request in this process, on the same engine as the command line, and tells what came of it.

A caller that is cancelled cancels its run; nothing goes on behind it.
"""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from massgen_mcp.api.request import Prepared
from massgen_mcp.api.sessions import SESSIONS
from massgen_mcp.config.models import EarlierTurn
from massgen_mcp.errors import MassgenError, RunNotCompleted
from massgen_mcp.events import LogRecord, RunFailed, RunTimedOut
from massgen_mcp.request.run_request import RunRequest
from massgen_mcp.runs.directory import RunDirectory, timestamp, write_durably
from massgen_mcp.runs.execute import RunHandle
from massgen_mcp.runs.foreground import ForegroundRun, listed, unlisted
from massgen_mcp.runs.project import LOGS, own_place
from massgen_mcp.views.snapshot import RunSnapshot
from massgen_mcp.views.vote_results import agent_mapping, answers, vote_results


async def perform(run: Prepared, on_record: Callable[[LogRecord], None] = lambda _: None) -> dict[str, Any]:
    """Run it to its end; returns the dictionary that `run` promises.

    Raises `RunNotCompleted` when there is no final answer, and `MassgenError` store_unavailable.
    """
    request = run.request
    with _place(run.keep_logs) as parent:
        directory = _new_run_directory(parent, request)
        with _entered(directory, run) as here:
            snapshot = await _execute(here, on_record)
    result = _result(run, snapshot, directory if run.keep_logs else None)
    if snapshot.state != "completed" or snapshot.final_answer is None:
        raise _not_completed(snapshot, result)
    if request.output_file is not None:
        _write(request.output_file.path, snapshot.final_answer)
    turn = EarlierTurn(question=request.question, answer=snapshot.final_answer)
    SESSIONS.add(request.session_id or "", turn, request.history)
    return result


@contextmanager
def _place(keep: bool) -> Generator[Path]:
    """The directory for the run's own one: the project's logs, or one that is gone when this ends."""
    if keep:
        yield own_place(Path.cwd(), LOGS)
        return
    with TemporaryDirectory(prefix="massgen-") as temporary:
        yield Path(temporary)


@contextmanager
def _entered(directory: RunDirectory, run: Prepared) -> Generator[ForegroundRun]:
    """The run, in the list of this machine's runs if its files stay."""
    if not run.keep_logs:
        yield unlisted(directory, os.environ)
        return
    with listed(directory, run.request) as here:
        yield here


def _new_run_directory(parent: Path, request: RunRequest) -> RunDirectory:
    """A directory of this run alone, however many are started in the same moment."""
    while True:
        try:
            path = parent / f"log_{timestamp()}"
            return RunDirectory.create(path, request.question, request.config, request.history, request.redactor)
        except FileExistsError:
            continue


async def _execute(run: ForegroundRun, on_record: Callable[[LogRecord], None]) -> RunSnapshot:
    """To the run's own end, also when the caller is cancelled: then the run is cancelled first, and ends as such."""
    handles: list[RunHandle] = []
    ended: list[RunSnapshot | Exception] = []
    abandoned = False

    def started(handle: RunHandle) -> None:
        handles.append(handle)
        if abandoned:
            handle.conductor.cancel()

    async def work() -> None:
        with anyio.CancelScope(shield=True):
            try:
                ended.append(await run.execute(on_start=started, on_record=on_record))
            except Exception as error:  # noqa: BLE001 - carried out of the task group as it is
                ended.append(error)
        done.set()

    done = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        try:
            await done.wait()
        except anyio.get_cancelled_exc_class():
            abandoned = True
            for handle in handles:
                handle.conductor.cancel()
            raise
    (outcome,) = ended
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _result(prepared: Prepared, run: RunSnapshot, directory: RunDirectory | None) -> dict[str, Any]:
    """Agents under their public names; paths only of what is kept."""
    result: dict[str, Any] = {
        "final_answer": run.best_answer,
        "config_used": prepared.config_used,
        "session_id": prepared.request.session_id,
        "usage": {
            "prompt_tokens": run.spent.input_tokens,
            "completion_tokens": run.spent.output_tokens,
            "total_tokens": run.spent.input_tokens + run.spent.output_tokens,
        },
        "cost": {"usd": run.spent.known_usd, "unpriced_calls": run.spent.unpriced_calls},
        "outcome": run.outcome,
        "degraded": [{"agent_id": agent, "reason": reason, "message": text} for agent, reason, text in run.degraded],
    }
    if directory is not None:
        result["log_directory"] = str(directory.path)
        if run.final_answer is not None and not run.unkept:
            result["final_answer_path"] = str(directory.path / "final")
    if len(run.agents) > 1:
        result["selected_agent"] = run.winner.agent if run.winner else None
        result["vote_results"] = vote_results(run)
        result["answers"] = [
            {**answer, "answer_path": answer["answer_path"] if directory else None}
            for answer in answers(run, directory.path if directory else None)
        ]
        result["agent_mapping"] = agent_mapping(run)
    return result


def _not_completed(run: RunSnapshot, result: dict[str, Any]) -> RunNotCompleted:
    match run.end:
        case RunFailed(reason=reason, message=message):
            return RunNotCompleted(
                f"the run failed ({reason}): {message}", state="failed", reason=reason, result=result
            )
        case RunTimedOut(message=message):
            return RunNotCompleted(f"the run timed out: {message}", state="timed_out", reason="timeout", result=result)
        case _:
            return RunNotCompleted("the run was cancelled", state="cancelled", reason=None, result=result)


def _write(path: Path, answer: str) -> None:
    try:
        write_durably(path, answer.encode("utf-8", "replace"))
    except OSError as error:
        raise MassgenError("store_unavailable", f"cannot write {path}: {error.strerror}") from error
