"""Stands between this program and one command, and lets nothing of the command outlive it.

Run as `python -I -S supervisor.py FD`, where FD is a socket: a specification comes in over it, then wishes; facts go
out. It ends the command when it has used what it may use, when it is told to, and when the other end of the socket is
gone, as after SIGKILL. It is a program of its own, of the standard library only, so that it starts quickly and nothing
of ours is at hand in the process that starts the command. One file on purpose: run by its path, it can import nothing
of ours; only what sandlock needs is loaded from beside it.
"""

import ctypes
import importlib
import importlib.util
import json
import math
import os
import random
import resource
import select
import signal
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 36, 38
SECCOMP_MODE_FILTER = 2
LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF, LANDLOCK_MAKE_SOCK = 444, 446, 1 << 9
LOOK_SECONDS = (0.05, 0.4)
"""How often a command is looked at: at least and at most."""
LOOKS_BY_PS = 20
"""Where another program has to be asked for the processes: only every so many times."""
GRACE_SECONDS = 0.3
"""Between asking a command to end and ending it."""
WALK_SECONDS = 0.5
"""Between two looks at the writable places, at least."""
WALK_SHARE = 10
"""A look at the writable places takes at most one part in so many of the time."""
SWEEP_SECONDS = 0.002
CONTAINER_FAILED = 125
"""Exit code of Docker and Podman where they could not start a container."""
NOT_STARTED = 97
"""Exit code of a process that could not become the command."""
LINUX = sys.platform == "linux"
PAGE = os.sysconf("SC_PAGE_SIZE")
CAPABILITIES = 64
CGROUPS = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup")


def main() -> None:
    control = int(sys.argv[1])
    os.set_inheritable(control, False)
    specification = _read(control)
    if specification is None:
        return
    if LINUX:
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    supervision = Supervision(control, specification)
    try:
        fact = supervision.supervise()
    finally:
        supervision.clear()
    _tell(control, fact)


class Supervision:
    """One command from its start to the end of its last process."""

    def __init__(self, control: int, specification: dict[str, Any]) -> None:
        self._control = control
        self._specification = specification
        self._bounds: dict[str, Any] = specification["bounds"]
        self._usage = Usage(specification["writable"], specification["growing"], self._bounds)
        self._group = _cgroup(specification["bounds"]["processes"]) if specification["own_group"] else None
        self._child = 0
        self._status: int | None = None
        """Of the launcher, once it has ended."""
        self._peak = 0

    def supervise(self) -> dict[str, Any]:
        began = time.monotonic()
        reports, reporting = os.pipe()
        gate, opening = os.pipe()
        supervisor = os.getpid()
        self._child = os.fork()
        if not self._child:
            os.close(reports)
            os.close(opening)
            self._become_command(supervisor, reporting, gate)
        os.close(reporting)
        os.close(gate)
        ended = os.pidfd_open(self._child) if LINUX else -1
        if LINUX:
            signal.signal(signal.SIGCHLD, self._hear_of_death)
        begun = self._admit(reports, opening) if self._specification["gate_at"] is not None else b""
        os.close(opening)
        reason = self._watch(began + self._bounds["seconds"], ended)
        status = self._end(gently=reason == "stopped")
        seconds = time.monotonic() - began
        self.clear()
        told = begun.decode() + _everything(reports)
        return _outcome(status, reason, told, seconds, self._peak, own_word=self._specification["own_word"])

    def _admit(self, reports: int, opening: int) -> bytes:
        """Let the command begin once its number of processes is limited: a limit that its launcher had would count all
        processes of this user. Where that fails it never begins.
        """
        line = b""
        while not line.endswith(b"\n") and (byte := os.read(reports, 1)):
            line += byte
        try:
            most = self._bounds["processes"]
            resource.prlimit(json.loads(line)["child-pid"], resource.RLIMIT_NPROC, (most, most))
            os.write(opening, b"1")
        except (ValueError, KeyError, OSError):
            if not self._is_done():
                os.kill(self._child, signal.SIGKILL)
        return line

    def clear(self) -> None:
        """Nothing of the command lives on, and its group is gone."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if self._child and not self._is_done():
            os.kill(self._child, signal.SIGKILL)
        _sweep()
        if self._teardown():
            _sweep()
        self._child = 0
        if self._group is not None:
            _remove_group(self._group)
            self._group = None

    def _teardown(self) -> bool:
        """What has to be ended by another program, as a container is."""
        argv = self._specification["teardown"]
        if not argv:
            return False
        child = os.fork()
        if not child:
            _quietly_become(argv)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.02)
        return True

    def _become_command(self, supervisor: int, reporting: int, gate: int) -> None:
        """In the child: bounded, alone, and then the launcher of its level. Does not return."""
        try:
            os.close(self._control)
            if LINUX:
                _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != supervisor:
                    os._exit(NOT_STARTED)  # it was gone before it could be watched
                with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
                    file.write("500")
            else:
                os.setsid()
            for name in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
                signal.signal(name, signal.SIG_DFL)
            if self._group is not None:
                with open(f"{self._group}/cgroup.procs", "w") as file:
                    file.write("0")
            os.nice(5)
            if self._bounds["processors"] is not None and LINUX and not self._specification["teardown"]:
                usable = sorted(os.sched_getaffinity(0))
                count = min(len(usable), math.ceil(self._bounds["processors"]))
                os.sched_setaffinity(0, random.sample(usable, count))
            self._limit()
            launch(self._specification, reporting, gate, grouped=self._group is not None)
        except BaseException as error:  # noqa: BLE001 - whatever it is, this process must not go on as the supervisor
            os.write(reporting, json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        os._exit(NOT_STARTED)

    def _limit(self) -> None:
        limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, self._bounds["open_files"])]
        limits.append((resource.RLIMIT_FSIZE, self._bounds["disk_bytes"]))
        if LINUX:
            limits.append((resource.RLIMIT_DATA, self._bounds["memory_bytes"]))
        if self._specification["count_user"]:  # the kernel counts all processes of this user
            limits.append((resource.RLIMIT_NPROC, _threads_of_user() + self._bounds["processes"]))
        for which, most in limits:
            _, hard = resource.getrlimit(which)
            value = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(which, (value, value))

    def _watch(self, deadline: float, ended: int) -> str:
        """Until the command ends, as the descriptor `ended` tells, or has to be ended; returns why."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        if LINUX:
            poll.register(ended, select.POLLIN)
        pause, looks = LOOK_SECONDS[0], 0
        while True:
            looks += 1
            left = deadline - time.monotonic()
            if left <= 0:
                return "time"
            ready = {fd for fd, _ in poll.poll(max(1, int(min(pause, left) * 1000)))}
            if self._control in ready:
                return "stopped" if os.read(self._control, 64) else "lost"
            if ended in ready or (not LINUX and self._is_done()):
                return "exited"
            if (LINUX or looks % LOOKS_BY_PS == 0) and (beyond := self._beyond()):
                return beyond
            pause = min(pause * 1.5, LOOK_SECONDS[1]) if LINUX else LOOK_SECONDS[0]

    def _beyond(self) -> str | None:
        """The bound that is exceeded, if one is."""
        processes = _descendants()
        memory = sum(map(_memory, processes - {self._child}))
        if memory > self._bounds["memory_bytes"]:
            memory = sum(map(_memory_exactly, processes - {self._child}))
            if memory > self._bounds["memory_bytes"]:
                return "memory"
        self._peak = max(self._peak, memory)
        if len(processes) > self._bounds["processes"] + 8:
            return "processes"
        return self._usage.beyond()

    def _end(self, *, gently: bool) -> int:
        """The command's wait status, once it is over."""
        if gently:
            for pid in _descendants() - {self._child}:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + GRACE_SECONDS
            while time.monotonic() < deadline and not self._is_done():
                time.sleep(0.01)
        if not self._is_done():
            os.kill(self._child, signal.SIGKILL)
        while not self._is_done():
            time.sleep(0.001)
        return self._status or 0

    def _hear_of_death(self, _number: int, _frame: object) -> None:
        self._reap()

    def _reap(self) -> None:
        """Take note of who has ended: the launcher, and those that lost their parent and would be counted on."""
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._child:
                    self._status = found[1]

    def _is_done(self) -> bool:
        """Whether the launcher has ended."""
        self._reap()
        return self._status is not None


class Usage:
    """What lies in the writable places. They are walked only now and then: at once when much has been written.

    What lay in a person's directory (`growing`) does not count; a workspace that was too full already may not grow.
    """

    def __init__(self, writable: list[str], growing: list[str], bounds: dict[str, Any]) -> None:
        self._places = [*writable, *growing]
        self._bounds = bounds
        there, own = _measured(growing), _measured(writable)
        self._allowed = tuple(
            theirs + max(ours, bounds[name])
            for theirs, ours, name in zip(there, own, ("disk_bytes", "files"), strict=True)
        )
        """Bytes and files."""
        self._next_walk = 0.0
        self._free = -1

    def beyond(self) -> str | None:
        """The bound that is exceeded, if one is."""
        free = self._space()
        now = time.monotonic()
        if now < self._next_walk and abs(self._free - free) < self._bounds["disk_bytes"] // 8:
            return None
        self._free = free
        size, count = _measured(self._places)
        after = time.monotonic()
        self._next_walk = after + max(WALK_SECONDS, WALK_SHARE * (after - now))
        most_bytes, most_files = self._allowed
        return "disk" if size > most_bytes else "files" if count > most_files else None

    def _space(self) -> int:
        found = os.statvfs(self._places[0])
        return found.f_bavail * found.f_frsize


def _measured(places: list[str]) -> tuple[int, int]:
    """Bytes on disk and the number of files and directories below these places."""
    size = count = 0
    for place in places:
        for entry in _below(place):
            size += entry
            count += 1
    return size, count


def _below(place: str) -> Iterator[int]:
    """The sizes on disk of everything below a directory; follows no links, and passes over what vanishes meanwhile."""
    pending = [place]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as items:
            for item in items:
                with suppress(OSError):
                    if item.is_dir(follow_symlinks=False):
                        pending.append(item.path)
                    yield item.stat(follow_symlinks=False).st_blocks * 512


def launch(specification: dict[str, Any], reporting: int, gate: int, *, grouped: bool) -> None:
    """Become the launcher of the command's level. Does not return, or raises."""
    if specification["sandlock"]:
        _launch_sandlock(specification, reporting, grouped=grouped)
    for number, text in specification["files"].items():
        _at(int(number), text)
    if specification["reports_at"] is not None:
        os.dup2(reporting, specification["reports_at"])
    if specification["gate_at"] is not None:
        os.dup2(gate, specification["gate_at"])
    os.execve(specification["argv"][0], specification["argv"], specification["environ"])


def _launch_sandlock(specification: dict[str, Any], reporting: int, *, grouped: bool) -> None:
    """sandlock's supervisor is this process; the command is its child. Does not return, or raises."""
    if os.geteuid() == 0:
        _drop_capabilities()
    sys.path.append(specification["library"])
    os.environ.setdefault("HOME", "/nonexistent")  # sandlock asks for it; the user of a container may be nameless
    _filter(specification["filter"].encode("latin-1"))
    _forbid_socket_files()
    options = specification["sandlock"]
    if specification["own_group"] and not grouped:  # its own count never forgets a process that was killed
        options["max_processes"] = specification["bounds"]["processes"]
    found = _beside("sandlock_forks").run(importlib.import_module("sandlock"), options, specification["argv"])
    if found.reason is None:
        raise OSError(found.error)
    code = found.exit_code
    if found.reason.name != "EXITED":
        code = 128 + (found.signal if found.signal > 0 else signal.SIGKILL)
    os.write(reporting, json.dumps({"exit-code": code}).encode() + b"\n")
    os._exit(0)


def _beside(name: str) -> Any:
    """The module of that name beside this file; nothing of ours is on this program's path."""
    found = importlib.util.spec_from_file_location(name, f"{os.path.dirname(__file__)}/{name}.py")
    if found is None or found.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _drop_capabilities() -> None:
    """Root without its capabilities reads and changes what root owns, and makes no devices."""
    for capability in range(CAPABILITIES):
        with suppress(OSError):
            _prctl(PR_CAPBSET_DROP, capability)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    if _libc().capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "capset")


def _filter(program: bytes) -> None:
    """Have the kernel refuse what this filter for system calls refuses, to this process and all that come of it."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    code = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    if _libc().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.create_string_buffer(described), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def _forbid_socket_files() -> None:
    """Where there is a network, sandlock binds sockets for a command with its own rights, and to a path that is a new
    file anywhere. With this it cannot; the command is below its own rules besides.
    """
    libc = _libc()
    handled = ctypes.c_uint64(LANDLOCK_MAKE_SOCK)
    rules = libc.syscall(LANDLOCK_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), 0)
    if rules < 0 or libc.syscall(LANDLOCK_RESTRICT_SELF, rules, 0):
        raise OSError(ctypes.get_errno(), "landlock")
    os.close(rules)


def _at(number: int, text: str) -> None:
    """Have the descriptor `number` read `text`, whose characters are bytes."""
    file = os.memfd_create("massgen", 0)
    os.write(file, text.encode("latin-1"))
    os.lseek(file, 0, os.SEEK_SET)
    os.dup2(file, number)
    os.close(file)


def _quietly_become(argv: list[str]) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    with suppress(OSError):
        os.execve(argv[0], argv, {"PATH": "/usr/local/bin:/usr/bin:/bin"})
    os._exit(NOT_STARTED)


# -- processes ------------------------------------------------------------------------------------------------------


def _sweep() -> None:
    """End every process that came from the command, wherever it went, and wait for it."""
    while True:
        for pid in _descendants():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return  # who loses its parent becomes our child, so there is none left at all
        time.sleep(SWEEP_SECONDS)


def _descendants() -> set[int]:
    """Every living process below this one."""
    if not LINUX:
        return _descendants_by_ps()
    found: set[int] = set()
    pending = [os.getpid()]
    while pending:
        parent = pending.pop()
        with suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                with suppress(OSError), open(f"/proc/{parent}/task/{task}/children", "rb") as file:
                    below = {int(pid) for pid in file.read().split()} - found
                    found |= below
                    pending += below
    return found


def _descendants_by_ps() -> set[int]:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(write, 1)
        os.execve("/bin/ps", ["/bin/ps", "-axo", "pid=,ppid=,pgid="], {})
    os.close(write)
    lines = [tuple(map(int, line.split())) for line in _everything(read).splitlines()]
    os.waitpid(child, 0)
    found: set[int] = set()
    known = {os.getpid()}
    groups = {os.getpid()}
    while added := {
        pid
        for pid, parent, group in lines
        if (parent in known or group in groups) and pid not in known and pid != child and pid != os.getpid()
    }:
        found |= added
        known |= added
        groups |= {group for pid, _, group in lines if pid in added and group == pid}
    return found


def _memory(pid: int) -> int:
    """What the process holds for itself, in bytes; 0 where that is not known."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * PAGE


def _memory_exactly(pid: int) -> int:
    """As `_memory`, but what several processes share is divided among them; that takes the kernel longer."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            fields = dict(line.split()[:2] for line in file.readlines()[1:])
        return int(fields[b"Pss_Anon:"]) * 1024
    except (OSError, ValueError, KeyError):
        return _memory(pid)


def _threads_of_user() -> int:
    count = 0
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{name}/task"))
    return count


def _cgroup(processes: int) -> str | None:
    """A group of processes of its own with that many at most, where this user may make one: limits per user do not
    hold for root.
    """
    for parent in CGROUPS:
        group = f"{parent}/massgen-{os.getpid()}"
        try:
            for name in os.listdir(parent):  # of supervisors that were killed
                if name.startswith("massgen-") and not os.path.exists(f"/proc/{name.removeprefix('massgen-')}"):
                    with suppress(OSError):
                        os.rmdir(f"{parent}/{name}")
            os.mkdir(group)
        except OSError:
            continue
        try:
            with open(f"{group}/pids.max", "w") as file:
                file.write(str(processes))
        except OSError:
            os.rmdir(group)
            continue
        return group
    return None


def _remove_group(group: str) -> None:
    """A group is busy for a moment after its last process has ended."""
    for _ in range(200):
        try:
            os.rmdir(group)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.005)
        else:
            return


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc().prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


# -- the socket and the pipe ----------------------------------------------------------------------------------------


def _read(control: int) -> dict[str, Any] | None:
    """The specification: its length in eight hexadecimal digits, then JSON. None if nobody is there any more."""
    length = _exactly(control, 8)
    told = length and _exactly(control, int(length, 16))
    return json.loads(told) if told else None


def _exactly(control: int, count: int) -> bytes:
    """So many bytes, and none of what comes after them; nothing if there are fewer."""
    data = b""
    while len(data) < count:
        chunk = os.read(control, count - len(data))
        if not chunk:
            return b""
        data += chunk
    return data


def _tell(control: int, fact: dict[str, Any]) -> None:
    with suppress(OSError):
        os.write(control, json.dumps(fact).encode() + b"\n")


def _everything(descriptor: int) -> str:
    parts: list[bytes] = []
    while chunk := os.read(descriptor, 1 << 16):
        parts.append(chunk)
    os.close(descriptor)
    return b"".join(parts).decode(errors="replace")


def _outcome(status: int, reason: str, told: str, seconds: float, peak: int, *, own_word: bool) -> dict[str, Any]:
    """How the command ended. With `own_word` its level has to tell it, so that a level that could not start it is never
    taken for a command that failed.
    """
    seen: dict[str, Any] = {"reason": reason, "seconds": round(seconds, 3), "peak_memory_bytes": peak}
    facts: dict[str, Any] = {}
    for line in told.splitlines():
        with suppress(ValueError):
            facts |= json.loads(line)
    if "failed" in facts:
        return {"reason": "failed", "message": facts["failed"]}
    if reason != "exited":
        return seen
    if "exit-code" in facts:
        return {**seen, "code": facts["exit-code"]}
    code = os.waitstatus_to_exitcode(status)
    code = 128 - code if code < 0 else code
    if own_word or code in (NOT_STARTED, CONTAINER_FAILED):
        return {"reason": "failed", "message": f"it ended with {code} before the command began"}
    return {**seen, "code": code}


if __name__ == "__main__":
    main()
