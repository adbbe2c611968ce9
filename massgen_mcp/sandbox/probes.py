"""Attempts that decide whether a level of the sandbox holds on this machine: one for each wall, as a setting of the
kernel or a program of the level may have taken it down. Everything finer is tried by the tests, at every level.

Run as `python -I -S -c` with the text of this file, and a plan as JSON on standard input; prints one JSON object with
the outcome of each attempt. The host looks for itself afterwards, too: the printed object is one half of the evidence.
A plan may name the `only` attempts to make. One file on purpose, of the standard library only: inside a sandbox no
file of ours need be there.
"""

import ctypes
import hashlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

MARK = "written by a probe"
CLONE_NEWUSER = 0x10000000
plan: dict[str, Any] = {}


def read_hidden_below_layer() -> bool:
    """Also where the directories that lead there are moved, or the cover is taken away."""
    place = plan["layered"]
    if _reads(place + "/in/secret.txt"):
        return True
    for deed in (lambda: os.unlink(place + "/in/secret.txt"), lambda: os.rename(place + "/in", place + "/moved")):
        with suppress(OSError):
            deed()
    return _reads(place + "/in/secret.txt") or _reads(place + "/moved/secret.txt")


def truncate_shown() -> bool:
    """By each way that needs no right to write: opened for reading, and by its path."""
    path = plan["shown"] + "/shown.txt"
    with suppress(OSError):
        os.close(os.open(path, os.O_RDONLY | os.O_TRUNC))
    with suppress(OSError):
        os.truncate(path, 0)
    return os.stat(path).st_size == 0


def our_variables() -> bool:
    """A variable of ours, in any process that can be looked at. The plan has digests of them."""
    return any(_digest(variable) in plan["variables"] for variable in _all_variables())


def _all_variables() -> Iterator[bytes]:
    yield from (os.fsencode(f"{name}={value}") for name, value in os.environ.items())
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            yield from file.read().split(b"\0")


def _digest(variable: bytes) -> str:
    return hashlib.sha256(plan["salt"].encode() + variable).hexdigest()


def kill_victim() -> bool:
    """Where the numbers of processes are others, its number means none, or one of this sandbox."""
    if os.readlink("/proc/self/ns/pid") != plan["pid_namespace"]:
        return False
    os.kill(plan["victim"], signal.SIGKILL)
    return True


def user_namespace() -> bool:
    child = os.fork()
    if not child:
        os._exit(0 if ctypes.CDLL(None).unshare(CLONE_NEWUSER) == 0 else 1)
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


# -- what must be possible ------------------------------------------------------------------------------------------


def works_shell() -> bool:
    child = os.fork()
    if not child:
        os.execv("/bin/sh", ["/bin/sh", "-c", "echo fine | cat > /dev/null"])  # noqa: S606 - what commands need
    return os.waitpid(child, 0)[1] == 0


def usual_layer() -> bool:
    place = plan["layered"]
    return _writes(place + "/new.txt") and _writes(place + "/old.txt") and _reads(place + "/new.txt")


def usual_network() -> bool:
    """A pair that the policy lists; the host looks whether the connection came."""
    with suppress(OSError):
        _connects(socket.AF_INET, ("localhost", plan["listed"]))
    return False


ATTEMPTS: dict[str, Callable[[], Any]] = {
    # What must be possible.
    "works_write": lambda: _writes("fine.txt") and _reads("fine.txt") and _writes(plan["scratch"] + "/fine.txt"),
    "works_shown": lambda: _reads(plan["shown"] + "/shown.txt"),
    "works_writable": lambda: _writes(plan["writable"] + "/new.txt"),
    "works_shell": works_shell,
    # What commands are used to. A level without it still holds; its report says so.
    "usual_layer": usual_layer,
    "usual_network": usual_network,
    # What must be closed.
    "write_outside": lambda: _writes(plan["outside"] + "/new.txt") or _writes("/massgen-probe"),
    "read_outside": lambda: _reads(plan["secret"]),
    "write_shown": lambda: _writes(plan["shown"] + "/new.txt"),
    "truncate_shown": truncate_shown,
    "read_hidden": lambda: _reads(plan["shown"] + "/hidden.txt") or _reads(plan["shown"] + "/hidden/secret.txt"),
    "read_hidden_below_layer": read_hidden_below_layer,
    "our_variables": our_variables,
    "kill_victim": kill_victim,
    "tcp_loopback": lambda: _connects(socket.AF_INET, ("127.0.0.1", plan["tcp"])),
    "unix_socket": lambda: _connects(socket.AF_UNIX, plan["unix"]),
    "abstract_socket": lambda: _connects(socket.AF_UNIX, "\0" + plan["abstract"]),
    "read_shared_memory": lambda: _reads("/dev/shm/" + plan["shared"]),  # noqa: S108 - that is the attempt
    "user_namespace": user_namespace,
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


def _connects(family: int, address: Any) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(0.3)
        sock.connect(address)
        with suppress(OSError):
            sock.send(MARK.encode())
    return True


def _open_or_closed(attempt: Callable[[], Any]) -> str:
    try:
        return "open" if attempt() else "closed"
    except (OSError, AttributeError, ValueError) as error:
        return f"closed: {type(error).__name__}"


def main() -> None:
    plan.update(json.loads(sys.stdin.buffer.readline()))
    os.chdir(plan["workspace"])
    wanted = plan.get("only")
    outcomes = {name: _open_or_closed(each) for name, each in ATTEMPTS.items() if wanted is None or name in wanted}
    sys.stdout.write(json.dumps(outcomes) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
