"""The sessions of the directory where a command is given: going on with one, and listing them all."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.options import Options
from massgen_mcp.cli.saying import say
from massgen_mcp.runs.project import SESSIONS, own_place
from massgen_mcp.runs.session_directory import Session, list_sessions


@contextmanager
def resumed_session(options: Options, cwd: Path) -> Generator[Session | None]:
    """The session that `--session-id` names, for this process alone while the context lasts; None without one.

    Raises `MassgenError` if there is no such session, or if another process is working on it.
    """
    if options.session_id is None:
        yield None
        return
    with Session.resume(own_place(cwd, SESSIONS), options.session_id) as session:
        yield session


def show_sessions(cwd: Path) -> int:
    """`--list-sessions`: a line each, the one that was changed last first."""
    found = list_sessions(cwd / SESSIONS)
    if not found:
        say(f"No sessions in {cwd / SESSIONS}.")
    for one in found:
        changed = datetime.fromtimestamp(one.changed_at).astimezone().strftime("%Y-%m-%d %H:%M")
        turns = f"{one.turns} turn{' ' if one.turns == 1 else 's'}"
        say(f"{one.session_id}  {changed}  {turns}  {one.first_question}{' [in use]' if one.busy else ''}")
    return EXIT_OK
