"""The programs and libraries of this machine that a command may read, and nothing that belongs to a person.

Reads the file system and PATH; must not know any level.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from massgen_mcp.sandbox.policy import VisiblePath

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/opt/homebrew")
_OF_ETC = (
    *("alternatives", "ca-certificates", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone"),
    *("nsswitch.conf", "host.conf", "hosts", "passwd", "group", "protocols", "services", "mime.types", "magic"),
    *("ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust", "crypto-policies", "fonts", "terminfo"),
    *("java", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "java-25-openjdk", "perl", "python3", "maven"),
    *("php.ini", "php.d", "php/*/cli", "php/*/mods-available"),
)
"""Patterns below /etc. Settings of PHP's server beside these may hold passwords."""
_OF_CONDA = ("bin", "condabin", "envs", "etc/profile.d", "include", "lib", "libexec", "share", "ssl")
"""A `.condarc` beside these may hold a token."""
_OF_HOME = (
    *(".pyenv", ".rbenv", ".nvm/versions", ".nvm/alias", ".volta/bin", ".volta/tools", ".asdf", ".rustup"),
    *(".cargo/bin", ".sdkman/candidates", ".bun/bin", ".deno/bin", ".ghcup/bin", ".local/share/uv/python"),
    *(f"{conda}/{part}" for conda in ("miniconda3", "anaconda3", "miniforge3") for part in _OF_CONDA),
    *(".local/share/uv/tools", ".local/share/mise/installs", ".fnm", ".local/share/fnm"),
)
_DEVICES = ("null", "zero", "full", "random", "urandom")
USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"


@cache
def readable() -> tuple[Path, ...]:
    """What exists of the places where programs, libraries and their settings lie, none within another one."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - `Path.home` raises where there is none
    found = [Path(path) for path in SYSTEM]
    found += [path for pattern in _OF_ETC for path in Path("/etc").glob(pattern)]
    found += [home / name for name in _OF_HOME]
    found += [Path(sys.base_prefix), *_of_opt()]
    return outermost(path for path in found if path.exists())


def _of_opt() -> Iterator[Path]:
    """The programs below /opt that PATH leads to, each with its own directory only."""
    for entry in os.environ.get("PATH", "").split(":"):
        parts = Path(entry).parts
        if parts[:2] == ("/", "opt") and len(parts) > 2 and ".." not in parts:
            yield Path(*parts[:3])


def devices() -> tuple[Path, ...]:
    return tuple(Path("/dev", name) for name in _DEVICES)


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
