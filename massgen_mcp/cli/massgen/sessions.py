"""The sessions of the directory where a command is given: opening one, and listing them all."""

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.project import SESSIONS, own_place
from massgen_mcp.runs.session_records import SessionRecords, is_session_id, sessions_in
from massgen_mcp.views.plain_text import preview

QUESTION_CHARACTERS = 80


def open_session(cwd: Path, session_id: str) -> SessionRecords:
    """The session of that id, with every turn that has ended. Raises `MassgenError` invalid_arguments if there is none,
    invalid_action if one of its turns goes on.
    """
    parent = own_place(cwd, SESSIONS)
    session = SessionRecords(parent / session_id)
    if not is_session_id(session_id) or not (_completed(session) or session.exist):
        raise MassgenError(
            "invalid_arguments",
            f"there is no session {preview(session_id, 80)!r} in {parent}; `massgen --list-sessions` shows them",
        )
    if _busy(session_id):
        raise MassgenError("invalid_action", f"{session_id} is in use by another process; end that one first")
    return session


def show_sessions(cwd: Path) -> int:
    """`--list-sessions`: a line each, the one that was changed last first."""
    found = sessions_in(cwd / SESSIONS)
    if not found:
        print_line(f"No sessions in {cwd / SESSIONS}.")
    for session in found:
        _completed(session)
    for session in sorted(found, key=lambda one: (one.changed_at, one.session_id), reverse=True):
        changed = datetime.fromtimestamp(session.changed_at).astimezone().strftime("%Y-%m-%d %H:%M")
        turns = session.turns
        count = f"{len(turns)} turn{' ' if len(turns) == 1 else 's'}"
        first = preview(turns[0].question, QUESTION_CHARACTERS) if turns else ""
        print_line(
            f"{session.session_id}  {changed}  {count}  {first}{' [in use]' if _busy(session.session_id) else ''}"
        )
    return EXIT_OK


def _completed(session: SessionRecords) -> bool:
    """Write down the turns that have ended elsewhere; whether the run store knows the session."""
    with suppress(MassgenError), run_service() as service:  # a store that cannot be used: then it is as before
        runs = service.sessions.runs(session.session_id)
        if runs:
            session.make()
            session.complete(runs, service.sessions.look)
        return bool(runs)
    return False


def _busy(session_id: str) -> bool:
    with suppress(MassgenError), run_service() as service:
        return service.sessions.busy(session_id)
    return False
