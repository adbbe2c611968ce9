"""Has a request executed in this process, and tells what came of it."""

from collections.abc import Callable
from typing import Any

from massgen_mcp.api.request import SESSIONS, PreparedRequest
from massgen_mcp.errors import MassgenError, RunNotCompleted
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import RunFailed, RunTimedOut
from massgen_mcp.request.output_file import OutputFile
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.host.foreground import run_here
from massgen_mcp.runs.host.foreground_run import ForegroundRun
from massgen_mcp.runs.patches.application import application_fields
from massgen_mcp.views.coordination_record import agent_mapping, answers, vote_results
from massgen_mcp.views.ending import RemainingFiles


async def perform(
    run: PreparedRequest,
    on_record: Callable[[LogRecord], None] = lambda _: None,
    *,
    drawn: Callable[[dict[str, Any], RunState, RemainingFiles], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Run it to its end; returns the dictionary that `run` promises, as `drawn` makes it.

    Raises `RunNotCompleted` when there is no final answer, and `MassgenError` store_unavailable.
    """
    request = run.request
    with run_here(request) as here:
        snapshot = await here.execute(on_record=on_record)
        applied = await _apply_changes(here, snapshot)
    directory = here.directory if request.given.listed else None
    result = {**_make_result(run, snapshot, directory), **applied}
    if drawn is not None:
        files = RemainingFiles(directory.path, report=directory.report, listed=here.listed) if directory else None
        result = drawn(result, snapshot, files or RemainingFiles())
    if snapshot.state != "completed" or snapshot.final_answer is None:
        raise _not_completed(snapshot, result)
    if request.given.output_file is not None:
        _write_answer(request.given.output_file, snapshot.final_answer)
    turn = EarlierTurn(question=request.question, answer=snapshot.final_answer, opening=snapshot.opening)
    SESSIONS.add(request.given.session_id or "", turn, request.given.history, kept=here.listed)
    return result


async def _apply_changes(run: ForegroundRun, ended: RunState) -> dict[str, Any]:
    """Apply the changes to writable directories, and report them. A failure does not lose the answer."""
    try:
        held_back = ended.work_done.held_back
        application = await run.apply(ended, dry_run=bool(held_back))
    except MassgenError as error:
        fields = {"status": "failed", "reason": str(error)}
    else:
        if application is None:
            return {}
        why = ""
        if application.state == "clean":
            why = f"{held_back[:1].upper()}{held_back[1:]}, so massgen didn't apply the changes."
        fields = application_fields(application, why)
    await run.note_application(ended, fields)
    return {"applied": fields}


def _make_result(prepared: PreparedRequest, run: RunState, directory: RunFiles | None) -> dict[str, Any]:
    """Agents under their public names; paths only of what is kept."""
    work = run.work_done
    result: dict[str, Any] = {
        "final_answer": run.best_answer,
        "config_used": prepared.config_used,
        "session_id": prepared.request.given.session_id,
        "usage": {
            "prompt_tokens": run.spent.input_tokens,
            "completion_tokens": run.spent.output_tokens,
            "total_tokens": run.spent.input_tokens + run.spent.output_tokens,
        },
        "cost": {
            "usd": run.spent.known_usd,
            "unpriced_calls": run.spent.unpriced_calls,
            "estimated_calls": run.spent.estimated_calls,
        },
        "outcome": run.outcome,
        "voted": run.voted,
        "decided_by": [*work.decided_by],
        "challenge": run.winner.challenge if run.winner else None,
        "weak": [*work.weak],
        "failure": work.failure,
        "degraded": [{"agent_id": agent, "reason": reason, "message": text} for agent, reason, text in run.degraded],
    }
    if directory is not None:
        result["log_directory"] = str(directory.path)
        if run.final_answer is not None and not run.unkept:
            result["final_answer_path"] = str(directory.path / "final")
    if len(run.agents) > 1:
        result["selected_agent"] = run.answered_by or (run.winner.agent if run.winner else None)
        result["vote_results"] = vote_results(run)
        result["answers"] = [
            {**answer, "answer_path": answer["answer_path"] if directory else None}
            for answer in answers(run, directory.path if directory else None)
        ]
        result["agent_mapping"] = agent_mapping(run)
    return result


def _not_completed(run: RunState, result: dict[str, Any]) -> RunNotCompleted:
    match run.end:
        case RunFailed(reason=reason, message=message):
            return RunNotCompleted(
                f"the run failed ({reason}): {message}", state="failed", reason=reason, result=result
            )
        case RunTimedOut(message=message):
            return RunNotCompleted(f"the run timed out: {message}", state="timed_out", reason="timeout", result=result)
        case _:
            return RunNotCompleted("the run was cancelled", state="cancelled", reason=None, result=result)


def _write_answer(file: OutputFile, answer: str) -> None:
    try:
        file.write(answer.encode("utf-8", "replace"))
    except OSError as error:
        raise MassgenError("store_unavailable", f"cannot write {file.path}: {error.strerror}") from error
