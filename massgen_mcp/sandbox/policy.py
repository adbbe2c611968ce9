"""What a command may see, change and use: the one description that every level of the sandbox puts into effect.

Must not know how (`levels`), nor who asks.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

WORKSPACE = "/workspace"
"""Where a command finds the workspace, and where it begins."""
SCRATCH = "/tmp"  # noqa: S108 - a path inside the sandbox
"""Where a command finds the scratch directory; also its HOME."""

INSTALLED = "/setup"
"""Where a command finds what the setup made: links in the workspace lead there."""

LevelName = Literal["bubblewrap", "sandlock", "docker", "podman", "sandbox-exec"]

OF_THE_MACHINE = tuple(map(Path, ("/proc", "/sys", "/dev", "/run")))
"""The kernel's own directories and everybody's sockets: never a part of a directory that is shown."""

MIB = 1024 * 1024
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """What one command may use, all of its processes together. Beyond it the command is ended, and says so."""

    seconds: float = 120
    memory_bytes: int = 2 * GIB
    processes: int = 256
    open_files: int = 1024
    """Of each process."""
    disk_bytes: int = 2 * GIB
    """In all writable places together, what was there before included; also the size of the largest file."""
    files: int = 200_000
    """Files and directories in all writable places together."""
    processors: float | None = None
    """Outside of a container rounded up to whole ones. None: all that there are."""


@dataclass(frozen=True, slots=True)
class VisiblePath:
    """A file or directory of the host that a command sees at `place`, an absolute path inside the sandbox."""

    host: Path
    place: str
    writable: bool = False
    layered: bool = False
    """A command may write there, and all that it writes is gone with it; read-only in a level that cannot do that."""


@dataclass(frozen=True, slots=True)
class Image:
    """A container's image as it lies unpacked on this machine (see `images`)."""

    root: Path
    environ: Mapping[str, str]
    """What it says of variables, PATH always among them."""


class ImageRefused(Exception):
    """An image cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that is not named here is absent inside the sandbox, but for the host's programs and libraries."""

    workspace: Path
    """At `/workspace`, writable."""
    scratch: Path
    """At `/tmp`, writable: for temporary files and caches."""
    shown: tuple[VisiblePath, ...] = ()
    linked: tuple[VisiblePath, ...] = ()
    """Of what is shown: places in the workspace at which links to it lie. A level in which they lead nowhere shows it
    there, too.
    """
    known_as: tuple[tuple[str, str], ...] = ()
    """Paths of this machine at which a place in the workspace is found as well: an environment's programs, and what is
    installed in it to be edited, name the directory of a project so. A level without namespaces may leave them out.
    """
    empty: tuple[str, ...] = ()
    """Places at which a command finds a directory of its own, gone with it; what is shown may lie in it. Without
    namespaces it is in the scratch directory, as the variables that name it then say.
    """
    hidden: tuple[Path, ...] = ()
    """Host paths that stay absent although something shown holds them."""
    network: tuple[str, ...] = ()
    """`host:port` that may be connected to over TCP. Empty: none of these."""
    open_network: bool = False
    """Every host can be reached; only for Docker and Podman."""
    environ: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Variables besides PATH, HOME, TMPDIR and LANG. Nothing else of our own environment is passed on."""
    toolchains: tuple[Path, ...] = ()
    """Directories with further programs, readable at their own paths. With one below `/tmp` bubblewrap gives a command
    an empty `/tmp` of its own in memory.
    """
    bounds: ResourceLimits = ResourceLimits()
    image: str | None = None
    """Of a container; only for Docker and Podman."""
    unpacked: Image | None = None
    """Whose programs and variables are there in place of this machine's; only for bubblewrap."""


def inside(hidden: Iterable[Path], shown: Iterable[VisiblePath]) -> Iterator[str]:
    """The places inside at which something of the host would be seen that is to be hidden."""
    for path in (*hidden, *OF_THE_MACHINE):
        for one in shown:
            if path.is_relative_to(one.host):
                yield str(Path(one.place, path.relative_to(one.host)))
