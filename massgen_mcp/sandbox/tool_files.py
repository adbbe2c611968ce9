"""The files with logins in directories of programs and caches: found by a look through them, so that they are hidden or
shown without the login. Directories of tool chains, of MCP servers and agent CLIs, `commands.readable` and images.

The look is kept while no directory and no file of settings has changed, also in a file for the next process. Must not
know any level.
"""

import hashlib
import json
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from massgen_mcp import secret_files
from massgen_mcp.sandbox import tool_settings
from massgen_mcp.sandbox.policy import OF_THE_MACHINE, SYSTEM, outermost
from massgen_mcp.sandbox.tool_settings import (
    MAX_BYTES,
    SETTINGS_NAMES,
    filter_settings,
    is_program,
    is_settings_name,
    sets_login,
)
from massgen_mcp.secret_files import (
    EXAMINED_BYTES,
    NOTICED,
    depends_on_content,
    holds_credential,
    is_from_package,
    is_noticed,
    is_secret,
)

MAX_ENTRIES = 1_000_000
"""Of one directory that is shown. Parts of it in which more would have to be looked at are hidden as a whole."""
FRESH_SECONDS = 30.0
"""For so long a look is not held against the directories again."""
MAX_KEPT = 2048
"""Looks."""
_PACKAGE = re.compile(
    r"site-packages|dist-packages|node_modules|gems|src|checkouts|repository|caches|jmods|rustlib|include|legal|man|doc"
    r"|licenses|terminfo|locale|zoneinfo|dists|python[23][\d.]*|.*@.*"
)
"""Below these lie packages as their publisher made them: only names decide there, not what stands in a text."""
_LOGIN_NAMES = re.compile(
    r".*\.(env|netrc|pgpass|passwords?)|\.?credentials?(\..*)?|auth\.(json|toml|ini|ya?ml)|postactivate|preactivate"
    r"|(pre|post)(de)?activate|(pre|post)(mk|rm)virtualenv",
    re.IGNORECASE,
)
"""Beside the files that are hidden everywhere: what has such a name outside of a package is no part of a tool."""
_EVERYWHERE = re.compile(r".+\.(env|netrc|pgpass)", re.IGNORECASE)
_TEXTS = re.compile(
    r".*\.(json|toml|ini|cfg|conf|ya?ml|xml|properties|metadata|sh|bash|zsh|fish|csh|txt|pth|bak|old|orig|config|rc|php)"
    r"|\.?[^.]*",
    re.IGNORECASE,
)
"""Outside of a package these are hidden if a login stands in them."""
_TEXTS_IN_PACKAGES = re.compile(
    r"(direct_url|installed)\.json|(site|user)customize\.py|.*\.nupkg\.metadata", re.IGNORECASE
)
_PYTHON = re.compile(r"python[23][\d.]*")
_TESTS_OF_PYTHON = frozenset({"test", "idlelib", "lib2to3", "ensurepip"})
"""Right below a directory of Python's own library: its certificates are for tests, and there are many."""
_SETTINGS_PLACES = frozenset({"activate.d", "deactivate.d", "refs"})
_NAMES_IN_PACKAGES = re.compile(
    f"{_EVERYWHERE.pattern}|{_TEXTS_IN_PACKAGES.pattern}|{NOTICED}|{SETTINGS_NAMES}", re.IGNORECASE
).fullmatch
_NAMES = re.compile(
    f"{_LOGIN_NAMES.pattern}|{_EVERYWHERE.pattern}|{_TEXTS.pattern}|{NOTICED}|{SETTINGS_NAMES}", re.IGNORECASE
).fullmatch
"""Of the files that are judged at all."""
_PROGRAM_PLACES = frozenset({".local", ".npm-global", "go", ".cargo", ".bun", ".deno", ".ghcup", ".volta"})
"""In `bin` right below one of these lie programs that tools made, and what people put beside them."""


@dataclass(slots=True)
class ToolFiles:
    """`hidden` is to stay absent. `texts`: what stands in files in place of what they hold."""

    hidden: list[Path] = field(default_factory=list[Path])
    texts: dict[Path, str] = field(default_factory=dict[Path, str])


@dataclass(slots=True)
class _Look:
    found: ToolFiles
    checked: float
    times: dict[str, int] = field(default_factory=dict[str, int])
    """Of the directories, and of files of which it matters what they hold."""
    entries: int = 0


_looks: dict[Path, _Look] = {}
_lock = threading.Lock()


class LookStore:
    """The file in which looks are kept for the next process. It has to be where only the user can write."""

    def __init__(self) -> None:
        self.path: Path | None = None
        """None: they are not kept."""
        self._loaded: Path | None = None

    def load(self) -> None:
        """Take up the looks of earlier processes, once. They are held against the directories before they count."""
        if self.path is None or self.path == self._loaded:
            return
        self._loaded = self.path
        with suppress(OSError, ValueError, TypeError, LookupError, AttributeError):
            kept: dict[str, Any] = json.loads(self.path.read_bytes())
            if kept["rules"] == _hash_rules():
                for place, look in reversed(kept["looks"].items()):
                    texts = {Path(file): text for file, text in look["texts"].items()}
                    found = ToolFiles([*map(Path, look["hidden"])], texts)
                    _looks.setdefault(Path(place), _Look(found, -FRESH_SECONDS, look["times"], look["entries"]))

    def save(self) -> None:
        """Keep the newest looks, but for those in which something has just changed: it may do so once more at the same
        time.
        """
        if self.path is None or not self.path.parent.is_dir():
            return
        settled, count = (time.time() - _SETTLED_SECONDS) * 1e9, 0
        kept: dict[str, object] = {}
        for place, look in reversed(_looks.items()):
            count += len(look.times)
            if count <= MAX_STORED and max(look.times.values(), default=0) < settled:
                texts = {str(file): text for file, text in look.found.texts.items()}
                hidden = [*map(str, look.found.hidden)]
                kept[str(place)] = {"hidden": hidden, "texts": texts, "times": look.times, "entries": look.entries}
        with suppress(OSError):
            replace_text(self.path, json.dumps({"rules": _hash_rules(), "looks": kept}))


def replace_text(file: Path, text: str) -> None:
    """Replace a file by one with this text that only the user can read. One that cannot be written stays as it is."""
    fresh = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with suppress(OSError):
        fresh.touch(mode=0o600)
        fresh.write_text(text)
        fresh.replace(file)


STORE = LookStore()
MAX_STORED = 100_000
"""Directories and files, in all looks that are stored."""
_SETTLED_SECONDS = 2.0


def _hash_rules() -> str:
    """Return what changes with the rules, and with the user."""
    parts = [str(os.geteuid())]
    for module in (__file__, tool_settings.__file__, secret_files.__file__):
        found = Path(module).stat()
        parts.append(f"{module}:{found.st_mtime_ns}:{found.st_size}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def find_logins(places: Iterable[Path]) -> ToolFiles:
    """Look for logins below these files and directories. A place itself is never hidden: it was named. Blocking."""
    whole, scanned = ToolFiles(), False
    named = [place for place in outermost(places) if not _is_of_the_machine(place)]
    with _lock:
        STORE.load()
        for place in outermost((*named, *map(Path, _OF_MACHINE))):
            if os.path.lexists(place):
                look = _looks.pop(place, None)
                if look is None or not _is_fresh(look):
                    look = _Look(ToolFiles(), time.monotonic())
                    _scan_place(place, look)
                    scanned = True
                _looks[place] = look
                whole.hidden += look.found.hidden
                whole.texts |= look.found.texts
        while len(_looks) > MAX_KEPT:
            _looks.pop(next(iter(_looks)))
        if scanned:
            STORE.save()
    return whole


_OF_MACHINE = ("/usr/local", "/usr/etc", "/usr/pip.conf", "/opt/homebrew/etc")
"""Where settings of the machine's own tools may lie, within what `readable` names."""


def _is_of_the_machine(place: Path) -> bool:
    """Return whether it belongs to the system, in which a person keeps nothing but below /usr/local and /opt."""
    if place == Path("/etc") or place.is_relative_to("/etc"):
        return True
    return str(place) in SYSTEM or any(place.is_relative_to(one) for one in OF_THE_MACHINE)


def _is_fresh(look: _Look) -> bool:
    if time.monotonic() - look.checked < FRESH_SECONDS:
        return True
    look.checked = time.monotonic()
    return all(_read_time(path) == changed for path, changed in look.times.items())


def _read_time(path: str) -> int:
    """Return when the file or directory changed. No program can set that time."""
    with suppress(OSError):
        return os.lstat(path).st_ctime_ns
    return 0


def _scan_place(place: Path, look: _Look) -> None:
    if not place.is_dir():
        look.times[str(place)] = _read_time(str(place))
        named = place.name.casefold()
        if is_settings_name(named) and place.is_file():
            _filter(place, str(place), look)
        return
    pending = [(str(place), _PACKAGE.fullmatch(place.name) is not None)]
    while pending:
        directory, in_package = pending.pop()
        below = _scan_directory(place, directory, look, in_package=in_package)
        if look.entries <= MAX_ENTRIES:
            pending += [(one.path, in_package or _PACKAGE.fullmatch(one.name) is not None) for one in below]
        else:
            look.found.hidden += [Path(one.path) for one in below] + [Path(path) for path, _ in pending]
            return


def _scan_directory(place: Path, directory: str, look: _Look, *, in_package: bool) -> "list[os.DirEntry[str]]":
    """Judge the entries of one directory; return the directories in it that are to be looked at."""
    name = os.path.basename(directory)  # noqa: PTH119 - a Path is slow to make, and there are very many
    programs = not in_package and _holds_programs(Path(directory).parts)
    matters = _NAMES_IN_PACKAGES if in_package else _NAMES
    all_matter = programs or name in _SETTINGS_PLACES or is_noticed(name, "")
    of_python = _PYTHON.fullmatch(name) is not None
    below: list[os.DirEntry[str]] = []
    look.times[directory] = _read_time(directory)
    with suppress(OSError), os.scandir(directory) as items:
        for item in items:
            look.entries += 1
            if item.is_dir(follow_symlinks=False):
                if _hides_directory(item, place, name, programs=programs):
                    look.found.hidden.append(Path(item.path))
                elif not of_python or item.name not in _TESTS_OF_PYTHON:
                    below.append(item)
            elif (all_matter or matters(item.name) or not item.name.isascii()) and not item.is_symlink():
                _judge_file(item, _list_parts(place, item), look, in_package=in_package, programs=programs)
    return below


def _list_parts(place: Path, item: "os.DirEntry[str]") -> tuple[str, ...]:
    """Return the components of a path from the place on that is looked through."""
    return Path(item.path).parts[len(place.parts) - 1 :]


def _holds_programs(parts: tuple[str, ...]) -> bool:
    name, above = parts[-1], parts[-2] if len(parts) > 1 else ""
    return name == "shims" or (name == "bin" and above in _PROGRAM_PLACES) or (name == "tools" and above == ".dotnet")


def _hides_directory(item: "os.DirEntry[str]", place: Path, above: str, *, programs: bool) -> bool:
    if programs and item.name != ".store":
        return True
    return is_noticed(above, item.name) and is_secret(_list_parts(place, item)) and not _is_of_package(item)


def _is_of_package(item: "os.DirEntry[str]") -> bool:
    return "packages" in item.path and is_from_package(Path(item.path))


def _judge_file(
    item: "os.DirEntry[str]", parts: tuple[str, ...], look: _Look, *, in_package: bool, programs: bool
) -> None:
    name, path, above = item.name, Path(item.path), parts[-2]
    may_be_settings = is_settings_name(name) or above in _SETTINGS_PLACES
    if may_be_settings and _filter(path, str(path), look):
        return
    if _EVERYWHERE.fullmatch(name) or (not in_package and _LOGIN_NAMES.fullmatch(name)):
        look.found.hidden.append(path)
        return
    if is_noticed(above, name) and _is_hidden(path, parts, look):
        look.found.hidden.append(path)
        return
    if programs:
        judged = not is_program(_read_beginning(path, look))
    elif in_package:
        judged = _TEXTS_IN_PACKAGES.fullmatch(name) is not None and sets_login(_read_beginning(path, look))
    else:
        judged = _is_text_with_login(item, look)
    if judged:
        look.found.hidden.append(path)


def _is_hidden(path: Path, parts: tuple[str, ...], look: _Look) -> bool:
    if is_secret(parts):
        return not is_from_package(path)
    if not depends_on_content(parts):
        return False
    return holds_credential(parts, _read_beginning(path, look, EXAMINED_BYTES)) and not is_from_package(path)


def _is_text_with_login(item: "os.DirEntry[str]", look: _Look) -> bool:
    if _TEXTS.fullmatch(item.name) is None:
        return False
    with suppress(OSError):
        if item.stat(follow_symlinks=False).st_size <= MAX_BYTES:
            content = _read_beginning(Path(item.path), look)
            return b"\0" not in content and sets_login(content)
    return False


def _filter(path: Path, known_as: str, look: _Look) -> bool:
    """Return whether the file is one of settings; what is shown of it is entered, unless that is all of it."""
    content = _read_beginning(path, look)
    text = filter_settings(known_as, content)
    if text is None:
        return False
    if text.encode() != content:
        look.found.texts[path] = text
    return True


def _read_beginning(path: Path, look: _Look, count: int = MAX_BYTES + 1) -> bytes:
    """The beginning of a regular file; it is looked at again once it has changed."""
    with suppress(OSError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return b""  # to open a FIFO or a device would be noticed on its other side
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            found = os.fstat(opened)
            if stat.S_ISREG(found.st_mode):
                look.times[str(path)] = found.st_ctime_ns
                return os.read(opened, count)
        finally:
            os.close(opened)
    return b""
