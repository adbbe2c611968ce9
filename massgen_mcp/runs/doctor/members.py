"""Which models and agents can be asked here: the model servers that answer, the team of whoever names none, and agents
that are programs or frameworks of their own. Part of the doctor.
"""

import importlib.metadata
import os
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

import anyio

from massgen_mcp.config import ag2_agents
from massgen_mcp.config.access import agent_clis
from massgen_mcp.config.access.agent_types import Diagnosable, adapter_named
from massgen_mcp.config.access.local_servers import LocalServer, described, find_local_servers, local_places
from massgen_mcp.config.adapters import MEMBERS, installed, where_from
from massgen_mcp.config.default_team import team_of
from massgen_mcp.config.loader import config_places, is_team, load_config, missing_keys
from massgen_mcp.config.models.backends import ClaudeCodeBackendConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.http_backends import LocalServerConfig
from massgen_mcp.config.own_clis import CLAUDE_CODE, OWN_LOGINS_VARIABLE, OwnCli, installed_clis, logins_allowed
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.doctor.result import DoctorCheck

VERSION_SECONDS = 20


async def check_members(cwd: Path, environ: Mapping[str, str]) -> list[DoctorCheck]:
    """Never raises; takes as long as the slowest server is waited for. Nobody needs agents of their own, so what is not
    there of these is no fault.
    """
    servers, clis = await find_local_servers(environ), await installed_clis(environ)
    return [
        *_servers(servers, environ),
        _team_check(servers, clis, environ),
        *_config(cwd, environ, servers),
        *await _clis(clis, environ),
        _ag2(),
        *map(_adapter, installed(MEMBERS).values()),
    ]


def _adapter(entry: EntryPoint) -> DoctorCheck:
    try:
        adapter = adapter_named(entry.name)
        stands = adapter.describe_state(os.environ) if isinstance(adapter, Diagnosable) else "installed"
    except Exception as error:  # noqa: BLE001 - code of others is asked
        advice = f"reinstall {where_from(entry)}, or remove it"
        return DoctorCheck(f"Adapter {entry.name}", "warn", str(error)[:500], advice)
    return DoctorCheck(f"Adapter {entry.name}", "ok", f"{stands}; {where_from(entry)}")


async def _clis(found: list[OwnCli], environ: Mapping[str, str]) -> list[DoctorCheck]:
    if not found:
        message = "none installed (only agents of type claude_code or acp need one)"
        return [DoctorCheck("Agent CLIs", "ok", message, agent_clis.HOW_TO_GET_IT)]
    return [await _cli(one, environ) for one in found]


async def _cli(one: OwnCli, environ: Mapping[str, str]) -> DoctorCheck:
    title, release = f"Agent CLI {one.name}", ""
    if one.name == CLAUDE_CODE:
        if (version := await _version_of(one.program, environ)) is None:
            return DoctorCheck(title, "warn", f"{one.program} doesn't report its version", "reinstall it")
        release = f"; {version}"
    allowed = logins_allowed(environ)
    own = f"; allowed in the default team ({OWN_LOGINS_VARIABLE})" if allowed else ""
    return DoctorCheck(title, "ok", f"{one}{release} at {one.program}{own}", _advice(one, allowed=allowed))


def _advice(one: OwnCli, *, allowed: bool) -> str:
    if one.ready:
        return "" if allowed else f"set {OWN_LOGINS_VARIABLE}=yes to allow it in the default team, with your own login"
    if isinstance(one.config, ClaudeCodeBackendConfig) and not one.keys:
        return agent_clis.how_to_log_in(one.config)
    return ""


async def _version_of(path: str, environ: Mapping[str, str]) -> str | None:
    kept = {name: environ[name] for name in ("PATH", "HOME") if name in environ}
    try:
        with anyio.move_on_after(VERSION_SECONDS):
            done = await anyio.run_process([path, "--version"], env=kept, check=False)
            return done.stdout.decode(errors="replace").strip()[:80] or None
    except OSError:
        pass
    return None


def _ag2() -> DoctorCheck:
    if ag2_agents.lack():
        return DoctorCheck("AG2", "ok", "not installed (only agents of type ag2 need it)", ag2_agents.EXTRA)
    return DoctorCheck("AG2", "ok", importlib.metadata.version("ag2"))


def _servers(servers: list[LocalServer], environ: Mapping[str, str]) -> list[DoctorCheck]:
    checks = [DoctorCheck("model server", "ok", described(server)) for server in servers]
    found = {server.type for server in servers}
    for server in local_places(environ):
        if server.named and server.type not in found:
            message = f"{server.type} is set to {server.place}, but no server with chat models responds there"
            checks.append(DoctorCheck("model server", "warn", message, "start it, load a model, or unset the variable"))
    places = ", ".join(f"{server.type} at {server.place}" for server in local_places(environ))
    return checks or [DoctorCheck("model server", "ok", f"none responds; tried {places}")]


def _team_check(servers: list[LocalServer], clis: list[OwnCli], environ: Mapping[str, str]) -> DoctorCheck:
    try:
        team = team_of(environ, servers, local_places(environ), clis=clis)
    except MassgenError as error:
        return DoctorCheck("default team", "warn", "none", str(error))
    return DoctorCheck("default team", "ok", f"{team.payment}: {_agents(team.config)}")


def _config(cwd: Path, environ: Mapping[str, str], servers: list[LocalServer]) -> list[DoctorCheck]:
    """The config that is found from `cwd`, whose team is asked in place of the default one."""
    path = next(filter(is_team, config_places(cwd, environ)), None)
    if path is None:
        return []
    try:
        config = load_config(path, environ=environ, base_dir=cwd)
    except MassgenError as error:
        return [DoctorCheck("config", "fail", f"{path} cannot be used", str(error))]
    advice = [f"start {name} and load a model, or remove its agent" for name in _find_silent_servers(config, servers)]
    missing = missing_keys(config, environ)
    if missing:
        advice.insert(0, f"set {', '.join(missing)}")
    message = f"{path}, instead of the default team: {_agents(config)}"
    return [DoctorCheck("config", "warn" if advice else "ok", message, "; ".join(advice))]


def _find_silent_servers(config: Config, servers: list[LocalServer]) -> list[str]:
    """List the types of local model servers that agents need at the usual addresses, where none responds."""
    found = {server.type for server in servers}
    needed = [
        agent.backend.type
        for agent in config.agents
        if isinstance(agent.backend, LocalServerConfig) and agent.backend.base_url is None
    ]
    return sorted({name for name in needed if name not in found})


def _agents(config: Config) -> str:
    return ", ".join(f"{agent.id} ({agent.models})" for agent in config.agents)
