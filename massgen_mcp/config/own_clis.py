"""Agent CLIs that are installed on this machine: whose login each has, and how it would run. Must not start one."""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from massgen_mcp.config.access import acp_agents, agent_clis
from massgen_mcp.config.access.acp_agents import PRESETS
from massgen_mcp.config.models.backends import AcpBackendConfig, BackendConfig, ClaudeCodeBackendConfig
from massgen_mcp.home import known_levels
from massgen_mcp.sandbox import Wishes, choose

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


async def installed_clis(environ: Mapping[str, str]) -> list[OwnCli]:
    """Claude Code is run by our own way where it is there, and not over ACP."""
    found: list[OwnCli] = []
    if program := agent_clis.find_cli(environ):
        keys = tuple(name for name in (agent_clis.API_KEY, agent_clis.TOKEN) if environ.get(name))
        config = ClaudeCodeBackendConfig(type=CLAUDE_CODE, use_login=True)
        login = agent_clis.own_login(environ) is not None
        found.append(OwnCli(CLAUDE_CODE, config, program, login, keys, "it has no built-in tools"))
    for name, preset in PRESETS.items():
        config = AcpBackendConfig(type="acp", preset=name, login="own")
        speaks = acp_agents.find_program(config, environ)
        program = speaks or shutil.which(preset.own_cli[1], path=environ.get("PATH"))
        if name == CLAUDE_CODE or program is None:
            continue
        fit, place = (True, "enclosed") if speaks else (False, f"to join a team it needs `{preset.install}`")
        if fit and not (await choose(Wishes("bubblewrap"), known_levels(environ))).level:
            fit, place = (
                preset.asks,
                "outside the sandbox, without a shell" if preset.asks else "refused without bubblewrap",
            )
        keys = tuple(key for key in preset.key_variables if environ.get(key))
        login = acp_agents.own_login(config, environ) is not None
        found.append(OwnCli(name, config, program, login, keys, place, fit))
    return found


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
