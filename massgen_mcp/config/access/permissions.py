"""What a config may do, as values. Two permissions are the same when their types and fields are; words are only for
people.

A new kind of permission is a class here, a sentence in `describe`, and a decision in `request.harm`.
"""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, assert_never
from urllib.parse import unquote_to_bytes

from pydantic import ConfigDict, Field

from massgen_mcp.config.diagnostics import on_one_line

SANDBOX = "a sandbox"
APPLIES_UNASKED = "its changes to these files, without asking"


class _Stored:
    """A value that is kept on disk. A field that this version doesn't know voids it."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class CommandPlace(_Stored):
    """Where commands run: the sandbox, or a container."""

    container: Literal["docker", "podman"] | None = None
    image: str | None = None
    image_archive: str | None = None

    def __str__(self) -> str:
        image = f" from the image {on_one_line(self.image)}" if self.image else ""
        where = f"a {self.container} container{image}" if self.container else SANDBOX
        archive = f" with the programs from {on_one_line(self.image_archive)}" if self.image_archive else ""
        return f"{where}{archive}"


@dataclass(frozen=True, slots=True)
class AskHost(_Stored):
    """Send requests to a host, as `key_hosts.host_of` writes it."""

    host: str
    kind: Literal["host"] = "host"


@dataclass(frozen=True, slots=True)
class SendKey(_Stored):
    """Send the value of a variable to a host."""

    key: str
    host: str
    kind: Literal["key"] = "key"


@dataclass(frozen=True, slots=True)
class _StoredPath(_Stored):
    """A file or a directory. The path is absolute and free of links; as a `file:` address it can be stored, whatever
    bytes are in it.
    """

    uri: str

    @property
    def path(self) -> Path:
        return Path(os.fsdecode(unquote_to_bytes(self.uri.removeprefix("file://"))))


@dataclass(frozen=True, slots=True)
class ReadPath(_StoredPath):
    """Read a file or a directory."""

    kind: Literal["read"] = "read"


@dataclass(frozen=True, slots=True)
class WritePath(_StoredPath):
    """Change a file or a directory."""

    kind: Literal["write"] = "write"


@dataclass(frozen=True, slots=True)
class ApplyChanges(_Stored):
    """Apply a run's changes to the directories that it may write, without asking."""

    kind: Literal["apply"] = "apply"


@dataclass(frozen=True, slots=True)
class StartClaudeCode(_Stored):
    """Start the Claude Code CLI."""

    own_login: bool
    kind: Literal["claude_code"] = "claude_code"


@dataclass(frozen=True, slots=True)
class StartAgentCli(_Stored):
    """Start an agent CLI that speaks ACP."""

    command: tuple[str, ...]
    own_login: bool
    variables: tuple[str, ...]
    """Names of the variables that it is given."""
    sandboxed: bool
    kind: Literal["agent_cli"] = "agent_cli"


@dataclass(frozen=True, slots=True)
class LoadAdapter(_Stored):
    """Load the code of an installed adapter into the process of the run."""

    name: str
    package: str
    kind: Literal["adapter"] = "adapter"


@dataclass(frozen=True, slots=True)
class StartOther(_Stored):
    """Start what an adapter names, in its own words."""

    words: str
    kind: Literal["other_program"] = "other_program"


@dataclass(frozen=True, slots=True)
class RunCommands(_Stored):
    """Run the commands of agents, or the checks that a call adds."""

    of: Literal["agents", "checks"]
    place: CommandPlace
    kind: Literal["commands"] = "commands"


@dataclass(frozen=True, slots=True)
class UseNetwork(_Stored):
    """Let commands or checks connect to an endpoint (host:port); None: to every host."""

    of: Literal["agents", "checks"]
    place: CommandPlace
    endpoint: str | None
    kind: Literal["network"] = "network"


@dataclass(frozen=True, slots=True)
class RunSetup(_Stored):
    """Run the config's setup command in every copy."""

    command: str
    place: CommandPlace
    kind: Literal["setup"] = "setup"


@dataclass(frozen=True, slots=True)
class RunCheck(_Stored):
    """Run a check of the config's on the answers' files."""

    command: str
    place: CommandPlace
    kind: Literal["check"] = "check"


@dataclass(frozen=True, slots=True)
class RunScripts(_Stored):
    """Run scripts that agents write. `optional`: the run can do without them."""

    place: CommandPlace
    optional: bool
    kind: Literal["scripts"] = "scripts"


@dataclass(frozen=True, slots=True)
class StartServer(_Stored):
    """Start an MCP server for an agent."""

    agent: str
    name: str
    command: tuple[str, ...]
    sandboxed: bool
    network: tuple[str, ...]
    readable: tuple[str, ...]
    variables: tuple[str, ...]
    """Names of the user's variables that it is given."""
    environment: str
    """Digest of its own environment, as the config has it: what is in it may be private."""
    kind: Literal["server_program"] = "server_program"


@dataclass(frozen=True, slots=True)
class AskServer(_Stored):
    """Ask an MCP server at an address."""

    agent: str
    name: str
    url: str
    variables: tuple[str, ...]
    headers: str
    """Digest of its headers, as the config has them."""
    kind: Literal["server_address"] = "server_address"


@dataclass(frozen=True, slots=True)
class SetVariable(_Stored):
    """Give commands and checks a variable of a fixed value."""

    name: str
    value: str
    kind: Literal["variable"] = "variable"


@dataclass(frozen=True, slots=True)
class SetPrice(_Stored):
    """Count an agent's calls at another price than the listed one. `prices_of`: those of this model; None: its own."""

    agent: str
    prices_of: str | None
    amounts: str
    """Digest of the price of its own."""
    kind: Literal["price"] = "price"


@dataclass(frozen=True, slots=True)
class SendFields(_Stored):
    """Send further fields with an agent's requests."""

    agent: str
    names: tuple[str, ...]
    values: str
    """Digest of the fields with their values."""
    kind: Literal["fields"] = "fields"


@dataclass(frozen=True, slots=True)
class SpendMoney(_Stored):
    """Spend up to so many US dollars."""

    usd: float
    kind: Literal["money"] = "money"


@dataclass(frozen=True, slots=True)
class SpendTokens(_Stored):
    """Use up to so many tokens."""

    tokens: int
    uncounted: bool = False
    """Whether calls without a known price count for this alone."""
    kind: Literal["tokens"] = "tokens"


@dataclass(frozen=True, slots=True)
class TakeTime(_Stored):
    """Take up to so many seconds."""

    seconds: float
    kind: Literal["time"] = "time"


Program = StartClaudeCode | StartAgentCli | LoadAdapter | StartOther
Execution = Program | RunCommands | UseNetwork | RunSetup | RunCheck | RunScripts
"""What runs on this machine, and whom it may reach."""
Setting = SetVariable | SetPrice | SendFields
Amount = SpendMoney | SpendTokens | TakeTime
Permission = Annotated[
    AskHost | SendKey | ReadPath | WritePath | ApplyChanges | Execution | StartServer | AskServer | Setting | Amount,
    Field(discriminator="kind"),
]


def describe(permission: Permission) -> str:
    """Return the line that a person reads before saying yes or no."""
    match permission:
        case AskHost(host=host):
            return f"host: {host}"
        case SendKey(key=key, host=host):
            return f"key: {key} to {host}"
        case ReadPath():
            return f"reads: {on_one_line(permission.path)}"
        case WritePath():
            return f"writes: {on_one_line(permission.path)}"
        case ApplyChanges():
            return f"applies: {APPLIES_UNASKED}"
        case StartServer() | AskServer():
            return f"MCP server: {describe_server(permission)}"
        case SetVariable() | SetPrice() | SendFields():
            return f"sets: {_describe_setting(permission)}"
        case SpendMoney() | SpendTokens() | TakeTime():
            return _describe_amount(permission)
        case _:
            return f"starts: {describe_program(permission)}"


def _describe_amount(amount: Amount) -> str:
    match amount:
        case SpendMoney(usd=usd):
            return f"spends: up to {usd:g} US dollars"
        case SpendTokens(tokens=tokens, uncounted=True):
            return f"spends: up to {tokens} tokens; calls without a known price count only toward this limit"
        case SpendTokens(tokens=tokens):
            return f"spends: up to {tokens} tokens"
        case TakeTime(seconds=seconds):
            return f"takes: up to {seconds:g} seconds"
        case _:
            assert_never(amount)


def describe_program(permission: Execution) -> str:
    """Name what is started, and where."""
    match permission:
        case StartClaudeCode(own_login=own_login):
            return "the Claude Code CLI with your own login" if own_login else "the Claude Code CLI"
        case StartAgentCli():
            return _describe_agent_cli(permission)
        case LoadAdapter(name=name, package=package):
            return f"the adapter {name} from {package}, with your full permissions"
        case StartOther(words=words):
            return words
        case RunCommands(of=of, place=place):
            return f"{_COMMANDS[of]} in {place}"
        case UseNetwork(of=of, place=place, endpoint=endpoint):
            return f"{_COMMANDS[of]} in {place} that can connect to {endpoint or 'any host'}"
        case RunSetup(command=command, place=place):
            return f"the setup {on_one_line(command)} in {place}"
        case RunCheck(command=command, place=place):
            return f"the check {on_one_line(command)} in {place}"
        case RunScripts(place=place):
            return f"scripts that agents write, in {place}"
        case _:
            assert_never(permission)


_COMMANDS = {"agents": "agents' commands", "checks": "checks"}


def describe_server(server: StartServer | AskServer) -> str:
    """Name an MCP server, the agent that has it, and the rights that it has."""
    rights: list[str] = []
    if isinstance(server, AskServer):
        target = server.url
    else:
        target = shlex.join(server.command)
        if not server.sandboxed:
            rights.append("outside the sandbox, with your full permissions")
        if server.network:
            rights.append(f"connects to {', '.join(server.network)}")
        if server.readable:
            rights.append(f"reads {', '.join(server.readable)}")
    if server.variables:
        rights.append(f"receives {', '.join(server.variables)}")
    listed = f" ({'; '.join(rights)})" if rights else ""
    return on_one_line(f"{server.name} for {server.agent}: {target}{listed}")


def _describe_setting(setting: Setting) -> str:
    match setting:
        case SetVariable(name=name, value=value):
            return on_one_line(f"{name}={value} for commands and checks")
        case SetPrice(agent=agent, prices_of=None):
            return f"{agent}: its own price, used for the money limit"
        case SetPrice(agent=agent, prices_of=model):
            return f"{agent}: the prices of {model}, used for the money limit"
        case SendFields(agent=agent, names=names):
            return f"{agent}: extra request fields ({on_one_line(', '.join(names))})"
        case _:
            assert_never(setting)


def _describe_agent_cli(cli: StartAgentCli) -> str:
    words = [f"the agent CLI {on_one_line(shlex.join(cli.command))}"]
    if cli.own_login:
        words.append("with your own login (paid for by your subscription)")
    if cli.variables:
        words.append(f"with access to {', '.join(cli.variables)}")
    if not cli.sandboxed:
        words.append("outside the sandbox, with your full permissions")
    return ", ".join(words)
