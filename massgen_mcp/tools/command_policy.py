"""What a command of an agent may see, change and use at one moment: the agent's workspace and the config's rules, as a
policy of the sandbox.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from massgen_mcp.sandbox import INSTALLED, WORKSPACE, Policy, VisiblePath
from massgen_mcp.tools.command_rules import CommandRules
from massgen_mcp.workspace.directory import Mount, Workspace


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
    hidden: list[Path] = [*rules.hidden]
    notes = rules.prepare(place) if rules.prepare is not None else []
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
    linked_places = (one for one in (*linked, *rules.installed) if _inside(place, one.place).is_symlink())
    policy = Policy(
        workspace=place,
        scratch=scratch,
        shown=(*shown, *_layered(shown, linked), *installed, *rules.tools.layered),
        linked=tuple(linked_places),
        known_as=rules.known_as,
        hidden=tuple(hidden),
        network=rules.network,
        toolchains=rules.tools.readable,
        empty=rules.tools.empty,
        environ=rules.tools.environ,
        bounds=replace(rules.bounds, seconds=seconds),
        image=rules.image,
        unpacked=rules.unpacked,
        open_network=rules.open_network,
    )
    return policy, notes


def _inside(workspace: Path, place: str) -> Path:
    """Where a place in the workspace lies on this machine."""
    return workspace / Path(place).relative_to(WORKSPACE)


def _layered(shown: list[VisiblePath], linked: Iterable[VisiblePath]) -> Iterator[VisiblePath]:
    """Where links in the workspace lead to what has a layer."""
    for one in linked:
        for mount in shown:
            if one.layered and one.host.is_relative_to(mount.host):
                yield replace(one, place=str(Path(mount.place, one.host.relative_to(mount.host))))


def _concealed(mount: Mount) -> list[Path] | None:
    """The host paths below a mount that a command must not see; None if they cannot all be found."""
    if mount.file is not None:
        return []
    found, whole = mount.root.hidden.paths()
    return [mount.host / path for path in found] if whole else None
