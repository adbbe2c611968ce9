"""The level of bubblewrap: namespaces for users, processes, network and files, and a filter for system calls.

Only describes how a command is started; must not start one.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from massgen_mcp.sandbox import filters
from massgen_mcp.sandbox.network_layout import format_hosts
from massgen_mcp.sandbox.policy import OF_THE_MACHINE, SCRATCH, WORKSPACE, Policy, readable
from massgen_mcp.sandbox.specification import MIB, LaunchPlan, Layers, StatusPipes

_ARGUMENTS, _FILTER, _REPORTS, _GATE, _HOSTS, _TEXTS = 20, 21, 22, 23, 24, 25
"""Descriptors; at `_TEXTS` and above those of texts."""
_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
_COVERED = (
    *("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list"),
    *(
        "/proc/sched_debug",
        "/proc/scsi",
        "/proc/kmsg",
        "/proc/kallsyms",
        "/proc/driver",
        "/proc/mtrr",
        "/proc/dynamic_debug",
    ),
)
_OWN = ("proc", "sys", "dev", "run", "tmp", "workspace", "context", "peers", "setup", "etc/hosts")
"""What a command finds in / whatever an image has there."""
SHARED_MEMORY_BYTES = 256 * MIB
_TRIAL = ("--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "--", "/bin/sh", "-c", ":")
"""Whether bubblewrap works in namespaces that have layers."""


def program() -> str | None:
    """Where bubblewrap is, if it is there and we know this machine's system calls."""
    return shutil.which("bwrap") if filters.known_machine() else None


def launch(argv: list[str], policy: Policy, environ: dict[str, str], *, joins: bool) -> LaunchPlan:
    """Describe how to start `argv` under `policy`. `joins`: it is started in a network namespace that is there."""
    found = program()
    if found is None:
        raise FileNotFoundError("bwrap")
    variables = [word for variable in environ.items() for word in ("--setenv", *variable)]

    def arguments(*, layers: bool) -> str:
        words = [*variables, *_options(policy, layers=layers, joins=joins), "--block-fd", str(_GATE), ""]
        return os.fsencode("\0".join(words)).decode("latin-1")

    layered = sorted({str(shown.host) for shown in policy.shown if shown.layered})
    layers = None
    if layered:
        layers = Layers(tuple(layered), (found, *_TRIAL), {_ARGUMENTS: arguments(layers=True)})
    return LaunchPlan(
        argv=(found, "--args", str(_ARGUMENTS), "--", *argv),
        environ={},  # a command's variables could have bubblewrap itself, outside, load a library
        files={
            _ARGUMENTS: arguments(layers=False),
            _FILTER: filters.without_escapes().decode("latin-1"),
            _HOSTS: format_hosts(policy.network),
            **{
                _TEXTS + number: os.fsencode(text).decode("latin-1")
                for number, text in enumerate(policy.texts.values())
            },
        },
        status=StatusPipes(_REPORTS, _GATE),
        layers=layers,
    )


def _options(policy: Policy, *, layers: bool, joins: bool) -> Iterator[str]:
    """`layers`: what is layered will have its layer when bubblewrap is started, so that it can be shown writable."""
    yield from ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
    if not joins:
        yield "--unshare-net"
    yield from ("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    yield from ("--hostname", "sandbox", "--seccomp", str(_FILTER), "--json-status-fd", str(_REPORTS))
    yield from ("--proc", "/proc", "--dev", "/dev")
    for name in filter(os.path.exists, _SETTINGS):  # root may write some of these by their owner alone
        yield from ("--ro-bind", name, name)
    for name in filter(os.path.exists, _COVERED):
        yield from (("--size", "4096", "--tmpfs") if os.path.isdir(name) else ("--ro-bind", "/dev/null"))  # noqa: PTH112
        yield name
    yield from ("--size", str(SHARED_MEMORY_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm")  # noqa: S108
    yield from ("--dir", "/etc", "--dir", "/context", "--dir", "/peers")
    in_scratch = [(path, place) for path, place in _programs(policy) if Path(SCRATCH) in Path(place).parents]
    in_empty = [
        (path, place) for path, place in _programs(policy) if {*policy.empty} & {*map(str, Path(place).parents)}
    ]
    yield from _readable(program for program in _programs(policy) if program not in (*in_scratch, *in_empty))
    yield from ("--ro-bind-data", str(_HOSTS), "/etc/hosts")
    yield from ("--bind", str(policy.workspace), WORKSPACE)
    if in_scratch:  # in the scratch directory itself, links of a command's could lead their places anywhere
        yield from ("--size", str(policy.bounds.disk_bytes), "--tmpfs", SCRATCH)
        yield from _readable(in_scratch)
    else:
        yield from ("--bind", str(policy.scratch), SCRATCH)
    for place in policy.empty:
        yield from ("--size", str(policy.bounds.disk_bytes), "--perms", "0700", "--tmpfs", place)
    yield from _readable(in_empty)
    _check_mount_points(policy, scratch=not in_scratch)
    for shown in policy.shown:
        writable = shown.writable or (layers and shown.layered)
        yield from ("--bind" if writable else "--ro-bind", str(shown.host), shown.place)
    for path, place in _known_as(policy):
        yield from ("--symlink", place, path)
    yield from _mask_secrets(policy)
    yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORKSPACE)


def _programs(policy: Policy) -> Iterator[tuple[Path, str]]:
    """Where programs and libraries lie on this machine, and where a command finds them."""
    if policy.unpacked is None:
        yield from ((path, str(path)) for path in readable())
    else:
        etc = policy.unpacked.root / "etc"  # part by part, as one file in it is ours
        parts = [*policy.unpacked.root.iterdir(), *(etc.iterdir() if etc.is_dir() and not etc.is_symlink() else ())]
        for path in sorted(parts):
            place = f"/{path.relative_to(policy.unpacked.root)}"
            if path != etc and place.lstrip("/") not in _OWN:
                yield path, place
    yield from ((path, str(path)) for path in policy.toolchains)


def _readable(programs: Iterable[tuple[Path, str]]) -> Iterator[str]:
    """A link that lies within something else is there with that, and cannot be made once more."""
    there: list[Path] = []
    for path, place in sorted(programs, key=lambda program: len(Path(program[1]).parts)):
        if not path.is_symlink():
            yield from ("--ro-bind", str(path), place)
        elif not any(Path(place).is_relative_to(one) for one in there):
            yield from ("--symlink", str(path.readlink()), place)
        there.append(Path(place))


def _known_as(policy: Policy) -> Iterator[tuple[str, str]]:
    """As the policy says, without what would lie in, or above, something else that a command finds."""
    found = (*(place for _, place in _programs(policy)), *(shown.place for shown in policy.shown), *policy.empty)
    taken = [Path("/etc"), *(Path("/", name) for name in _OWN), *map(Path, found)]
    for path, place in policy.known_as:
        if not any(Path(path).is_relative_to(one) or one.is_relative_to(path) for one in taken):
            taken.append(Path(path))
            yield path, place


def _check_mount_points(policy: Policy, *, scratch: bool) -> None:
    """Raise `ValueError` where something is shown below a link in what a command can write: bubblewrap makes the place
    of it where the link leads, outside of the sandbox. `scratch`: the scratch directory is this machine's.
    """
    writable = [(WORKSPACE, policy.workspace), *((one.place, one.host) for one in policy.shown if one.writable)]
    if scratch:
        writable.append((SCRATCH, policy.scratch))
    for place in (*(one.place for one in policy.shown), *policy.empty):
        for above, host in writable:
            if place != above and Path(place).is_relative_to(above):
                parts = Path(place).relative_to(above).parts
                if any(host.joinpath(*parts[: count + 1]).is_symlink() for count in range(len(parts))):
                    raise ValueError(f"{place} is behind a symbolic link in a directory that commands can write to")


def _mask_secrets(policy: Policy) -> Iterator[str]:
    seen = _Seen(policy)
    for place, is_directory in _masked(policy, seen):
        yield from (("--perms", "0000", "--size", "4096", "--tmpfs") if is_directory else ("--ro-bind", "/dev/null"))
        yield place
    for number, path in enumerate(policy.texts):
        for place in list(seen.list_places(path))[:1]:
            yield from ("--ro-bind-data", str(_TEXTS + number), place)


def _masked(policy: Policy, seen: "_Seen") -> Iterator[tuple[str, bool]]:
    """The places inside at which something hidden would be seen, and whether it is a directory."""
    for hidden in (*policy.hidden, *OF_THE_MACHINE):
        if os.path.lexists(hidden):
            for place in seen.list_places(hidden):
                yield place, hidden.is_dir() and not hidden.is_symlink()


class _Seen:
    """The places at which a command finds paths of the host."""

    def __init__(self, policy: Policy) -> None:
        self._places: dict[Path, list[str]] = {}
        for host, place in (*_programs(policy), *((shown.host, shown.place) for shown in policy.shown)):
            self._places.setdefault(host, []).append(place)

    def list_places(self, path: Path) -> Iterator[str]:
        for host in (path, *path.parents):
            for place in self._places.get(host, ()):
                yield str(Path(place, path.relative_to(host)))
