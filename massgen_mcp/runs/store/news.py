"""News of runs over UNIX sockets: whoever executes runs tells whoever waits for one, so that nobody looks in vain.

Nothing of a run goes through a socket, only that there is something new; what it is stands in the store and the event
log. So a socket that cannot be made, or that is gone, costs time and never an event. A socket lies in a private
directory with a short path, because some systems allow 103 bytes; a file where the runs are kept says which one.
"""

import errno
import os
import secrets
import socket
import stat
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio

MAX_PATH_BYTES = 103
"""The longest path of a socket that every system takes."""
NEWS = b"."
EVERYTHING, MILESTONES, WAKE = "follow", "milestones", "wake"
"""What a client says before the id of a run: that it wants to hear of everything new, or only of what changes the run's
state or phase; or that there is something new that the host does not know of itself.
"""
HELLO_BYTES = 128
HELLO_SECONDS = 5.0
RECEIVE_BYTES = 65_536
BACKLOG = 1024
YOUNG_SECONDS = 60.0
REST_SECONDS = 0.1
"""After which connections are taken again when there were too many open files."""
ADDRESS = ".news"
"""The end of the name of the file that holds the path of a host's socket."""


class SocketNewsHost:
    """How a process that executes runs tells those who wait for one that there is something new: not what it is, which
    stands in the store and the event log.

    Followers find it under `name` in `directory`.
    """

    def __init__(self, directory: Path, name: str, environ: Mapping[str, str]) -> None:
        self._directory, self._name, self._environ = directory, name, environ
        self._followers: dict[str, dict[socket.socket, bool]] = {}
        """By run; True: one that hears of everything."""
        self._woken = anyio.Event()

    def tell(self, run_id: str, *, milestone: bool = True) -> None:
        """There is something new of this run. `milestone`: its state or phase may have changed."""
        for follower, hears_everything in self._followers.get(run_id, {}).items():
            if milestone or hears_everything:
                _send(follower)

    async def woken(self) -> None:
        """Return as soon as somebody has called `Liveness.announce` for a run of this host since the last time."""
        await self._woken.wait()
        self._woken = anyio.Event()

    async def serve(self) -> None:
        """Let followers attach, until it is cancelled. Where that is impossible it returns, and nobody is told."""
        if (listener := _listener(self._environ)) is None:
            return
        path = Path(listener.getsockname())
        with listener, _published(self._directory / f"{self._name}{ADDRESS}", path):
            async with anyio.create_task_group() as tasks:
                while True:
                    await anyio.wait_readable(listener)
                    try:
                        client, _ = listener.accept()
                    except OSError as error:
                        if error.errno in (errno.EMFILE, errno.ENFILE):
                            await anyio.sleep(REST_SECONDS)
                        continue
                    client.setblocking(False)
                    tasks.start_soon(self._attend, client)

    async def _attend(self, client: socket.socket) -> None:
        """A client that leaves, or says what makes no sense, concerns nobody else."""
        with client, suppress(OSError):
            match (await _hello(client)).split():
                case ["wake", run_id]:
                    self._woken.set()
                    self.tell(run_id)
                case ["follow" | "milestones" as wish, run_id]:
                    await self._follow(run_id, client, hears_everything=wish == EVERYTHING)
                case _:
                    return

    async def _follow(self, run_id: str, client: socket.socket, *, hears_everything: bool) -> None:
        followers = self._followers.setdefault(run_id, {})
        followers[client] = hears_everything
        try:
            _send(client)  # from now on it misses nothing
            while await _received(client):
                pass
        finally:
            del followers[client]
            if not followers and self._followers.get(run_id) is followers:
                del self._followers[run_id]


def _send(follower: socket.socket) -> None:
    """One that has not read earlier news, or that has gone, needs no more."""
    with suppress(OSError):
        follower.send(NEWS)


async def _received(connection: socket.socket) -> bytes:
    """What comes next; empty at the end. Raises `OSError`."""
    while True:
        await anyio.wait_readable(connection)
        with suppress(BlockingIOError):
            return connection.recv(RECEIVE_BYTES)


async def _hello(client: socket.socket) -> str:
    """The first line of a client; empty if it says nothing that can be understood in time."""
    received = b""
    with anyio.move_on_after(HELLO_SECONDS):
        while b"\n" not in received and len(received) < HELLO_BYTES:
            if not (more := await _received(client)):
                break
            received += more
    line, end, _ = received.partition(b"\n")
    return line.decode("ascii", "replace") if end else ""


# -- the host's socket ------------------------------------------------------------------------------------------------


def _listener(environ: Mapping[str, str]) -> socket.socket | None:
    """A listening socket in the first directory that takes one."""
    for directory in _directories(environ):
        path = directory / f"{secrets.token_hex(8)}.sock"
        if len(os.fsencode(path)) > MAX_PATH_BYTES or not _private(directory):
            continue
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(path))
            path.chmod(0o600)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            with suppress(OSError):
                path.unlink(missing_ok=True)
            continue
        listener.setblocking(False)
        _sweep_sockets(directory)
        return listener
    return None


def _sweep_sockets(directory: Path) -> None:
    """Remove what killed hosts have left whose state directory is gone, too. A young socket may not listen yet."""
    for path in directory.glob("*.sock"):
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > YOUNG_SECONDS and not _listens(str(path)):
                path.unlink()


def _directories(environ: Mapping[str, str]) -> Generator[Path]:
    if runtime := environ.get("XDG_RUNTIME_DIR"):
        yield Path(runtime) / "massgen-mcp"
    for parent in dict.fromkeys((tempfile.gettempdir(), "/tmp")):  # noqa: S108 - private below, and looked at first
        yield Path(parent) / f"massgen-mcp-{os.getuid()}"


def _private(directory: Path) -> bool:
    """Whether it is there, ours alone, and no link that somebody else put there; it is made if need be."""
    if not directory.is_absolute():
        return False
    try:
        with suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


@contextmanager
def _published(address: Path, path: Path) -> Generator[None]:
    """`address` names `path` while the context lasts, and neither is left. What killed hosts have left is removed."""
    _sweep(address.parent)
    fresh = address.with_name(f".{address.name}.{secrets.token_hex(4)}")
    with suppress(OSError):  # then nobody follows
        fresh.touch(mode=0o600)
        fresh.write_bytes(os.fsencode(path))
        fresh.replace(address)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
            if _socket_at(address) == str(path):
                address.unlink()


def _sweep(directory: Path) -> None:
    for address in directory.glob(f"*{ADDRESS}"):
        with suppress(OSError):
            path = _socket_at(address)
            if not _listens(path):
                Path(path).unlink(missing_ok=True)
                address.unlink()


def _socket_at(address: Path) -> str:
    """Raises `OSError`."""
    return os.fsdecode(address.read_bytes())


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except OSError as error:
            return error.errno not in (errno.ECONNREFUSED, errno.ENOENT)
    return True


# -- the side of those who wait ---------------------------------------------------------------------------------------


class SocketFollower:
    """See `engine.Follower`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    async def changed(self) -> bool:
        """Return as soon as there is news since the last call; the first call returns at once. False: the host has
        gone, and there will be no more.
        """
        try:
            return bool(await _received(self._connection))
        except OSError:
            return False


@contextmanager
def following(directory: Path, name: str, run_id: str, *, milestones: bool = False) -> Generator[SocketFollower | None]:
    """Follow a run of the host `name` for as long as the context lasts; None if there is no such host. `milestones`:
    hear only of what may have changed its state or phase.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        try:
            connection.connect(_socket_at(directory / f"{name}{ADDRESS}"))
            connection.send(f"{MILESTONES if milestones else EVERYTHING} {run_id}\n".encode())
        except OSError:  # also a host whose backlog is full: who waits looks for itself then
            yield None
            return
        yield SocketFollower(connection)


def wake(directory: Path, name: str, run_id: str) -> bool:
    """Have a host read the open controls of its runs, and tell the followers of this one; False if there is none that
    listens.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1.0)
        try:
            client.connect(_socket_at(directory / f"{name}{ADDRESS}"))
            client.sendall(f"{WAKE} {run_id}\n".encode())
        except OSError:
            return False
    return True
