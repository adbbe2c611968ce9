"""Stands between this program and one command, and lets nothing of the command outlive it.

Run by `levels.start` with the number of a socket: a `Specification` comes in over it, then wishes; facts go out. It
ends the command when it has used what it may use, when it is told to, and when the other end of the socket is gone, as
after SIGKILL. It is a program of its own, of the standard library and the modules beside it only, so that it starts
quickly and nothing of ours is at hand in the process that starts the command.
"""

import ctypes
import json
import math
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from massgen_mcp.sandbox import groups, layers, specification, usage
else:
    sys.path.append(os.path.dirname(__file__))  # behind the standard library
    import groups
    import layers
    import specification
    import usage

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
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


def main() -> None:
    control = int(sys.argv[1])
    os.set_inheritable(control, False)
    document = _read_message(control)
    if not document:
        return  # the other side is gone
    if LINUX:
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    supervision = Supervision(control, specification.decode(document))
    try:
        fact = supervision.supervise()
    finally:
        supervision.clear()
    _send_fact(control, fact)


class Supervision:
    """One command from its start to the end of its last process."""

    def __init__(self, control: int, command: specification.Specification) -> None:
        self._control = control
        self._launch, self._bounds, self._namespaces = command.launch, command.bounds, command.namespaces
        self._disk = usage.Disk(command.writable, command.growing, command.bounds)
        self._hidden: set[int] = set()
        self._groups: groups.Groups | None = None
        if LINUX and not self._launch.teardown:
            self._groups = groups.make(self._bounds.processes, self._bounds.memory_bytes)
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
        begun = self._admit(reports, opening) if self._launch.status is not None else b""
        os.close(opening)
        reason = self._watch(began + self._bounds.seconds, ended)
        status = self._end(gently=reason == "stopped")
        if reason == "exited" and self._groups and self._groups.ran_out():
            reason = "memory"
        seconds = time.monotonic() - began
        bounded = bool(self._groups and self._groups.memory)
        self.clear()
        reports_text = begun.decode() + _read_all(reports)
        outcome = _command_end(status, reason, reports_text, seconds, own_word=self._launch.status is not None)
        return {**outcome, "in_group": bounded}

    def _admit(self, reports: int, opening: int) -> bytes:
        """Let the command begin once its processes are limited: a limit that its launcher had would count all processes
        of this user. Where that fails it never begins.
        """
        line = b""
        while not line.endswith(b"\n") and (byte := os.read(reports, 1)):
            line += byte
        try:
            most = self._bounds.processes
            child = json.loads(line)["child-pid"]
            if os.geteuid():  # no such limit holds for root, whose processes a group limits, or our counting
                resource.prlimit(child, resource.RLIMIT_NPROC, (most, most))
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
        argv = self._launch.teardown
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
            if self._bounds.processors is not None and LINUX and not self._launch.teardown:
                usable = sorted(os.sched_getaffinity(0))
                count = min(len(usable), math.ceil(self._bounds.processors))
                os.sched_setaffinity(0, sorted(usable, key=lambda _: os.urandom(8))[:count])
            self._limit()
            if self._namespaces is not None:
                _join(*self._namespaces)
                _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # forgotten where the kernel sees other rights
            launch(self._launch, self._bounds, reporting, gate)
        except BaseException as error:  # noqa: BLE001 - whatever it is, this process must not go on as the supervisor
            os.write(reporting, json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        os._exit(NOT_STARTED)

    def _limit(self) -> None:
        limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, self._bounds.open_files)]
        limits.append((resource.RLIMIT_FSIZE, self._bounds.disk_bytes))
        if LINUX:
            limits.append((resource.RLIMIT_DATA, self._bounds.memory_bytes))
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
            if LINUX or looks % LOOKS_BY_PS == 0:
                before, began = self._used, time.monotonic()
                if beyond := self._find_excess():
                    return beyond
                grows = self._used - before > self._bounds.memory_bytes // GROWTH_SHARE
                pause = LOOK_SECONDS[0] if grows or not LINUX else min(pause * 1.5, LOOK_SECONDS[1])
                pause = max(pause, LOOK_SHARE * (time.monotonic() - began))

    def _find_excess(self) -> str | None:
        """The bound that is exceeded, if one is."""
        processes = _list_descendants() - {self._child}
        if len(processes) > self._bounds.processes + 8:  # first: of many, each other look takes long
            return "processes"
        files = usage.open_files(processes)
        if self._groups and self._groups.memory:
            if self._groups.ran_out():
                return "memory"
        else:
            self._used = usage.count_memory(processes, files.memory, self._bounds.memory_bytes)
            if self._used > self._bounds.memory_bytes:
                return "memory"
        if self._hidden & files.hidden:  # not only while it becomes another program
            return "hidden"
        self._hidden = files.hidden
        return self._disk.beyond(sum(files.disk.values()))

    def _end(self, *, gently: bool) -> int:
        """The command's wait status, once it is over."""
        if gently:
            for pid in _list_descendants() - {self._child}:
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


def _join(user: int, network: int) -> None:
    """Enter these namespaces. Most commands have no network, and start without the modules that this needs."""
    if TYPE_CHECKING:
        from massgen_mcp.sandbox import network_namespace
    else:
        import network_namespace

    network_namespace.join(user, network)


def launch(
    described: specification.LaunchPlan, bounds: specification.ResourceLimits, reporting: int, gate: int
) -> None:
    """Become the launcher of the command's level. Does not return, or raises."""
    files = described.files
    if described.layers is not None:
        places, trial, replacing = described.layers
        size = min(bounds.disk_bytes, bounds.memory_bytes // 2)
        if layers.put_on(places, size, bounds.files, trial):
            files = files | replacing
    for number, text in files.items():
        _provide(number, text)
    if described.status is not None:
        os.dup2(reporting, described.status.reports_at)
        os.dup2(gate, described.status.gate_at)
    os.execve(described.argv[0], described.argv, described.environ)


def _provide(number: int, text: str) -> None:
    """Have the descriptor `number` read `text`, whose characters are bytes."""
    file = os.memfd_create("massgen", 0)
    os.write(file, text.encode("latin-1"))
    os.lseek(file, 0, os.SEEK_SET)
    os.dup2(file, number)
    os.close(file)


def _quietly_become(argv: tuple[str, ...]) -> None:
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
        for pid in _list_descendants():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return  # who loses its parent becomes our child, so there is none left at all
        time.sleep(SWEEP_SECONDS)


def _list_descendants() -> set[int]:
    """Every living process below this one."""
    if not LINUX:
        return _list_descendants_by_ps()
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


def _list_descendants_by_ps() -> set[int]:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(write, 1)
        os.execve("/bin/ps", ["/bin/ps", "-axo", "pid=,ppid=,pgid="], {})
    os.close(write)
    lines = [tuple(map(int, line.split())) for line in _read_all(read).splitlines()]
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


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


# -- the socket and the pipe ----------------------------------------------------------------------------------------


def _read_message(control: int) -> bytes:
    """Read one message: its length in eight hexadecimal digits, then so many bytes. Empty if the other side is gone."""
    length = _read_exactly(control, 8)
    return _read_exactly(control, int(length, 16)) if length else b""


def _read_exactly(control: int, count: int) -> bytes:
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


def _read_all(descriptor: int) -> str:
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
        return {"reason": "failed", "message": f"the sandbox ended with exit code {code} before the command began"}
    return {**seen, "code": code}


if __name__ == "__main__":
    main()
