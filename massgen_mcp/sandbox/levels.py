"""The levels of the sandbox, strongest first, and how each starts a command.

A level counts on a machine only once the probes have passed there (see `probe`); this module only knows how to ask.
"""

import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never

from massgen_mcp.sandbox import bubblewrap, containers, landlocked, seatbelt
from massgen_mcp.sandbox.policy import SCRATCH, LevelName, Policy, environment

BY_ITSELF: tuple[LevelName, ...] = ("bubblewrap", "sandlock", "sandbox-exec")
"""Those that are chosen by themselves, in this order. Containers are used where the config asks for one."""
CONTAINERS: tuple[LevelName, ...] = ("docker", "podman")

WITH_NETWORK: tuple[LevelName, ...] = ("sandlock", "sandbox-exec")
"""Those that can let a command connect to named hosts and to nothing else."""

LETS_THROUGH: dict[LevelName, tuple[str, ...]] = {
    "bubblewrap": (),
    "sandlock": (
        "names in / and in /etc, and whether a directory of a known name exists, can be seen",
        "the machine's own name, kernel and memory can be seen",
        "a command cannot listen on a port, not even for itself, and cannot watch files for changes",
        "on a busy machine a shell may say 'Cannot fork' now and then; run again, the same command works",
    ),
    "docker": ("only what the image holds is there; the programs of this machine are not",),
    "podman": ("only what the image holds is there; the programs of this machine are not",),
    "sandbox-exec": (
        "paths are this machine's own",
        "processes and memory are bounded by looking at them, a few times a second",
    ),
}
"""What is harmless and still not as one would expect."""

COUNTED = (
    "this user may make no control group, so memory is bounded by counting, up to fifty times a second: a command may "
    "pass its limit before it is ended, and what sockets hold, or mappings of closed files, is not counted"
)
"""What is said of a level of this machine where the kernel does not bound a command's memory."""

UNUSUAL = {
    "usual_vfork": "programs that start others by vfork or posix_spawn fail: make, and C's system() when called twice",
    "usual_layer": "tools that write beside installed packages (in node_modules, .venv) cannot do that: vitest, pip",
    "usual_real_path": "programs that ask C's realpath() for the real path of a file are told that there is none",
    "usual_move": "files cannot be moved or linked to another directory",
    "usual_new_program": "what a linker writes cannot be executed, so checks of Go fail",
}
"""What is said of a level in which one of these, which commands are used to, does not work."""

_INSTALL = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap)"
_ALLOW = (
    "bubblewrap is installed: name no other `sandbox` under `commands`, and where it does not hold, allow it user "
    "namespaces (`sysctl kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu, else `user.max_user_namespaces`; "
    "in a container its seccomp profile)"
)


def how_to_get_bubblewrap() -> str:
    """In words, for whoever does without it."""
    return _INSTALL if bubblewrap.program() is None else _ALLOW


def unfit_for_code(level: LevelName) -> str:
    """What is said where it is the best level of the machine, and of a check that fails in it on the unchanged files.
    Mostly empty.
    """
    if level != "sandlock":
        return ""
    why = "it may be the sandbox: in sandlock, what Python environments, Go and Rust need does not work"
    return f"{why}; {how_to_get_bubblewrap()}"


_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_PLAIN: dict[str, object] = {
    "files": {},
    "reports_at": None,
    "gate_at": None,
    "own_group": False,
    "count_user": False,
    "teardown": None,
    "sandlock": None,
    "library": None,
    "filter": None,
    "layers": None,
}


@dataclass(frozen=True, slots=True)
class Start:
    """How a command is started: the supervisor's own command, but for the number of its socket, and what it is told."""

    supervisor: tuple[str, ...]
    specification: bytes


def present(level: LevelName) -> str | None:
    """Why the level cannot be there at all, in words; None if it may be."""
    match level:
        case "bubblewrap":
            return None if bubblewrap.program() else "bwrap is not installed"
        case "sandlock":
            return None if landlocked.library() else "the Python package sandlock is not installed"
        case "docker" | "podman":
            return None if containers.program(level) else f"{level} is not installed"
        case "sandbox-exec":
            return None if seatbelt.program() else "only macOS has it"
        case _:
            assert_never(level)


sandlock_library = landlocked.library


async def image_id(level: LevelName, image: str | None) -> str:
    """What tells the image of a container from every other one; empty for other levels. Raises `ImageRefused`."""
    return await containers.image_id(level, image) if level == "docker" or level == "podman" else ""


def start(level: LevelName, argv: list[str], policy: Policy) -> Start:
    """How to start `argv` under `policy` in this level. Raises `FileNotFoundError` if its program is gone."""
    variables = {**(policy.unpacked.environ if policy.unpacked else {}), **policy.environ}
    shown = policy.shown
    if level == "sandbox-exec":  # paths are this machine's own there
        shown = tuple(replace(one, place=str(one.host)) for one in shown)
    environ = environment(variables, policy.toolchains, shown, SCRATCH)
    if policy.open_network and level not in CONTAINERS:
        raise ValueError("only a container has an open network")
    if policy.unpacked is not None and level != "bubblewrap":
        raise ValueError("only bubblewrap takes the programs of an image")
    match level:
        case "bubblewrap":
            if policy.network:
                raise ValueError("bubblewrap has no network to offer")
            specification = bubblewrap.launch(argv, policy, environ)
        case "sandlock":
            specification = landlocked.launch(argv, policy, environ)
        case "docker" | "podman":
            specification = containers.launch(level, argv, policy, environ)
        case "sandbox-exec":
            specification = seatbelt.launch(argv, policy, environ)
        case _:
            assert_never(level)
    bounds = policy.bounds
    whole = {
        **_PLAIN,
        **specification,
        "own_word": level in ("bubblewrap", "sandlock"),
        "writable": [str(policy.workspace), str(policy.scratch)],
        "growing": [str(shown.host) for shown in policy.shown if shown.writable],
        "bounds": {name: getattr(bounds, name) for name in bounds.__slots__},
    }
    text = json.dumps(whole).encode()
    return Start((interpreter(), "-I", "-S", str(_SUPERVISOR)), f"{len(text):08x}".encode() + text)


def interpreter() -> str:
    """The Python that this one was installed from: it lies where commands may read, and starts without our packages."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def supervisor_environ() -> dict[str, str]:
    """What the supervisor itself knows of our environment: nothing, but where its interpreter's libraries are."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
