"""Which agents that are programs or frameworks of their own can work here. Part of the doctor."""

import importlib.metadata
import os
from collections.abc import Mapping
from importlib.metadata import EntryPoint

import anyio

from massgen_mcp.config import ag2_agents
from massgen_mcp.config.access import acp_agents, agent_clis
from massgen_mcp.config.access.acp_presets import PRESETS
from massgen_mcp.config.access.members import adapter_named
from massgen_mcp.config.adapters import MEMBERS, installed, where_from
from massgen_mcp.config.models.backends import AcpBackendConfig
from massgen_mcp.home import known_levels
from massgen_mcp.runs.doctor.result import DoctorCheck
from massgen_mcp.sandbox import Wishes, choose

VERSION_SECONDS = 20


async def check_frameworks(environ: Mapping[str, str]) -> list[DoctorCheck]:
    """Never raises. Nobody needs them, so what is not there is no fault."""
    return [await _claude_code(environ), _ag2(), await _acp(environ), *map(_adapter, installed(MEMBERS).values())]


def _adapter(entry: EntryPoint) -> DoctorCheck:
    try:
        doctor = adapter_named(entry.name).doctor
        stands = doctor(os.environ) if doctor else "installed"
    except Exception as error:  # noqa: BLE001 - code of others is asked
        advice = f"install {where_from(entry)} anew, or remove it"
        return DoctorCheck(f"Adapter {entry.name}", "warn", str(error)[:500], advice)
    return DoctorCheck(f"Adapter {entry.name}", "ok", f"{stands}; {where_from(entry)}")


async def _claude_code(environ: Mapping[str, str]) -> DoctorCheck:
    path = agent_clis.find_cli(environ)
    if path is None:
        message = "not installed; only agents of type claude_code need it"
        return DoctorCheck("Claude Code", "ok", message, agent_clis.HOW_TO_GET_IT)
    version = await _version_of(path, environ)
    if version is None:
        return DoctorCheck("Claude Code", "warn", f"{path} does not say its version", "install it anew")
    set_here = [name for name in (agent_clis.API_KEY, agent_clis.TOKEN) if environ.get(name)]
    logins = [f"{name} is set" for name in set_here]
    if agent_clis.own_login(environ):
        logins.append("your own login is there, used where a config says use_login: true")
    message = f"{version} at {path}; {', '.join(logins) or 'no login'}"
    advice = "" if logins else f"set {agent_clis.API_KEY}, or {agent_clis.TOKEN} (from `claude setup-token`)"
    return DoctorCheck("Claude Code", "ok", message, advice)


async def _acp(environ: Mapping[str, str]) -> DoctorCheck:
    enclosure = await choose(Wishes("bubblewrap"), known_levels(environ))
    lines: list[str] = []
    for name, preset in PRESETS.items():
        config = AcpBackendConfig(type="acp", preset=name)
        if acp_agents.find_program(config, environ) is None:
            continue
        logins = ["your own login is there, used where a config says login: own"]
        logins = logins if acp_agents.own_login(config, environ) else []
        logins += [f"{key} is set" for key in preset.key_variables if environ.get(key)]
        bare = "not enclosed, without a shell" if preset.asks else "refused without bubblewrap"
        lines.append(f"{name} ({', '.join(logins) or 'no login'}; {'enclosed' if enclosure.level else bare})")
    message = "; ".join(lines) or "none installed; only agents of type acp need one"
    return DoctorCheck("Agent CLIs over ACP", "ok", message, "" if enclosure.level else enclosure.why)


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
        return DoctorCheck("AG2", "ok", "not installed; only agents of type ag2 need it", ag2_agents.EXTRA)
    return DoctorCheck("AG2", "ok", importlib.metadata.version("ag2"))
