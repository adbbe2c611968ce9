"""Attempts beyond those that decide at run time whether a level holds: run in a sandbox, as `probes.py` is.

Run as `python -I -S -c` with the text of this file, and the plan of `Targets` as JSON on standard input; prints one JSON
object. True: the attempt succeeded. Each is made in a process of its own, which is ended after a second.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import resource
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

PLAN: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
OUTSIDE, SECRET, VICTIM = PLAN["outside"], PLAN["secret"], PLAN["victim"]
TEMPORARY = PLAN["temporary"]
"""A directory in this machine's own /tmp, with `secret.txt`, `empty/` and `link`."""
HOST = ("127.0.0.1", PLAN["tcp"])
LIBC = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == "aarch64"
AT_FDCWD, FAST_OPEN = -100, 1 << 29
OWN_PROCESSES = os.readlink("/proc/self/ns/pid") != PLAN["pid_namespace"]
"""Numbers of the host's processes mean others here."""
TRIES: dict[str, Callable[[], Any]] = {}


def call(number: int, *values: object) -> int:
    """A system call; raises `OSError`."""
    done = LIBC.syscall(number, *(value.encode() if isinstance(value, str) else value for value in values))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(done)


def libc(name: str, *values: object) -> int:
    done = getattr(LIBC, name)(*(value.encode() if isinstance(value, str) else value for value in values))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(done)


def read(path: str) -> bool:
    with open(path, "rb", buffering=0) as file:
        return bool(file.read(8))


def opened(path: str, flags: int = os.O_RDONLY) -> int:
    return os.open(path, flags)


def opens(path: str) -> bool:
    return opened(path, os.O_RDWR) >= 0


def writes(path: str) -> bool:
    with open(path, "w") as file:
        return bool(file.write("probe"))


def linked(target: str, name: str) -> str:
    os.symlink(target, name)
    return name


def unshares(flag: int) -> bool:
    return libc("unshare", flag) == 0


# -- the network ------------------------------------------------------------------------------------------------------


def connects(family: int, kind: int, protocol: int, address: Any = HOST) -> bool:
    with socket.socket(family, kind, protocol) as made:
        made.settimeout(0.4)
        made.connect(address)
        made.send(b"probe")
    return True


def made_of(family: int, kind: int, protocol: int) -> bool:
    return bool(socket.socket(family, kind, protocol))


def by_message(how: str) -> bool:
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 0, 400_000))
        if how == "sendto":
            return made.sendto(b"probe", FAST_OPEN, HOST) > 0
        if how == "sendmsg":
            return made.sendmsg([b"probe"], [], FAST_OPEN, HOST) > 0
        return many(made, FAST_OPEN, HOST)


def many(made: socket.socket, flags: int, address: tuple[str, int]) -> bool:
    """By `sendmmsg`."""
    where = ctypes.create_string_buffer(
        struct.pack("=HH4s8x", 2, socket.htons(address[1]), socket.inet_aton(address[0]))
    )
    text = ctypes.create_string_buffer(b"probe")
    vector = ctypes.create_string_buffer(struct.pack("@PN", ctypes.addressof(text), 5))
    message = struct.pack("@PIxxxxPNPNixxxxIxxxx", ctypes.addressof(where), 16, ctypes.addressof(vector), 1, 0, 0, 0, 0)
    return libc("sendmmsg", made.fileno(), message, 1, flags) == 1


def with_option(level: int, option: int, value: Any) -> bool:
    with socket.socket() as made:
        made.setsockopt(level, option, value)
        made.settimeout(0.4)
        made.connect(HOST)
        made.send(b"probe")
    return True


def datagram(way: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        address = ("127.0.0.1", PLAN["udp"])
        if way == "sendmmsg":
            many(made, 0, address)
        else:
            made.connect(address)
            made.send(b"probe")
    return False  # the host looks whether it came


def unix(kind: int, path: str) -> bool:
    with socket.socket(socket.AF_UNIX, kind) as made:
        made.connect(path)
    return True


def listens() -> bool:
    """On all addresses; the host tries to connect while this waits."""
    with socket.socket() as made:
        made.bind(("0.0.0.0", PLAN["listen"]))  # noqa: S104 - that is the attempt
        made.listen()
        made.settimeout(0.3)
        made.accept()[0].sendall(PLAN["key"].encode())
    return True


for name, family, kind, protocol in (
    ("sctp", 2, 1, 132), ("sctp, one to many", 2, 5, 132), ("dccp", 2, 6, 33), ("udp-lite", 2, 2, 136),
    ("mptcp to a mapped address", 10, 1, 262), ("smc", 43, 1, 0), ("smc 6", 43, 1, 1), ("ping", 2, 2, 1),
):  # fmt: skip
    host: Any = ("::ffff:127.0.0.1", HOST[1]) if family == 10 else HOST
    TRIES[name] = partial(connects, family, kind, protocol, host)
for name, family, kind, protocol in (
    ("raw 6", 10, 3, 58), ("packets, raw", 17, 3, 0), ("packets, cooked", 17, 2, 0x300), ("kernel keys", 15, 3, 2), ("tipc", 30, 1, 0), ("can", 29, 3, 1),
    ("bluetooth", 31, 3, 1), ("ciphers", 38, 5, 0), ("xdp", 44, 3, 0), ("rds", 21, 5, 0), ("qualcomm", 42, 2, 0),
    ("nfc", 39, 5, 0), ("multiplexed", 41, 2, 0), ("infiniband", 27, 3, 0), ("ppp", 24, 1, 0), ("llc", 26, 1, 0),
    ("appletalk", 5, 2, 0), ("x.25", 9, 5, 0), ("decnet", 12, 5, 0), ("isdn", 34, 2, 0), ("phonet", 35, 2, 0),
    ("ieee 802.15.4", 36, 2, 0), ("caif", 37, 5, 0), ("mctp", 45, 2, 0), ("vsock", 40, 1, 0), ("vsock packets", 40, 5, 0),
    ("audit", 16, 3, 9), ("netfilter", 16, 3, 12), ("uevents", 16, 3, 15), ("socket diagnosis", 16, 3, 4),
    ("generic netlink", 16, 3, 16), ("crypto netlink", 16, 3, 21), ("rdma netlink", 16, 3, 20),
):  # fmt: skip
    TRIES[f"socket: {name}"] = partial(made_of, family, kind, protocol)
for how in ("sendto", "sendmsg", "sendmmsg"):
    TRIES[f"fast open by {how}"] = partial(by_message, how)
TRIES.update(
    {
        "fast open by connect": lambda: with_option(6, 30, 1),
        "tcp repaired": lambda: with_option(6, 19, 1),
        "tcp as smc": lambda: with_option(6, 31, b"smc"),
        "tcp by a device": lambda: with_option(socket.SOL_SOCKET, 25, b"lo"),
        "udp by sendmmsg": lambda: datagram("sendmmsg"),
        "udp by connect": lambda: datagram("connect"),
        "pair of another family": lambda: bool(socket.socketpair(30, 1)),
        "tcp to a mapped address": lambda: connects(10, 1, 0, ("::ffff:127.0.0.1", HOST[1])),
        "tcp to the own address": lambda: connects(2, 1, 0, (PLAN["address"], PLAN["tcp_any"])),
        "tcp to the metadata service": lambda: connects(2, 1, 0, ("169.254.169.254", 80)),
        "look up a name": lambda: bool(socket.getaddrinfo("example.com", 80)),
        "listen for others": listens,
        "raw": lambda: made_of(2, 3, 1),
        "tcp 6": lambda: connects(10, 1, 0, ("::1", PLAN["tcp6"])),
        "mptcp": lambda: connects(2, 1, 262),
        "unix socket in what is shown": lambda: unix(1, PLAN["unix_shown"]),
        "unix datagrams": lambda: unix(2, PLAN["unix"]),
        "unix packets": lambda: unix(5, PLAN["unix"]),
        "unix socket as a file outside": lambda: socket.socket(1, 1).bind(f"{OUTSIDE}/made") is None,
        "unix datagram socket as a file outside": lambda: socket.socket(1, 2).bind(f"{OUTSIDE}/made") is None,
    }
)

# -- files ------------------------------------------------------------------------------------------------------------


def settings_of_the_kernel() -> bool:
    """Opened for writing; nothing is written. `pressure` is for everybody to watch by writing to it."""
    own = ("self", "thread-self", "net", "mounts", "pressure")
    places = ["/proc/" + name for name in os.listdir("/proc") if not name.isdecimal() and name not in own]
    while places:
        place = places.pop()
        with suppress(OSError):
            mode = os.lstat(place).st_mode
            if stat.S_ISDIR(mode):
                places += [f"{place}/{name}" for name in os.listdir(place) if place != "/proc/sys" or name != "net"]
            elif stat.S_ISREG(mode) and mode & 0o222:  # else the level put its own there
                return opened(place, os.O_WRONLY) >= 0
    return False


def larger_than_the_disk() -> bool:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open("large", "wb") as file:
        return os.truncate(file.fileno(), PLAN["disk_bytes"] + 1) is None


BUFFER = ctypes.create_string_buffer(4096)
HOW = struct.pack("=QQQ", os.O_RDONLY, 0, 0)
SHOWN = PLAN["shown"] + "/shown.txt"
TRIES.update({
    "overwrite outside": lambda: writes(SECRET),
    "overwrite what is shown": lambda: writes(SHOWN),
    "write to the home": lambda: writes(PLAN["home"] + "/.massgen-probe"),
    "write to /usr": lambda: writes("/usr/massgen-probe"),
    "read by a symlink": lambda: read(linked(SECRET, "to-secret")),
    "write by a symlink": lambda: writes(linked(OUTSIDE + "/new.txt", "to-new")),
    "read by a symlinked directory": lambda: read(linked(OUTSIDE, "to-outside") + "/secret.txt"),
    "read by dots": lambda: read("../" * 20 + SECRET.lstrip("/")),
    "write by a hard link": lambda: os.link(SHOWN, "hard-link") is None and writes("hard-link"),
    "rename to the workspace": lambda: os.rename(SECRET, "stolen.txt") is None,
    "unlink": lambda: os.unlink(SECRET) is None,
    "truncate": lambda: os.truncate(SECRET, 0) is None,
    "times": lambda: os.utime(SECRET, (1, 1)) is None,
    "times of what is shown": lambda: os.utime(SHOWN, (1, 1)) is None,
    "chmod of what is shown": lambda: os.chmod(SHOWN, 0o777) is None,
    "chown of what is shown": lambda: os.chown(SHOWN, os.getuid(), os.getgid()) is None,
    "attribute of what is shown": lambda: os.setxattr(SHOWN, "user.massgen", b"1") is None,
    "character device": lambda: os.mknod("device", 0o600 | stat.S_IFCHR, os.makedev(1, 1)) is None and read("device"),
    "larger than the disk": larger_than_the_disk,
    "settings of the kernel": settings_of_the_kernel,
    "control groups": lambda: os.mkdir("/sys/fs/cgroup/massgen-probe") is None,
    **{f"setting {path}": partial(opened, path, os.O_WRONLY) for path in (
        "/sys/power/state", "/sys/kernel/uevent_helper", "/sys/kernel/profiling")},
    "list attributes": lambda: os.listxattr(SECRET) or True,
    "get an attribute": lambda: os.getxattr(SECRET, "user.x") or True,
    "listxattrat": lambda: call(465, AT_FDCWD, SECRET, 0, BUFFER, 4096) >= 0,
    "setxattrat": lambda: call(463, AT_FDCWD, SECRET, 0, "user.x", struct.pack("=QII", 0, 0, 0), 16) == 0,
    "file_getattr": lambda: call(468, AT_FDCWD, SECRET, BUFFER, 24, 0) == 0,
    "file_setattr": lambda: call(469, AT_FDCWD, SECRET, bytes(24), 24, 0) == 0,
    "fchmodat2": lambda: call(452, AT_FDCWD, SECRET, 0o777, 0) == 0,
    "statx": lambda: libc("statx", AT_FDCWD, SECRET, 0, 0xFFF, BUFFER) == 0,
    "faccessat2": lambda: call(439, AT_FDCWD, SECRET, 0, 0x200) == 0,
    "readlink of a directory": lambda: os.readlink(OUTSIDE) is not None,
    "statvfs": lambda: os.statvfs(OUTSIDE).f_bsize > 0,
    "name_to_handle_at": lambda: libc("name_to_handle_at", AT_FDCWD, SECRET, struct.pack("=Ii", 128, 0) + bytes(128), BUFFER, 0) == 0,
    "openat2": lambda: call(437, AT_FDCWD, SECRET, HOW, 24) >= 0,
    "open a path only": lambda: opened(SECRET, os.O_PATH) >= 0,
    "a file without a name": lambda: os.open(OUTSIDE, os.O_TMPFILE | os.O_RDWR, 0o600) >= 0,
    "mkdir": lambda: os.mkdir(f"{OUTSIDE}/made") is None,
    "rmdir": lambda: os.rmdir(OUTSIDE) is None,
    "symlink": lambda: os.symlink("x", f"{OUTSIDE}/made") is None,
    "fifo": lambda: os.mkfifo(f"{OUTSIDE}/made") is None,
    "exchange": lambda: (open("own", "w").close(), libc("renameat2", AT_FDCWD, "own", AT_FDCWD, SECRET, 2) == 0)[1],
    "chown": lambda: os.lchown(SECRET, os.getuid(), os.getgid()) is None,
    "creat": lambda: os.open(f"{OUTSIDE}/made", os.O_CREAT | os.O_WRONLY | os.O_TRUNC) >= 0,
    "chdir": lambda: os.chdir(OUTSIDE) is None,
    "execute": lambda: os.execv(SECRET, [SECRET]),
    "fanotify": lambda: call(262 if ARM else 300, 0x600, 0) >= 0 and call(263 if ARM else 301, 3, 1, 0x100, AT_FDCWD, OUTSIDE) == 0,
    "inotify": lambda: libc("inotify_add_watch", libc("inotify_init1", 0), OUTSIDE, 0x100) >= 0,
    "dnotify": lambda: fcntl.fcntl(opened(OUTSIDE), 1026, 4) == 0,
    "lock": lambda: fcntl.flock(opened(SECRET), 2) is None,
    "statmount": lambda: call(457, struct.pack("=IIQQ", 24, 0, 1, 1), BUFFER, 4096, 0) == 0,
    "open_tree": lambda: call(428, AT_FDCWD, OUTSIDE, 1) >= 0,
    "fsopen": lambda: call(430, "tmpfs", 0) >= 0,
    "mount_setattr": lambda: call(442, AT_FDCWD, "/", 0, bytes(32), 32) == 0,
    "pivot_root": lambda: call(41 if ARM else 155, "/tmp", "/tmp") == 0,
    "umount": lambda: libc("umount2", "/proc", 2) == 0,
    "chroot": lambda: os.chroot("/tmp") is None,
    "accounting": lambda: libc("acct", "/workspace/own") == 0,
    "quota": lambda: libc("quotactl", 0x80000700, 0, 0, BUFFER) == 0,
    "swap": lambda: libc("swapon", "/workspace/own", 0) == 0,
    "home by /proc/1": lambda: read(f"/proc/1/root{SECRET}") or read(f"/proc/1/cwd{SECRET}"),
    "kernel's memory": lambda: read("/proc/kcore"),
    "sysrq": lambda: opened("/proc/sysrq-trigger", os.O_WRONLY) >= 0,
    "debugfs": lambda: bool(os.listdir("/sys/kernel/debug")),
    "tracefs": lambda: opened("/sys/kernel/tracing/trace_marker", os.O_WRONLY) >= 0,
    "firmware": lambda: bool(os.listdir("/sys/firmware")) and opened("/sys/firmware/dmi/tables/DMI") >= 0,
    **{f"device {path}": partial(opens, path) for path in (
        "/dev/mem", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/uinput", "/dev/vhost-vsock", "/dev/loop-control",
        "/dev/mapper/control", "/dev/port", "/dev/kmsg", "/dev/vsock", "/dev/userfaultfd", "/dev/hwrng", "/dev/rtc0")},
})  # fmt: skip

TRIES.update({f"login {path}": partial(read, path) for path in PLAN.get("logins", ())})
if "tools" in PLAN:
    TRIES.update(
        {
            "overwrite a tool": lambda: writes(PLAN["tools"]),
            "remove a tool": lambda: os.unlink(PLAN["tools"]) is None,
        }
    )

# -- what takes a descriptor of a file that may only be read, and changes the file ------------------------------------


def emptied(how: Callable[[], object]) -> bool:
    how()
    return os.stat(SHOWN).st_size == 0


def changed_by(how: Callable[[int], object]) -> bool:
    """Whether this succeeds on what is shown, opened to be read."""
    return how(opened(SHOWN)) is not False


def by_descriptor(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def linked_and_written(descriptor: int) -> bool:
    call(37 if ARM else 265, descriptor, "", AT_FDCWD, "linked", 0x1000)
    return writes("linked")


HOW_TO_EMPTY = struct.pack("=QQQ", os.O_RDONLY | os.O_TRUNC, 0, 0)
TRIES.update({
    "open to read and truncate": lambda: emptied(lambda: opened(SHOWN, os.O_RDONLY | os.O_TRUNC)),
    "openat2 to read and truncate": lambda: emptied(lambda: call(437, AT_FDCWD, SHOWN, HOW_TO_EMPTY, 24)),
    "creat over what is shown": lambda: emptied(lambda: libc("creat", SHOWN, 0o600)),
    "open what is hidden to truncate it": lambda: opened(PLAN["shown"] + "/hidden.txt", os.O_RDONLY | os.O_TRUNC) >= 0 and read(PLAN["shown"] + "/hidden.txt"),
    "ftruncate": lambda: emptied(lambda: changed_by(lambda file: os.ftruncate(file, 0))),
    "fchmod": lambda: changed_by(lambda file: os.fchmod(file, 0o4777)),
    "fchown": lambda: changed_by(lambda file: os.fchown(file, os.getuid(), os.getgid())),
    "fsetxattr": lambda: changed_by(lambda file: os.setxattr(file, "user.massgen", b"1")),
    "fremovexattr": lambda: changed_by(lambda file: os.removexattr(file, "user.massgen")),
    "futimens": lambda: changed_by(lambda file: os.utime(file, (1, 1))),
    "fallocate": lambda: changed_by(lambda file: os.posix_fallocate(file, 0, 9)),
    "attributes of the file system": lambda: changed_by(lambda file: fcntl.ioctl(file, 0x40086602, struct.pack("@l", 0x40))),
    "copy into it": lambda: changed_by(lambda file: os.copy_file_range(opened(sys.executable), file, 9)),
    "send into it": lambda: changed_by(lambda file: os.sendfile(file, opened(sys.executable), 0, 9)),
    "clone into it": lambda: changed_by(lambda file: fcntl.ioctl(file, 0x40049409, opened(sys.executable))),
    "map it to write": lambda: changed_by(lambda file: mmap.mmap(file, 4, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)),
    "open it again to write": lambda: changed_by(lambda file: writes(by_descriptor(file))),
    "chmod by its descriptor": lambda: changed_by(lambda file: os.chmod(by_descriptor(file), 0o777)),
    "truncate by its descriptor": lambda: changed_by(lambda file: os.truncate(by_descriptor(file), 0)),
    "link its descriptor": lambda: changed_by(linked_and_written),
    "empty what is layered": lambda: writes(PLAN["layered"] + "/in/secret.txt"),
})  # fmt: skip

# -- calls that name a path of the machine's own /tmp, where a command has another one, and of its workspace ----------

PATHS: dict[str, Callable[[str], Any]] = {
    "open": lambda place: read(f"{place}/secret.txt"),
    "list": lambda place: bool(os.listdir(place)),
    "stat": lambda place: os.stat(f"{place}/secret.txt"),
    "readlink": lambda place: os.readlink(f"{place}/link"),
    "access": lambda place: os.access(f"{place}/secret.txt", os.F_OK),
    "link": lambda place: os.link(f"{place}/secret.txt", "of-another"),
    "unlink": lambda place: os.unlink(f"{place}/secret.txt"),
    "rename out": lambda place: os.rename(f"{place}/secret.txt", "of-another"),
    "rename in": lambda place: (open("own", "w").close(), os.rename("own", f"{place}/own")),
    "mkdir": lambda place: os.mkdir(f"{place}/made"),
    "rmdir": lambda place: os.rmdir(f"{place}/empty"),
    "symlink": lambda place: os.symlink("x", f"{place}/made"),
    "mkfifo": lambda place: os.mkfifo(f"{place}/made"),
    "bind": lambda place: socket.socket(1, 1).bind(f"{place}/made"),
    "chmod": lambda place: os.chmod(f"{place}/secret.txt", 0o777),
    "chown": lambda place: os.chown(f"{place}/secret.txt", os.getuid(), os.getgid()),
    "truncate": lambda place: os.truncate(f"{place}/secret.txt", 0),
    "utime": lambda place: os.utime(f"{place}/secret.txt", (1, 1)),
    "execute": lambda place: os.execv(f"{place}/secret.txt", ["x"]),
    "chdir": os.chdir,
    "watch": lambda place: libc("inotify_add_watch", libc("inotify_init1", 0), place, 0x100),
}


def succeeds_in_tmp(deed: Callable[[str], Any]) -> bool:
    return deed(TEMPORARY) is not False


TRIES.update({f"{name} in the machine's /tmp": partial(succeeds_in_tmp, deed) for name, deed in PATHS.items()})
TRIES["the workspace by its own path"] = lambda: read(PLAN["own_workspace"] + "/of-the-host.txt")

# -- a network that is shared, with relays to listed pairs ------------------------------------------------------------

LO = b"lo".ljust(16, b"\0")
PROXY = ("127.66.255.254", 3128)


def controls(request: int, described: bytes) -> bool:
    with socket.socket(2, 2) as made:
        return bool(fcntl.ioctl(made, request, described))


def by_proxy(text: str, then: str = "") -> bool:
    """Whether the proxy carries this; a second request goes over the same connection."""
    with socket.create_connection(PROXY, timeout=0.5) as made:
        made.sendall(text.format(**PLAN).encode() + b"\r\n\r\n")
        first = made.recv(99)
        if then and b" 200 " in first:
            made.sendall(then.format(**PLAN).encode() + b"\r\n\r\n")
            return b" 200 " in made.recv(99)
        return not then and b" 200 " in first


def takes(address: tuple[str, int], option: int = 0) -> bool:
    """Listen where a relay listens."""
    with socket.socket() as made:
        if option:
            made.setsockopt(socket.SOL_SOCKET, option, 1)
        made.bind(address)
        made.listen()
    return True


TRIES.update({
    "loopback down": lambda: controls(0x8914, LO + struct.pack("H22x", 0)),
    "an address of the host": lambda: controls(0x8916, LO + struct.pack("=HH4s16x", 2, 0, socket.inet_aton("192.0.2.9"))),
    "a route": lambda: controls(0x890B, bytes(120)),
    "a device of the host": lambda: len(socket.if_nameindex()) > 1,
    "the port of a relay": lambda: takes(("127.0.0.1", PLAN["listed"])),
    "the port of a relay, shared": lambda: takes(("127.0.0.1", PLAN["listed"]), socket.SO_REUSEPORT),
    "the port of the proxy": lambda: takes(PROXY, socket.SO_REUSEADDR),
    "tcp to another address of the relays": lambda: connects(2, 1, 0, ("127.66.0.2", HOST[1])),
    "tcp to any address": lambda: connects(2, 1, 0, ("0.0.0.0", HOST[1])),  # noqa: S104 - that is the attempt
    **{f"proxy: {text}": partial(by_proxy, text) for text in (
        "CONNECT localhost:{tcp} HTTP/1.1", "CONNECT 127.0.0.1:{tcp} HTTP/1.1", "CONNECT localhost:{listed}@127.0.0.1:{tcp} HTTP/1.1",
        "CONNECT 127.0.0.1:{listed} HTTP/1.1", "CONNECT localhost.:{listed} HTTP/1.1", "CONNECT [::1]:{listed} HTTP/1.1",
        "CONNECT 2130706433:{tcp} HTTP/1.1", "CONNECT localhost:0{tcp} HTTP/1.1", "CONNECT localhost:{tcp}#localhost:{listed} HTTP/1.1",
        "GET http://localhost:{tcp}/ HTTP/1.1", "GET http://localhost:{listed}@localhost:{tcp}/ HTTP/1.1", "GET http://localhost:{tcp}?localhost:{listed} HTTP/1.1",
        "GET file:///etc/passwd HTTP/1.1", "GET / HTTP/1.1\r\nHost: localhost:{tcp}", "CONNECT localhost:{tcp}\r\nHost: localhost:{listed} HTTP/1.1")},
    "proxy: another host after the first": lambda: by_proxy("CONNECT localhost:{listed} HTTP/1.1", "CONNECT localhost:{tcp} HTTP/1.1"),
    "namespaces of others": lambda: any("net:[" in os.readlink(f"/proc/{pid}/fd/{name}") for pid in ("self", "1") for name in os.listdir(f"/proc/{pid}/fd")),
})  # fmt: skip

# -- processes, and what the whole machine shares ---------------------------------------------------------------------


def prioritized_by_user() -> bool:
    """Of a user that nobody is, so that it harms nobody where it is possible."""
    try:
        os.setpriority(os.PRIO_USER, 2_000_000_000, 0)
    except ProcessLookupError:
        return not OWN_PROCESSES
    return True


def of_victim(attempt: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: False if OWN_PROCESSES else attempt()


VECTOR = struct.pack("@PN", ctypes.addressof(BUFFER), 8)
TRIES.update({
    name: of_victim(attempt)
    for name, attempt in {
        "process_vm_readv": lambda: libc("process_vm_readv", VICTIM, VECTOR, 1, VECTOR, 1, 0) > 0,
        "process_vm_writev": lambda: libc("process_vm_writev", VICTIM, VECTOR, 1, VECTOR, 1, 0) > 0,
        "pidfd_getfd": lambda: call(438, os.pidfd_open(VICTIM), 0, 0) >= 0,
        "pidfd_send_signal": lambda: signal.pidfd_send_signal(os.pidfd_open(VICTIM), 0) is None,
        "tgkill": lambda: call(131 if ARM else 234, VICTIM, VICTIM, 0) == 0,
        "sigqueue": lambda: libc("sigqueue", VICTIM, 0, 0) == 0,
        "kcmp": lambda: call(272 if ARM else 312, os.getpid(), VICTIM, 0, 0, 0) >= 0,
        "move_pages": lambda: call(239 if ARM else 279, VICTIM, 1, VECTOR, 0, BUFFER, 0) >= 0,
        "migrate_pages": lambda: call(238 if ARM else 256, VICTIM, 8, VECTOR, VECTOR) >= 0,
        "sched_setattr": lambda: call(274 if ARM else 314, VICTIM, struct.pack("=IIQiIQQQ", 48, 3, 0, 0, 0, 0, 0, 0), 0) == 0,
        "ioprio_set": lambda: call(30 if ARM else 251, 1, VICTIM, 3 << 13) == 0,
        "setpgid": lambda: os.setpgid(VICTIM, os.getpid()) is None,
        "perf": lambda: call(241 if ARM else 298, bytes([1, 0, 0, 0, 128]) + bytes(123), VICTIM, -1, -1, 0) >= 0,
        "namespaces": lambda: libc("setns", opened(f"/proc/{VICTIM}/ns/net"), 0) == 0,
        "signal": lambda: os.kill(VICTIM, signal.SIGCONT) is None,
        "signal to the parent": lambda: os.kill(PLAN["parent"], 0) is None,
        "command line of the parent": lambda: read(f"/proc/{PLAN['parent']}/cmdline"),
        "files of the parent": lambda: bool(os.listdir(f"/proc/{PLAN['parent']}/fd")),
        "processor": lambda: os.sched_setaffinity(VICTIM, {0}) is None,
        "scheduler": lambda: os.sched_setscheduler(VICTIM, os.SCHED_IDLE, os.sched_param(0)) is None,
        "limits": lambda: len(resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (1, 1))) == 2,
        "out of memory first": lambda: opened(f"/proc/{VICTIM}/oom_score_adj", os.O_WRONLY) >= 0,
    }.items()
})  # fmt: skip
for name, flag in (
    ("mounts", 0x20000),
    ("hosts", 0x4000000),
    ("ipc", 0x8000000),
    ("network", 0x40000000),
    ("groups", 0x2000000),
):
    TRIES[f"namespace of {name}"] = partial(unshares, flag)
TRIES.update({
    "environment of the parent": of_victim(lambda: read(f"/proc/{PLAN['parent']}/environ")),
    "priority of the victim": of_victim(lambda: os.setpriority(os.PRIO_PROCESS, VICTIM, 19) is None),
    "trace the victim": of_victim(lambda: libc("ptrace", 0x4206, VICTIM, 0, 0) == 0),
    "memory of the victim": of_victim(lambda: read(f"/proc/{VICTIM}/maps")),
    "become root": lambda: os.setuid(0) is None and read("/etc/shadow"),
    "shadow": lambda: read("/etc/shadow"),
    "kernel's log by its file": lambda: read("/dev/kmsg") or read("/proc/kmsg"),
    "leave the control group": lambda: any(os.access(f"/sys/fs/cgroup/{name}cgroup.procs", os.W_OK) for name in ("", "pids/", "memory/", "unified/")),
    "type at the terminal": lambda: bool(fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x5412, b"x")),
    "gain privileges": lambda: LIBC.prctl(39, 0, 0, 0, 0) != 1,
    "descriptors of the host": lambda: any(OUTSIDE in os.readlink(f"/proc/self/fd/{name}") or int(name) > 9 for name in os.listdir("/proc/self/fd")),
    "shared memory of the host": lambda: os.listdir("/dev/shm") != [],
    "System V memory of the host": lambda: bool(PLAN["shm_key"]) and libc("shmget", PLAN["shm_key"], 4096, 0) >= 0,
    "System V memory, large": lambda: libc("shmget", 0, 1 << 20, 0o1600) >= 0,
    "System V memory, huge": lambda: call(194 if ARM else 29, 0, ctypes.c_size_t((1 << 32) + 1), 0o1600) >= 0,
    "System V semaphores, many": lambda: libc("semget", 0, 32000, 0o1600) >= 0,
    "System V messages": lambda: libc("msgget", 0, 0o1600) >= 0,
    "io_uring": lambda: call(425, 1, BUFFER) >= 0,
    "user namespace": partial(unshares, 0x10000000),
    "mount": lambda: libc("mount", "none", "/tmp", "tmpfs", 0, None) == 0,
    "block device": lambda: os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(8, 0)) is None and read("disk"),
    "a disk": lambda: any(read(f"/dev/{name}") for name in ("sda", "vda", "nvme0n1", "dm-0", "loop0")),
    "names in the home": lambda: any(name in os.listdir(PLAN["home"]) for name in PLAN["home_names"]),
    "names in /etc": lambda: "shadow" in os.listdir("/etc"),
    "priority by user": prioritized_by_user,
    "clone3 with a namespace": lambda: call(435, struct.pack("=11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88) >= 0,
    "keys": lambda: call(217 if ARM else 248, "user", "massgen", b"x", 1, -4) >= 0,
    "keys of the session": lambda: call(219 if ARM else 250, 1, 0) >= 0,
    "bpf": lambda: call(280 if ARM else 321, 0, bytes(72), 72) >= 0,
    "userfaultfd": lambda: call(282 if ARM else 323, 1) >= 0,
    "kernel's log": lambda: libc("klogctl", 3, BUFFER, 4096) > 0,
    "module": lambda: call(105 if ARM else 175, b"x", 1, b"") == 0,
    "kexec": lambda: call(104 if ARM else 246, 0, 0, 0, 0) == 0,
    "reboot": lambda: _allowed(lambda: call(142 if ARM else 169, 1, 2, 3, 0)),
    "clock": lambda: libc("settimeofday", struct.pack("@ll", 0, 0), 0) == 0,
    "clock by clock_settime": lambda: libc("clock_settime", 0, struct.pack("@ll", -1, 0)) == 0,
    "host's name": lambda: libc("sethostname", "massgen", 7) == 0,
    "domain's name": lambda: libc("setdomainname", "massgen", 7) == 0,
    "ports of the machine": lambda: False if ARM else call(172, 3) == 0,
    "hang up the terminal": lambda: libc("vhangup") == 0,
    "nice below": lambda: os.nice(-10) < 19,
    "real time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)) is None,
    "more open files": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 19, 1 << 19)) is None,
    "core files": lambda: resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20)) is None,
    "capabilities": lambda: libc("capset", struct.pack("=II", 0x20080522, 0), struct.pack("=6I", 1 << 21, 1 << 21, 0, 0, 0, 0)) == 0,
    "another user": lambda: os.setuid(12345) is None and os.getuid() == 12345 and read(SECRET),
    "futex robust list of the victim": of_victim(lambda: call(100 if ARM else 274, VICTIM, BUFFER, BUFFER) == 0),
})  # fmt: skip


def _allowed(attempt: Callable[[], Any]) -> bool:
    """Whether the kernel only found fault with what was said."""
    try:
        attempt()
    except OSError as error:
        return error.errno == errno.EINVAL
    return True


def tried(attempt: Callable[[], Any]) -> bool | str:
    child = os.fork()
    if not child:
        signal.alarm(2)
        try:
            os._exit(0 if attempt() else 1)
        except (OSError, AttributeError, ValueError):
            os._exit(1)
        except BaseException:  # noqa: BLE001 - an attempt that is wrong must be seen
            os._exit(3)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "wrong" if code == 3 else code == 0


os.chdir(PLAN["workspace"])
wanted = PLAN.get("only")
print(json.dumps({name: tried(attempt) for name, attempt in TRIES.items() if wanted is None or name in wanted}))
