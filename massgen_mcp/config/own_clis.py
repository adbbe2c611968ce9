"""Agent CLIs that are installed on this machine: whose login each has, and how it would run. Must not start one."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from massgen_mcp.config.access.agent_types import iterate_own_types
from massgen_mcp.config.models.backends import BackendConfig

OWN_LOGINS_VARIABLE = "MASSGEN_OWN_LOGINS"
CLAUDE_CODE = "claude_code"


@dataclass(frozen=True, slots=True)
class OwnCli:
    name: str
    config: BackendConfig
    """As it is in a team with the user's own login."""
    program: str
    login: bool
    """The user's own."""
    keys: tuple[str, ...]
    """Variables with a key for it that are set."""
    place: str
    """How it is kept from the user's files, in words."""
    fit: bool = True
    """It can run here."""

    def __str__(self) -> str:
        named = " ".join(filter(None, (self.name, version_of(self.program))))
        logins = [*(["you are logged in"] if self.login else []), *(f"{key} is set" for key in self.keys)]
        return f"{named} ({', '.join(logins) or 'no login'}; {self.place})"

    @property
    def ready(self) -> bool:
        return self.login and self.fit


def logins_allowed(environ: Mapping[str, str]) -> bool:
    """Whether the user has said that the default team may use the logins of the CLIs."""
    return environ.get(OWN_LOGINS_VARIABLE, "").strip().lower() in ("1", "yes", "true")


@runtime_checkable
class FindsClis(Protocol):
    """An agent type whose agents are CLIs, which may be installed here with the user's own login."""

    team_rank: int
    """Agents of lower ones come first in a team."""

    async def find_clis(self, environ: Mapping[str, str]) -> list[OwnCli]:
        """Return the CLIs that are installed here."""
        ...


async def installed_clis(environ: Mapping[str, str]) -> list[OwnCli]:
    """Return the agent CLIs of every type that are installed here, in the order of a team."""
    types = [one for one in iterate_own_types() if isinstance(one, FindsClis)]
    types.sort(key=lambda one: one.team_rank)
    return [cli for one in types for cli in await one.find_clis(environ)]


def version_of(program: str) -> str:
    """As the package of Node says that it is one of; "" where it is none."""
    for directory in Path(os.path.realpath(program)).parents:
        if (file := directory / "package.json").is_file():
            try:
                package: object = json.loads(file.read_bytes())
            except (OSError, ValueError):
                return ""
            version = cast("Mapping[str, object]", package).get("version") if isinstance(package, dict) else ""
            return str(version or "")[:40]
        if directory.name == "node_modules":
            break
    return ""
