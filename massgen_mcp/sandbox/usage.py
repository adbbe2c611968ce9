"""What a command uses, counted by looking at it: memory of its processes, and files in its writable places.

Counts also what no process has in its own memory, and no directory shows: files without a name that are open, and
pages of a file in memory. `filters` bounds what System V keeps for a command. Loaded by `supervisor` from beside it,
which is why it knows no other module of ours but the types that both sides share.
"""

import ctypes
import errno
import os
import stat
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from massgen_mcp.sandbox.specification import ResourceLimits

LIBC = ctypes.CDLL(None, use_errno=True)
LINUX = sys.platform == "linux"
WALK_SECONDS = 0.5
"""Between two looks at the writable places, at least."""
WALK_SHARE = 10
"""A look at the writable places takes at most one part in so many of the time."""
KCMP = {"x86_64": 312, "aarch64": 272}
KCMP_FILES = 2
NAMELESS = 0
"""How many names a file has that was removed and is still open."""


class OpenFiles(NamedTuple):
    """Open files without a name: what they take, by device and number."""

    memory: dict[tuple[int, int], int]
    disk: dict[tuple[int, int], int]
    hidden: set[int]
    """Processes that do not let themselves be looked at."""


def count_memory(processes: Collection[int], files: dict[tuple[int, int], int], most: int) -> int:
    """Return the bytes that these processes hold, and the open `files` that are only in memory. Exact only beyond
    `most`: what several processes share is then divided among them, which takes the kernel longer.
    """
    known = sum(files.values())
    used = known + sum(map(_count_memory, processes))
    if used <= most or not LINUX:
        return used
    return known + sum(map(_measure_memory, processes))


class Disk:
    """What lies in the writable places. They are walked only now and then: at once when much has been written.

    What lay in a person's directory (`growing`) does not count; a workspace that was too full already may not grow.
    """

    def __init__(self, writable: Sequence[str], growing: Sequence[str], bounds: "ResourceLimits") -> None:
        self._writable, self._growing = writable, growing
        self._bounds = bounds
        (there, files_there), (own, own_files) = self._measure()
        self._most_bytes = there + max(own, bounds.disk_bytes)
        self._most_files = files_there + max(own_files, bounds.files)
        self._next_walk = 0.0
        self._free = -1
        self._walked = 0

    def beyond(self, nameless: int) -> str | None:
        """The bound that is exceeded, if one is. `nameless`: bytes of open files that no directory shows."""
        free = self._measure_space()
        now = time.monotonic()
        if now >= self._next_walk or abs(self._free - free) >= self._bounds.disk_bytes // 8:
            self._free = free
            try:
                (there, files_there), (own, own_files) = self._measure()
            except RecursionError:
                return "files"
            after = time.monotonic()
            self._next_walk = after + max(WALK_SECONDS, WALK_SHARE * (after - now))
            self._walked = there + own
            if files_there + own_files > self._most_files:
                return "files"
        return "disk" if self._walked + nameless > self._most_bytes else None

    def _measure(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return _measure(self._growing, lend=False), _measure(self._writable, lend=True)

    def _measure_space(self) -> int:
        found = os.statvfs(self._writable[0])
        return found.f_bavail * found.f_frsize


def open_files(processes: Iterable[int]) -> OpenFiles:
    """Open files of these processes that have no name any more, or never had one."""
    found = OpenFiles({}, {}, set())
    for pid in processes if LINUX else ():
        try:
            for path in _open_files(pid):
                with suppress(OSError):
                    seen = os.stat(path)
                    if seen.st_nlink == NAMELESS and stat.S_ISREG(seen.st_mode):
                        where = found.memory if seen.st_dev == _of_memory() else found.disk
                        where[seen.st_dev, seen.st_ino] = seen.st_blocks * 512
        except PermissionError:
            if _count_memory(pid):  # one that has ended has none
                found.hidden.add(pid)
        except OSError:
            pass  # it ended meanwhile
    return found


def _open_files(pid: int) -> Iterator[str]:
    """The program of the process, and what it has open. A thread may have a table of its own."""
    yield f"/proc/{pid}/exe"
    for task in os.listdir(f"/proc/{pid}/task"):
        if int(task) == pid or not _same_files(pid, int(task)):
            with suppress(FileNotFoundError, ProcessLookupError):
                table = f"/proc/{pid}/task/{task}/fd"
                yield from (f"{table}/{name}" for name in os.listdir(table))


def _same_files(one: int, other: int) -> bool:
    return LIBC.syscall(KCMP.get(os.uname().machine, -1), one, other, KCMP_FILES, 0, 0) == 0


@cache
def _of_memory() -> int:
    """The device of files that are only in memory and never had a name."""
    made = os.memfd_create("massgen")
    try:
        return os.fstat(made).st_dev
    finally:
        os.close(made)


def _count_memory(pid: int) -> int:
    """What the process has in memory beside files, and what the kernel needs to find it; 0 where that is not known."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            fields = dict(line.split()[:2] for line in file if line.startswith((b"RssAnon", b"RssShmem", b"VmPTE")))
        return sum(map(int, fields.values())) * 1024
    except (OSError, ValueError):
        return 0


def _measure_memory(pid: int) -> int:
    """As `_count_memory`, but only its share of what several processes have."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            fields = dict(line.split()[:2] for line in file.readlines()[1:])
        with open(f"/proc/{pid}/status", "rb") as file:
            tables = sum(int(line.split()[1]) for line in file if line.startswith(b"VmPTE"))
        return (int(fields[b"Pss_Anon:"]) + int(fields[b"Pss_Shmem:"]) + tables) * 1024
    except (OSError, ValueError, KeyError):
        return _count_memory(pid)


def _measure(places: Sequence[str], *, lend: bool) -> tuple[int, int]:
    """Bytes on disk and the number of files and directories below these places."""
    size = count = 0
    for place in places:
        for entry in _walk(place, lend=lend):
            size += entry
            count += 1
    return size, count


class _Directory:
    """An open directory, closed with the last reference to it. With `lend` its owner may look into it meanwhile, if it
    has forbidden that to itself.
    """

    def __init__(self, name: str, above: "_Directory | None", *, lend: bool) -> None:
        self.descriptor, self._mode = -1, -1
        flags = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        where = above.descriptor if above else None
        if lend and LINUX and os.geteuid():
            self._open_lent(os.open(name, flags | os.O_PATH, dir_fd=where))
        else:
            self.descriptor = os.open(name, flags | os.O_RDONLY, dir_fd=where)

    def _open_lent(self, handle: int) -> None:
        path = f"/proc/self/fd/{handle}"
        seen = os.fstat(handle)
        mode = stat.S_IMODE(seen.st_mode)
        lent = mode & 0o500 != 0o500 and seen.st_uid == os.geteuid()
        try:
            if lent:
                os.chmod(path, mode | 0o500)
                self._mode = mode
            self.descriptor = os.open(path, os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            if lent and self.descriptor < 0:
                os.chmod(path, mode)
            os.close(handle)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            if self._mode >= 0:
                with suppress(OSError):
                    os.fchmod(self.descriptor, self._mode)
            os.close(self.descriptor)


def _walk(place: str, *, lend: bool) -> Iterator[int]:
    """The sizes on disk of everything below a directory; follows no links, and passes over what vanishes meanwhile.

    Raises `RecursionError` where the tree is so deep that not even directories can be opened one by one.
    """
    pending: list[tuple[str, _Directory | None]] = [(place, None)]
    while pending:
        name, above = pending.pop()
        try:
            directory = _Directory(name, above, lend=lend)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise RecursionError(place) from error
            continue
        with suppress(OSError), os.scandir(directory.descriptor) as items:
            for item in items:
                with suppress(OSError):
                    if item.is_dir(follow_symlinks=False):
                        pending.append((item.name, directory))
                    yield item.stat(follow_symlinks=False).st_blocks * 512
