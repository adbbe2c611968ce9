"""Things of the host that a command must not reach, set up for the probes, and a look at them afterwards.

Must not know the attempts; it only gives them their aims, and sees what became of these.
"""

import hashlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import anyio

from massgen_mcp.sandbox.policy import SCRATCH, WORKSPACE, LevelName, Policy, VisiblePath
from massgen_mcp.sandbox.specification import MIB, ResourceLimits

BOUNDS = ResourceLimits(
    seconds=30, memory_bytes=128 * MIB, processes=40, open_files=64, disk_bytes=16 * MIB, files=1_000
)
_SHOWN, _WRITABLE, _LAYERED = "/context/shown", "/context/writable", "/context/layered"
_PLACES = ("workspace", "scratch", "outside", "shown", "writable", "layered")
_PUBLIC = frozenset(
    {"HOME", "HOSTNAME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "PWD", "SHLVL", "TERM", "TMPDIR", "USER"}
)
"""Variables that an image may well have with the same values as we."""


class Targets:
    """`policy` is for the command that makes the attempts, `plan` is what it is told; `look` after it has ended."""

    def __init__(self, level: LevelName, image: str | None = None, environ: Mapping[str, str] = os.environ) -> None:
        """`environ`: ours, of which nothing may be found inside."""
        self._stack = ExitStack()
        try:
            self._set(level, image, environ)
        except BaseException:
            self._stack.close()
            raise

    def _set(self, level: LevelName, image: str | None, environ: Mapping[str, str]) -> None:
        self._base = Path(tempfile.mkdtemp(prefix="massgen-probe-", dir=_parent()))
        self._stack.callback(shutil.rmtree, self._base, ignore_errors=True)
        places = {name: self._base / name for name in _PLACES}
        for place in places.values():
            place.mkdir(mode=0o700)
        (places["shown"] / "hidden").mkdir()
        (places["layered"] / "in").mkdir()
        self._secret = places["outside"] / "secret.txt"
        self._files = {
            self._secret: "closed\n",
            places["shown"] / "shown.txt": "shown\n",
            places["shown"] / "hidden.txt": "hidden\n",
            places["shown"] / "hidden" / "secret.txt": "hidden\n",
            places["layered"] / "old.txt": "shown\n",
            places["layered"] / "in" / "secret.txt": "hidden\n",
        }
        for file, text in self._files.items():
            file.write_text(text)
            file.chmod(0o600)
        self._outside, self._shown, self._layered = places["outside"], places["shown"], places["layered"]
        self._nonce, self._mark = secrets.token_hex(16), f"mark-{secrets.token_hex(16)}"
        self._victim = subprocess.Popen(["/bin/sleep", "60"], env={}, stdin=subprocess.DEVNULL)
        self._stack.callback(self._end_victim)
        self._listen()
        self._before = {file: _file_state(file) for file in self._files}
        self.policy = Policy(
            workspace=places["workspace"],
            scratch=places["scratch"],
            shown=(
                VisiblePath(places["shown"], _SHOWN),
                VisiblePath(places["writable"], _WRITABLE, writable=True),
                VisiblePath(places["layered"], _LAYERED, layered=True),
            ),
            hidden=(
                *(places["shown"] / name for name in ("hidden.txt", "hidden")),
                places["layered"] / "in" / "secret.txt",
            ),
            environ={"MASSGEN_PROBE": self._mark},
            bounds=BOUNDS,
            image=image,
        )
        self.listed = f"localhost:{self._listed.getsockname()[1]}"
        """What the attempts may connect to, where the level has a network."""
        self.plan = self._plan(level, places, environ)

    def _plan(self, level: LevelName, places: dict[str, Path], environ: Mapping[str, str]) -> dict[str, Any]:
        inside = level != "sandbox-exec"
        own = {**self.policy.environ, **dict.fromkeys(_PUBLIC)}
        salt = secrets.token_hex(8)
        ours = (os.fsencode(f"{salt}{name}={value}") for name, value in environ.items() if name not in own)
        return {
            "workspace": WORKSPACE if inside else str(places["workspace"]),
            "scratch": SCRATCH if inside else str(places["scratch"]),
            "shown": _SHOWN if inside else str(places["shown"]),
            "writable": _WRITABLE if inside else str(places["writable"]),
            "layered": _LAYERED if inside else str(places["layered"]),
            "outside": str(places["outside"]),
            "secret": str(self._secret),
            "parent": os.getpid(),
            "victim": self._victim.pid,
            "pid_namespace": _link("/proc/self/ns/pid"),
            "salt": salt,
            "variables": [hashlib.sha256(variable).hexdigest() for variable in ours],
            "listed": self._listed.getsockname()[1],
            "tcp": self._tcp.getsockname()[1],
            "unix": str(self._outside / "socket"),
            "abstract": f"massgen-{self._nonce}",
            "shared": self._nonce,
            **BOUNDS.to_plain(),
        }

    def _listen(self) -> None:
        self._tcp = self._socket(socket.AF_INET, ("127.0.0.1", 0))
        self._listed = self._socket(socket.AF_INET, ("127.0.0.1", 0))
        self._others = [self._tcp, self._socket(socket.AF_UNIX, str(self._outside / "socket"))]
        if sys.platform == "linux":
            self._others.append(self._socket(socket.AF_UNIX, f"\0massgen-{self._nonce}"))
        with suppress(OSError):
            file = Path("/dev/shm", self._nonce)  # noqa: S108 - looked for from inside
            file.write_text("shared")
            self._stack.callback(file.unlink, missing_ok=True)

    def _socket(self, family: int, address: str | tuple[str, int]) -> socket.socket:
        made = self._stack.enter_context(socket.socket(family))
        made.bind(address)
        made.listen(16)
        made.setblocking(False)
        return made

    async def wait_for_connection(self, seconds: float) -> None:
        """Wait up to `seconds` for a connection to the listed socket: the relay connects later than the command."""
        with anyio.move_on_after(seconds):
            await anyio.wait_readable(self._listed)

    def look(self) -> dict[str, str]:
        """The outcomes as the host sees them, by the name of the attempt or of what was looked at."""
        found = {
            "usual_network": _was_reached(self._listed),
            "host_files_changed": any(_file_state(file) != before for file, before in self._before.items()),
            "host_files_appeared": {path.name for path in self._outside.iterdir()} != {"secret.txt", "socket"}
            or {path.name for path in self._shown.iterdir()} != {"shown.txt", "hidden.txt", "hidden"}
            or {path.name for path in self._layered.rglob("*")} != {"old.txt", "in", "secret.txt"}
            or Path("/massgen-probe").exists(),
            "host_sockets_reached": any(map(_was_reached, self._others)),
            "host_victim_ended": self._victim.poll() is not None,
            "host_processes_left": _is_alive(self._mark),
        }
        return {name: "open" if seen else "closed" for name, seen in found.items()}

    def _end_victim(self) -> None:
        self._victim.kill()
        self._victim.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _parent() -> str | None:
    """Where nothing of the host is shown at the same path: the usual place for temporary files is one inside, too."""
    return "/var/tmp" if os.access("/var/tmp", os.W_OK | os.X_OK) else None  # noqa: S108 - a directory of ours in it


def _file_state(path: Path) -> tuple[object, ...]:
    found = path.stat(follow_symlinks=False)
    return (found.st_mode, found.st_mtime_ns, found.st_uid, found.st_nlink, path.read_bytes())


def _was_reached(made: socket.socket) -> bool:
    with suppress(BlockingIOError):
        accepted, _ = made.accept()
        accepted.close()
        return True
    return False


def _is_alive(mark: str) -> bool:
    """Whether a process has this in its environment."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes():
                return True
    return False


def _link(path: str) -> str:
    with suppress(OSError):
        return os.readlink(path)  # noqa: PTH115 - no path of a file
    return ""
