"""Sessions of this directory, and runs from before: those whose process was killed, with which a person may go on, and
those that were left to themselves, in the background or when their terminal was closed. A person is told of them.

Only runs of the run store are found, never a directory alone.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import did_you_mean
from massgen_mcp.runs.sessions.project import (
    BACKGROUND_RUNS,
    LEFT_RUNS,
    PROJECT_FILES,
    SESSIONS,
    keep_out_of_git,
    own_place,
)
from massgen_mcp.runs.sessions.session_records import SessionRecords, is_session_id, sessions_in
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.views.plain_text import preview
from massgen_mcp.views.spent import spent_text

if TYPE_CHECKING:
    from massgen_mcp.runs.host.foreground_run import ForegroundRun  # whoever lists sessions executes nothing

QUESTION_CHARACTERS = 40


def note_left(cwd: Path, run_id: str) -> None:
    """From now on `left_here` tells of this run. Without that `massgen runs` lists it all the same."""
    with suppress(OSError, MassgenError):
        place = own_place(cwd, LEFT_RUNS)
        place.mkdir(parents=True, exist_ok=True)
        keep_out_of_git(cwd)
        (place / run_id).touch()


@contextmanager
def left_if_closed(cwd: Path, run: "ForegroundRun") -> Generator[None]:
    """Around a question after the end of a run: whose terminal is closed meanwhile is told of it later."""
    if run.listed:
        note_left(cwd, run.run_id)
    yield
    with suppress(OSError, MassgenError):
        (own_place(cwd, LEFT_RUNS) / run.run_id).unlink(missing_ok=True)


async def left_here(cwd: Path) -> list[str]:
    """A line for each run that was left here and goes on, and, once, for each that has ended since."""
    notes: list[Path] = []
    with suppress(OSError, MassgenError):
        notes = sorted(own_place(cwd, LEFT_RUNS).iterdir())
    lines: list[str] = []
    if not notes:
        return lines
    with suppress(MassgenError, OSError), run_service(here=True) as service:
        for note in notes:
            line, over = None, True
            with suppress(MassgenError):
                view = await service.watcher.get_run(note.name)
                line, over = _run_sentence(view), view.ended or view.state == "interrupted"
            lines += [line] if line else []
            if over:
                note.unlink()
    return lines


def _run_sentence(view: RunView) -> str | None:
    question, run_id = f'"{preview(view.snapshot.question, QUESTION_CHARACTERS)}"', view.row.run_id
    if view.ended:
        how = f"{view.state}; {spent_text(view.snapshot.spent)}"
        return f"The run {question} has since ended ({how}); show it with: massgen result {run_id}"
    if view.state == "interrupted":
        return None  # told with all others that were
    doing = "is waiting for your answer" if view.state == "input_required" else "continues in the background"
    return f"The run {question} {doing}; follow it with: massgen watch {run_id}"


async def interrupted_here(cwd: Path) -> list[RunView]:
    """The interrupted runs of this directory, newest first; none where the run store cannot be used."""
    with suppress(MassgenError), run_service(here=True) as service:
        return await service.watcher.list_interrupted(cwd / PROJECT_FILES)
    return []


def describe_interrupted(runs: list[RunView], command: str) -> str:
    """One line about these runs (at least one), and the command that continues the newest."""
    question = f'"{preview(runs[0].snapshot.question, QUESTION_CHARACTERS)}"'
    message = f"The run {question} was" if len(runs) == 1 else f"{len(runs)} runs were"
    newest = "" if len(runs) == 1 else f" (the newest is {question})"
    return f"{message} interrupted{newest}; {command} continues it."


async def run_to_continue(beginning: str, cwd: Path) -> RunView:
    """The interrupted run whose id begins so; with nothing, the newest one of this directory.

    Raises `MassgenError`: invalid_action for one that cannot be continued here, unknown_run, expired, run_damaged,
    journal_newer, store_unavailable.
    """
    with run_service(here=True) as service:
        if not beginning:
            if not (runs := await service.watcher.list_interrupted(cwd / PROJECT_FILES)):
                raise MassgenError(
                    "invalid_action",
                    "this directory has no interrupted run; `massgen runs --state interrupted` lists those elsewhere",
                )
            return runs[0]
        view = await service.watcher.get_run(await service.watcher.find_run_id(beginning, to_change=True))
    if problem := view.newer or view.damage:
        raise problem
    run_id = view.row.run_id
    if view.ended:
        raise MassgenError("invalid_action", f"run {run_id} is {view.state}; only interrupted runs can be continued")
    if view.row.moved:
        raise MassgenError("invalid_action", f"run {run_id} was {view.row.moved}")
    if view.row.directory is None:
        advice = f"continue it with `massgen resume {run_id}`"
        raise MassgenError("invalid_action", f"run {run_id} was started in the background; {advice}")
    if view.state != "interrupted":
        raise MassgenError("invalid_action", f"run {run_id} is {view.state}; `massgen watch {run_id}` follows it")
    return view


def note_background(cwd: Path, run_id: str) -> None:
    """Keep the id of a run that was started from this directory, for `left_here` and for `background_runs`."""
    note_left(cwd, run_id)
    with suppress(OSError, MassgenError), own_place(cwd, BACKGROUND_RUNS).open("a", encoding="utf-8") as file:
        file.write(f"{run_id}\n")


def background_runs(cwd: Path) -> frozenset[str]:
    """Return the ids of the runs that were started in the background from this directory."""
    with suppress(OSError, MassgenError):
        return frozenset(own_place(cwd, BACKGROUND_RUNS).read_text(encoding="utf-8", errors="replace").split())
    return frozenset()


LISTED_CHARACTERS = 80


def open_session(cwd: Path, session_id: str) -> SessionRecords:
    """The session of that id, with every turn that has ended. Raises `MassgenError` invalid_arguments if there is none,
    invalid_action if one of its turns goes on.
    """
    parent = own_place(cwd, SESSIONS)
    session = SessionRecords(parent / session_id)
    usable = is_session_id(session_id)
    known, busy = _brought_up_to_date(session) if usable else (False, False)
    if not known and not (usable and session.exist):
        near = did_you_mean(session_id, (one.session_id for one in sessions_in(parent)))
        message = (
            f"there is no session {preview(session_id, 80)!r} in {parent}{near}; `massgen runs --sessions` "
            "lists the sessions"
        )
        raise MassgenError("invalid_arguments", message)
    if busy:
        raise MassgenError("invalid_action", f"another process is using {session_id}; end that process first")
    return session


def show_sessions(cwd: Path, *, as_json: bool = False) -> int:
    """Print a line for each session, the one that was changed last first."""
    found = sessions_in(cwd / SESSIONS)
    if as_json:
        ids = [{"session_id": one.session_id, "turns": len(one.turns)} for one in found]
        print_line(json.dumps({"sessions": ids}))
        return EXIT_OK
    if not found:
        print_line(f"No sessions in {cwd / SESSIONS}.")
    busy = {session.session_id for session in found if _brought_up_to_date(session)[1]}
    for session in sorted(found, key=lambda one: (one.changed_at, one.session_id), reverse=True):
        changed = datetime.fromtimestamp(session.changed_at).astimezone().strftime("%Y-%m-%d %H:%M")
        turns = session.turns
        count = f"{len(turns)} turn{' ' if len(turns) == 1 else 's'}"
        first = preview(turns[0].question, LISTED_CHARACTERS) if turns else ""
        in_use = " [in use]" if session.session_id in busy else ""
        print_line(f"{session.session_id}  {changed}  {count}  {first}{in_use}")
    return EXIT_OK


def _brought_up_to_date(session: SessionRecords) -> tuple[bool, bool]:
    """Write down the turns that have ended elsewhere. Whether the run store knows the session, and whether a turn of it
    goes on; no, where the store cannot be used.
    """
    with suppress(MassgenError), run_service(here=True) as service:
        if runs := service.access.sessions.runs(session.session_id):
            session.make()
            session.complete(runs, service.access.sessions.look)
            return True, any(view.row.busy and not view.ended for view in runs)
    return False, False
