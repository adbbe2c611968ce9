"""What is known of agent CLIs that speak the Agent Client Protocol, as data: one row for each product.

docs/acp.md says which version each was tried with; what a product does not do is left out of its row.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from massgen_mcp.config.models.backends import AcpPreset

TEAM = "team"
"""The name of the MCP server with the team's tools, as every CLI is told of it."""

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
            environ={"ENABLE_TOOL_SEARCH": "false", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
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


def backend_named(named: str) -> dict[str, str]:
    """Of `PRESET` or `PRESET/MODEL`, as `acp/PRESET` has it in a list of models."""
    preset, _, model = named.partition("/")
    return {"preset": preset, "model": model or "default"}
