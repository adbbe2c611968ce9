"""Commands that agents run, and the sandbox around them."""

import logging
import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from massgen_mcp.config.environment import called_a_secret, variables_in
from massgen_mcp.config.models.common import AbsolutePaths, HostPort, Settings

logger = logging.getLogger("massgen_mcp.config")

REMOVED_LEVEL = "sandlock"
REMOVED = f"{REMOVED_LEVEL} was removed, because it did not protect files that a command may only read; it means auto"


def _regular_expression(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return pattern


CommandPatterns = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=1_000), AfterValidator(_regular_expression)], ...],
    Field(max_length=200),
]
"""Regular expressions, each held against the beginning of a command."""


def _fixed(variables: dict[str, str]) -> dict[str, str]:
    for name, value in variables.items():
        if called_a_secret(name):
            raise ValueError(f"{name} is called like a key, and agents read what commands have; leave it out")
        if variables_in([value]):
            raise ValueError(f"{name}: nothing of your environment is passed on; write the value itself")
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
    """Commands that agents run, in a sandbox: see docs/commands.md. They need a workspace."""

    enabled: bool = False
    """Whether agents may run commands."""
    sandbox: Literal["auto", "bubblewrap", "docker", "podman", "sandbox-exec"] = "auto"
    """`auto`: bubblewrap on Linux, sandbox-exec on macOS. `sandlock`, which no longer exists, means `auto`."""
    image: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$")
    """Of the container, with `docker` or `podman`; it needs `/bin/sh` and `python3`. Default: `python:3.12-slim`."""
    image_archive: str | None = Field(default=None, min_length=1, max_length=4096)
    """An image on this machine, as a directory or a file (see docs/commands.md). Absolute after loading."""
    network: tuple[HostPort, ...] = Field(default=(), max_length=50)
    """What commands may connect to over TCP, as host:port, in bubblewrap or sandbox-exec. Nothing without it."""
    open_network: bool = False
    """True: commands reach every host. Only in a container."""
    readable: AbsolutePaths = Field(default=(), max_length=20)
    """Directories of programs that commands may read besides the usual ones, at their own paths. Absolute."""
    env: CommandVariables = Field(default_factory=dict[str, str])
    """Variables of commands and checks with fixed values, such as `CI: "1"`. They replace those that tools need. A name
    like that of a key is refused.
    """
    allowed: CommandPatterns = ()
    """Regular expressions: only commands whose beginning matches one are run. A rule for agents, and no protection."""
    blocked: CommandPatterns = ()
    """The same, of commands that are not run."""
    timeout_seconds: float = Field(default=120, gt=0, le=3600)
    """For a command that does not ask for another time."""
    max_seconds: float = Field(default=1800, gt=0, le=86_400)
    """The most that a command can ask for; one in the background has it."""
    max_memory_mb: int = Field(default=2048, ge=64, le=1_000_000)
    """Memory of a command and everything that it starts."""
    max_cpus: float | None = Field(default=None, gt=0, le=1_000)
    """Processors that a command may use; outside of a container rounded up to whole ones. None: all."""
    max_processes: int = Field(default=256, ge=16, le=10_000)
    """Processes of a command at once."""
    max_disk_mb: int = Field(default=2048, ge=16, le=1_000_000)
    """In the agent's workspace and its temporary files together, which are at most 200,000 files."""

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
            raise ValueError("image is of a container; set sandbox to docker or podman")
        if self.open_network and not self.in_container:
            raise ValueError(
                "open_network is for a container; set sandbox to docker or podman, or name hosts in network"
            )
        if self.network and self.in_container:
            raise ValueError(f"{self.sandbox} lets no command reach named hosts only; use sandbox: auto")
        if self.image_archive is not None and self.sandbox == "sandbox-exec":
            raise ValueError("sandbox-exec has this machine's programs; use sandbox: bubblewrap, docker or podman")
        return self
