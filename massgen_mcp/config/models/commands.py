"""Commands that agents run, and the sandbox around them."""

import logging
import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from massgen_mcp.config.environment import called_a_secret, variables_in
from massgen_mcp.config.models.common import AbsolutePaths, HostPort, Settings

logger = logging.getLogger("massgen_mcp.config")

REMOVED_LEVEL = "sandlock"
REMOVED = f"{REMOVED_LEVEL} didn't protect read-only files, so massgen no longer supports it and uses auto instead"


def _regular_expression(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a valid regular expression: {error}") from None
    return pattern


CommandPatterns = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=1_000), AfterValidator(_regular_expression)], ...],
    Field(max_length=200),
]
"""Regular expressions, each held against the beginning of a command."""


def _fixed(variables: dict[str, str]) -> dict[str, str]:
    for name, value in variables.items():
        if called_a_secret(name):
            raise ValueError(f"{name} seems to hold a key, and agents can read the environment of commands; remove it")
        if variables_in([value]):
            raise ValueError(f"{name}: massgen doesn't pass your environment on to commands; write the value itself")
    return variables


CommandVariables = Annotated[
    dict[
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")],
        Annotated[str, StringConstraints(pattern=r"^[^\x00\r\n]*$", max_length=10_000)],
    ],
    Field(max_length=100),
    AfterValidator(_fixed),
]
"""Values by the names of variables, each on one line."""


class CommandsConfig(Settings, frozen=True):
    """Agents' commands in a sandbox (see docs/commands.md). They need a workspace."""

    enabled: bool = False
    """Allow agents to run commands."""
    sandbox: Literal["auto", "bubblewrap", "docker", "podman", "sandbox-exec"] = "auto"
    """`auto`: bubblewrap on Linux, sandbox-exec on macOS."""
    image: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$")
    """The image for `docker` and `podman`; it must contain `/bin/sh` and `python3`. Default: `python:3.12-slim`."""
    image_archive: str | None = Field(default=None, min_length=1, max_length=4096)
    """A local image, as a directory or file (see docs/commands.md)."""
    network: tuple[HostPort, ...] = Field(default=(), max_length=50)
    """Allowed TCP connections in bubblewrap and sandbox-exec, as host:port. Default: none."""
    open_network: bool = False
    """True: commands can reach any host. Needs Docker or Podman as the sandbox."""
    readable: AbsolutePaths = Field(default=(), max_length=20)
    """Absolute paths of additional program directories that commands can read."""
    env: CommandVariables = Field(default_factory=dict[str, str])
    """Environment variables for commands and checks, such as `CI: "1"`. Names that suggest a secret are rejected."""
    allowed: CommandPatterns = ()
    """Regular expressions. The start of a command must match one of them. They guide agents but don't protect you."""
    blocked: CommandPatterns = ()
    """Regular expressions. A command is rejected if its start matches one of them."""
    timeout_seconds: float = Field(default=120, gt=0, le=3600)
    """Default time limit for a command."""
    max_seconds: float = Field(default=1800, gt=0, le=86_400)
    """Longest time limit that an agent can set for a command, and the time limit for background commands."""
    max_memory_mb: int = Field(default=2048, ge=64, le=1_000_000)
    """Memory limit for a command and its child processes."""
    max_cpus: float | None = Field(default=None, gt=0, le=1_000)
    """Maximum number of CPUs for a command. Outside containers, fractions are rounded up. None: all."""
    max_processes: int = Field(default=256, ge=16, le=10_000)
    """Maximum number of processes per command."""
    max_disk_mb: int = Field(default=2048, ge=16, le=1_000_000)
    """Disk limit for the agent's workspace and temporary files, with at most 200,000 files in total."""

    def __hash__(self) -> int:
        return hash(tuple(value for name, value in self if name != "env"))

    @property
    def in_container(self) -> bool:
        return self.sandbox in ("docker", "podman")

    @field_validator("sandbox", mode="before")
    @classmethod
    def _replace_sandlock(cls, value: object) -> object:
        """Runs that were stored by an older version are resumed."""
        if value != REMOVED_LEVEL:
            return value
        logger.warning("sandbox: %s", REMOVED)
        return "auto"

    @model_validator(mode="after")
    def _what_the_sandbox_has(self) -> Self:
        if self.image is not None and not self.in_container:
            raise ValueError("image needs a container; set sandbox to docker or podman")
        if self.open_network and not self.in_container:
            raise ValueError(
                "open_network needs a container; set sandbox to docker or podman, or list hosts under network"
            )
        if self.network and self.in_container:
            raise ValueError(f"{self.sandbox} can't limit commands to the listed hosts; use sandbox: auto")
        if self.image_archive is not None and self.sandbox == "sandbox-exec":
            raise ValueError(
                "sandbox-exec uses this machine's programs, not an image; use sandbox: bubblewrap, docker or podman"
            )
        return self
