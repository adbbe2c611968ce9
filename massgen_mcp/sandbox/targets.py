"""Things of the host that a command must not reach, set up for the probes, and a look at them afterwards.

Must not know what the attempts are; it only gives them their aims, and sees what became of these.
"""

import ctypes
import os
import resource
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from massgen_mcp.sandbox.policy import MIB, SCRATCH, WORKSPACE, LevelName, Policy, ResourceLimits, VisiblePath

BOUNDS = ResourceLimits(
    seconds=30, memory_bytes=128 * MIB, processes=40, open_files=64, disk_bytes=16 * MIB, files=1_000
)
_SHOWN, _WRITABLE, _LAYERED = "/context/shown", "/context/writable", "/context/layered"


_PLACES = ("workspace", "scratch", "outside", "shown", "writable", "layered")


class Targets:
    """`policy` is for the command that makes the attempts, `plan` is what it is told; `look` after it has ended."""

    def __init__(self, level: LevelName, image: str | None = None) -> None:
        self._stack = ExitStack()
        try:
            self._set(level, image)
        except BaseException:
            self._stack.close()
            raise

    def _set(self, level: LevelName, image: str | None) -> None:
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
        self._outside, self._workspace, self._shown = places["outside"], places["workspace"], places["shown"]
        self._layered = places["layered"]
        self._nonce, self._mark = secrets.token_hex(16), f"mark-{secrets.token_hex(16)}"
        self._victim = subprocess.Popen(
            ["/bin/sleep", "60"],
            env={"MASSGEN_PROBE_KEY": self._nonce},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._stack.callback(self._end_victim)
        self._settings = _settings(self._victim.pid)
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
                *(places["shown"] / name for name in ("hidden.txt", "hidden", "socket")),
                places["layered"] / "in" / "secret.txt",
            ),
            environ={"MASSGEN_PROBE": self._mark},
            bounds=BOUNDS,
            image=image,
        )
        self.plan = self._plan(level, places)

    def _plan(self, level: LevelName, places: dict[str, Path]) -> dict[str, Any]:
        inside = level != "sandbox-exec"
        disks = [path for path in Path("/dev").glob("*") if _is_disk(path)] if Path("/dev").is_dir() else []
        number = disks[0].stat().st_rdev if disks else os.makedev(8, 0)
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
            "key": self._nonce,
            "tcp": self._tcp.getsockname()[1],
            "tcp6": self._tcp6.getsockname()[1] if self._tcp6 else None,
            "udp": self._udp.getsockname()[1],
            "unix": str(self._base / "outside" / "socket"),
            "unix_shown": f"{_SHOWN if inside else places['shown']}/socket",
            "abstract": f"massgen-{self._nonce}",
            "disk": [os.major(number), os.minor(number)],
            "disks": [path.name for path in disks[:8]],
            "shared": self._nonce,
            "shm_key": self._shared_memory,
            **asdict(BOUNDS),
        }

    def _listen(self) -> None:
        self._tcp = self._socket(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._udp = self._socket(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._tcp6 = None
        with suppress(OSError):
            self._tcp6 = self._socket(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))
        self._unix = self._socket(socket.AF_UNIX, socket.SOCK_STREAM, str(self._outside / "socket"))
        self._unix_shown = self._socket(socket.AF_UNIX, socket.SOCK_STREAM, str(self._shown / "socket"))
        self._abstract = None
        if sys.platform == "linux":
            self._abstract = self._socket(socket.AF_UNIX, socket.SOCK_STREAM, f"\0massgen-{self._nonce}")
        self._shared_memory = 0
        with suppress(OSError, AttributeError):
            self._make_shared_memory()

    def _socket(self, family: int, kind: int, address: str | tuple[str, int]) -> socket.socket:
        made = self._stack.enter_context(socket.socket(family, kind))
        made.bind(address)
        if kind == socket.SOCK_STREAM:
            made.listen(16)
        made.setblocking(False)
        return made

    def _make_shared_memory(self) -> None:
        if sys.platform != "linux":
            return
        file = Path("/dev/shm", self._nonce)  # noqa: S108 - looked for from inside
        file.write_text("shared")
        self._stack.callback(file.unlink, missing_ok=True)
        libc = ctypes.CDLL(None, use_errno=True)
        key = secrets.randbelow(1 << 30) + 1
        segment = libc.shmget(key, 4096, 0o1600)
        if segment >= 0:
            self._shared_memory = key
            self._stack.callback(libc.shmctl, segment, 0, None)

    def look(self) -> dict[str, str]:
        """What the host sees of the attempts; each of these is open or closed."""
        found = {
            "host_files_changed": any(_file_state(file) != before for file, before in self._before.items()),
            "host_files_appeared": {path.name for path in self._outside.iterdir()} != {"secret.txt", "socket"}
            or {path.name for path in self._shown.iterdir()} != {"shown.txt", "hidden.txt", "hidden", "socket"}
            or {path.name for path in self._layered.rglob("*")} != {"old.txt", "in", "secret.txt"}
            or any(path.exists() for path in _strays(self._nonce)),
            "host_sockets_reached": any(map(_was_reached, self._sockets())),
            "host_victim_ended": self._victim.poll() is not None,
            "host_victim_changed": _settings(self._victim.pid) != self._settings,
            "host_devices_made": any(map(_is_device, self._workspace.rglob("*"))),
            "host_processes_left": _lives(self._mark),
        }
        return {name: "open" if wrong else "closed" for name, wrong in found.items()}

    def _sockets(self) -> Iterable[socket.socket]:
        made = (self._tcp, self._tcp6, self._udp, self._unix, self._unix_shown, self._abstract)
        return (one for one in made if one is not None)

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


def _strays(nonce: str) -> Iterable[Path]:
    return (Path("/massgen-probe"), Path("/dev/shm", f"{nonce}-new"))  # noqa: S108 - looked for, not made


def _file_state(path: Path) -> tuple[object, ...]:
    try:
        found = path.stat(follow_symlinks=False)
        return (found.st_mode, found.st_mtime_ns, found.st_uid, found.st_nlink, path.read_bytes(), *os.listxattr(path))
    except (FileNotFoundError, AttributeError):
        return ("absent",) if not os.path.lexists(path) else ("there", path.read_bytes())


def _was_reached(made: socket.socket) -> bool:
    with suppress(BlockingIOError):
        if made.type == socket.SOCK_DGRAM:
            return bool(made.recv(64))
        accepted, _ = made.accept()
        accepted.close()
        return True
    return False


def _is_disk(path: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISBLK(path.stat().st_mode) and os.access(path, os.R_OK)
    return False


def _is_device(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_ISBLK(mode) or stat.S_ISCHR(mode)


def _lives(mark: str) -> bool:
    """Whether a process has this in its environment."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes():
                return True
    return False


def _settings(pid: int) -> tuple[object, ...]:
    """What another process can change of a process without harming it at once."""
    with suppress(OSError, AttributeError):
        limits = [resource.prlimit(pid, which) for which in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE)]
        return (os.getpriority(os.PRIO_PROCESS, pid), os.sched_getaffinity(pid), os.sched_getscheduler(pid), limits)
    return ()


def _link(path: str) -> str:
    with suppress(OSError):
        return os.readlink(path)  # noqa: PTH115 - no path of a file
    return ""
