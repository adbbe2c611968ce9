"""The contract between `levels`, which says how a command is started, and `supervisor`, which starts it.

Both sides import these types, and the supervisor has neither our package nor its dependencies: it knows the standard
library only, and as little of that as possible.
"""

import json
from typing import NamedTuple

MIB = 1024 * 1024
GIB = 1024 * MIB


class ResourceLimits(NamedTuple):
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

    def with_seconds(self, seconds: float) -> "ResourceLimits":
        return self._replace(seconds=seconds)

    def to_plain(self) -> dict[str, float | None]:
        return self._asdict()


class StatusPipes(NamedTuple):
    """Descriptors of a launcher that reports how its command starts and ends, and waits for a byte before it begins."""

    reports_at: int
    gate_at: int


class Layers(NamedTuple):
    """Directories that are shown writable, with a layer in memory above each, where the kernel allows that."""

    places: tuple[str, ...]
    trial: tuple[str, ...]
    """A command that has to work where there are layers."""
    files: dict[int, str]
    """Replace `LaunchPlan.files` then."""


class LaunchPlan(NamedTuple):
    """The launcher of a level: the program that the supervisor becomes a child of its own as."""

    argv: tuple[str, ...]
    environ: dict[str, str]
    files: dict[int, str]
    """Texts that it reads from these descriptors; their characters are bytes."""
    status: StatusPipes | None = None
    teardown: tuple[str, ...] = ()
    """A command that ends what no signal of ours reaches, such as a container."""
    layers: Layers | None = None


class Specification(NamedTuple):
    """One command, its bounds, and the host directories that it fills."""

    launch: LaunchPlan
    bounds: ResourceLimits
    writable: tuple[str, ...]
    growing: tuple[str, ...]
    """Directories of a person's, of which only what is added counts."""
    namespaces: tuple[int, int] | None = None
    """Descriptors of the namespaces for users and for the network that the command joins. None: its level decides."""

    def encode(self) -> bytes:
        """Return a message: the length of the rest in eight hexadecimal digits, then what `decode` reads."""
        text = json.dumps(self).encode()
        return f"{len(text):08x}".encode() + text


def decode(text: bytes) -> Specification:
    """Rebuild the specification of a message, without its length."""
    launch, bounds, writable, growing, namespaces = json.loads(text)
    argv, environ, files, status, teardown, layers = launch
    return Specification(
        LaunchPlan(
            tuple(argv),
            environ,
            _restore_descriptors(files),
            StatusPipes(*status) if status else None,
            tuple(teardown),
            Layers(tuple(layers[0]), tuple(layers[1]), _restore_descriptors(layers[2])) if layers else None,
        ),
        ResourceLimits(*bounds),
        tuple(writable),
        tuple(growing),
        (namespaces[0], namespaces[1]) if namespaces else None,
    )


def _restore_descriptors(files: dict[str, str]) -> dict[int, str]:
    return {int(number): text for number, text in files.items()}
