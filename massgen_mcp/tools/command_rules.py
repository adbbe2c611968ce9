"""What the config says of the commands of agents: which of them are run, for how long, and what they may use."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.sandbox import NO_TOOLS, Image, LevelName, ProjectTools, ResourceLimits, VisiblePath
from massgen_mcp.tools.base import ToolRefused
from massgen_mcp.workspace.patterns import Pattern, PatternRefused, TookTooLong

MAX_RULE = 4_000
"""Characters of a rule for commands as an agent reads it."""


@dataclass(frozen=True, slots=True)
class CommandRules:
    """Times in seconds."""

    level: LevelName
    usual_seconds: float
    most_seconds: float
    bounds: ResourceLimits
    network: tuple[str, ...] = ()
    tools: ProjectTools = NO_TOOLS
    hidden: tuple[Path, ...] = ()
    """What no command ever sees, such as the runs of other people and agents."""
    linked: tuple[VisiblePath, ...] = ()
    """Parts of the mounts to which links lie in the workspace from the beginning."""
    installed: tuple[VisiblePath, ...] = ()
    """What the setup made, to which links lie in the workspace."""
    known_as: tuple[tuple[str, str], ...] = ()
    """As in `Policy`."""
    prepare: Callable[[Path], list[str]] | None = None
    """Called with the workspace before a command, blocking; returns what the agent should know."""
    image: str | None = None
    unpacked: Image | None = None
    open_network: bool = False
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
        """What an agent reads of the network and of the rule."""
        reach = f"Of the network only {', '.join(self.network)}." if self.network else "No network."
        sentences = ["The network can be reached." if self.open_network else reach]
        if self.allowed:
            sentences.append(f"Allowed are only {self._allowed_text()}.")
        if self.blocked:
            sentences.append(f"Blocked are those that begin with {' or '.join(self.blocked)}.")
        return " ".join(sentences)[:MAX_RULE]
