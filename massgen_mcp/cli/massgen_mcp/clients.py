"""Which MCP clients are on this machine, and whether they know our server. Looks at names, shows no file's content.

Must not change a client's configuration.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.runs.doctor import Check

SERVER = "massgen-mcp"
MAX_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Client:
    command: str
    files: Sequence[str]
    """Where it keeps its servers: `~/` is the user's home, anything else is below the working directory."""
    advice: str


CLIENTS: Mapping[str, _Client] = {
    "Claude Code": _Client("claude", ("~/.claude.json", ".mcp.json"), f"claude mcp add massgen -- {SERVER}"),
    "Codex": _Client("codex", ("~/.codex/config.toml", ".codex/config.toml"), f"codex mcp add massgen -- {SERVER}"),
    "Cursor": _Client("cursor", ("~/.cursor/mcp.json", ".cursor/mcp.json"), "add the README's entry to its mcp.json"),
    "VS Code": _Client("code", (".vscode/mcp.json",), "add the README's entry to .vscode/mcp.json"),
}


def check_clients(cwd: Path, environ: Mapping[str, str]) -> list[Check]:
    """One check per client that is installed; one that says so when there is none. Never raises."""
    checks: list[Check] = []
    for name, client in CLIENTS.items():
        if shutil.which(client.command, path=environ.get("PATH")) is None:
            continue
        knowing = [file for file in client.files if _names_us(_path(file, cwd, environ))]
        if knowing:
            checks.append(Check("client", "ok", f"{name}: {SERVER} is in {', '.join(knowing)}"))
        else:
            checks.append(Check("client", "warn", f"{name} is installed and does not know {SERVER}", client.advice))
    known = ", ".join(CLIENTS)
    return checks or [Check("client", "ok", f"none of {known} is installed here")]


def _path(file: str, cwd: Path, environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME", "/")) / file[2:] if file.startswith("~/") else cwd / file


def _names_us(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return SERVER.encode() in file.read(MAX_BYTES)
    except OSError:
        return False
