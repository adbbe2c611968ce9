"""`python -m tests.sandbox.table LEVEL [SCRIPT]`: tries a level of the sandbox as whoever runs this, and prints the
report, or what the attempts of a script came to.

Also which levels and users a machine has, for the tests.
"""

import ctypes
import json
import os
import secrets
import socket
import subprocess
import sys
import sysconfig
import threading
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Self, cast

import anyio
import pytest

from massgen_mcp.sandbox.levels import BY_ITSELF, interpreter, present
from massgen_mcp.sandbox.policy import LevelName, Policy, VisiblePath, readable
from massgen_mcp.sandbox.probe import LevelReport, try_level
from massgen_mcp.sandbox.process import spawn
from massgen_mcp.sandbox.project_tools import TOOL_CHAINS, project_tools
from massgen_mcp.sandbox.targets import Targets
from tests.commands import ROOT
from tests.sandbox.tool_home import MARKS, SEEN, UNSEEN, changed, plant

ORDINARY = 60_000 + os.getpid() % 5_000
"""Nobody else's number: the kernel bounds all processes of a user together, and tests run at the same time."""
NO_HOME = "/dev/null/home"
"""Nothing can be there on any machine. `/nonexistent` is where a neighbour may have made a directory."""
LEVELS: tuple[LevelName, ...] = tuple(level for level in BY_ITSELF if present(level) is None)
"""Those that this machine has."""
User = Literal["root", "ordinary"]
USERS: tuple[User, ...] = ("root", "ordinary") if os.geteuid() == 0 else ("ordinary",)


def report_as(user: User, level: LevelName) -> LevelReport:
    """What trying the level comes to for this user. Skips the test where the ordinary user cannot run our Python."""
    if user == "root" or os.geteuid() != 0:
        return anyio.run(try_level, level)
    return LevelReport(**json.loads(as_ordinary("tests.sandbox.table", level)))


def attempts_as(user: User, level: LevelName, script: Path) -> dict[str, Any]:
    """What the attempts of a script come to in the level for this user, and what the host sees of them."""
    if user == "root" or os.geteuid() != 0:
        return anyio.run(attempted, level, script)
    return dict(json.loads(as_ordinary("tests.sandbox.table", level, str(script))))


async def attempted(
    level: LevelName, script: Path, only: tuple[str, ...] = (), *, opened: bool = False
) -> dict[str, Any]:
    """What attempts come to, all of them or only these. `opened`: their aim on the network is listed, too."""
    with Targets(level) as targets, Further(targets) as further, TemporaryDirectory(dir="/var/tmp") as home:
        policy = further.policy(_with_tools(targets.policy, Path(home)), opened=opened)
        logins = [str(Path(home, name)) for name in UNSEEN]
        plan = {**targets.plan, **further.plan, "logins": logins, "tools": str(Path(home, SEEN[0]))}
        if only:
            plan["only"] = only
        argv = [interpreter(), "-I", "-S", "-c", script.read_text()]
        async with spawn(argv, policy, level, stdin=True) as process:
            assert process.stdin is not None
            await process.stdin.send(json.dumps(plan).encode() + b"\n")
            output = b""
            with suppress(anyio.EndOfStream):
                while True:
                    output += await process.stdout.receive()
            ended = await process.wait()
        assert ended.reason == "exited", (ended, output[-2000:])
        assert ended.code == 0, output[-2000:].decode()
        seen = {f"the host sees: {name}": outcome == "open" for name, outcome in targets.look().items()}
        seen.pop("the host sees: usual_network")
        seen["the host sees: tools changed"] = bool(changed(Path(home)))
        return {**json.loads(output), **seen, **further.look()}


def _with_tools(policy: Policy, home: Path) -> Policy:
    """With every recipe for tool chains on."""
    plant(home)
    with TemporaryDirectory() as project:
        for mark in MARKS:
            Path(project, mark).parent.mkdir(exist_ok=True)
            Path(project, mark).touch()
        tools = project_tools([Path(project)], {"HOME": str(home)})
    assert tools.names == tuple(chain.name for chain in TOOL_CHAINS)
    return replace(
        policy,
        shown=(*policy.shown, *tools.layered),
        toolchains=tools.readable,
        empty=tools.empty,
        environ={**policy.environ, **tools.environ},
        bounds=policy.bounds.with_seconds(300),
    )


class Further:
    """Aims that only the further attempts have; meanwhile a thread tries to reach a port that a command may open."""

    def __init__(self, targets: Targets) -> None:
        self._stack, self._over, self.reached = ExitStack(), threading.Event(), False
        self._targets, self._key = targets, secrets.token_hex(8).encode()
        self._temporary = Path(self._stack.enter_context(TemporaryDirectory(dir="/tmp")))
        for name in ("empty", "secret.txt", "link"):
            self._make(self._temporary / name)
        self._place = Path(self._stack.enter_context(TemporaryDirectory(dir="/var/tmp")))
        shown = self._place / "further.socket"
        self._sockets = [
            self._bound(socket.AF_INET, ("0.0.0.0", 0)),  # noqa: S104 - for a moment
            self._bound(socket.AF_INET6, ("::1", 0)),
            self._bound(socket.AF_UNIX, str(shown)),
        ]
        self._datagrams = self._stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._datagrams.bind(("127.0.0.1", 0))
        self._datagrams.setblocking(False)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.plan = {
            "key": self._key.decode(),
            "home": str(Path.home()),
            "temporary": str(self._temporary),
            "own_workspace": str(targets.policy.workspace),
            "home_names": [path.name for path in _listed(Path.home()) if not _is_shown(path)],
            "listen": self._port,
            "tcp_any": self._sockets[0].getsockname()[1],
            "tcp6": self._sockets[1].getsockname()[1],
            "unix_shown": str(shown) if targets.plan["shown"] == str(targets.policy.shown[0].host) else _SOCKET,
            "udp": self._datagrams.getsockname()[1],
            "address": own_address(),
            "shm_key": self._shared_memory(),
        }
        (targets.policy.workspace / "of-the-host.txt").write_text("known by another path\n")
        self._before = self._state()
        self._caller = threading.Thread(target=self._call, daemon=True)

    def policy(self, policy: Policy, *, opened: bool = False) -> Policy:
        """With one listed pair, or with the aim of the attempts as well, and the socket hidden."""
        network = (self._targets.listed, *([f"localhost:{self._targets.plan['tcp']}"] if opened else []))
        shown = (*policy.shown, VisiblePath(self._place, str(Path(_SOCKET).parent)))
        hidden = (*policy.hidden, self._place / "further.socket")
        return replace(policy, network=network, shown=shown, hidden=hidden)

    def look(self) -> dict[str, bool]:
        """What the host sees of the attempts at these aims."""
        found = {
            "a port was opened for the host": self.reached,
            "files of the machine changed": self._state() != self._before,
            "a socket was reached": any(map(_is_waiting, self._sockets)) or _is_waiting(self._datagrams),
        }
        return {f"the host sees: {name}": seen for name, seen in found.items()}

    def _make(self, path: Path) -> None:
        if path.name == "empty":
            path.mkdir()
        elif path.name == "link":
            path.symlink_to("secret.txt")
        else:
            path.write_text("of the host\n")

    def _state(self) -> list[tuple[object, ...]]:
        facts = ((path, path.lstat()) for path in sorted(self._temporary.rglob("*")))
        return [(path, one.st_mode, one.st_size, one.st_nlink, one.st_mtime_ns) for path, one in facts]

    def _bound(self, family: int, address: Any) -> socket.socket:
        made = self._stack.enter_context(socket.socket(family))
        made.bind(address)
        made.listen()
        made.setblocking(False)
        return made

    def _shared_memory(self) -> int:
        libc, key = ctypes.CDLL(None), secrets.randbelow(1 << 30) + 1
        segment = libc.shmget(key, 4096, 0o1600)
        if segment < 0:
            return 0
        self._stack.callback(libc.shmctl, segment, 0, None)
        return key

    def _call(self) -> None:
        while not self._over.wait(0.02):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=0.1) as caller:
                caller.settimeout(1)
                self.reached |= caller.recv(64) == self._key  # else another program got that port

    def __enter__(self) -> Self:
        self._caller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._caller.join()
        self._stack.close()


_SOCKET = "/context/further/further.socket"


def _listed(directory: Path) -> list[Path]:
    with suppress(OSError):
        return [*directory.iterdir()]
    return []


def _is_shown(path: Path) -> bool:
    return any(one.is_relative_to(path) for one in readable())


def _is_waiting(made: socket.socket) -> bool:
    with suppress(BlockingIOError):
        if made.type == socket.SOCK_DGRAM:
            return bool(made.recv(64))
        made.accept()[0].close()
        return True
    return False


def own_address() -> str:
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.connect(("192.0.2.1", 9))  # nothing is sent
        return str(made.getsockname()[0])
    return "127.0.0.1"


def as_ordinary(module: str, *arguments: str) -> str:
    """What the module prints for an ordinary user; skips the test where such a one cannot run our Python."""
    another: dict[str, Any] = {"user": ORDINARY, "group": ORDINARY, "extra_groups": []}
    command = [_python_of_others(), "-B", "-m", module, *arguments]
    environ = {"PATH": os.environ["PATH"], "HOME": NO_HOME, "PYTHONPATH": f"{ROOT}:{_packages()}"}
    done = subprocess.run(
        command,
        env=environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        **(another if os.geteuid() == 0 else {}),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _packages() -> str:
    return sysconfig.get_path("purelib")


def _python_of_others() -> str:
    """An interpreter of this version that other users may start."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for path in (interpreter(), f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        if Path(path).exists() and _reaches(Path(path).resolve()) and _reaches(Path(_packages())):
            return path
    return pytest.skip("no interpreter of this version, or not this project, can be read by other users here")


def _reaches(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in path.parents)


if __name__ == "__main__":
    which, *scripts = sys.argv[1:]
    chosen = cast("LevelName", which)
    print(
        json.dumps(
            attempts_as("ordinary", chosen, Path(scripts[0])) if scripts else asdict(anyio.run(try_level, chosen))
        )
    )
