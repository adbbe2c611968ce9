"""What a command may see, change and use: the one description that every level of the sandbox puts into effect; and
which programs and libraries of this machine any of them may read, of which nothing belongs to a person.

Must not know how (`levels`), nor who asks.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from massgen_mcp.sandbox.specification import ResourceLimits

WORKSPACE = "/workspace"
"""Where a command finds the workspace, and where it begins."""
SCRATCH = "/tmp"  # noqa: S108 - a path inside the sandbox
"""Where a command finds the scratch directory; also its HOME."""

INSTALLED = "/setup"
"""Where a command finds what the setup made: links in the workspace lead there."""

LevelName = Literal["bubblewrap", "docker", "podman", "sandbox-exec"]

OF_THE_MACHINE = tuple(map(Path, ("/proc", "/sys", "/dev", "/run")))
"""The kernel's own directories and everybody's sockets: never a part of a directory that is shown."""


_USUAL = ResourceLimits()


@dataclass(frozen=True, slots=True)
class VisiblePath:
    """A file or directory of the host that a command sees at `place`, an absolute path inside the sandbox."""

    host: Path
    place: str
    writable: bool = False
    layered: bool = False
    """A command may write there, and all that it writes is gone with it; read-only in a level that cannot do that."""


@dataclass(frozen=True, slots=True)
class Image:
    """A container's image as it lies unpacked on this machine (see `images`)."""

    root: Path
    environ: Mapping[str, str]
    """What it says of variables, PATH always among them."""


class ImageRefused(Exception):
    """An image cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that is not named here is absent inside the sandbox, but for the host's programs and libraries."""

    workspace: Path
    """At `/workspace`, writable."""
    scratch: Path
    """At `/tmp`, writable: for temporary files and caches."""
    shown: tuple[VisiblePath, ...] = ()
    known_as: tuple[tuple[str, str], ...] = ()
    """Paths of this machine at which a place in the workspace is found as well: an environment's programs, and what is
    installed in it to be edited, name the directory of a project so. Only bubblewrap has them.
    """
    empty: tuple[str, ...] = ()
    """Places at which a command finds a directory of its own, gone with it; what is shown may lie in it."""
    hidden: tuple[Path, ...] = ()
    """Host paths that stay absent although something shown holds them."""
    texts: Mapping[Path, str] = field(default_factory=lambda: MappingProxyType({}))
    """Host paths of files in something shown, in which a command reads this in place of what they hold."""
    network: tuple[str, ...] = ()
    """`host:port` that may be connected to over TCP. Empty: none of these."""
    open_network: bool = False
    """Every host can be reached; only for Docker and Podman."""
    environ: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Variables besides PATH, HOME, TMPDIR and LANG. Nothing else of our own environment is passed on."""
    toolchains: tuple[Path, ...] = ()
    """Directories with further programs, readable at their own paths. With one below `/tmp` bubblewrap gives a command
    an empty `/tmp` of its own in memory.
    """
    bounds: ResourceLimits = _USUAL
    image: str | None = None
    """Of a container; only for Docker and Podman."""
    unpacked: Image | None = None
    """Whose programs and variables are there in place of this machine's; only for bubblewrap."""


SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/opt/homebrew")
_OF_ETC = (
    *("alternatives", "ca-certificates", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone"),
    *("nsswitch.conf", "host.conf", "hosts", "passwd", "group", "protocols", "services", "mime.types", "magic"),
    *("ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust", "crypto-policies", "fonts", "terminfo"),
    *("java", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "java-25-openjdk", "perl", "python3", "maven"),
    *("php.ini", "php.d", "php/*/cli", "php/*/mods-available"),
)
"""Patterns below /etc. Settings of PHP's server beside these may hold passwords."""


def list_parts(above: str, parts: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns of these parts below a directory."""
    return tuple(f"{above}/{part}" for part in parts)


def list_shown(directory: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """The paths that fit the patterns. Of files that fit only `*` those that are programs, or tell a version."""
    for pattern in patterns:
        found = [directory] if pattern == "." else directory.glob(pattern)
        with suppress(OSError):  # a directory that cannot be looked into shows nothing
            for path in found:
                if os.access(path, os.R_OK) and (not pattern.endswith("/*") or path.is_dir() or _is_of_tool(path)):
                    yield path


def _is_of_tool(file: Path) -> bool:
    from massgen_mcp.sandbox.tool_settings import MAX_LAUNCHER, is_program  # a run without commands starts without it

    if file.name in _OF_VERSION:
        return True
    with suppress(OSError), file.open("rb") as opened:
        return is_program(opened.read(MAX_LAUNCHER))
    return False


_OF_VERSION = frozenset({"VERSION", "release", "go.env", "pyvenv.cfg", "version"})
OF_PREFIX = ("bin", "include", "lib", "libexec", "share")
"""What belongs to the tool of a directory into which it was installed. Settings beside these may hold logins."""
OF_ENVIRONMENT = ("bin", "include", "lib", "lib64", "pyvenv.cfg", "share")
_OF_CONDA = (*OF_PREFIX, "ssl", "conda-meta/history")
OF_MANAGER = (
    *("bin", "libexec", "completions", "shims", "version"),
    *(f"versions/*/{part}" for part in OF_PREFIX),
    *(f"versions/*/envs/*/{part}" for part in OF_ENVIRONMENT),
    *(f"plugins/*/{part}" for part in (*OF_PREFIX, "shims")),
)
"""Of pyenv and rbenv."""
OF_ASDF = (
    *("asdf.sh", "bin", "completions", "lib", "libexec", "shims", "installs/*/*/*"),
    *(f"plugins/*/{part}" for part in (*OF_PREFIX, "shims")),
)
OF_VOLTA = ("bin", "tools/image", "tools/inventory", "tools/user")
OF_NODES = tuple(f"versions/*/*/{part}" for part in OF_PREFIX)
"""Of nvm."""
OF_FNM = ("aliases", *(f"node-versions/*/installation/{part}" for part in OF_PREFIX))
OF_RUSTUP = (*list_parts("toolchains/*", ("bin", "lib", "libexec")), "settings.toml", "update-hashes")
OF_JDK = (
    *("bin", "include", "jmods", "jre", "legal", "lib", "release", "conf/logging.properties", "conf/net.properties"),
    *("conf/security", "conf/sound.properties"),
)


def find_package(program: Path) -> tuple[Path, ...]:
    """Return the files that a program consists of: the packages of Node that it is one of, what belongs to the virtual
    environment that it is installed in, a version of it with a directory of its own, or the program alone.
    """
    for parent in reversed(program.parents):
        if parent.name == "node_modules":
            return (parent,)
    prefix = program.parent.parent
    if (prefix / "pyvenv.cfg").is_file():
        return (program, *list_shown(prefix, OF_ENVIRONMENT))
    for parent in program.parents:
        if parent.parent.name == "versions" and parent.parent.parent.parent.name in ("share", "opt"):
            return (parent,)
    return (program,)


_OF_HOME = (
    *(
        *list_parts(".pyenv", OF_MANAGER),
        *list_parts(".rbenv", OF_MANAGER),
        *list_parts(".nvm", OF_NODES),
        ".nvm/alias",
    ),
    *(*list_parts(".volta", OF_VOLTA), *list_parts(".asdf", OF_ASDF), *list_parts(".rustup", OF_RUSTUP)),
    *(
        ".cargo/bin",
        ".sdkman/candidates/*/*/*",
        ".bun/bin",
        ".deno/bin",
        ".ghcup/bin",
        ".local/share/mise/installs/*/*/*",
    ),
    *list_parts(".local/share/uv/python/*", OF_PREFIX),
    *list_parts(".local/share/uv/tools/*", OF_ENVIRONMENT),
    *(*list_parts(".fnm", OF_FNM), *list_parts(".local/share/fnm", OF_FNM)),
    *(
        part
        for conda in ("miniconda3", "anaconda3", "miniforge3")
        for prefix in (conda, f"{conda}/envs/*")
        for part in (*list_parts(prefix, _OF_CONDA), f"{prefix}/condabin", f"{prefix}/etc/profile.d/*conda.*sh")
    ),
)
USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"


@cache
def readable() -> tuple[Path, ...]:
    """What exists of the places where programs, libraries and their settings lie, none within another one."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - `Path.home` raises where there is none
    found = [Path(path) for path in SYSTEM]
    found += [path for pattern in _OF_ETC for path in Path("/etc").glob(pattern)]
    found += list_shown(home, _OF_HOME)
    found += [*list_shown(Path(sys.base_prefix), OF_PREFIX), *_of_opt()]
    there = [path for path in found if os.access(path, os.F_OK)]  # also below a home that may not be entered
    return outermost(merge_parts(there))


def _of_opt() -> Iterator[Path]:
    """The programs below /opt that PATH leads to, each with its own directory only."""
    for entry in os.environ.get("PATH", "").split(":"):
        parts = Path(entry).parts
        if parts[:2] == ("/", "opt") and len(parts) > 2 and ".." not in parts:
            yield Path(*parts[:3])


def merge_parts(paths: Iterable[Path]) -> Iterator[Path]:
    """Replace the parts of a directory with programs by the directory, where it holds nothing else: each path that is
    shown costs every command a mount.
    """
    parts: dict[Path, set[Path]] = {}
    for path in paths:
        parts.setdefault(path.parent, set()).add(path)
    for above, shown in parts.items():
        if above / "bin" in shown and above / "lib" in shown and not above.is_symlink() and _holds_only(above, shown):
            yield above
        else:
            yield from shown


def _holds_only(directory: Path, shown: set[Path]) -> bool:
    with suppress(OSError):
        return {*directory.iterdir()} <= shown
    return False


def outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Without repetitions and without what lies within another one."""
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda path: len(path.parts)):
        if not any(path.is_relative_to(one) for one in kept):
            kept.append(path)
    return tuple(kept)


def search_path(toolchains: tuple[Path, ...], shown: Iterable[VisiblePath]) -> str:
    """PATH, without what a command cannot read: an environment that is activated is where it is shown."""
    own = [VisiblePath(place, str(place)) for place in (*readable(), *toolchains)]
    places = sorted((*own, *shown), key=lambda one: -len(one.host.parts))
    entries = map(Path, os.environ.get("PATH", "").split(":"))
    found = (next(((one, entry) for one in places if entry.is_relative_to(one.host)), None) for entry in entries)
    seen = [str(Path(one.place, entry.relative_to(one.host))) for one, entry in filter(None, found)]
    return ":".join(dict.fromkeys([*seen, *USUAL_PATH.split(":")]))


def environment(
    policy_environ: Mapping[str, str], toolchains: tuple[Path, ...], shown: Iterable[VisiblePath], home: str
) -> dict[str, str]:
    """All variables that a command has."""
    return {
        "PATH": search_path(toolchains, shown),
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "GIT_CONFIG_NOSYSTEM": "1",
        **policy_environ,
    }
