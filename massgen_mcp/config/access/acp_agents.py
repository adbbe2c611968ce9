"""Agent CLIs that speak the Agent Client Protocol: what is known of each product, as a row of data; whether one is
installed here, and what it is given to log in.

docs/acp.md says which version each was tried with; what a product does not do is left out of its row. Must not start
one. Reads a login file of the user's only for a config that says `login: own`.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from massgen_mcp.config.models.backends import AcpBackendConfig, AcpPreset

MAX_LOGIN_BYTES = 1 << 20

TEAM = "team"
"""The name of the MCP server with the team's tools, as every CLI is told of it."""

CLAUDE_OUTPUT_VARIABLE, CLAUDE_OUTPUT = "CLAUDE_CODE_MAX_OUTPUT_TOKENS", 64_000
"""How Claude Code is told how many tokens a reply may have, and how many: so much is reserved in the budget."""

Sign = Literal["name", "id", "server"]
"""Where a request for permission says that a tool is the team's: in the tool's name, in the id of the call, or in its
input, which names the server.
"""


@dataclass(frozen=True, slots=True)
class Preset:
    """`program` with `arguments` speaks the protocol on its standard input and output."""

    program: str
    arguments: tuple[str, ...] = ()
    install: str = ""
    vendor: str = "acp"
    key_variables: tuple[str, ...] = ()
    """Any of these holds a key that it takes, best first."""
    auth_method: str = ""
    """What it is told to log in by with a key; empty: it finds the key itself."""
    login_file: str = ""
    """The user's own login, below the home directory."""
    directory: tuple[str, str] = ("", "")
    """The variable that names the directory of the login, and the directory below home that it is otherwise."""
    hosts: tuple[str, ...] = ()
    asks: bool = False
    """Before it reads, writes or runs anything of its own: it can be had where there is no enclosure."""
    environ: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    enclosed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Variables where the sandbox is ours, and where it is not."""
    bare: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    most_output: int | None = None
    """Tokens that a reply of its model has at most, as a variable of `environ` tells it. None: unknown."""
    own_cli: tuple[str, str] = ("", "")
    """The variable that names the user's own CLI, and the program that it is."""
    system: bool = False
    """Takes a system prompt with a session; otherwise it stands before the prompt."""
    session: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """`_meta` of a new session."""
    mode: str = ""
    """Set in each session; empty: as it starts."""
    model_option: str = ""
    effort_option: str = ""
    """Names of session options; empty: there is none."""
    model_variable: str = ""
    """What names the model where no option does."""
    servers_file: str = ""
    """Below home: where it reads of MCP servers at the beginning of a session, if it takes ours from there alone."""
    sign: tuple[Sign, ...] = ("name", "server")
    notice: str = r"(?!)"
    """What it says itself in place of the model, as a whole piece of text."""
    counts: Literal["turn", "last call", "nothing"] = "turn"
    """What it tells of tokens at the end of a turn: those of the turn, or of its last model call."""

    def is_notice(self, text: str) -> bool:
        return re.match(self.notice, text) is not None


_CLAUDE: Mapping[str, object] = {
    "settingSources": [],
    "strictMcpConfig": True,
    "promptSuggestions": False,
    "tools": [],
    "skills": [],
}

PRESETS: Mapping[AcpPreset, Preset] = MappingProxyType(
    {
        "codex": Preset(
            "codex-acp",
            install="npm install -g @agentclientprotocol/codex-acp",
            vendor="openai",
            key_variables=("OPENAI_API_KEY", "CODEX_API_KEY"),
            auth_method="api-key",
            login_file=".codex/auth.json",
            directory=("CODEX_HOME", ".codex"),
            hosts=("api.openai.com:443", "chatgpt.com:443", "auth.openai.com:443"),
            environ={"NO_BROWSER": "1"},
            enclosed={"INITIAL_AGENT_MODE": "agent-full-access"},
            bare={"INITIAL_AGENT_MODE": "workspace-write"},
            own_cli=("CODEX_PATH", "codex"),
            system=True,
            model_option="model",
            effort_option="reasoning_effort",
            sign=("server",),
            notice=r"(Config w|W)arning: |\*Context compacted ",
        ),
        "claude_code": Preset(
            "claude-agent-acp",
            install="npm install -g @agentclientprotocol/claude-agent-acp",
            vendor="claude",
            key_variables=("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
            login_file=".claude/.credentials.json",
            directory=("CLAUDE_CONFIG_DIR", ".claude"),
            hosts=("api.anthropic.com:443", "console.anthropic.com:443", "platform.claude.com:443"),
            asks=True,
            environ={
                "ENABLE_TOOL_SEARCH": "false",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                CLAUDE_OUTPUT_VARIABLE: str(CLAUDE_OUTPUT),
            },
            most_output=CLAUDE_OUTPUT,
            own_cli=("CLAUDE_CODE_EXECUTABLE", "claude"),
            system=True,
            session={"claudeCode": {"options": _CLAUDE}},
            model_option="model",
            effort_option="effort",
            sign=("name",),
        ),
        "gemini_cli": Preset(
            "gemini",
            ("--acp",),
            install="npm install -g @google/gemini-cli",
            vendor="gemini",
            key_variables=("GEMINI_API_KEY",),
            auth_method="gemini-api-key",
            login_file=".gemini/oauth_creds.json",
            hosts=(
                *("generativelanguage.googleapis.com:443", "cloudcode-pa.googleapis.com:443"),
                *("oauth2.googleapis.com:443", "accounts.google.com:443"),
            ),
            asks=True,
            environ={  # its directory is an empty one; in a directory without trust it has no MCP servers
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
                "GEMINI_CLI_NO_RELAUNCH": "true",
            },
            mode="default",
            model_variable="GEMINI_MODEL",
            sign=("id",),
            counts="nothing",
        ),
        "opencode": Preset(
            "opencode",
            ("acp",),
            install="npm install -g opencode-ai",
            login_file=".local/share/opencode/auth.json",
            enclosed={"NO_PROXY": "127.0.0.1,localhost"},  # it asks a server of its own there
            model_option="model",
            counts="last call",
        ),
        "copilot": Preset(
            "copilot",
            ("--acp", "--disable-builtin-mcps"),
            install="npm install -g @github/copilot",
            login_file=".copilot/config.json",
            servers_file=".copilot/mcp-config.json",
            enclosed={"COPILOT_ALLOW_ALL": "1"},  # what is refused ends its turn
            model_variable="COPILOT_MODEL",
            hosts=("api.githubcopilot.com:443", "api.github.com:443", "github.com:443"),
            counts="nothing",
        ),
    }
)


def preset_of(config: AcpBackendConfig) -> Preset:
    """What is known of this CLI; for a command of the config's own, nothing but its command."""
    if config.preset is not None:
        return PRESETS[config.preset]
    program, *arguments = config.command or ("",)
    return Preset(program, tuple(arguments))


def shown_name(config: AcpBackendConfig) -> str:
    return config.preset or Path(preset_of(config).program).name


def find_program(config: AcpBackendConfig, environ: Mapping[str, str]) -> str | None:
    return shutil.which(preset_of(config).program, path=environ.get("PATH"))


def hosts_of(config: AcpBackendConfig) -> tuple[str, ...]:
    """All that an enclosed one can reach."""
    return (*preset_of(config).hosts, *config.hosts)


def variables_of(config: AcpBackendConfig) -> tuple[str, ...]:
    """Names of the variables that it is given."""
    keys = preset_of(config).key_variables if config.login == "key" else ()
    return tuple(dict.fromkeys((*keys, *config.env)))


def own_login(config: AcpBackendConfig, environ: Mapping[str, str]) -> Path | None:
    """Return the file of the user's own login, if the config uses it and there is one."""
    preset, home = preset_of(config), environ.get("HOME")
    variable, usual = preset.directory
    if config.login != "own" or not preset.login_file or not home:
        return None
    moved = environ.get(variable, "") if variable else ""
    file = Path(moved, preset.login_file.removeprefix(f"{usual}/")) if moved else Path(home, preset.login_file)
    return file if file.is_file() else None
