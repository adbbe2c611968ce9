"""Where an agent CLI runs: in bubblewrap with a home of its own and a few hosts, or bare. And what it reaches there.

Its network is that of every command in bubblewrap (`sandbox/network.py`): relays to the listed hosts, and nothing else.
"""

import os
import shutil
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from massgen_mcp.backends.frameworks.agent_process import PASSED_ON
from massgen_mcp.config.access.acp_agents import hosts_of, own_login, preset_of, variables_of
from massgen_mcp.config.models.backends import AcpBackendConfig
from massgen_mcp.sandbox import SCRATCH, PipedProgram, Policy, ResourceLimits, VisiblePath, bare, sandboxed
from massgen_mcp.sandbox.policy import GIB

SHARED = "/agent"
"""Where the socket and the relay are, inside."""
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
        self.servers = self.shared / "servers.json"
        """What a CLI that takes no MCP servers over the protocol finds as its own settings. It can only read it."""

    def make(self) -> None:
        for directory in (self.root, self.work, self.home, self.shared):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.shared / TEAM_SOCKET).unlink(missing_ok=True)
        shutil.copyfile(Path(__file__).with_name("relay.py"), self.shared / RELAY)

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Plan:
    """`policy`: None for what runs bare."""

    command: list[str]
    variables: Mapping[str, str]
    policy: Policy | None


@asynccontextmanager
async def started(
    config: AcpBackendConfig, environ: Mapping[str, str], program: str, place: AgentHome, *, enclosed: bool
) -> AsyncGenerator[PipedProgram]:
    """The CLI; nothing of it is left when the block is. Raises `OSError`, `SandboxFailed`."""
    plan = await anyio.to_thread.run_sync(lambda: _plan(config, environ, program, place, enclosed=enclosed))
    cli = bare(plan.command, place.work, plan.variables)
    if plan.policy is not None:
        cli = sandboxed(plan.command, plan.policy, "bubblewrap")
    async with cli as program_inside:
        yield program_inside


def _plan(
    config: AcpBackendConfig, environ: Mapping[str, str], program: str, place: AgentHome, *, enclosed: bool
) -> _Plan:
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
    settings = list(_list_settings(config, environ, place))
    if not enclosed:
        for name, file, _ in settings:
            link = place.home / name
            link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(file)
        passed = {name: environ[name] for name in PASSED_ON if name in environ}
        return _Plan(command, {**passed, **variables, "HOME": str(place.home), "TMPDIR": str(place.home)}, None)
    shown = [VisiblePath(place.shared, SHARED)]
    shown += [VisiblePath(file, f"{SCRATCH}/{name}", writable=writable) for name, file, writable in settings]
    for name in _CERTIFICATES:
        if (value := environ.get(name)) and Path(value).exists():
            variables[name] = value
            shown.append(VisiblePath(Path(value), value))
    directories = tuple(dict.fromkeys(_find_program_directory(Path(one), environ) for one in programs))
    policy = Policy(
        place.work,
        place.home,
        tuple(shown),
        network=hosts_of(config),
        environ=variables,
        toolchains=directories,
        bounds=_BOUNDS,
    )
    return _Plan(command, variables, policy)


def _list_settings(
    config: AcpBackendConfig, environ: Mapping[str, str], place: AgentHome
) -> Iterator[tuple[str, Path, bool]]:
    """By names below its home: files that it finds there, and whether it may write them."""
    preset = preset_of(config)
    if (
        config.login == "own" and (login := own_login(config, environ)) is not None
    ):  # the file itself: a token that the CLI renews is no other one for its user
        yield preset.login_file, login, True
    if preset.servers_file:
        place.servers.write_text("{}")
        yield preset.servers_file, place.servers, False


def _find_program_directory(program: Path, environ: Mapping[str, str]) -> Path:
    """Find the files that a program needs: the packages of Node that it is one of, or the directory that it lies in.
    The program alone, where that would be the user's home.
    """
    parts = program.parts
    if "node_modules" in parts:
        return Path(*parts[: parts.index("node_modules") + 1])
    home = Path(os.path.realpath(environ.get("HOME") or "/"))
    if home.is_relative_to(program.parent):
        return program
    return program.parent
