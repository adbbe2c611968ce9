"""A file in the person's own editor."""

import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import which

from massgen_mcp.config.examples import example_name
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.team import Team
from massgen_mcp.runs.sessions.project import PROJECT_FILES, own_place


def editable(team: Team, cwd: Path) -> Path:
    """The config to open. A packaged one is copied into the project first, so that an update does not undo the edit.

    Raises `MassgenError` invalid_action if the team came from no file, store_unavailable if it cannot be copied.
    """
    if team.path is None:
        raise MassgenError("invalid_action", f"there is no config to open; the team is {team.source}")
    name = example_name(team.path)
    if name is None:
        return team.path
    copy = own_place(cwd, PROJECT_FILES / f"{name.replace('/', '-')}.yaml")
    try:
        if not copy.exists():
            copy.parent.mkdir(mode=0o700, exist_ok=True)
            copy.write_bytes(team.path.read_bytes())
    except OSError as error:
        raise MassgenError("store_unavailable", f"cannot copy {name} to {copy}: {error.strerror}") from error
    return copy


def edit(path: Path, environ: Mapping[str, str]) -> None:
    """Open the file and wait until the person is done. Raises `MassgenError` invalid_action if there is no editor."""
    command = _editor(environ)
    if command is None:
        raise MassgenError("invalid_action", f"no editor found; set EDITOR, or edit {path} yourself and type /config")
    try:
        subprocess.run([*command, str(path)], check=False)  # noqa: S603 - the person's own command
    except OSError as error:
        raise MassgenError("invalid_action", f"cannot start {command[0]}: {error.strerror}; set EDITOR") from error


def _editor(environ: Mapping[str, str]) -> list[str] | None:
    """VISUAL, EDITOR, else what the operating system offers."""
    for name in ("VISUAL", "EDITOR"):
        if chosen := environ.get(name, "").strip():
            return shlex.split(chosen)
    defaults = {"darwin": ["open -W -t"], "win32": ["notepad"]}.get(
        sys.platform, ["sensible-editor", "editor", "nano", "vim", "vi"]
    )
    return next((shlex.split(name) for name in defaults if which(shlex.split(name)[0])), None)
