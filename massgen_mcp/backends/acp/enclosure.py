"""Where an agent CLI runs: in bubblewrap with a home of its own and a few hosts, or bare. And what it reaches there.

Inside it has no network. A relay beside it listens as its proxy, and speaks over a Unix socket with the gateway here,
which lets single hosts through.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import anyio.to_thread

from massgen_mcp.backends.acp.team_server import listening
from massgen_mcp.backends.frameworks.agent_process import PASSED_ON
from massgen_mcp.config.access.acp_agents import hosts_of, own_login, preset_of, variables_of
from massgen_mcp.config.models.backends import AcpBackendConfig
from massgen_mcp.sandbox import SCRATCH, PipedProgram, Policy, ResourceLimits, VisiblePath, bare, interpreter, sandboxed
from massgen_mcp.sandbox.policy import GIB

SHARED = "/agent"
"""Where the sockets and the relay are, inside."""
RELAY, TEAM_SOCKET, GATEWAY_SOCKET = "relay.py", "team", "gateway"
MAX_HEAD_BYTES = 64 * 1024
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
        for name in (TEAM_SOCKET, GATEWAY_SOCKET):
            (self.shared / name).unlink(missing_ok=True)
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
    async with AsyncExitStack() as stack:
        if plan.policy is not None:
            gateway = Gateway(hosts_of(config))
            stack.callback(gateway.close)
            await gateway.open(place.shared / GATEWAY_SOCKET)
            inside = [interpreter(), "-I", "-S", f"{SHARED}/{RELAY}", "gateway", f"{SHARED}/{GATEWAY_SOCKET}"]
            cli = sandboxed([*inside, *plan.command], plan.policy, "bubblewrap")
        else:
            cli = bare(plan.command, place.work, plan.variables)
        yield await stack.enter_async_context(cli)


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
    settings = list(_settings(config, environ, place))
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
    directories = tuple(dict.fromkeys(_program_directory(Path(one), environ) for one in programs))
    policy = Policy(place.work, place.home, tuple(shown), environ=variables, toolchains=directories, bounds=_BOUNDS)
    return _Plan(command, variables, policy)


def _settings(
    config: AcpBackendConfig, environ: Mapping[str, str], place: AgentHome
) -> Iterator[tuple[str, Path, bool]]:
    """By names below its home: files that it finds there, and whether it may write them."""
    preset = preset_of(config)
    login = own_login(config, environ) if config.login == "own" else None
    if login is not None:  # the file itself: a token that the CLI renews is no other one for its user
        yield preset.login_file, login, True
    if preset.servers_file:
        place.servers.write_text("{}")
        yield preset.servers_file, place.servers, False


def _program_directory(program: Path, environ: Mapping[str, str]) -> Path:
    """What has to be readable for a program: the packages of Node that it is one of, or the directory that it lies in.
    The program alone, where that would be somebody's home.
    """
    parts = program.parts
    if "node_modules" in parts:
        return Path(*parts[: parts.index("node_modules") + 1])
    home = Path(os.path.realpath(environ.get("HOME") or "/"))
    return program if home.is_relative_to(program.parent) else program.parent


class Gateway:
    """A proxy for HTTP on a Unix socket, which connects to these hosts, each as `host:port`, and to no other."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = frozenset(hosts)
        self._server: asyncio.Server | None = None
        self._carrying: set[asyncio.Task[None]] = set()

    async def open(self, place: Path) -> None:
        self._server = await asyncio.start_unix_server(self._serve, sock=listening(place), limit=MAX_HEAD_BYTES)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._carrying:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._carrying.add(task)
            task.add_done_callback(self._carrying.discard)
        try:
            await self._connect(reader, writer)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever is cut off sees that
        finally:
            writer.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, address, *_ = head.decode("latin-1").split(" ", 2)
        url = urlsplit(f"//{address}" if method == "CONNECT" else address)
        host, port = url.hostname or "", url.port or 80
        if f"{host}:{port}" not in self._hosts:
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        far_reader, far_writer = await asyncio.open_connection(host, port)
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                far_writer.write(head)
            await asyncio.gather(_carry(reader, far_writer), _carry(far_reader, writer))
        finally:
            far_writer.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
