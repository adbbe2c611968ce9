"""Programs for seccomp: system calls that a command is refused, as instructions for the kernel.

Must not know any level. Numbers of calls are those of the machine; one that is not in the tables has no program.
"""

import platform
import struct

NAMESPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
"""The flags of `clone` that make a namespace."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_FOREIGN_FAMILIES = (38, 40)
"""AF_ALG, and AF_VSOCK, which no network namespace holds."""
_EPERM, _ENOSYS = 1, 38
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_X32 = 0x40000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_PRIO_USER = 2

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CALLS = {"x86_64": (56, 435, 16, 41), "aarch64": (220, 435, 29, 198)}
"""clone, clone3, ioctl, socket."""
_PRCTL = {"x86_64": 157, "aarch64": 167}
_PR_SET_DUMPABLE = 4
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
"""io_uring, namespaces, bpf, perf, userfaultfd, keys, mounts, kexec, modules, handles of files, swap and the like."""
_OF_OTHERS = {"x86_64": (302, 203, 144, 142, 314), "aarch64": (261, 122, 119, 118, 274)}
"""Whose first argument is a process: prlimit64, and those that begin with sched_set."""
_OF_GROUPS = {"x86_64": (141, 251), "aarch64": (140, 30)}
"""Whose second argument is a process, a group or a user, as the first one says: setpriority, ioprio_set."""

Instruction = tuple[int, int, int, int]


def known_machine() -> bool:
    return platform.machine() in _AUDIT


def without_escapes() -> bytes:
    """What a command has no use for, and a kernel is most often broken through; with it no namespace is made."""
    machine = platform.machine()
    clone, clone3, ioctl, socket = _CALLS[machine]
    lines = _beginning(machine)
    for number in _DENIED[machine]:
        lines += _when(number, [_refuse()])
    lines += _when(clone3, [_refuse(_ENOSYS)])  # its flags cannot be looked at; libraries then take `clone`
    lines += _when(clone, [_load(_ARGUMENTS), (0x45, 0, 1, sum(NAMESPACES)), _refuse(), _allow()])
    lines += _when(ioctl, [_load(_ARGUMENTS + 8), *_any_of((_TIOCSTI, _TIOCLINUX)), _allow()])
    lines += _when(socket, [_load(_ARGUMENTS), *_any_of(_FOREIGN_FAMILIES), _allow()])
    # one that cannot be looked at is not counted
    lines += _when(_PRCTL[machine], [_load(_ARGUMENTS), *_any_of((_PR_SET_DUMPABLE,)), _allow()])
    return _packed([*lines, _allow()])


def without_other_processes() -> bytes:
    """Limits and priorities of other processes, for a level in which those of the host have numbers, too.

    And `clone3`, whose flags cannot be looked at: libraries then take `clone` (see `sandlock_forks`).
    """
    machine = platform.machine()
    lines = [*_beginning(machine), *_when(_CALLS[machine][1], [_refuse(_ENOSYS)])]
    for number in _OF_OTHERS[machine]:
        lines += _when(number, [_load(_ARGUMENTS), _equal(0, over=1), _allow(), _refuse()])
    for number in _OF_GROUPS[machine]:
        named = [_load(_ARGUMENTS + 8), _equal(0, over=1), _allow(), _refuse()]
        lines += _when(number, [_load(_ARGUMENTS), *_any_of((_PRIO_USER, _PRIO_USER + 1)), *named])
    return _packed([*lines, _allow()])


def _beginning(machine: str) -> list[Instruction]:
    lines = [_load(_ARCHITECTURE), (0x15, 1, 0, _AUDIT[machine]), _refuse(_ENOSYS), _load(_NUMBER)]
    if machine == "x86_64":
        lines += [(0x35, 0, 1, _X32), _refuse(_ENOSYS)]
    return lines


def _load(offset: int) -> Instruction:
    return (0x20, 0, 0, offset)


def _allow() -> Instruction:
    return (0x06, 0, 0, _ALLOW)


def _refuse(error: int = _EPERM) -> Instruction:
    return (0x06, 0, 0, _ERRNO | error)


def _equal(value: int, *, over: int) -> Instruction:
    """Where it is another value, `over` instructions are passed over."""
    return (0x15, 0, over, value)


def _when(number: int, then: list[Instruction]) -> list[Instruction]:
    return [_equal(number, over=len(then)), *then]


def _any_of(values: tuple[int, ...]) -> list[Instruction]:
    return [line for value in values for line in (_equal(value, over=1), _refuse())]


def _packed(lines: list[Instruction]) -> bytes:
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
