"""Which MCP clients are on this machine, and whether they know our server. Shows no file's content, changes none."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from massgen_mcp.cli.massgen_mcp.install.clients import CLIENTS, SCOPES, SERVER
from massgen_mcp.runs.doctor_check import Check

MAX_BYTES = 10 * 1024 * 1024


def check_clients(cwd: Path, environ: Mapping[str, str]) -> list[Check]:
    """One check per client that is installed; one that says so when there is none. Never raises."""
    checks: list[Check] = []
    home = Path(environ.get("HOME", "/"))
    for client in CLIENTS.values():
        if shutil.which(client.program, path=environ.get("PATH")) is None:
            continue
        files = [client.file(scope, home, cwd, environ) for scope in SCOPES]
        knowing = [_told(file, home, cwd) for file in files if file and _names_us(file)]
        if knowing:
            checks.append(Check("client", "ok", f"{client.title}: {SERVER} is in {', '.join(knowing)}"))
        else:
            message = f"{client.title} is installed and does not know {SERVER}"
            checks.append(Check("client", "warn", message, f"{SERVER} install {client.name}"))
    known = ", ".join(client.title for client in CLIENTS.values())
    return checks or [Check("client", "ok", f"none of {known} is installed here")]


def _told(file: Path, home: Path, cwd: Path) -> str:
    if file.is_relative_to(cwd):
        return str(file.relative_to(cwd))
    return f"~/{file.relative_to(home)}" if file.is_relative_to(home) else str(file)


def _names_us(file: Path) -> bool:
    """Wherever in the file: a client has further places for servers than those that we write to."""
    try:
        with file.open("rb") as opened:
            return SERVER.encode() in opened.read(MAX_BYTES)
    except OSError:
        return False
