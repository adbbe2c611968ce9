"""Programs for seccomp: system calls that a command is refused, as instructions for the kernel.

Numbers of calls are those of the machine; one that is not in the tables has no program.
"""

import platform
import struct

NAMESPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
"""The flags of `clone` that make a namespace."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _TYPES = 1, 2, 0xF
"""Types of sockets; what else stands in that argument are flags."""
_OF_TYPE = ((_STREAM, (0, 6)), (_DATAGRAM, (0, 17)))
"""Protocols of the internet that programs use: TCP and UDP."""
_TCP, _UPPER_LAYER = 6, 31
"""The option TCP_ULP: TCP becomes another protocol, such as SMC, when it is set."""
_EPERM, _EINVAL, _ENOSYS, _EPROTONOSUPPORT, _EAFNOSUPPORT = 1, 22, 38, 93, 97
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_X32 = 0x40000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CALLS = {"x86_64": (56, 435, 16), "aarch64": (220, 435, 29)}
"""clone, clone3, ioctl."""
_SOCKETS = {"x86_64": (41, 53, 54), "aarch64": (198, 199, 208)}
"""socket, socketpair, setsockopt."""
_SYSTEM_V = {"x86_64": (29, 64, 68), "aarch64": (194, 190, 186)}
"""shmget, semget, msgget."""
SEGMENT_BYTES, SEMAPHORES = 64 * 1024, 64
"""The most of one segment, and of one set, of System V. There are at most some thousands of each, and nothing else
counts what they hold.
"""
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
Instruction = tuple[int, int, int, int]


def known_machine() -> bool:
    return platform.machine() in _AUDIT


def without_escapes() -> bytes:
    """What a command has no use for, and a kernel is most often broken through; with it no namespace is made."""
    machine = platform.machine()
    clone, clone3, ioctl = _CALLS[machine]
    lines = _beginning(machine)
    for number in _DENIED[machine]:
        lines += _when(number, [_refuse()])
    lines += _when(clone3, [_refuse(_ENOSYS)])  # its flags cannot be looked at; libraries then take `clone`
    lines += _when(clone, [_argument(0), (0x45, 0, 1, sum(NAMESPACES)), _refuse(), _allow()])
    lines += _when(ioctl, [_argument(1), *_refuse_each((_TIOCSTI, _TIOCLINUX)), _allow()])
    # a process that cannot be looked at is not counted
    lines += _when(_PRCTL[machine], [_argument(0), *_refuse_each((_PR_SET_DUMPABLE,)), _allow()])
    return _pack([*lines, *_limit_system_v(machine), *_sockets(machine), _allow()])


def _sockets(machine: str) -> list[Instruction]:
    """Sockets of this machine, and of the internet those for TCP and UDP; no other family, type or protocol."""
    socket, pair, option = _SOCKETS[machine]
    tcp_and_udp = [_argument(1), (0x54, 0, 0, _TYPES)]
    for kind, protocols in _OF_TYPE:
        tcp_and_udp += _when(kind, [_argument(2), *_let(protocols), _refuse(_EPROTONOSUPPORT)])
    tcp_and_udp.append(_refuse(_EPROTONOSUPPORT))
    made = [_argument(0), *_let((_UNIX,)), *_when(_NETLINK, [_argument(2), *_let((0,)), _refuse(_EPROTONOSUPPORT)])]
    for family in (_INET, _INET6):
        made += _when(family, tcp_and_udp)
    made.append(_refuse(_EAFNOSUPPORT))
    lines = _when(socket, made) + _when(pair, [_argument(0), *_let((_UNIX,)), _refuse(_EAFNOSUPPORT)])
    of_tcp = [_argument(2), *_refuse_each((_UPPER_LAYER,)), _allow()]
    return lines + _when(option, [_argument(1), *_when(_TCP, of_tcp), _allow()])


def _limit_system_v(machine: str) -> list[Instruction]:
    """Small segments and sets only, and no queues of messages, whose size their maker does not name."""
    segment, semaphores, queue = _SYSTEM_V[machine]
    lines = _when(queue, [_refuse(_ENOSYS)])
    for number, most in ((segment, SEGMENT_BYTES), (semaphores, SEMAPHORES)):
        small = [_argument(1), (0x25, 1, 0, most), _allow(), _refuse(_EINVAL)]
        lines += _when(number, [_load(_ARGUMENTS + 8 + 4), _equal(0, over=3), *small])
    return lines


def _beginning(machine: str) -> list[Instruction]:
    lines = [_load(_ARCHITECTURE), (0x15, 1, 0, _AUDIT[machine]), _refuse(_ENOSYS), _load(_NUMBER)]
    if machine == "x86_64":
        lines += [(0x35, 0, 1, _X32), _refuse(_ENOSYS)]
    return lines


def _load(offset: int) -> Instruction:
    return (0x20, 0, 0, offset)


def _argument(number: int) -> Instruction:
    """The lower half of an argument of the call; of those that are looked at the kernel takes no more."""
    return _load(_ARGUMENTS + 8 * number)


def _allow() -> Instruction:
    return (0x06, 0, 0, _ALLOW)


def _refuse(error: int = _EPERM) -> Instruction:
    return (0x06, 0, 0, _ERRNO | error)


def _equal(value: int, *, over: int) -> Instruction:
    """Where it is another value, `over` instructions are passed over."""
    return (0x15, 0, over, value)


def _when(number: int, then: list[Instruction]) -> list[Instruction]:
    return [_equal(number, over=len(then)), *then]


def _let(values: tuple[int, ...]) -> list[Instruction]:
    return [line for value in values for line in (_equal(value, over=1), _allow())]


def _refuse_each(values: tuple[int, ...]) -> list[Instruction]:
    return [line for value in values for line in (_equal(value, over=1), _refuse())]


def _pack(lines: list[Instruction]) -> bytes:
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
