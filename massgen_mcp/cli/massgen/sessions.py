"""The sessions of the directory where a command is given: opening one, and listing them all."""

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.errors import MassgenError
from massgen_mcp.nearest import did_you_mean
from massgen_mcp.runs.sessions.project import SESSIONS, own_place
from massgen_mcp.runs.sessions.session_records import SessionRecords, is_session_id, sessions_in
from massgen_mcp.views.plain_text import preview

QUESTION_CHARACTERS = 80


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
            f"there is no session {preview(session_id, 80)!r} in {parent}{near}; `massgen --list-sessions` shows them"
        )
        raise MassgenError("invalid_arguments", message)
    if busy:
        raise MassgenError("invalid_action", f"{session_id} is in use by another process; end that one first")
    return session


def show_sessions(cwd: Path) -> int:
    """`--list-sessions`: a line each, the one that was changed last first."""
    found = sessions_in(cwd / SESSIONS)
    if not found:
        print_line(f"No sessions in {cwd / SESSIONS}.")
    busy = {session.session_id for session in found if _brought_up_to_date(session)[1]}
    for session in sorted(found, key=lambda one: (one.changed_at, one.session_id), reverse=True):
        changed = datetime.fromtimestamp(session.changed_at).astimezone().strftime("%Y-%m-%d %H:%M")
        turns = session.turns
        count = f"{len(turns)} turn{' ' if len(turns) == 1 else 's'}"
        first = preview(turns[0].question, QUESTION_CHARACTERS) if turns else ""
        in_use = " [in use]" if session.session_id in busy else ""
        print_line(f"{session.session_id}  {changed}  {count}  {first}{in_use}")
    return EXIT_OK


def _brought_up_to_date(session: SessionRecords) -> tuple[bool, bool]:
    """Write down the turns that have ended elsewhere. Whether the run store knows the session, and whether a turn of it
    goes on; no, where the store cannot be used.
    """
    with suppress(MassgenError), run_service(here=True) as service:
        if runs := service.sessions.runs(session.session_id):
            session.make()
            session.complete(runs, service.sessions.look)
            return True, any(view.row.busy and not view.ended for view in runs)
    return False, False
