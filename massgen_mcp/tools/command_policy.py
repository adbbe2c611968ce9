"""What a command of an agent may see, change and use at one moment: the agent's workspace and the config's rules, as a
policy of the sandbox.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from massgen_mcp.sandbox import (
    INSTALLED,
    WORKSPACE,
    Policy,
    SandboxRules,
    VisiblePath,
)
from massgen_mcp.tools.base import ToolRefused
from massgen_mcp.workspace.directory import Mount, Workspace
from massgen_mcp.workspace.gitignore import Pattern, PatternRefused, TookTooLong

MAX_RULE = 4_000
"""Characters of a rule for commands as an agent reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRules(SandboxRules):
    """What holds for the commands of one agent. Times in seconds."""

    usual_seconds: float
    most_seconds: float
    linked: tuple[VisiblePath, ...] = ()
    """Parts of the mounts to which links lie in the workspace from the beginning."""
    installed: tuple[VisiblePath, ...] = ()
    """What the setup made, to which links lie in the workspace."""
    known_as: tuple[tuple[str, str], ...] = ()
    """As in `Policy`."""
    prepare: Callable[[Path], list[str]] | None = None
    """Called with the workspace before a command, blocking; returns what the agent should know."""
    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    """Regular expressions, held against the beginning of a command: a rule for agents, and no protection."""

    def check(self, command: str) -> None:
        """Raises `ToolRefused` for a command that the rule is against. Blocking: a pattern may take its time."""
        try:
            if self.allowed and not any(Pattern(one).match(command) for one in self.allowed):
                raise ToolRefused(
                    f"The command was not run. Of this team's commands only these are run: {self._allowed_text()}"
                )
            if against := next((one for one in self.blocked if Pattern(one).match(command)), None):
                raise ToolRefused(f"The command was not run: commands that begin with {against} are blocked.")
        except (PatternRefused, TookTooLong) as error:
            raise ToolRefused(
                f"The command was not run: a rule for commands cannot be applied to it. {error}"
            ) from None

    def _allowed_text(self) -> str:
        return f"those that begin with {' or '.join(self.allowed)} (regular expressions)"

    def described(self) -> str:
        """Describe the network and the rule to an agent."""
        reach = f"Of the network only {', '.join(self.network)}." if self.network else "No network."
        sentences = ["The network can be reached." if self.open_network else reach]
        if self.allowed:
            sentences.append(f"Allowed are only {self._allowed_text()}.")
        if self.blocked:
            sentences.append(f"Blocked are those that begin with {' or '.join(self.blocked)}.")
        return " ".join(sentences)[:MAX_RULE]


def policy_now(
    workspace: Workspace, place: Path, scratch: Path, rules: CommandRules, seconds: float
) -> tuple[Policy, list[str]]:
    """For a command of at most so many `seconds`; and what its agent should know of that. `place`: where the workspace
    lies on this machine. Blocking.
    """
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    for shelf in workspace.shelves:
        workspace.root.make_link(shelf, f"/{shelf}")
    shown: list[VisiblePath] = []
    hidden: list[Path] = []
    notes: list[str] = []
    if rules.prepare is not None:
        notes = rules.prepare(place)
    for mount in workspace.mounts:
        concealed = _concealed(mount)
        if concealed is None:
            notes.append(f"[{mount.name} is too large to be shown to commands]")
            continue
        hidden += concealed
        shown.append(VisiblePath(mount.host, f"/{mount.name}"))
    seen = tuple(one.host for one in shown)
    linked = [one for one in rules.linked if any(one.host.is_relative_to(host) for host in seen)]
    installed = [replace(one, place=INSTALLED + one.place.removeprefix(WORKSPACE)) for one in rules.installed]
    policy = rules.make_policy(
        place, scratch, (*shown, *_layered(shown, linked), *installed), rules.known_as, tuple(hidden)
    )
    return replace(policy, bounds=rules.bounds.with_seconds(seconds)), notes


def _layered(shown: list[VisiblePath], linked: Iterable[VisiblePath]) -> Iterator[VisiblePath]:
    """Yield the layers to which links in the workspace lead."""
    for one in linked:
        for mount in shown:
            if one.layered and one.host.is_relative_to(mount.host):
                yield replace(one, place=str(Path(mount.place, one.host.relative_to(mount.host))))


def _concealed(mount: Mount) -> list[Path] | None:
    """Return the host paths below a mount that a command must not see; None if they cannot all be found."""
    if mount.file is not None:
        return []
    found, whole = mount.root.hidden.paths()
    return [mount.host / path for path in found] if whole else None
