"""The levels of the sandbox, strongest first, and how each starts a command.

A level counts on a machine only once the probes have passed there (see `probe`); this module only knows how to ask.
"""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never

from massgen_mcp.sandbox import bubblewrap, containers, seatbelt
from massgen_mcp.sandbox.network_layout import list_proxy_variables
from massgen_mcp.sandbox.policy import SCRATCH, LevelName, Policy, environment, readable
from massgen_mcp.sandbox.specification import Specification

BY_ITSELF: tuple[LevelName, ...] = ("bubblewrap", "sandbox-exec")
"""Those that are chosen by themselves, in this order. Containers are used where the config asks for one."""
CONTAINERS: tuple[LevelName, ...] = ("docker", "podman")

WITH_NETWORK: tuple[LevelName, ...] = ("bubblewrap", "sandbox-exec")
"""Those that can let a command connect to named hosts and to nothing else."""

LETS_THROUGH: dict[LevelName, tuple[str, ...]] = {
    "bubblewrap": (),
    "docker": ("commands have only the image's programs, not this machine's",),
    "podman": ("commands have only the image's programs, not this machine's",),
    "sandbox-exec": (
        "commands see this machine's real paths",
        "massgen checks the limits for processes and memory a few times a second",
    ),
}
"""What is harmless and still not as one would expect."""

COUNTED = (
    "your user can't create cgroups, so massgen checks memory only up to fifty times a second: a command "
    "may briefly exceed its limit, and memory in sockets or in mappings of closed files isn't counted"
)
"""What is said of a level of this machine where the kernel does not bound a command's memory."""

UNUSUAL = {
    "usual_layer": "tools such as vitest and pip can't write into installed packages (node_modules, .venv)",
    "usual_network": "a command can reach neither the hosts under `network:` nor servers that other commands start",
}
"""What is said of a level in which one of these, which commands are used to, does not work."""

MAX_TEXTS = 400
"""Files of settings of which a command sees a part; further ones are hidden."""
RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
"""Holds 1 where AppArmor lets only programs with a profile for it have namespaces, as on Ubuntu."""
PROFILE = "bwrap-userns-restrict"
"""Of bubblewrap, in Ubuntu's package of profiles. It gives nothing that bubblewrap starts any right."""
_INSTALL = "install bubblewrap (`sudo apt install bubblewrap` or `sudo dnf install bubblewrap`)"
_ALLOW_BY_PROFILE = (
    "bubblewrap is installed, but AppArmor keeps it from creating namespaces: load the profile for `bwrap` "
    f"(`sudo apt install apparmor-profiles && sudo cp /usr/share/apparmor/extra-profiles/{PROFILE} "
    f"/etc/apparmor.d/ && sudo apparmor_parser -r /etc/apparmor.d/{PROFILE}`)"
)
_ALLOW = (
    "bubblewrap is installed: remove any other `sandbox` under `commands`, and if bubblewrap still isn't secure, "
    "let it create user namespaces (a container needs `--security-opt seccomp=unconfined --security-opt unmask=ALL`)"
)


def how_to_get_bubblewrap() -> str:
    """Return the cure for a machine where bubblewrap does not hold, in words."""
    if bubblewrap.program() is None:
        return _INSTALL
    with suppress(OSError):
        if RESTRICTED.read_text().strip() == "1" and os.geteuid():
            return _ALLOW_BY_PROFILE
    return _ALLOW


_SUPERVISOR = (
    "-c",
    "import sys; sys.path.append(sys.argv.pop(1)); import supervisor; supervisor.main()",
    str(Path(__file__).parent),
)
"""An imported module is compiled once; a script would be compiled for every command."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a command is started: the supervisor's own command, but for the number of its socket, and what it is told."""

    supervisor: tuple[str, ...]
    specification: bytes


def present(level: LevelName) -> str | None:
    """Why the level cannot be there at all, in words; None if it may be."""
    match level:
        case "bubblewrap":
            return None if bubblewrap.program() else "bwrap isn't installed"
        case "docker" | "podman":
            return None if containers.program(level) else f"{level} is not installed"
        case "sandbox-exec":
            return None if seatbelt.program() else "only macOS has it"
        case _:
            assert_never(level)


async def image_id(level: LevelName, image: str | None) -> str:
    """What tells the image of a container from every other one; empty for other levels. Raises `ImageRefused`."""
    return await containers.image_id(level, image) if level == "docker" or level == "podman" else ""


def start(level: LevelName, argv: list[str], policy: Policy, namespaces: tuple[int, int] | None = None) -> Start:
    """Describe how to start `argv` under `policy` in this level, in bubblewrap also in these namespaces of a `Network`.
    Raises `FileNotFoundError` if its program is gone, `ValueError` for what the level does not have.
    """
    if level in BY_ITSELF:
        policy = _hide_logins(policy)
    proxy = list_proxy_variables() if policy.network and level == "bubblewrap" else {}
    variables = {**(policy.unpacked.environ if policy.unpacked else {}), **proxy, **policy.environ}
    shown = policy.shown
    if level == "sandbox-exec":  # paths are this machine's own there
        shown = tuple(replace(one, place=str(one.host)) for one in shown)
    environ = environment(variables, policy.toolchains, shown, SCRATCH)
    if policy.open_network and level not in CONTAINERS:
        raise ValueError("only a container can have unrestricted network access")
    if policy.unpacked is not None and level != "bubblewrap":
        raise ValueError("only bubblewrap can use programs from an image")
    match level:
        case "bubblewrap":
            launch = bubblewrap.launch(argv, policy, environ, joins=namespaces is not None)
        case "docker" | "podman":
            launch = containers.launch(level, argv, policy, environ)
        case "sandbox-exec":
            launch = seatbelt.launch(argv, policy, environ)
        case _:
            assert_never(level)
    specification = Specification(
        launch,
        policy.bounds,
        writable=(str(policy.workspace), str(policy.scratch)),
        growing=tuple(str(shown.host) for shown in policy.shown if shown.writable),
        namespaces=namespaces,
    )
    return Start((interpreter(), "-I", "-S", *_SUPERVISOR), specification.encode())


def _hide_logins(policy: Policy) -> Policy:
    """Return the policy with the logins hidden that lie in what it shows of programs and tools. Blocking."""
    from massgen_mcp.sandbox.tool_files import find_logins  # a run without commands starts without it

    places = [*policy.toolchains, *([policy.unpacked.root] if policy.unpacked else readable())]
    places = [place for place in places if not place.is_symlink()]  # only the link is there, and what it leads to apart
    places += [one.host for one in policy.shown if one.place == str(one.host)]
    found = find_logins(places)
    gone, tops = frozenset(policy.hidden), frozenset(places)
    texts = [(path, text) for path, text in found.texts.items() if not _is_below(path, gone, tops)]
    kept = dict(texts[:MAX_TEXTS])
    hidden = [*policy.hidden, *found.hidden, *(path for path, _ in texts[MAX_TEXTS:])]
    return replace(policy, hidden=tuple(hidden), texts={**kept, **policy.texts})


def _is_below(path: Path, gone: frozenset[Path], tops: frozenset[Path]) -> bool:
    """Return whether the path lies in something that is hidden of the nearest of the directories that are shown."""
    for above in path.parents:
        if above in tops:
            return False
        if above in gone:
            return True
    return False


def interpreter() -> str:
    """The Python that this one was installed from: it lies where commands may read, and starts without our packages."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def supervisor_environ() -> dict[str, str]:
    """What the supervisor itself knows of our environment: nothing, but where its interpreter's libraries are."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
