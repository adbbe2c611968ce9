"""What judges an answer must not be weakened by it: files that are judged as they are in the base. Pure."""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from posixpath import basename, dirname, join, normpath, splitext
from typing import TypeVar

from massgen_mcp.changes.files import parents
from massgen_mcp.checks.followed import Followed, followed
from massgen_mcp.checks.patterns import CODE, PROJECTS, PYTHON_PROJECT, RUNNERS, RUNNING, TESTS, matches
from massgen_mcp.checks.scripts import INTERPRETERS

FileT = TypeVar("FileT")
MAX_LINKS = 40
"""As many are followed to one file."""
MAX_READ_BYTES = 1024 * 1024
"""Of a file that says what a check runs."""

_ALL_PROJECTS = tuple(chain(*PROJECTS))
_PYTHONPATH = re.compile(r"\bPYTHONPATH=[\"']?(?:\$\{?PWD\}?/)?([^\s;&|\"']+)")


@dataclass(frozen=True, slots=True)
class Protection:
    """`patterns`: the user's own; None: the usual ones. `commands`: the checks, whose scripts are protected."""

    patterns: tuple[str, ...] | None
    commands: tuple[str, ...]

    def judged(
        self,
        base: Mapping[bytes, FileT],
        answer: Mapping[bytes, FileT],
        content: Callable[[FileT], bytes],
        is_link: Callable[[FileT], bool],
        installed: Collection[str] = (),
    ) -> tuple[dict[bytes, FileT], list[bytes]]:
        """The files of an answer as they are judged, and the paths in which they differ from it, sorted. Paths are from
        the directory that is checked. `content` of a link: where it leads. `installed`: Python modules, by name, that
        checks find in an environment.
        """
        links = {_text(path): os.fsdecode(content(file)) for path, file in base.items() if is_link(file)}

        def read(path: str) -> str | None:
            file = base.get(os.fsencode(_way(path, links)[-1]))
            return None if file is None else content(file)[:MAX_READ_BYTES].decode(errors="replace")

        run = followed(self.commands, read)
        kept = self._kept(base, run, links)
        left_out = self._left_out([*base], run, kept, {*sys.stdlib_module_names, *RUNNING, *installed})
        files = {path: file for path, file in answer.items() if path in base or not left_out(_text(path))}
        directories = {parent for path in files for parent in parents(path)}
        for path in kept:
            for other in _in_the_way(path, files, directories):
                del files[other]
            files[path] = base[path]
        return files, sorted(path for path in {*answer, *files} if answer.get(path) != files.get(path))

    def _kept(self, base: Iterable[bytes], run: Followed, links: Mapping[str, str]) -> list[bytes]:
        """What is put back, with the links on the way to it."""
        patterns, judging = self.patterns, set(run.scripts)
        if patterns is None:
            patterns = (*TESTS, *RUNNERS, *_ALL_PROJECTS)
            judging |= run.included
        judging |= {one for one in map(_text, base) if matches(one, patterns)}
        ways = {one for path in judging for one in _way(path, links)} if links else judging
        return [path for path in base if _text(path) in ways]

    def _left_out(
        self, base: Sequence[bytes], run: Followed, kept: Iterable[bytes], modules: Collection[str]
    ) -> Callable[[str], bool]:
        """Whether a file that the base has not is left out. `modules`: it must not be imported instead of these."""
        patterns = self.patterns
        if patterns is not None:
            return lambda path: matches(path, patterns)
        taking_part = run.included | (run.made - _directories(base))
        imported_from = self._imported_from(run.scripts)
        is_new_project = _new_projects(base)
        is_before = _before({one for one in map(_text, kept) if one in run.scripts or matches(one, TESTS)})
        return lambda path: (
            matches(path, RUNNERS)
            or _is_below(path, taking_part)
            or is_before(path)
            or _shadows(path, imported_from, modules)
            or (matches(path, _ALL_PROJECTS) and not is_new_project(path))
        )

    def _imported_from(self, scripts: Collection[str]) -> set[str]:
        """Directories in which Python looks for modules first: where it begins, where its scripts lie, and `PYTHONPATH`
        in a check.
        """
        modules = {script.removesuffix("/__main__.py") for script in scripts}
        programs = (
            script
            for script in scripts
            if INTERPRETERS.fullmatch(basename(script))
            or (script.endswith(".py") and script.removesuffix(".py") not in modules)
        )
        named = (found.split(":") for command in self.commands for found in _PYTHONPATH.findall(command))
        return {"", *map(dirname, programs), *(dirname(normpath(join(place, "a"))) for place in chain(*named))}


def _new_projects(base: Sequence[bytes]) -> Callable[[str], bool]:
    """Whether a file of `PROJECTS` that the base has not makes a new project."""

    @cache
    def directories() -> set[str]:
        return _directories(base) | ({""} if base else set())

    @cache
    def places_of(kind: tuple[str, ...]) -> set[str]:
        return {dirname(path) for path in map(_text, base) if matches(path, kind)}

    def is_new(path: str) -> bool:
        where = dirname(path)
        if where not in directories():
            return True
        kind = next(kind for kind in PROJECTS if matches(path, kind))
        above = {"", where, *(_text(parent) for parent in parents(os.fsencode(path)))}
        return kind is not PYTHON_PROJECT and not above & places_of(kind)

    return is_new


def _before(kept: Collection[str]) -> Callable[[str], bool]:
    """Whether a file that the base has not would be imported instead of one of these, or with all beside it."""
    modules = {splitext(path)[0] for path in kept if splitext(path)[1] in CODE}
    places = set(map(dirname, kept))

    def is_before(path: str) -> bool:
        place, name = dirname(path), basename(path)
        if name.partition(".")[0] == "__init__":
            return place in modules or (place in places and matches(path, TESTS))
        stem, ending = splitext(name)
        if ending in (".so", ".pyd"):
            stem = name.partition(".")[0]  # `name.cpython-312-x86_64-linux-gnu.so`
        return ending in CODE and join(place, stem) in modules

    return is_before


def _directories(base: Iterable[bytes]) -> set[str]:
    return {_text(parent) for path in base for parent in parents(path)}


def _is_below(path: str, places: Collection[str]) -> bool:
    return path in places or any(_text(parent) in places for parent in parents(os.fsencode(path)))


def _shadows(path: str, imported_from: Collection[str], modules: Collection[str]) -> bool:
    """Whether it would be imported instead of one of these modules, or of a plugin of pytest."""
    place, name = dirname(path), basename(path)
    module, _, suffix = name.partition(".")
    if module == "__init__":
        place, module = dirname(place), basename(place)
    is_module = suffix in ("py", "pyc") or f".{suffix}".endswith(".so")
    return is_module and place in imported_from and (module in modules or module.startswith("pytest_"))


def _way(path: str, links: Mapping[str, str]) -> list[str]:
    """The links on the way to a file, and the file itself at last."""
    passed: list[str] = []
    while len(passed) < MAX_LINKS:
        above = (_text(parent) for parent in parents(os.fsencode(path)))
        link = next((one for one in (*above, path) if one in links), None)
        if link is None:
            break
        passed.append(link)
        path = normpath(join(dirname(link), links[link]) + path.removeprefix(link))
    return [*passed, path]


def _in_the_way(path: bytes, files: Collection[bytes], directories: Collection[bytes]) -> list[bytes]:
    """Files where `path` has a directory, and files in a directory where it is a file."""
    above = [parent for parent in parents(path) if parent in files]
    return above + ([one for one in files if one.startswith(path + b"/")] if path in directories else [])


def _text(path: bytes) -> str:
    return os.fsdecode(path)
