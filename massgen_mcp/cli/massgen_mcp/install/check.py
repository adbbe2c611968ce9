"""Which MCP clients are on this machine, whether they know our server, and whether what they would start answers. Shows
no file's content, changes none.

Of a file of the project only this very installation is started: whoever wrote the file is not the person who asks.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from massgen_mcp.cli.massgen_mcp.install.clients import (
    CLIENTS,
    SCOPES,
    SERVER,
    STARTUP_SECONDS,
    Client,
    Scope,
    is_ours,
    started_by,
)
from massgen_mcp.cli.massgen_mcp.install.config_file import read
from massgen_mcp.cli.massgen_mcp.install.ours import own_command
from massgen_mcp.runs.doctor.result import DoctorCheck

MAX_BYTES = 10 * 1024 * 1024
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "massgen doctor", "version": "1"},
    },
}


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a client would start, and where that stands."""

    command: str
    arguments: tuple[str, ...]
    file: str
    scope: Scope


def check_clients(cwd: Path, environ: Mapping[str, str]) -> list[DoctorCheck]:
    """One check per client that is installed; one that says so when there is none. Never raises."""
    checks: list[DoctorCheck] = []
    faults: dict[_Entry, str | None] = {}
    for client in CLIENTS.values():
        if shutil.which(client.program, path=environ.get("PATH")) is None:
            continue
        knowing, entries = _found(client, cwd, environ)
        if client.is_editor and not entries:
            continue
        for entry in entries:
            if entry not in faults:
                faults[entry] = _fault(entry, environ)
        broken = [f"{entry.file}: {fault}" for entry in entries if (fault := faults[entry])]
        checks.append(_entry_check(client, knowing, broken))
    known = ", ".join(client.title for client in CLIENTS.values())
    return checks or [DoctorCheck("client", "ok", f"none of {known} is installed here")]


def _entry_check(client: Client, knowing: Sequence[str], broken: Sequence[str]) -> DoctorCheck:
    if broken:
        message = f"{client.title} cannot start {SERVER}; {'; '.join(broken)}"
        return DoctorCheck("client", "warn", message, f"massgen install {client.name}")
    if knowing:
        return DoctorCheck("client", "ok", f"{client.title}: {SERVER} is in {', '.join(knowing)}")
    message = f"{client.title} is installed, but {SERVER} isn't set up in it"
    return DoctorCheck("client", "warn", message, f"massgen install {client.name}")


def _found(client: Client, cwd: Path, environ: Mapping[str, str]) -> tuple[list[str], list[_Entry]]:
    """The files that name us, wherever in them, and our entries there as far as they can be read."""
    home = Path(environ.get("HOME", "/"))
    knowing: list[str] = []
    entries: list[_Entry] = []
    for scope in SCOPES:
        file = client.file(scope, home, cwd, environ)
        text = _settings_text(file) if file else ""
        document = _parsed_or_none(file, text) if file and SERVER in text else None
        if file is None or SERVER not in (text if document is None else json.dumps(document, default=str)):
            continue  # also where it is only in a comment
        shown = _short_path(file, home, cwd)
        knowing.append(shown)
        for entry in _entries(document, client.section):
            command, *arguments = started_by(entry)
            entries.append(_Entry(command, tuple(arguments), shown, scope))
    return knowing, entries


def _entries(document: object, section: str) -> Iterator[Mapping[str, object]]:
    """Ours of every section of this name, however deep: a client may have one for each project."""
    if not isinstance(document, dict):
        return
    for name, value in cast("dict[str, object]", document).items():
        if name == section and isinstance(value, dict):
            servers = cast("dict[str, object]", value).values()
            yield from (cast("dict[str, object]", one) for one in servers if is_ours(one))
        else:
            yield from _entries(value, section)


def _fault(entry: _Entry, environ: Mapping[str, str]) -> str | None:
    """Why a client could not start this; None where it could."""
    found = shutil.which(entry.command, path=environ.get("PATH"))
    if found is None:
        return f"program not found: {entry.command}"
    if entry.scope == "project" and not _is_own(found, entry, environ):
        return None
    try:
        done = subprocess.run(  # noqa: S603 - what the person's own client starts, or this program
            [found, *entry.arguments],
            input=f"{json.dumps(_INITIALIZE)}\n".encode(),
            capture_output=True,
            env=dict(environ),
            timeout=STARTUP_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{entry.command} didn't answer within {STARTUP_SECONDS} s"
    except OSError as error:
        return f"{entry.command} cannot be started: {error.strerror}"
    if b'"serverInfo"' in done.stdout or b'"agentInfo"' in done.stdout:
        return None
    return f"{entry.command} exited with code {done.returncode} without answering"


def _is_own(found: str, entry: _Entry, environ: Mapping[str, str]) -> bool:
    own = own_command(environ, ())
    return Path(found).resolve() == Path(own.path).resolve() and entry.arguments == tuple(own.arguments)


def _short_path(file: Path, home: Path, cwd: Path) -> str:
    if file.is_relative_to(cwd):
        return str(file.relative_to(cwd))
    return f"~/{file.relative_to(home)}" if file.is_relative_to(home) else str(file)


def _settings_text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _parsed_or_none(file: Path, text: str) -> object:
    try:
        return read(file, text)
    except ValueError:
        return None
