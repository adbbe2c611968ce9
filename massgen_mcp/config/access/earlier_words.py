"""What a person accepted with a version that kept permissions as lines of text: read as values.

The lines are a file format that no longer changes. They don't follow the words of `permissions.describe`.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from massgen_mcp.config.access.permissions import (
    ApplyChanges,
    AskHost,
    AskServer,
    LoadAdapter,
    Permission,
    ReadPath,
    RunCheck,
    RunCommands,
    RunScripts,
    RunSetup,
    SendFields,
    SendKey,
    SetPrice,
    SetVariable,
    SpendMoney,
    SpendTokens,
    StartAgentCli,
    StartClaudeCode,
    StartOther,
    StartServer,
    TakeTime,
    UseNetwork,
    WritePath,
)


@dataclass(frozen=True, slots=True)
class EarlierYes:
    """`accepted`: the permissions that the lines name. `unclear`: those whose line may have meant another one."""

    accepted: tuple[Permission, ...]
    unclear: tuple[Permission, ...]


def read_lines(lines: Sequence[str], wanted: Sequence[Permission]) -> EarlierYes:
    """Find the wanted permissions in an acceptance of the same text (it has the same digest).

    The text decides most of them, so they are what the person accepted. Hosts, keys, paths and programs that come from
    elsewhere depend on the machine, too: they need their line, and a path that was shown with escapes may have been
    another one.
    """
    stored = frozenset(lines)
    found = [one for one in wanted if (line := _write_line(one)) is None or line in stored]
    unclear = tuple(one for one in found if isinstance(one, ReadPath | WritePath) and not str(one.path).isprintable())
    return EarlierYes(tuple(one for one in found if one not in unclear), unclear)


def _write_line(permission: Permission) -> str | None:
    """The line of a permission that depends on the machine; None for one that the config's text decides."""
    match permission:
        case AskHost(host=host):
            return f"host: {host}"
        case SendKey(key=key, host=host):
            return f"key: {key} to {host}"
        case ReadPath():
            return f"reads: {_quote_unprintable(str(permission.path))}"
        case WritePath():
            return f"writes: {_quote_unprintable(str(permission.path))}"
        case StartAgentCli():
            return f"starts: {_write_agent_cli(permission)}"
        case LoadAdapter(name=name, package=package):
            return f"starts: the adapter {name} of {package}, with all your rights"
        case StartOther(words=words):
            return f"starts: {words}"
        case (
            ApplyChanges() | StartClaudeCode() | RunCommands() | UseNetwork() | RunSetup() | RunCheck() | RunScripts()
            | StartServer() | AskServer() | SetVariable() | SetPrice() | SendFields() | SpendMoney() | SpendTokens()
            | TakeTime()
        ):  # fmt: skip
            return None
        case _:
            assert_never(permission)


def _write_agent_cli(cli: StartAgentCli) -> str:
    words = ["the agent CLI", _quote_unprintable(shlex.join(cli.command))]
    words += ["with your own login, so your subscription pays"] if cli.own_login else []
    words += [f"given {', '.join(cli.variables)}"] if cli.variables else []
    words += [] if cli.sandboxed else ["outside the sandbox, with all your rights"]
    return " ".join(words)


def _quote_unprintable(text: str) -> str:
    return text if text.isprintable() else ascii(text)
