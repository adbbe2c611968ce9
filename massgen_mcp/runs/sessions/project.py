"""The files that we keep in a project: runs, sessions and what was typed, below its `.massgen`.

The project may have come from a stranger, so none of them may lead out of it.
"""

from pathlib import Path

from massgen_mcp.errors import MassgenError

PROJECT_FILES = Path(".massgen")
LOGS = PROJECT_FILES / "massgen_logs"
SESSIONS = PROJECT_FILES / "sessions"
CHAT_HISTORY = PROJECT_FILES / "chat_history"


def own_place(project: Path, place: Path) -> Path:
    """The absolute path of a place in the project. Raises `MassgenError` unsafe_path if a link leads out of the project
    there: what a stranger put into it must not decide where we write.
    """
    path = project / place
    try:
        inside = path.resolve().is_relative_to(project.resolve())
    except (OSError, RuntimeError):  # links in a circle
        inside = False
    if not inside:
        raise MassgenError(
            "unsafe_path", f"{path} leads out of {project} by a link, so nothing is written there; remove the link"
        )
    return path
