"""The MCP clients and editors that we know: where each keeps its servers or agents, and how our entry looks there.

Settings of a client are set where its defaults do not fit: Codex asks before every `start_run` and `control_run`, and
refuses them where the user can't be asked, so a run could not be cancelled; it lets pass what only reads, and goes on
asking before what changes files. It gives up sooner than a first start may take; Claude Code waits 28 hours for a call.

Must not read or write a file, nor the value of a key.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, cast

Scope = Literal["user", "project"]
SCOPES: Sequence[Scope] = ("user", "project")

ServerEntry = dict[str, object]

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


class Known(NamedTuple):
    """What a client can do with a server's runs; None where that is not known. As of November 2026."""

    tasks: bool | None
    """Whether it is woken with the result."""
    forms: bool | None
    """Whether it shows a person the question of a run."""
    apps: bool | None
    """Whether it shows the page of a run."""
    limits: str
    """Of a call's time and a reply's size."""
    source: str


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
    user_file: Callable[[Mapping[str, str]], str]
    project_file: str | None
    entry: Callable[[ServerCommand], ServerEntry]
    afterwards: str
    """What the person has to do then."""
    known: Known | None = None
    """None: of an editor that takes the team as its agent."""
    hands_on: bool = True
    """Whether keys get from its environment to the server."""
    is_editor: bool = False
    """Whether it starts us as an agent that a person talks to, and not as tools for another one."""

    def file(self, scope: Scope, home: Path, project: Path, environ: Mapping[str, str]) -> Path | None:
        """None where the client has no such scope."""
        if scope == "project":
            return project / self.project_file if self.project_file else None
        return home / self.user_file(environ)


def _stdio(command: ServerCommand) -> ServerEntry:
    return {"command": command.path, "args": list(command.arguments)}


def _referring(form: str, *, kind: str = "", **settings: object) -> Callable[[ServerCommand], ServerEntry]:
    """An entry whose `env` refers to variables, by `form` with NAME in it."""

    def entry(command: ServerCommand) -> ServerEntry:
        env = {name: form.replace("NAME", name) for name in command.passed_on}
        typed: ServerEntry = {"type": kind} if kind else {}
        return {**typed, **_stdio(command), **({"env": env} if env else {}), **settings}

    return entry


def _codex(command: ServerCommand) -> ServerEntry:
    passed_on: ServerEntry = {"env_vars": list(command.passed_on)} if command.passed_on else {}
    return {
        **_stdio(command),
        **passed_on,
        "startup_timeout_sec": STARTUP_SECONDS,
        "tool_timeout_sec": CALL_SECONDS,
        "tools": {name: {"approval_mode": "approve"} for name in ("start_run", "control_run")},
    }


def _zed(command: ServerCommand) -> ServerEntry:
    """Zed hands its whole environment on, and knows no reference to a variable."""
    return {"source": "custom", **_stdio(command), "env": {}}


def _zed_agent(command: ServerCommand) -> ServerEntry:
    return {"type": "custom", **_agent(command)}


def _agent(command: ServerCommand) -> ServerEntry:
    """Editors hand their whole environment on."""
    return {"command": command.path, "args": [*command.arguments, "acp"], "env": {}}


def _goose(command: ServerCommand) -> ServerEntry:
    return {
        "name": "massgen",
        "description": "Ask a team of LLM agents a hard question",
        "type": "stdio",
        "cmd": command.path,
        "args": list(command.arguments),
        "enabled": True,
        "timeout": CALL_SECONDS,
        "envs": {},
        "env_keys": list(command.passed_on),
    }


def _opencode(command: ServerCommand) -> ServerEntry:
    """opencode hands its whole environment on; `timeout` is for the start."""
    words = [command.path, *command.arguments]
    return {"type": "local", "command": words, "enabled": True, "timeout": STARTUP_SECONDS * 1000}


def _below_config(path: str, on_a_mac: str | None = None) -> Callable[[Mapping[str, str]], str]:
    """`on_a_mac`: the whole path there, where that is another one."""
    if on_a_mac is not None and sys.platform == "darwin":
        return lambda _: on_a_mac
    return lambda environ: str(Path(environ.get("XDG_CONFIG_HOME") or ".config", path))


_ZED_FILE = _below_config("zed/settings.json", ".config/zed/settings.json")

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
            _referring("${NAME:-}", kind="stdio", timeout=CALL_SECONDS * 1000),
            "Restart Claude Code; /mcp shows the server.",
            Known(True, True, False, "28 hours (`install` sets 5 minutes); 50,000 characters", "tried, 2.1.332"),
        ),
        Client(
            "codex",
            "Codex",
            "codex",
            "mcp_servers",
            lambda environ: str(Path(environ.get("CODEX_HOME") or ".codex", "config.toml")),
            ".codex/config.toml",
            _codex,
            "Restart Codex; /mcp shows the server.",
            Known(False, True, False, "5 minutes; about 12 kB", "tried, 0.171"),
        ),
        Client(
            "gemini",
            "Gemini CLI",
            "gemini",
            "mcpServers",
            lambda environ: str(Path(environ.get("GEMINI_CLI_HOME") or "", ".gemini/settings.json")),
            ".gemini/settings.json",
            _referring("${NAME:-}", timeout=CALL_SECONDS * 1000),
            "Restart Gemini CLI in a folder that it trusts; /mcp shows the server. Since June 2026, Gemini CLI "
            "doesn't accept personal Google accounts; to use its successor: massgen install agy.",
            Known(False, False, False, "5 minutes (set by `install`); unknown", "tried, 0.61"),
        ),
        Client(
            "cursor",
            "Cursor",
            "cursor",
            "mcpServers",
            lambda _: ".cursor/mcp.json",
            ".cursor/mcp.json",
            _referring("${env:NAME}", kind="stdio"),
            "Enable the server in Cursor's settings under MCP, or restart Cursor.",
            Known(None, True, True, "unknown", "its documentation"),
        ),
        Client(
            "vscode",
            "VS Code",
            "code",
            "servers",
            _below_config("Code/User/mcp.json", "Library/Application Support/Code/User/mcp.json"),
            ".vscode/mcp.json",
            _referring("${env:NAME}", kind="stdio"),
            "Run 'MCP: List Servers' in VS Code and start the server.",
            Known(False, True, True, "unknown", "its documentation and issues"),
        ),
        Client(
            "windsurf",
            "Windsurf",
            "windsurf",
            "mcpServers",
            lambda _: ".codeium/windsurf/mcp_config.json",
            None,
            _referring("${env:NAME}"),
            "Refresh the servers in Windsurf's settings under Cascade, or restart Windsurf.",
            Known(None, None, None, "unknown", "nothing found"),
        ),
        Client(
            "zed",
            "Zed",
            "zed",
            "context_servers",
            _ZED_FILE,
            ".zed/settings.json",
            _zed,
            "Zed starts the server itself and lists it in the agent panel's settings.",
            Known(None, False, None, "unknown", "its documentation"),
        ),
        Client(
            "opencode",
            "opencode",
            "opencode",
            "mcp",
            _below_config("opencode/opencode.json"),
            "opencode.json",
            _opencode,
            "Restart opencode; /mcp shows the server.",
            Known(False, False, False, "unknown", "tried, 1.18"),
        ),
        Client(
            "copilot",
            "Copilot CLI",
            "copilot",
            "mcpServers",
            lambda _: ".copilot/mcp-config.json",
            ".github/mcp.json",
            _referring("${NAME:-}", kind="local", tools=["*"]),
            "Restart Copilot CLI; `/mcp show` lists the server.",
            Known(False, True, False, "unknown", "tried, 1.0.102"),
        ),
        Client(
            "agy",
            "Antigravity CLI",
            "agy",
            "mcpServers",
            lambda _: ".gemini/antigravity-cli/mcp_config.json",
            ".agents/mcp_config.json",
            _referring("$NAME"),
            "Restart agy; /mcp shows the server.",
            Known(None, None, None, "unknown", "nothing found"),
        ),
        Client(
            "jetbrains",
            "JetBrains Junie",
            "junie",
            "mcpServers",
            lambda _: ".junie/mcp/mcp.json",
            ".junie/mcp/mcp.json",
            _stdio,
            "Junie's settings list the server under MCP. Start the IDE from a shell where the keys are set.",
            Known(None, None, None, "unknown", "nothing found"),
        ),
        Client(
            "zed-agent",
            "Zed's agent panel",
            "zed",
            "agent_servers",
            _ZED_FILE,
            None,
            _zed_agent,
            "Open Zed's agent panel and start a massgen thread. Start Zed from a shell where the keys are set.",
            is_editor=True,
        ),
        Client(
            "jetbrains-agent",
            "JetBrains AI Chat",
            "idea",
            "agent_servers",
            lambda _: ".jetbrains/acp.json",
            None,
            _agent,
            "Choose massgen in the IDE's AI Chat. Start the IDE from a shell where the keys are set.",
            is_editor=True,
        ),
        Client(
            "amp",
            "Amp",
            "amp",
            "amp.mcpServers",
            _below_config("amp/settings.json"),
            ".amp/settings.json",
            _stdio,
            "Restart Amp from a shell where the keys are set; Amp asks you to approve a project's server first.",
            Known(None, None, None, "unknown", "nothing found"),
        ),
        Client(
            "goose",
            "Goose",
            "goose",
            "extensions",
            _below_config("goose/config.yaml"),
            None,
            _goose,
            "Start a new Goose session from a shell where the keys are set; `goose info -v` shows the server.",
            Known(False, True, True, "5 minutes (set by `install`); unknown", "tried, 1.34; apps: its documentation"),
        ),
        Client(
            "claude-desktop",
            "Claude Desktop",
            "claude-desktop",
            "mcpServers",
            _below_config(
                "Claude/claude_desktop_config.json",
                "Library/Application Support/Claude/claude_desktop_config.json",
            ),
            None,
            _stdio,
            "Quit and restart Claude Desktop; its settings show the server under Developer.",
            Known(None, None, None, "1 to 4 minutes; unknown", "issues; apps work only sometimes"),
            hands_on=False,
        ),
    )
}


def started_by(entry: object) -> list[str]:
    """The program that an entry starts, and its arguments, as far as it can be read."""
    fields = cast("ServerEntry", entry) if isinstance(entry, dict) else {}
    words: list[str] = []
    for part in (fields.get("command") or fields.get("cmd"), fields.get("args")):
        words += map(str, cast("list[object]", part)) if isinstance(part, list) else [str(part)] if part else []
    return words


def is_ours(entry: object) -> bool:
    """Whether an entry starts this program, in whatever way."""
    return any(Path(word).name == SERVER or word.startswith(MODULE) for word in started_by(entry))
