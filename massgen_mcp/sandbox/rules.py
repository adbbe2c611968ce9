"""What a config says of the sandbox, alike for every command of a kind: those of agents, checks, the setup."""

from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.sandbox.policy import Image, LevelName, Policy, VisiblePath
from massgen_mcp.sandbox.project_tools import NO_TOOLS, ProjectTools
from massgen_mcp.sandbox.specification import ResourceLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRules:
    level: LevelName
    bounds: ResourceLimits
    network: tuple[str, ...] = ()
    open_network: bool = False
    tools: ProjectTools = NO_TOOLS
    hidden: tuple[Path, ...] = ()
    """What no command ever sees, such as the runs of other people and agents."""
    image: str | None = None
    unpacked: Image | None = None

    def make_policy(
        self,
        workspace: Path,
        scratch: Path,
        shown: tuple[VisiblePath, ...],
        known_as: tuple[tuple[str, str], ...] = (),
        hidden: tuple[Path, ...] = (),
    ) -> Policy:
        """Return the policy of one command that is shown these paths, and from which further ones are hidden."""
        return Policy(
            workspace=workspace,
            scratch=scratch,
            shown=(*shown, *self.tools.layered),
            known_as=known_as,
            hidden=(*self.hidden, *hidden),
            network=self.network,
            open_network=self.open_network,
            toolchains=self.tools.readable,
            empty=self.tools.empty,
            environ=self.tools.environ,
            bounds=self.bounds,
            image=self.image,
            unpacked=self.unpacked,
        )
