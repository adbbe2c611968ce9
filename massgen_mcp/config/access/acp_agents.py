"""Agent CLIs that speak the Agent Client Protocol: what is known of each product, as a row of data; whether one is
installed here, and what it is given to log in.

docs/acp.md says which version each was tried with; what a product does not do is left out of its row. Must not start
one. Reads a login file of the user's only for a config that says `login: own`.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

from massgen_mcp.config.access.acceptances import Pair
from massgen_mcp.config.access.key_hosts import is_model_key, is_own_key
from massgen_mcp.config.access.permissions import StartAgentCli
from massgen_mcp.config.environment import called_a_secret, is_set
from massgen_mcp.config.models.backends import AcpBackendConfig, AcpPreset

MAX_LOGIN_BYTES = 1 << 20
SECRET_LENGTH = 16

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


def login_variables(config: AcpBackendConfig) -> tuple[str, ...]:
    """Names of the variables that decide whose login it uses."""
    return tuple(filter(None, (*variables_of(config), preset_of(config).directory[0])))


def pairs_of(config: AcpBackendConfig, environ: Mapping[str, str]) -> Iterator[Pair]:
    """The keys that are passed on and set, each with every host that it can be sent to."""
    for name in variables_of(config):
        if is_set(environ, name) and (is_model_key(name) or called_a_secret(name)):
            hosts = (host.removesuffix(":443") for host in hosts_of(config))
            yield from (Pair(key=name, host=host) for host in hosts)


def own_login(config: AcpBackendConfig, environ: Mapping[str, str]) -> Path | None:
    """The file of the user's own login, if there is one."""
    preset, home = preset_of(config), environ.get("HOME")
    variable, usual = preset.directory
    if not preset.login_file or not home:
        return None
    moved = environ.get(variable, "") if variable else ""
    file = Path(moved, preset.login_file.removeprefix(f"{usual}/")) if moved else Path(home, preset.login_file)
    return file if file.is_file() else None


def login_secrets(config: AcpBackendConfig, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The login that it uses, to be kept out of everything that is said."""
    file = own_login(config, environ) if config.login == "own" else None
    if file is None:
        return
    try:
        with file.open("rb") as opened:
            texts = [*_long_texts(json.loads(opened.read(MAX_LOGIN_BYTES)))]
    except (OSError, ValueError, RecursionError):
        return
    yield from ((f"of your login to {shown_name(config)}", text) for text in texts)


def start_permissions(config: AcpBackendConfig) -> tuple[StartAgentCli, ...]:
    preset = preset_of(config)
    return (
        StartAgentCli(
            command=(preset.program, *preset.arguments),
            own_login=config.login == "own",
            variables=tuple(variables_of(config)),
            sandboxed=not config.outside,
        ),
    )


def destination(config: AcpBackendConfig, environ: Mapping[str, str]) -> tuple[str, str]:
    given = [environ.get(name, "") for name in login_variables(config)]
    return f"acp/{shown_name(config)}", "\0".join(given)


def _long_texts(value: object) -> Iterator[str]:
    match value:
        case str() if len(value) >= SECRET_LENGTH and value.isprintable() and " " not in value:
            yield value
        case dict():
            for each in cast("dict[str, object]", value).values():
                yield from _long_texts(each)
        case list():
            for each in cast("list[object]", value):
                yield from _long_texts(each)
        case _:
            pass


def lack(config: AcpBackendConfig, environ: Mapping[str, str]) -> str | None:
    """What has to be installed, or said otherwise, before it can work here; None: nothing."""
    preset, name = preset_of(config), shown_name(config)
    if find_program(config, environ) is None:
        how = f": {preset.install}" if preset.install else ""
        return f"agents of type acp need the program {preset.program}{how}"
    if config.login == "own" and own_login(config, environ) is None:
        return f"login: own needs a login with {name}; log in first, or write login: key"
    for key in config.env:
        if is_model_key(key) and key not in preset.key_variables and not _may_have(config, key, environ):
            return f"env: {key} is a provider's key, and {name} could send it to other hosts"
    return None


def _may_have(config: AcpBackendConfig, key: str, environ: Mapping[str, str]) -> bool:
    hosts = hosts_of(config)
    enclosed = config.enclosure == "required" and bool(hosts)
    return enclosed and all(is_own_key(key, f"https://{host}", environ) for host in hosts)


def missing_login(config: AcpBackendConfig, environ: Mapping[str, str]) -> list[tuple[str, ...]]:
    """What keeps a run with it from starting: groups of variables, of each of which one has to be set."""
    keys = preset_of(config).key_variables if config.login == "key" else ()
    groups = [*([(*keys, *config.env)] if keys else []), *((name,) for name in config.env)]
    return [names for names in groups if not any(is_set(environ, name) for name in names)]
