"""The level of bubblewrap: namespaces of its own for users, processes, network and files, and a filter for system calls.

Only describes how a command is started; must not start one.
"""

import os
import platform
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

from massgen_mcp.sandbox.policy import MIB, SCRATCH, WORKSPACE, Policy
from massgen_mcp.sandbox.toolchains import readable

_ARGUMENTS, _FILTER, _REPORTS, _GATE = 101, 102, 103, 104
SHARED_MEMORY_BYTES = 256 * MIB

_NAMESPACES = 0x7E020000
"""The flags of `clone` and `unshare` that make a namespace."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_FOREIGN_FAMILIES = (38, 40)
"""AF_ALG, and AF_VSOCK, which no network namespace holds."""
_EPERM, _ENOSYS = 1, 38
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_DENIED = {
    "x86_64": (
        *(425, 426, 427, 272, 308, 321, 298, 323, 248, 249, 250, 165, 166, 155, 428, 429, 430, 431, 432, 433, 442, 467),
        *(246, 320, 175, 313, 176, 304, 179, 167, 168, 169, 163),
    ),
    "aarch64": (
        *(425, 426, 427, 97, 268, 280, 241, 282, 217, 218, 219, 40, 39, 41, 428, 429, 430, 431, 432, 433, 442, 467),
        *(104, 294, 105, 273, 106, 265, 60, 224, 225, 142, 89),
    ),
}
"""io_uring, namespaces, bpf, perf, userfaultfd, keys, mounts, modules, kexec, handles of files, quota, swap, reboot."""
_CALLS = {"x86_64": (0xC000003E, 56, 435, 16, 41), "aarch64": (0xC00000B7, 220, 435, 29, 198)}
"""The audit number of the machine, then clone, clone3, ioctl, socket."""
_X32 = 0x40000000


def program() -> str | None:
    """Where bubblewrap is, if it is there and we know this machine's system calls."""
    return shutil.which("bwrap") if platform.machine() in _CALLS else None


def launch(argv: list[str], policy: Policy, environ: dict[str, str]) -> dict[str, object]:
    """What the keeper needs to start `argv` under `policy`."""
    found = program()
    if found is None:
        raise FileNotFoundError("bwrap")
    root = os.geteuid() == 0
    arguments = [*_options(policy), *([] if root else ["--block-fd", str(_GATE)])]
    files = {_ARGUMENTS: "\0".join(arguments) + "\0", _FILTER: _filter(platform.machine()).decode("latin-1")}
    return {
        "argv": [found, "--args", str(_ARGUMENTS), "--", *argv],
        "environ": environ,
        "files": files,
        "reports_at": _REPORTS,
        "gate_at": None if root else _GATE,
        "own_group": root,
    }


def _options(policy: Policy) -> Iterator[str]:
    yield from ("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    yield from ("--hostname", "sandbox", "--seccomp", str(_FILTER), "--json-status-fd", str(_REPORTS))
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from ("--size", str(SHARED_MEMORY_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm")  # noqa: S108
    yield from ("--dir", "/etc")
    for path in (*readable(), *policy.toolchains):
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        else:
            yield from ("--ro-bind", str(path), str(path))
    yield from ("--bind", str(policy.workspace), WORKSPACE, "--bind", str(policy.scratch), SCRATCH)
    for shown in policy.shown:
        yield from ("--bind" if shown.writable else "--ro-bind", str(shown.host), shown.place)
    for place, is_directory in _masked(policy):
        yield from (("--perms", "0000", "--size", "4096", "--tmpfs") if is_directory else ("--ro-bind", "/dev/null"))
        yield place
    yield from ("--remount-ro", "/", "--chdir", WORKSPACE)


def _masked(policy: Policy) -> Iterator[tuple[str, bool]]:
    """The places inside at which something hidden would be seen, and whether it is a directory."""
    seen = [(path, str(path)) for path in (*readable(), *policy.toolchains)]
    seen += [(shown.host, shown.place) for shown in policy.shown]
    for hidden in policy.hidden:
        for host, place in seen:
            if hidden.is_relative_to(host) and os.path.lexists(hidden):
                yield str(Path(place, hidden.relative_to(host))), hidden.is_dir() and not hidden.is_symlink()


def _filter(machine: str) -> bytes:
    """A program for seccomp: what a command has no use for and a kernel is most often broken through."""
    audit, clone, clone3, ioctl, socket = _CALLS[machine]
    refuse, absent, allow = _ERRNO | _EPERM, _ERRNO | _ENOSYS, _ALLOW
    program = [_load(4), _unless(audit, absent), _load(0)]
    if machine == "x86_64":
        program.append((0x35, 0, 1, _X32))  # at least
        program.append((0x06, 0, 0, absent))
    program += [line for number in _DENIED[machine] for line in _when(number, [(0x06, 0, 0, refuse)])]
    program += _when(clone3, [(0x06, 0, 0, absent)])
    program += _when(clone, [_load(16), (0x45, 0, 1, _NAMESPACES), (0x06, 0, 0, refuse), (0x06, 0, 0, allow)])
    program += _when(ioctl, [_load(24), *_any_of((_TIOCSTI, _TIOCLINUX), refuse), (0x06, 0, 0, allow)])
    program += _when(socket, [_load(16), *_any_of(_FOREIGN_FAMILIES, refuse), (0x06, 0, 0, allow)])
    program.append((0x06, 0, 0, allow))
    flat = [part for line in program for part in (line if isinstance(line, list) else [line])]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in flat)


Instruction = tuple[int, int, int, int]


def _load(offset: int) -> Instruction:
    return (0x20, 0, 0, offset)


def _unless(value: int, result: int) -> list[Instruction]:
    return [(0x15, 1, 0, value), (0x06, 0, 0, result)]


def _when(number: int, then: list[Instruction]) -> list[Instruction]:
    return [(0x15, 0, len(then), number), *then]


def _any_of(values: tuple[int, ...], result: int) -> list[Instruction]:
    return [line for value in values for line in ((0x15, 0, 1, value), (0x06, 0, 0, result))]
