"""Makes a network namespace that several commands can join, and hands out its descriptors and its listening sockets.

Run as `python -I -S network_namespace.py FD`, where FD is a Unix socket: one JSON line with the program of bubblewrap
and the addresses to listen on comes in; descriptors go out. The namespace lives as long as one of them is open. It is
bubblewrap that makes it, because it may be the only program of the machine that is allowed to.

`join` is for `supervisor`, which loads this from beside it; so it knows no other module of ours.
"""

import ctypes
import fcntl
import ipaddress
import json
import os
import socket
import struct
import subprocess
import sys

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
NS_GET_USERNS = 0xB701
SIOCSIFADDR, SIOCSIFNETMASK = 0x8916, 0x891C
BACKLOG = 64
MAX_FAULT = 500


def join(user: int, network: int) -> None:
    """Enter these namespaces, and let no program that this process becomes have their descriptors."""
    libc = ctypes.CDLL(None, use_errno=True)
    for descriptor, kind in ((user, CLONE_NEWUSER), (network, CLONE_NEWNET)):
        if libc.setns(descriptor, kind):
            raise OSError(ctypes.get_errno(), "setns")
        os.set_inheritable(descriptor, False)


def main() -> None:
    with socket.socket(fileno=int(sys.argv[1])) as control:
        program, *addresses = json.loads(control.makefile("rb").readline())
        try:
            user, network = _make(program)
            join(user, network)
            listeners = [_listen(number, host, port) for number, (host, port) in enumerate(addresses)]
        except (OSError, ValueError) as error:
            control.sendall(f"!{error}".encode()[:MAX_FAULT])
            return
        socket.send_fds(control, [b"+"], [user, network, *(one.fileno() for one in listeners)])


def _make(program: str) -> tuple[int, int]:
    """Return descriptors of a new network namespace, with nothing but its loopback, and of its namespace for users."""
    reading, writing = os.pipe()
    argv = [program, "--unshare-user", "--unshare-net", "--die-with-parent", "--ro-bind", "/", "/"]
    argv += ["--info-fd", str(writing), "--", "/bin/sh", "-c", "echo; read line"]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, env={}, pass_fds=(writing,), stdin=pipe, stdout=pipe, stderr=pipe) as holder:  # noqa: S603
        os.close(writing)
        with os.fdopen(reading) as report:
            if holder.stdin is None or holder.stdout is None or holder.stderr is None or not holder.stdout.readline():
                raise ValueError(holder.communicate()[1].decode(errors="replace").strip())
            network = os.open(f"/proc/{json.load(report)['child-pid']}/ns/net", os.O_RDONLY)
        holder.stdin.close()
    return fcntl.ioctl(network, NS_GET_USERNS), network


def _listen(number: int, host: str, port: int) -> socket.socket:
    """Listen on an address of this namespace, which is made one of its own first."""
    listener = socket.socket()
    if not ipaddress.ip_address(host).is_loopback:
        for request, address in ((SIOCSIFADDR, host), (SIOCSIFNETMASK, "255.255.255.255")):
            described = struct.pack("16sHH4s8x", f"lo:{number}".encode(), socket.AF_INET, 0, socket.inet_aton(address))
            fcntl.ioctl(listener, request, described)
    listener.bind((host, port))
    listener.listen(BACKLOG)
    return listener


if __name__ == "__main__":
    main()
