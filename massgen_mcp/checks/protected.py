"""What judges an answer must not be weakened by it: files that are judged as they are in the base. Pure."""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from posixpath import basename, dirname, join, normpath, splitext
from typing import TypeVar

from massgen_mcp.changes.files import parents
from massgen_mcp.checks.own_code import find_own_code, is_used_elsewhere
from massgen_mcp.checks.patterns import CODE, PROJECTS, PYTHON_PROJECT, RUNNERS, RUNNING, TESTS, matches
from massgen_mcp.checks.recipes import Read, included_by, made_by, run_by
from massgen_mcp.checks.scripts import INTERPRETERS, SHELLS, ProgramCall, calls_of

MAX_LEVELS = 4
"""The commands themselves are the first."""
MAX_COMMANDS = 2_000
_MAX_CHARACTERS = 10_000
"""Of one command."""
_SHELL_SCRIPT = re.compile(r"#!.*\b(?:ba|da|z|k)?sh\b")
_SHELL_SUFFIXES = (".sh", ".bash", ".zsh", ".ksh")

_Command = tuple[str, str]
"""A command, after the directory that it begins in."""


@dataclass(frozen=True, slots=True)
class Followed:
    """Paths from the directory that the commands begin in, whether something is there or not. `scripts`: what is run.
    `included`: by makefiles. `made`: its targets, of which it makes none that is there already.
    """

    scripts: frozenset[str]
    included: frozenset[str]
    made: frozenset[str]


def followed(commands: Iterable[str], read: Read) -> Followed:
    """What these commands run."""
    found: set[str] = set()
    included: set[str] = set()
    made: set[str] = set()
    seen: set[_Command] = set()
    level: list[_Command] = [("", command) for command in commands]
    for _ in range(MAX_LEVELS):
        following: list[_Command] = []
        for place, command in level:
            if (place, command) in seen or len(seen) == MAX_COMMANDS:
                continue
            seen.add((place, command))
            for call in calls_of(command[:_MAX_CHARACTERS]):
                here = replace(call, directory=normpath(join(place, call.directory)))
                scripts = tuple(here.scripts())
                found.update(scripts)
                included.update(included_by(here, read))
                made.update(made_by(here, read))
                following += run_by(here, read)
                following += (inner for script in scripts for inner in _in_script(script, here, read))
        level = following
    return Followed(frozenset(found), frozenset(included), frozenset(made))


def _in_script(path: str, call: ProgramCall, read: Read) -> Iterator[_Command]:
    """The lines of a shell script, each as if it began where the script is called, and where it lies."""
    text = read(path) or ""
    by_shell = call.program in (".", "source") or SHELLS.fullmatch(call.program) is not None
    if not (_SHELL_SCRIPT.match(text) or path.endswith(_SHELL_SUFFIXES) or (by_shell and not text.startswith("#!"))):
        return
    places = {call.directory, dirname(path)}
    for line in text.replace("\\\n", " ").splitlines():
        command = line.strip()
        if command.startswith("cd ") and "$" not in command and len(words := command.split()) == 2:
            places |= {normpath(join(place, words[1])) for place in places}
        elif command and not command.startswith("#"):
            yield from ((place, command) for place in sorted(places))


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
        links = _read_links(base, content, is_link)
        read = _make_reader(base, content, links)
        run = followed(self.commands, read)
        names = frozenset(map(os.fsdecode, base))
        changed = {os.fsdecode(path) for path, file in base.items() if answer.get(path) != file}
        loaded = find_own_code(run.scripts, names, read).files & changed
        own = {one for one in loaded if not is_used_elsewhere(one, names, read)}
        kept = self._restored(base, run, links, own)
        left_out = self._left_out([*base], run, kept, {*sys.stdlib_module_names, *RUNNING, *installed})
        files = {path: file for path, file in answer.items() if path in base or not left_out(os.fsdecode(path))}
        directories = {parent for path in files for parent in parents(path)}
        for path in kept:
            for other in _in_the_way(path, files, directories):
                del files[other]
            files[path] = base[path]
        return files, sorted(path for path in {*answer, *files} if answer.get(path) != files.get(path))

    def find_unfollowed(
        self, base: Mapping[bytes, FileT], content: Callable[[FileT], bytes], is_link: Callable[[FileT], bool]
    ) -> tuple[str, ...]:
        """Say what the scripts of the commands load that is not put back. Arguments as those of `judged`."""
        read = _make_reader(base, content, _read_links(base, content, is_link))
        run = followed(self.commands, read)
        return find_own_code(run.scripts, frozenset(map(os.fsdecode, base)), read).unfollowed

    def _restored(
        self, base: Iterable[bytes], run: Followed, links: Mapping[str, str], own: Collection[str]
    ) -> list[bytes]:
        """What is put back, with the links on the way to it."""
        patterns, judging = self.patterns, {*run.scripts, *own}
        if patterns is None:
            patterns = (*TESTS, *RUNNERS, *_ALL_PROJECTS)
            judging |= run.included
        judging |= {one for one in map(os.fsdecode, base) if matches(one, patterns)}
        ways = {one for path in judging for one in _way(path, links)} if links else judging
        return [path for path in base if os.fsdecode(path) in ways]

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
        is_before = _before({one for one in map(os.fsdecode, kept) if one in run.scripts or matches(one, TESTS)})
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


def _read_links(
    base: Mapping[bytes, FileT], content: Callable[[FileT], bytes], is_link: Callable[[FileT], bool]
) -> dict[str, str]:
    return {os.fsdecode(path): os.fsdecode(content(file)) for path, file in base.items() if is_link(file)}


def _make_reader(base: Mapping[bytes, FileT], content: Callable[[FileT], bytes], links: Mapping[str, str]) -> Read:
    def read(path: str) -> str | None:
        file = base.get(os.fsencode(_way(path, links)[-1]))
        return None if file is None else content(file)[:MAX_READ_BYTES].decode(errors="replace")

    return read


def _new_projects(base: Sequence[bytes]) -> Callable[[str], bool]:
    """Whether a file of `PROJECTS` that the base has not makes a new project."""

    @cache
    def directories() -> set[str]:
        return _directories(base) | ({""} if base else set())

    @cache
    def places_of(kind: tuple[str, ...]) -> set[str]:
        return {dirname(path) for path in map(os.fsdecode, base) if matches(path, kind)}

    def is_new(path: str) -> bool:
        where = dirname(path)
        if where not in directories():
            return True
        kind = next(kind for kind in PROJECTS if matches(path, kind))
        above = {"", where, *(os.fsdecode(parent) for parent in parents(os.fsencode(path)))}
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
    return {os.fsdecode(parent) for path in base for parent in parents(path)}


def _is_below(path: str, places: Collection[str]) -> bool:
    return path in places or any(os.fsdecode(parent) in places for parent in parents(os.fsencode(path)))


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
        above = (os.fsdecode(parent) for parent in parents(os.fsencode(path)))
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
