"""Runs of this directory whose process was killed: telling a person of them, and going on with one in this process.

Only runs of the run store are found, never a directory alone.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.cli.run_service import run_service
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.foreground import ForegroundRun, continue_here
from massgen_mcp.runs.project import PROJECT_FILES
from massgen_mcp.runs.run_view import RunView
from massgen_mcp.runs.session_directory import OpenTurn, Session, session_of_killed_turn
from massgen_mcp.views.plain_text import preview
from massgen_mcp.views.snapshot import RunSnapshot

QUESTION_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class ContinuedRun:
    """A run that this process has taken over. `session` and `turn`: the killed turn that it is, if it is one."""

    run: ForegroundRun
    session: Session | None
    turn: OpenTurn | None

    def end(self, snapshot: RunSnapshot) -> None:
        """The run has ended, and with it the turn. Raises `MassgenError` store_unavailable."""
        if self.session and self.turn:
            self.session.end_turn(self.turn, self.run.directory, snapshot)


async def interrupted_here(cwd: Path) -> list[RunView]:
    """The interrupted runs of this directory, newest first; none where the run store cannot be used."""
    with suppress(MassgenError), run_service() as service:
        return await service.interrupted_below(cwd / PROJECT_FILES)
    return []


def describe_interrupted(runs: list[RunView], command: str) -> str:
    """One line about these runs (at least one), and the command that continues the newest."""
    question = f'"{preview(runs[0].snapshot.question, QUESTION_CHARACTERS)}"'
    told = f"The run {question} was" if len(runs) == 1 else f"{len(runs)} runs were"
    newest = "" if len(runs) == 1 else f", the newest is {question}"
    return f"{told} interrupted{newest}; {command} continues it."


async def run_to_continue(beginning: str, cwd: Path) -> RunView:
    """The interrupted run whose id begins so; with nothing, the newest one of this directory.

    Raises `MassgenError`: invalid_action for one that cannot be continued here, unknown_run, expired, run_damaged,
    journal_newer, store_unavailable.
    """
    with run_service() as service:
        if not beginning:
            if not (runs := await service.interrupted_below(cwd / PROJECT_FILES)):
                raise MassgenError("invalid_action", "no run of this directory is interrupted")
            return runs[0]
        view = await service.look(await service.find(beginning))
    if problem := view.newer or view.damage:
        raise problem
    run_id = view.row.run_id
    if view.ended:
        raise MassgenError("invalid_action", f"run {run_id} is {view.state}; only an interrupted run can be continued")
    if view.row.directory is None:
        advice = f"`massgen-mcp resume {run_id}` lets it go on"
        raise MassgenError("invalid_action", f"run {run_id} was started in the background; {advice}")
    if view.state != "interrupted":
        raise MassgenError("invalid_action", f"run {run_id} is {view.state}; `massgen-mcp watch {run_id}` follows it")
    return view


@contextmanager
def taken_over(view: RunView, held: Session | None = None) -> Generator[ContinuedRun]:
    """The run, to be executed by this process while the context lasts. `held`: a session that is open here already.

    Raises `MassgenError` as `continue_here`, and invalid_action while another process works on the run's session.
    """
    directory = view.directory.path
    path = session_of_killed_turn(directory)
    if path is None:
        with continue_here(view.row, environ=os.environ) as run:
            yield ContinuedRun(run, None, None)
        return
    session = held if held is not None and held.path == path else Session.resume(path.parent, path.name)
    try:
        turn = next((turn for turn in session.killed_turns if turn.log_dir == directory), None)
        with continue_here(view.row, environ=os.environ) as run:
            yield ContinuedRun(run, session, turn)
    finally:
        if session is not held:
            session.close()
