"""Where an agent CLI runs: in bubblewrap with a home of its own and a few hosts, or bare. And what it reaches there.

Its network is that of every command in bubblewrap (`sandbox/network.py`): relays to the listed hosts, and nothing else.
"""

import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio.to_thread

from massgen_mcp.backends.acp.login import LoginCopy, write_home_file
from massgen_mcp.backends.frameworks.agent_process import select_variables
from massgen_mcp.config.access.acp_agents import hosts_of, own_login, preset_of, variables_of
from massgen_mcp.config.models.backends import AcpBackendConfig
from massgen_mcp.sandbox import PipedProgram, Policy, ResourceLimits, VisiblePath, bare, find_package, sandboxed
from massgen_mcp.sandbox.specification import GIB

SHARED, HOME = "/agent", "/agent-home"
"""Places inside: the socket, the relay and the home. Nothing is shown below what the CLI can write: it could put
a link there, and the place of what is shown would be made where that leads.
"""
RELAY, TEAM_SOCKET = "relay.py", "team"
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")
_BOUNDS = ResourceLimits(
    seconds=7 * 86_400, memory_bytes=4 * GIB, processes=512, open_files=4096, disk_bytes=2 * GIB, files=200_000
)


class AgentHome:
    """The directories of one agent, all of them in `root`, which is private to the user."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work, self.home, self.shared = root / "work", root / "home", root / "shared"
        self.temporary = root / "temporary"
        self.known_login = root / "known-login"

    def make(self) -> None:
        for directory in (self.root, self.work, self.home, self.shared, self.temporary):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.shared / TEAM_SOCKET).unlink(missing_ok=True)
        shutil.copyfile(Path(__file__).with_name("relay.py"), self.shared / RELAY)

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


@asynccontextmanager
async def started(
    config: AcpBackendConfig, environ: Mapping[str, str], program: str, place: AgentHome, *, enclosed: bool
) -> AsyncGenerator[PipedProgram]:
    """The CLI; nothing of it is left when the block is. Raises `OSError`, `SandboxFailed`."""
    cli = await anyio.to_thread.run_sync(lambda: _prepare(config, environ, program, place, enclosed=enclosed))
    async with cli as program_inside:
        yield program_inside


def _prepare(
    config: AcpBackendConfig, environ: Mapping[str, str], program: str, place: AgentHome, *, enclosed: bool
) -> AbstractAsyncContextManager[PipedProgram]:
    """Make its directories and files. Return the program, which has not been started."""
    place.make()
    preset = preset_of(config)
    variables = {name: environ[name] for name in variables_of(config) if environ.get(name)}
    variables |= {**preset.environ, **(preset.enclosed if enclosed else preset.bare)}
    if preset.model_variable and config.model != "default":
        variables[preset.model_variable] = config.model
    programs = [os.path.realpath(program) if enclosed else program]
    variable, own = preset.own_cli
    if variable and (found := shutil.which(own, path=environ.get("PATH"))):
        variables[variable] = os.path.realpath(found)
        programs.append(variables[variable])
    command = [programs[0], *preset.arguments]
    if preset.servers_file:
        write_home_file(place.home, preset.servers_file, b"{}")
    if not enclosed:
        _link_login(config, environ, place)
        home = str(place.home)
        return bare(command, place.work, {**select_variables(environ), **variables, "HOME": home, "TMPDIR": home})
    if (copy := make_login_copy(config, environ, place)) is not None:
        copy.begin()
    certificates: list[Path] = []
    for name in _CERTIFICATES:
        if (value := environ.get(name)) and Path(value).exists():
            variables[name] = value
            certificates.append(Path(value))
    packages = [part for one in programs for part in find_package(Path(one))]
    policy = Policy(
        place.work,
        place.temporary,
        (VisiblePath(place.shared, SHARED), VisiblePath(place.home, HOME, writable=True)),
        network=hosts_of(config),
        environ={**variables, "HOME": HOME},
        toolchains=tuple(dict.fromkeys((*packages, *certificates))),
        bounds=_BOUNDS,
    )
    return sandboxed(command, policy, "bubblewrap")


def make_login_copy(config: AcpBackendConfig, environ: Mapping[str, str], place: AgentHome) -> LoginCopy | None:
    """The copy of the user's own login that an enclosed CLI has, if the config wants that."""
    own = own_login(config, environ)
    return LoginCopy(own, place.home, preset_of(config).login_file, place.known_login) if own is not None else None


def _link_login(config: AcpBackendConfig, environ: Mapping[str, str], place: AgentHome) -> None:
    """Have a CLI that has all rights of the user use the file itself."""
    own = own_login(config, environ)
    if own is not None:
        link = place.home / preset_of(config).login_file
        link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(own)
