"""Which models can be asked: the model servers that answer, and the team of whoever names none. Part of the doctor."""

from collections.abc import Mapping
from pathlib import Path

from massgen_mcp.config.access.local_servers import LocalServer, described, find_local_servers, local_places
from massgen_mcp.config.default_team import team_of
from massgen_mcp.config.loader import config_places, is_team, load_config, missing_keys
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.own_clis import OwnCli, installed_clis
from massgen_mcp.errors import MassgenError
from massgen_mcp.runs.doctor.result import DoctorCheck


async def check_models(cwd: Path, environ: Mapping[str, str]) -> list[DoctorCheck]:
    """Never raises; takes as long as the slowest server is waited for."""
    servers = await find_local_servers(environ)
    clis = await installed_clis(environ)
    return [*_servers(servers, environ), _team(servers, clis, environ), *_config(cwd, environ)]


def _servers(servers: list[LocalServer], environ: Mapping[str, str]) -> list[DoctorCheck]:
    checks = [DoctorCheck("model server", "ok", described(server)) for server in servers]
    found = {server.type for server in servers}
    for server in local_places(environ):
        if server.named and server.type not in found:
            message = f"{server.type} was set to {server.place}, where nothing answers with models that chat"
            checks.append(DoctorCheck("model server", "warn", message, "start it, load a model, or unset its variable"))
    places = ", ".join(f"{server.type} at {server.place}" for server in local_places(environ))
    return checks or [DoctorCheck("model server", "ok", f"none answers; looked for {places}")]


def _team(servers: list[LocalServer], clis: list[OwnCli], environ: Mapping[str, str]) -> DoctorCheck:
    try:
        team = team_of(environ, servers, local_places(environ), clis=clis)
    except MassgenError as error:
        return DoctorCheck("default team", "warn", "none", str(error))
    return DoctorCheck("default team", "ok", f"{team.description}: {_agents(team.config)}")


def _config(cwd: Path, environ: Mapping[str, str]) -> list[DoctorCheck]:
    """The config that is found from `cwd`, whose team is asked in place of the default one."""
    path = next(filter(is_team, config_places(cwd, environ)), None)
    if path is None:
        return []
    try:
        config = load_config(path, environ=environ, base_dir=cwd)
    except MassgenError as error:
        return [DoctorCheck("config", "fail", f"{path} cannot be used", str(error))]
    missing = missing_keys(config, environ)
    message = f"{path}, in place of the default team: {_agents(config)}"
    return [DoctorCheck("config", "warn" if missing else "ok", message, f"set {', '.join(missing)}" if missing else "")]


def _agents(config: Config) -> str:
    return ", ".join(f"{agent.id} ({agent.asked})" for agent in config.agents)
