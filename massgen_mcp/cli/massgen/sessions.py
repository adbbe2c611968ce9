"""The sessions of the directory where a command is given: going on with one, and listing them all."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path

from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.output import print_line
from massgen_mcp.cli.run_service import run_service
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.project import SESSIONS, own_place
from massgen_mcp.runs.session_directory import Session, list_sessions


@asynccontextmanager
async def resumed_session(options: Options, cwd: Path) -> AsyncGenerator[Session | None]:
    """The session that `--session-id` names, for this process alone while the context lasts; None without one.

    Raises `MassgenError` if there is no such session, or if another process is working on it.
    """
    if options.session_id is None:
        yield None
        return
    with await open_session(own_place(cwd, SESSIONS), options.session_id) as session:
        yield session


async def open_session(parent: Path, session_id: str) -> Session:
    """The session of that id. Killed turns whose run was continued elsewhere and has ended count from now on.

    Raises `MassgenError` as `Session.resume`.
    """
    session = Session.resume(parent, session_id)
    for turn in session.killed_turns:
        with suppress(MassgenError), run_service() as service:  # then it is as before
            view = await service.look_at(turn.log_dir)
            if view is not None and view.ended and view.damage is None:
                session.end_turn(turn, view.directory, view.snapshot)
    return session


def show_sessions(cwd: Path) -> int:
    """`--list-sessions`: a line each, the one that was changed last first."""
    found = list_sessions(cwd / SESSIONS)
    if not found:
        print_line(f"No sessions in {cwd / SESSIONS}.")
    for one in found:
        changed = datetime.fromtimestamp(one.changed_at).astimezone().strftime("%Y-%m-%d %H:%M")
        turns = f"{one.turns} turn{' ' if one.turns == 1 else 's'}"
        print_line(f"{one.session_id}  {changed}  {turns}  {one.first_question}{' [in use]' if one.busy else ''}")
    return EXIT_OK
