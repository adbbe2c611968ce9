"""Tries, from inside a sandbox, what decides whether its level holds on this machine: one attempt for each way that a
kernel, its settings or a program of the level may leave open, and what must be possible. What differs from these only
in its words is tried by the tests, at every level.

Run as `python -I -S -c` with the text of this file, and a plan as JSON on standard input; prints one JSON object: what
each attempt came to. `open` is a success of the attempt, `seen` a look at something's name or size, `closed` a refusal.
The host looks for itself afterwards, too: what is printed here is one half of the evidence. A plan may name the `only`
attempts to make. One file on purpose, of the standard library only: inside a sandbox no file of ours need be there.
"""

import ctypes
import json
import os
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

MARK = "written by a probe"
AF_VSOCK = 40
IPPROTO_MPTCP = 262
MSG_FASTOPEN = 0x20000000
IN_CREATE = 0x100
CLONE_NEWUSER = 0x10000000
IO_URING_SETUP = 425
PTRACE_SEIZE = 0x4206
FORK_TRIES = 10
"""sandlock is asked about every fork, and a signal interrupts that question as long as sandlock has not heard it. So a
shell of which one child ends just when it starts the next may say "Cannot fork": on a busy machine in every second
trial. That is a flaw of the level, which its notes tell, and no level that does not work.
"""
plan: dict[str, Any] = {}


def read_hidden_below_layer() -> bool:
    """Also where what leads there is moved, or what covers it is taken away."""
    place = plan["layered"]
    if _reads(place + "/in/secret.txt"):
        return True
    for deed in (lambda: os.unlink(place + "/in/secret.txt"), lambda: os.rename(place + "/in", place + "/moved")):
        with suppress(OSError):
            deed()
    return _reads(place + "/in/secret.txt") or _reads(place + "/moved/secret.txt")


def read_by_proc_cwd() -> bool:
    return _reads(f"/proc/self/root{plan['secret']}") or _reads(f"/proc/{plan['parent']}/root{plan['secret']}")


def hard_link_outside() -> bool:
    os.link(plan["secret"], "hard-link")
    return _reads("hard-link")


def rename_out() -> bool:
    _writes("moved.txt")
    os.rename("moved.txt", plan["outside"] + "/moved.txt")
    return True


def chmod_outside() -> bool:
    os.chmod(plan["secret"], 0o777)
    return True


def truncate_shown() -> bool:
    os.truncate(plan["shown"] + "/shown.txt", 0)
    return True


def stat_outside() -> str:
    os.stat(plan["secret"])
    return "seen"


def watch_outside() -> bool:
    """Names in a directory, as they appear; that takes no right to read it."""
    libc = _libc()
    watcher = libc.inotify_init()
    return watcher >= 0 and libc.inotify_add_watch(watcher, str(plan["outside"]).encode(), IN_CREATE) >= 0


def _of_the_host(attempt: Callable[[], bool]) -> Callable[[], bool]:
    """For attempts on a process of the host by its number: where numbers are others, that is nobody, or one of ours."""

    @wraps(attempt)
    def tried() -> bool:
        with suppress(OSError):
            if os.readlink("/proc/self/ns/pid") != plan["pid_namespace"]:
                return False
        return attempt()

    return tried


@_of_the_host
def parent_environ() -> bool:
    return _reads(f"/proc/{plan['parent']}/environ")


def own_keys() -> bool:
    with open("/proc/self/environ", "rb") as file:
        return plan["key"].encode() in file.read() or plan["key"] in json.dumps(dict(os.environ))


def any_environ() -> bool:
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            if plan["key"].encode() in file.read():
                return True
    return False


@_of_the_host
def kill_victim() -> bool:
    os.kill(plan["victim"], signal.SIGKILL)
    return True


@_of_the_host
def trace_victim() -> bool:
    return _libc().ptrace(PTRACE_SEIZE, plan["victim"], 0, 0) == 0


@_of_the_host
def read_memory_of_victim() -> bool:
    return _reads(f"/proc/{plan['victim']}/mem") or _reads(f"/proc/{plan['victim']}/maps")


@_of_the_host
def prioritize_victim() -> bool:
    os.setpriority(os.PRIO_PROCESS, plan["victim"], 19)
    return True


@_of_the_host
def limit_victim() -> bool:
    import resource

    resource.prlimit(plan["victim"], resource.RLIMIT_CORE, (0, 0))
    return True


def tcp_fast_open() -> bool:
    """A connection that is made by the first message, not by `connect`."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 0, 300_000))
        return sock.sendto(MARK.encode(), MSG_FASTOPEN, ("127.0.0.1", plan["tcp"])) > 0


def udp_loopback() -> bool:
    """Sent; the host looks whether it came."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(MARK.encode(), ("127.0.0.1", plan["udp"]))
    return False


def raw_socket() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sock:
        sock.sendto(b"\x08\x00\xf7\xff\x00\x00\x00\x00", ("127.0.0.1", 0))
    return True


def vsock() -> bool:
    with socket.socket(AF_VSOCK, socket.SOCK_STREAM) as sock:
        sock.settimeout(0.2)
        sock.connect((2, 1024))
    return True


def user_namespace() -> bool:
    child = os.fork()
    if not child:
        os._exit(0 if _libc().unshare(CLONE_NEWUSER) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def make_block_device() -> bool:
    os.mknod("device", 0o600 | stat.S_IFBLK, os.makedev(*plan["disk"]))
    return _reads("device")


def set_user_id_of_root() -> bool:
    """A file that would run as its owner, and a process that becomes another one."""
    os.setuid(0)
    os.setgroups([])
    return os.getuid() == 0 and _reads("/etc/shadow")


def leave_cgroup() -> bool:
    return any(_may_write(f"/sys/fs/cgroup/{name}cgroup.procs") for name in ("", "pids/", "unified/"))


def inject_terminal() -> bool:
    import fcntl
    import termios

    with open("/dev/tty", "rb+", buffering=0) as terminal:
        fcntl.ioctl(terminal, termios.TIOCSTI, b"x")
    return True


def descriptors() -> bool:
    """Something of the host that was handed down open."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if int(name) > 2 and plan["outside"] in os.readlink(f"/proc/self/fd/{name}"):
                return True
    return False


def write_shared_memory() -> bool:
    """Written; the host looks whether it is there."""
    with suppress(OSError):
        _writes("/dev/shm/" + plan["shared"] + "-new")  # noqa: S108 - that is the attempt
    return False


def bound_processes() -> bool:
    """True if there can be more processes at once than the policy of the probes allows."""
    children: list[int] = []
    try:
        for _ in range(plan["processes"] + 20):
            child = os.fork()
            if not child:
                signal.pause()
            children.append(child)
    except OSError:
        return False
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return True


def bound_memory() -> bool:
    """True if a process can have four times the memory that the policy of the probes allows."""
    child = os.fork()
    if not child:
        with suppress(MemoryError):
            block = bytearray(4 * plan["memory_bytes"])
            block[:: 1 << 12] = b"x" * len(block[:: 1 << 12])
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def stay_behind() -> bool:
    """A process that has left its session, its parent and its terminal, and ignores requests to end; the host looks
    for it afterwards.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    for number in range(3):
        os.close(number)
    while True:
        signal.pause()


def bound_files() -> bool:
    """True if more files can be open at once than the policy of the probes allows."""
    files: list[int] = []
    try:
        for _ in range(plan["open_files"] + 20):
            files.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    finally:
        for file in files:
            os.close(file)
    return True


# -- what must be possible ------------------------------------------------------------------------------------------


def works_shell() -> bool:
    """More than once where need be: see `FORK_TRIES`."""
    for _ in range(FORK_TRIES):
        child = os.fork()
        if not child:
            os.execv("/bin/sh", ["/bin/sh", "-c", "echo fine | cat > /dev/null"])  # noqa: S606 - what commands need
        if os.waitpid(child, 0)[1] == 0:
            return True
    return False


def usual_vfork() -> bool:
    """Twice, as C's `system` does it: by a child that borrows its parent's memory until it has become the program."""
    call = _libc().system
    return [call(b"true"), call(b"true")] == [0, 0]


def usual_real_path() -> bool:
    call = _libc().realpath
    call.restype = ctypes.c_char_p
    found = ctypes.create_string_buffer(4097)  # PATH_MAX
    return call(os.getcwd().encode(), found) == os.getcwd().encode()


def usual_move() -> bool:
    for name in ("moved-from", "moved-to"):
        os.mkdir(name)
    _writes("moved-from/file")
    os.link("moved-from/file", "moved-to/linked")
    os.rename("moved-from/file", "moved-to/file")
    return _reads("moved-to/file") and _reads("moved-to/linked")


def usual_new_program() -> bool:
    """As a linker makes it."""
    os.close(os.open("new-program", os.O_CREAT | os.O_WRONLY, 0o755))
    return bool(os.stat("new-program").st_mode & 0o100)


def usual_layer() -> bool:
    place = plan["layered"]
    return _writes(place + "/new.txt") and _writes(place + "/old.txt") and _reads(place + "/new.txt")


def works_fork() -> bool:
    child = os.fork()
    if not child:
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


ATTEMPTS: dict[str, Callable[[], Any]] = {
    # What must be possible. It comes first: attempts at a bound leave processes that the sandbox may still count for
    # a while.
    "works_write": lambda: _writes("fine.txt") and _reads("fine.txt") and _writes("/workspace/too.txt"),
    "works_scratch": lambda: _writes("/tmp/fine.txt") and _reads("/tmp/fine.txt"),  # noqa: S108 - inside
    "works_shown": lambda: _reads(plan["shown"] + "/shown.txt"),
    "works_writable": lambda: _writes(plan["writable"] + "/new.txt"),
    "works_null": lambda: _writes(os.devnull),
    "works_shell": works_shell,
    "works_fork": works_fork,
    # What commands are used to. A level without it still holds; its report says so.
    "usual_vfork": usual_vfork,
    "usual_real_path": usual_real_path,
    "usual_layer": usual_layer,
    "usual_move": usual_move,
    "usual_new_program": usual_new_program,
    # Looks at a name or a size.
    "stat_outside": stat_outside,
    "list_root": lambda: "seen" if {"root", "home"} & set(os.listdir("/")) else "closed",
    "list_etc": lambda: "seen" if "shadow" in os.listdir("/etc") else "closed",
    # What must be closed.
    "write_outside": lambda: _writes(plan["outside"] + "/new.txt"),
    "write_root": lambda: _writes("/massgen-probe"),
    "write_shown": lambda: _writes(plan["shown"] + "/new.txt"),
    "read_outside": lambda: _reads(plan["secret"]),
    "list_outside": lambda: bool(os.listdir(str(plan["outside"]))),
    "read_hidden": lambda: _reads(plan["shown"] + "/hidden.txt"),
    "read_hidden_directory": lambda: _reads(plan["shown"] + "/hidden/secret.txt"),
    "read_hidden_below_layer": read_hidden_below_layer,
    "read_by_proc_cwd": read_by_proc_cwd,
    "hard_link_outside": hard_link_outside,
    "rename_out": rename_out,
    "chmod_outside": chmod_outside,
    "truncate_shown": truncate_shown,
    "parent_environ": parent_environ,
    "own_keys": own_keys,
    "any_environ": any_environ,
    "kill_victim": kill_victim,
    "trace_victim": trace_victim,
    "read_memory_of_victim": read_memory_of_victim,
    "prioritize_victim": prioritize_victim,
    "limit_victim": limit_victim,
    "tcp_loopback": lambda: _connects(socket.AF_INET, ("127.0.0.1", plan["tcp"])),
    "tcp_loopback_6": lambda: _connects(socket.AF_INET6, ("::1", plan["tcp6"])) if plan["tcp6"] else False,
    # TCP by several ways; Landlock is not asked about it.
    "mptcp_loopback": lambda: _connects(socket.AF_INET, ("127.0.0.1", plan["tcp"]), IPPROTO_MPTCP),
    "tcp_fast_open": tcp_fast_open,
    "watch_outside": watch_outside,
    "udp_loopback": udp_loopback,
    "unix_socket": lambda: _connects(socket.AF_UNIX, plan["unix"]),
    "unix_socket_shown": lambda: _connects(socket.AF_UNIX, plan["unix_shown"]),
    "abstract_socket": lambda: _connects(socket.AF_UNIX, "\0" + plan["abstract"]),
    "raw_socket": raw_socket,
    "vsock": vsock,
    "io_uring": lambda: _libc().syscall(IO_URING_SETUP, 1, ctypes.create_string_buffer(256)) >= 0,
    "user_namespace": user_namespace,
    "mount_something": lambda: _libc().mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0,
    "make_block_device": make_block_device,
    "read_disk": lambda: any(_reads(f"/dev/{name}") for name in plan["disks"]),
    "set_user_id_of_root": set_user_id_of_root,
    "read_shadow": lambda: _reads("/etc/shadow"),
    "read_kernel_log": lambda: _reads("/dev/kmsg") or _reads("/proc/kmsg"),
    "leave_cgroup": leave_cgroup,
    "inject_terminal": inject_terminal,
    "gain_privileges": lambda: _libc().prctl(39, 0, 0, 0, 0) != 1,
    "descriptors": descriptors,
    "read_shared_memory": lambda: _reads("/dev/shm/" + plan["shared"]),  # noqa: S108 - that is the attempt
    "write_shared_memory": write_shared_memory,
    "system_v_memory": lambda: _libc().shmget(plan["shm_key"], 4096, 0) >= 0 if plan["shm_key"] else False,
    "bound_processes": bound_processes,
    "bound_files": bound_files,
    "bound_memory": bound_memory,
    "stay_behind": stay_behind,
}


def _writes(path: str) -> bool:
    try:
        with open(path, "w") as file:
            file.write(MARK)
    except OSError:
        return False
    return True


def _reads(path: str) -> bool:
    try:
        with open(path, "rb", buffering=0) as file:
            return bool(file.read(16))
    except OSError:
        return False


def _may_write(path: str) -> bool:
    """Whether the file can be opened for writing. Nothing is written."""
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        return False
    return True


def _connects(family: int, address: Any, protocol: int = 0) -> bool:
    with socket.socket(family, socket.SOCK_STREAM, protocol) as sock:
        sock.settimeout(0.3)
        sock.connect(address)
        with suppress(OSError):
            sock.send(MARK.encode())
    return True


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _open_or_closed(attempt: Callable[[], Any]) -> str:
    try:
        found = attempt()
    except (OSError, AttributeError, ValueError) as error:
        return f"closed: {type(error).__name__}"
    if isinstance(found, str):
        return found
    return "open" if found else "closed"


def main() -> None:
    plan.update(json.loads(sys.stdin.buffer.readline()))
    os.chdir(plan["workspace"])
    wanted = plan.get("only")
    outcomes = {name: _open_or_closed(each) for name, each in ATTEMPTS.items() if wanted is None or name in wanted}
    sys.stdout.write(json.dumps(outcomes) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
