"""The MCP clients that we know: where each keeps its servers, and what our entry looks like there.

Settings of a client are set where its defaults do not fit: Codex asks before every `start_run`, and refuses it where
nobody can be asked; it lets pass what only reads, and goes on asking before what changes files or ends runs. It gives
up sooner than a first start may take; Claude Code waits 28 hours for a call.

Must not read or write a file, nor the value of a key.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

Scope = Literal["user", "project"]
SCOPES: Sequence[Scope] = ("user", "project")

Entry = dict[str, object]
Environ = Mapping[str, str]

SERVER = "massgen-mcp"
MODULE = "massgen_mcp"
STARTUP_SECONDS = 30
"""How long a client may wait for the server. It answers within milliseconds, but its first start imports everything."""
CALL_SECONDS = 300
"""How long a client may wait for a call. Ours take a minute at most."""


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How the client starts us, by absolute paths, or by name for a file that others use, too; `passed_on` are names of
    variables of our environment.
    """

    path: str
    arguments: Sequence[str]
    passed_on: Sequence[str]


@dataclass(frozen=True, slots=True)
class Client:
    """`places` are files, `~/` being the user's home and anything else relative to the project."""

    name: str
    """As on our command line."""
    title: str
    program: str
    """The client's own command."""
    section: str
    """What its servers stand under, in the file."""
    user_file: Callable[[Environ], str]
    project_file: str | None
    entry: Callable[[ServerCommand], Entry]
    afterwards: str
    """What the person has to do then."""

    def file(self, scope: Scope, home: Path, project: Path, environ: Environ) -> Path | None:
        """None where the client has no such scope."""
        if scope == "project":
            return project / self.project_file if self.project_file else None
        return home / self.user_file(environ)


def _stdio(command: ServerCommand) -> Entry:
    return {"command": command.path, "args": list(command.arguments)}


def _referring(form: str, *, typed: bool = False, **settings: object) -> Callable[[ServerCommand], Entry]:
    """An entry whose `env` refers to variables, by `form` with NAME in it."""

    def entry(command: ServerCommand) -> Entry:
        env = {name: form.replace("NAME", name) for name in command.passed_on}
        kind: Entry = {"type": "stdio"} if typed else {}
        return {**kind, **_stdio(command), **({"env": env} if env else {}), **settings}

    return entry


def _codex(command: ServerCommand) -> Entry:
    passed_on: Entry = {"env_vars": list(command.passed_on)} if command.passed_on else {}
    return {
        **_stdio(command),
        **passed_on,
        "startup_timeout_sec": STARTUP_SECONDS,
        "tool_timeout_sec": CALL_SECONDS,
        "tools": {"start_run": {"approval_mode": "approve"}},
    }


def _zed(command: ServerCommand) -> Entry:
    """Zed hands its whole environment on, and knows no reference to a variable."""
    return {"source": "custom", **_stdio(command), "env": {}}


def _vscode_file(environ: Environ) -> str:
    if sys.platform == "darwin":
        return "Library/Application Support/Code/User/mcp.json"
    return str(Path(environ.get("XDG_CONFIG_HOME") or ".config", "Code/User/mcp.json"))


def _zed_file(environ: Environ) -> str:
    base = ".config" if sys.platform == "darwin" else environ.get("XDG_CONFIG_HOME") or ".config"
    return str(Path(base, "zed/settings.json"))


CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude-code",
            "Claude Code",
            "claude",
            "mcpServers",
            lambda environ: str(Path(environ.get("CLAUDE_CONFIG_DIR") or "", ".claude.json")),
            ".mcp.json",
            _referring("${NAME:-}", typed=True, timeout=CALL_SECONDS * 1000),
            "Start Claude Code anew; /mcp shows the server.",
        ),
        Client(
            "codex",
            "Codex",
            "codex",
            "mcp_servers",
            lambda environ: str(Path(environ.get("CODEX_HOME") or ".codex", "config.toml")),
            ".codex/config.toml",
            _codex,
            "Start Codex anew; /mcp shows the server.",
        ),
        Client(
            "gemini",
            "Gemini CLI",
            "gemini",
            "mcpServers",
            lambda environ: str(Path(environ.get("GEMINI_CLI_HOME") or "", ".gemini/settings.json")),
            ".gemini/settings.json",
            _referring("${NAME:-}", timeout=CALL_SECONDS * 1000),
            "Start Gemini CLI anew, in a folder that it trusts; /mcp shows the server.",
        ),
        Client(
            "cursor",
            "Cursor",
            "cursor",
            "mcpServers",
            lambda _: ".cursor/mcp.json",
            ".cursor/mcp.json",
            _referring("${env:NAME}", typed=True),
            "Switch the server on in Cursor's settings under MCP, or start Cursor anew.",
        ),
        Client(
            "vscode",
            "VS Code",
            "code",
            "servers",
            _vscode_file,
            ".vscode/mcp.json",
            _referring("${env:NAME}", typed=True),
            "Run 'MCP: List Servers' in VS Code and start the server.",
        ),
        Client(
            "windsurf",
            "Windsurf",
            "windsurf",
            "mcpServers",
            lambda _: ".codeium/windsurf/mcp_config.json",
            None,
            _referring("${env:NAME}"),
            "Refresh the servers in Windsurf's settings under Cascade, or start Windsurf anew.",
        ),
        Client(
            "zed",
            "Zed",
            "zed",
            "context_servers",
            _zed_file,
            ".zed/settings.json",
            _zed,
            "Zed starts the server by itself; the settings of its agent panel show it.",
        ),
    )
}


def is_ours(entry: object) -> bool:
    """Whether an entry starts this program, in whatever way."""
    if not isinstance(entry, dict):
        return False
    fields = cast("Entry", entry)
    arguments = fields.get("args")
    words = [fields.get("command"), *(cast("list[object]", arguments) if isinstance(arguments, list) else [])]
    return any(Path(str(word)).name == SERVER or str(word).startswith(MODULE) for word in words)
