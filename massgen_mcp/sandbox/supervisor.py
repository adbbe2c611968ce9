"""Stands between this program and one command, and lets nothing of the command outlive it.

Run as `python -I -S supervisor.py FD`, where FD is a socket: a specification comes in over it, then wishes; facts go
out. It ends the command when it has used what it may use, when it is told to, and when the other end of the socket is
gone, as after SIGKILL. It is a program of its own, of the standard library only, so that it starts quickly and nothing
of ours is at hand in the process that starts the command. One file on purpose: run by its path, it can import nothing
of ours; what counts, what the kernel bounds, and what sandlock needs are loaded from beside it.
"""

import ctypes
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
from contextlib import suppress
from typing import Any

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 36, 38
SECCOMP_MODE_FILTER = 2
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF, LANDLOCK_PATH_BENEATH = 444, 445, 446, 1
LANDLOCK_MAKE_SOCK, LANDLOCK_REFER = 1 << 9, 1 << 13
LOOK_SECONDS = (0.02, 0.1)
"""Between two looks at a command: at least, while it takes more and more, and at most."""
LOOK_SHARE = 4
"""Looking takes at most one part in so many of the time."""
GROWTH_SHARE = 32
"""A command takes more and more if it took that part of its memory since the last look."""
LOOKS_BY_PS = 20
"""Where another program has to be asked for the processes: only every so many times."""
GRACE_SECONDS = 0.3
"""Between asking a command to end and ending it."""
SWEEP_SECONDS = 0.002
CONTAINER_FAILED = 125
"""Exit code of Docker and Podman where they could not start a container."""
NOT_STARTED = 97
"""Exit code of a process that could not become the command."""
LINUX = sys.platform == "linux"
CAPABILITIES = 64


def main() -> None:
    control = int(sys.argv[1])
    os.set_inheritable(control, False)
    specification = _read_specification(control)
    if specification is None:
        return
    guard = _guarded(control) if specification["sandlock"] else -1
    if LINUX:
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    supervision = Supervision(control, specification, guard)
    try:
        fact = supervision.supervise()
    finally:
        supervision.clear()
    _send_fact(control, fact)


def _guarded(control: int) -> int:
    """Go on in a child of this process, which only waits and ends what the child left behind, should that be killed: in
    a level without a namespace for processes the kernel would end no more than the first of a command's. Returns a
    descriptor that tells of the end of the parent.
    """
    parent = os.pidfd_open(os.getpid())
    child = os.fork()
    if not child:
        return parent
    os.close(control)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, signal.SIG_IGN)
    while os.waitpid(-1, 0)[0] != child:
        pass
    _sweep()
    os._exit(0)


class Supervision:
    """One command from its start to the end of its last process."""

    def __init__(self, control: int, specification: dict[str, Any], guard: int) -> None:
        self._control = control
        self._guard = guard
        self._specification = specification
        self._bounds: dict[str, Any] = specification["bounds"]
        usage = _beside("usage")
        self._memory = usage.MemoryCount(self._bounds["memory_bytes"])
        self._disk = usage.Disk(specification["writable"], specification["growing"], self._bounds)
        self._open_files = usage.open_files
        self._hidden: set[int] = set()
        self._groups = None
        if LINUX and not specification["teardown"]:
            self._groups = _beside("groups").make(self._bounds["processes"], self._bounds["memory_bytes"])
        self._child = 0
        self._status: int | None = None
        """Of the launcher, once it has ended."""
        self._used = 0
        """Memory at the last look."""

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
        if reason == "exited" and self._groups and self._groups.ran_out():
            reason = "memory"
        seconds = time.monotonic() - began
        bounded = bool(self._groups and self._groups.memory)
        self.clear()
        reports_text = begun.decode() + _everything(reports)
        outcome = _command_end(status, reason, reports_text, seconds, own_word=self._specification["own_word"])
        return {**outcome, "in_group": bounded}

    def _admit(self, reports: int, opening: int) -> bytes:
        """Let the command begin once its processes are limited, and what it keeps beside them can be counted: a
        limit that its launcher had would count all processes of this user. Where that fails it never begins.
        """
        line = b""
        while not line.endswith(b"\n") and (byte := os.read(reports, 1)):
            line += byte
        try:
            most = self._bounds["processes"]
            child = json.loads(line)["child-pid"]
            if os.geteuid():  # no such limit holds for root, who has a group
                resource.prlimit(child, resource.RLIMIT_NPROC, (most, most))
            self._memory.look_into(child)
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
        if self._groups:
            self._groups.remove()
            self._groups = None

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
            if self._groups:
                self._groups.enter()
            os.nice(5)
            if self._bounds["processors"] is not None and LINUX and not self._specification["teardown"]:
                usable = sorted(os.sched_getaffinity(0))
                count = min(len(usable), math.ceil(self._bounds["processors"]))
                os.sched_setaffinity(0, random.sample(usable, count))
            self._limit()
            launch(self._specification, reporting, gate, grouped=bool(self._groups and self._groups.processes))
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
        if self._guard >= 0:
            poll.register(self._guard, select.POLLIN)
        pause, looks = LOOK_SECONDS[0], 0
        while True:
            looks += 1
            left = deadline - time.monotonic()
            if left <= 0:
                return "time"
            ready = {fd for fd, _ in poll.poll(max(1, int(min(pause, left) * 1000)))}
            if self._control in ready:
                return "stopped" if os.read(self._control, 64) else "lost"
            if self._guard in ready:
                return "lost"
            if ended in ready or (not LINUX and self._is_done()):
                return "exited"
            if LINUX or looks % LOOKS_BY_PS == 0:
                before, began = self._used, time.monotonic()
                if beyond := self._beyond():
                    return beyond
                grows = self._used - before > self._bounds["memory_bytes"] // GROWTH_SHARE
                pause = LOOK_SECONDS[0] if grows or not LINUX else min(pause * 1.5, LOOK_SECONDS[1])
                pause = max(pause, LOOK_SHARE * (time.monotonic() - began))

    def _beyond(self) -> str | None:
        """The bound that is exceeded, if one is."""
        processes = _descendants() - {self._child}
        files = self._open_files(processes)
        self._used = self._memory.used(processes, files.memory)
        if self._used > self._bounds["memory_bytes"] or (self._groups and self._groups.ran_out()):
            return "memory"
        if len(processes) > self._bounds["processes"] + 8:
            return "processes"
        if self._hidden & files.hidden:  # not only while it becomes another program
            return "hidden"
        self._hidden = files.hidden
        return self._disk.beyond(sum(files.disk.values()))

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


def launch(specification: dict[str, Any], reporting: int, gate: int, *, grouped: bool) -> None:
    """Become the launcher of the command's level. Does not return, or raises."""
    if specification["sandlock"]:
        _launch_sandlock(specification, reporting, grouped=grouped)
    if layers := specification["layers"]:
        bounds = specification["bounds"]
        size = min(bounds["disk_bytes"], bounds["memory_bytes"] // 2)
        if _beside("layers").put_on(layers["places"], size, bounds["files"], layers["trial"]):
            specification["files"] |= layers["files"]
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
    file anywhere. With this it cannot; the command is below its own rules besides. To move a file to another directory
    is left to sandlock's rules: ours would refuse it everywhere if they did not name it.
    """
    libc = _libc()
    handled, root = ctypes.c_uint64(LANDLOCK_MAKE_SOCK | LANDLOCK_REFER), os.open("/", os.O_PATH)
    rules = libc.syscall(LANDLOCK_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), 0)
    anywhere = struct.pack("=Qi", LANDLOCK_REFER, root)
    if (
        rules < 0
        or libc.syscall(LANDLOCK_ADD_RULE, rules, LANDLOCK_PATH_BENEATH, anywhere, 0)
        or libc.syscall(LANDLOCK_RESTRICT_SELF, rules, 0)
    ):
        raise OSError(ctypes.get_errno(), "landlock")
    os.close(rules)
    os.close(root)


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


def _threads_of_user() -> int:
    count = 0
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{name}/task"))
    return count


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc().prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


# -- the socket and the pipe ----------------------------------------------------------------------------------------


def _read_specification(control: int) -> dict[str, Any] | None:
    """The specification: its length in eight hexadecimal digits, then JSON. None if nobody is there any more."""
    length = _exactly(control, 8)
    document = length and _exactly(control, int(length, 16))
    return json.loads(document) if document else None


def _exactly(control: int, count: int) -> bytes:
    """So many bytes, and none of what comes after them; nothing if there are fewer."""
    data = b""
    while len(data) < count:
        chunk = os.read(control, count - len(data))
        if not chunk:
            return b""
        data += chunk
    return data


def _send_fact(control: int, fact: dict[str, Any]) -> None:
    with suppress(OSError):
        os.write(control, json.dumps(fact).encode() + b"\n")


def _everything(descriptor: int) -> str:
    parts: list[bytes] = []
    while chunk := os.read(descriptor, 1 << 16):
        parts.append(chunk)
    os.close(descriptor)
    return b"".join(parts).decode(errors="replace")


def _command_end(status: int, reason: str, reports: str, seconds: float, *, own_word: bool) -> dict[str, Any]:
    """How the command ended. With `own_word` its level has to tell it, so that a level that could not start it is never
    taken for a command that failed.
    """
    seen: dict[str, Any] = {"reason": reason, "seconds": round(seconds, 3)}
    facts: dict[str, Any] = {}
    for line in reports.splitlines():
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
