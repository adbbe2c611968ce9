"""The files that we keep in a project: runs, sessions, what was typed and which runs were left to themselves, below
its `.massgen`.

The project may have come from a stranger, so none of them may lead out of it.
"""

from contextlib import suppress
from pathlib import Path

from massgen_mcp.errors import MassgenError

PROJECT_FILES = Path(".massgen")
LOGS = PROJECT_FILES / "massgen_logs"
SESSIONS = PROJECT_FILES / "sessions"
CHAT_HISTORY = PROJECT_FILES / "chat_history"
LEFT_RUNS = PROJECT_FILES / "left_runs"
BACKGROUND_RUNS = PROJECT_FILES / "background_runs"
IGNORES = PROJECT_FILES / ".gitignore"
IGNORED = """\
# massgen wrote this file. The directories below contain your questions, answers and copies of your files, so
# keep them private. You can commit config.yaml, this project's team.
/massgen_logs/
/sessions/
/chat_history
/left_runs/
/.gitignore
"""


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
            "unsafe_path",
            f"{path} is a link that points outside {project}, so massgen writes nothing there; remove the link",
        )
    return path


def keep_out_of_git(project: Path) -> None:
    """Have git leave out what runs leave in a project, unless somebody has decided that already. Raises as
    `own_place`.
    """
    with suppress(OSError), own_place(project, IGNORES).open("x") as file:
        file.write(IGNORED)
