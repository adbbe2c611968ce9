"""Runs of a directory that were left to themselves: in the background, or when their terminal was closed. They are told
of when somebody works in that directory again.
"""

from contextlib import suppress
from pathlib import Path

from massgen_mcp.cli.run_service import run_service
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.sessions.project import LEFT_RUNS, keep_out_of_git, own_place
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.views.plain_text import preview

QUESTION_CHARACTERS = 40


def note_left(cwd: Path, run_id: str) -> None:
    """From now on `left_here` tells of this run. Without that `massgen-mcp runs` lists it all the same."""
    with suppress(OSError, MassgenError):
        place = own_place(cwd, LEFT_RUNS)
        place.mkdir(parents=True, exist_ok=True)
        keep_out_of_git(cwd)
        (place / run_id).touch()


async def left_here(cwd: Path) -> list[str]:
    """A line for each run that was left here and goes on, and, once, for each that has ended since."""
    notes: list[Path] = []
    with suppress(OSError, MassgenError):
        notes = sorted(own_place(cwd, LEFT_RUNS).iterdir())
    told: list[str] = []
    if not notes:
        return told
    with suppress(MassgenError, OSError), run_service() as service:
        for note in notes:
            line, over = None, True
            with suppress(MassgenError):
                view = await service.look(note.name)
                line, over = _line(view), view.ended or view.state == "interrupted"
            told += [line] if line else []
            if over:
                note.unlink()
    return told


def _line(view: RunView) -> str | None:
    question, run_id = f'"{preview(view.snapshot.question, QUESTION_CHARACTERS)}"', view.row.run_id
    if view.ended:
        return f"The run {question} has ended meanwhile ({view.state}): massgen-mcp result {run_id}"
    if view.state == "interrupted":
        return None  # told with all others that were
    return f"The run {question} goes on in the background: massgen-mcp watch {run_id}"
