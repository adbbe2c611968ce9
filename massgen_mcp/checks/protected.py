"""What judges an answer must not be weakened by it: files that are judged as they are in the base. Pure.

A pattern is of one of three kinds: `NAME` means files of that name anywhere, `NAME/` everything in a directory of that
name anywhere, and one with a slash elsewhere is a path from the directory that is checked. `*` and `?` stand for
characters within a name.
"""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from posixpath import basename, dirname, join, normpath
from typing import TypeVar

from massgen_mcp.changes.files import parents
from massgen_mcp.checks.followed import files_run_by
from massgen_mcp.checks.scripts import INTERPRETERS

FileT = TypeVar("FileT")
MAX_LINKS = 40
"""As many are followed to one file."""
MAX_READ_BYTES = 1024 * 1024
"""Of a file that says what a check runs."""

TESTS = (
    *("test/", "tests/", "spec/", "specs/", "__tests__/", "testdata/"),
    *("test_*.py", "*_test.py", "*_test.go", "*.test.*", "*.spec.*", "*_spec.rb", "*Test.java", "*Tests.java"),
    *("*Test.kt", "*Tests.cs", "*Test.php", "*Test.swift", "*Tests.swift", "*_test.dart", "*.bats"),
)
"""Put back where the base has them. New ones stay: an answer may add tests."""

RUNNERS = (
    *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "tox.toml"),
    *("noxfile.py", "sitecustomize.py", "usercustomize.py", "*.pth", ".coveragerc", "mypy.ini"),
    *(".mypy.ini", "ruff.toml", ".ruff.toml", "pyrightconfig.json", ".flake8", ".pylintrc", "pylintrc", ".bandit"),
    *("*.dist-info/", "*.egg-info/", "*.egg-info", "*.egg-link", "*.egg/", ".pre-commit-config.yaml", "dodo.py"),
    *(".npmrc", "jest.config.*", "jest.setup.*", "vitest.config.*", "vitest.setup.*", "vite.config.*"),
    *("vitest.workspace.*", "karma.conf.*", ".mocharc*", "playwright.config.*", "cypress.config.*", ".eslintrc*"),
    *("eslint.config.*", "babel.config.*", ".babelrc*", "node_modules/", "phpunit.xml*", ".rspec"),
    *("ava.config.*", "wdio.conf.*", "nightwatch.conf.*", ".nycrc*", ".c8rc*", ".swcrc", "biome.json*"),
    *("bunfig.toml", "nx.json", "turbo.json", ".yarnrc*", ".pnp.*", "gulpfile.*", "Gruntfile.*"),
    *(".cargo/", "clippy.toml", ".clippy.toml", "rust-toolchain*", ".golangci.*", "mvnw", ".mvn/", "gradlew"),
    *("gradle/", "Directory.Build.*", ".rubocop.yml", "phpstan.neon*", "psalm.xml*", "venv/", ".venv/"),
)
"""Settings and plugins of what runs checks. Put back where the base has them; new ones are left out."""

PYTHON_PROJECT = ("pyproject.toml", "setup.cfg", "setup.py")
"""Hold settings of runners as well: below `tests/` a new one would take the place of the one above."""
PROJECTS = (
    PYTHON_PROJECT,
    ("package.json", "deno.json*", "tsconfig*.json"),
    ("Cargo.toml", "build.rs"),
    ("go.mod", "go.work"),
    ("pom.xml",),
    ("build.gradle*", "settings.gradle*", "gradle.properties"),
    ("composer.json",),
    ("Makefile", "makefile", "GNUmakefile", "*.mk"),
    ("justfile", ".justfile", "Justfile"),
    ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"),
    ("Rakefile",),
)
"""Files that make a project of a directory, by kind. Put back where the base has them. A new one stays where it makes a
new project: in a directory that the base has not, or, but for those of Python, where the base has none of its kind
there or above.
"""

RUNNING = frozenset({"pytest", "_pytest", "pluggy", "nose2", "tox", "nox", "coverage", "xdist", "hypothesis", "mypy"})
"""Python packages that run checks: new modules of their names would be run instead of them."""
_ALL_PROJECTS = tuple(chain(*PROJECTS))
_PYTHONPATH = re.compile(r"\bPYTHONPATH=[\"']?(?:\$\{?PWD\}?/)?([^\s;&|\"']+)")


@dataclass(frozen=True, slots=True)
class Protection:
    """`patterns`: the user's own; None: those of this module. `commands`: the checks, whose scripts are protected."""

    patterns: tuple[str, ...] | None
    commands: tuple[str, ...]

    def judged(
        self,
        base: Mapping[bytes, FileT],
        answer: Mapping[bytes, FileT],
        content: Callable[[FileT], bytes],
        is_link: Callable[[FileT], bool],
    ) -> tuple[dict[bytes, FileT], list[bytes]]:
        """The files of an answer as they are judged, and the paths in which they differ from it, sorted. Paths are from
        the directory that is checked. `content` of a link: where it leads.
        """
        links = {_text(path): os.fsdecode(content(file)) for path, file in base.items() if is_link(file)}

        def read(path: str) -> str | None:
            file = base.get(os.fsencode(_way(path, links)[-1]))
            return None if file is None else content(file)[:MAX_READ_BYTES].decode(errors="replace")

        scripts = files_run_by(self.commands, read)
        left_out = self._left_out([*base], scripts)
        files = {path: file for path, file in answer.items() if path in base or not left_out(_text(path))}
        directories = {parent for path in files for parent in parents(path)}
        for path in self._kept(base, scripts, links):
            for other in _in_the_way(path, files, directories):
                del files[other]
            files[path] = base[path]
        return files, sorted(path for path in {*answer, *files} if answer.get(path) != files.get(path))

    def _kept(self, base: Iterable[bytes], scripts: Collection[str], links: Mapping[str, str]) -> list[bytes]:
        """What is put back, with the links on the way to it."""
        patterns = (*TESTS, *RUNNERS, *_ALL_PROJECTS) if self.patterns is None else self.patterns
        judging = {*scripts, *(one for one in map(_text, base) if matches(one, patterns))}
        ways = {one for path in judging for one in _way(path, links)} if links else judging
        return [path for path in base if _text(path) in ways]

    def _left_out(self, base: Sequence[bytes], scripts: Collection[str]) -> Callable[[str], bool]:
        """Whether a file that the base has not is left out."""
        patterns = self.patterns
        if patterns is not None:
            return lambda path: matches(path, patterns)
        imported_from = self._imported_from(scripts)
        is_new_project = _new_projects(base)
        return lambda path: (
            matches(path, RUNNERS)
            or _shadows(path, imported_from)
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
        return {_text(parent) for path in base for parent in parents(path)} | ({""} if base else set())

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


def matches(path: str, patterns: tuple[str, ...]) -> bool:
    return _one_of(patterns).fullmatch(path) is not None


@cache
def _one_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """What matches every path that one of the patterns means."""
    kinds: dict[str, list[str]] = {"(?:.*/)?(?:%s)": [], "(?:.*/)?(?:%s)/.*": [], "(?:%s)": [], "(?:%s)/.*": []}
    names, directories, paths, trees = kinds.values()
    for pattern in patterns:
        name = pattern.removeprefix("./").removeprefix("/").removesuffix("/")
        within = pattern.endswith("/")
        kind = (trees if within else paths) if "/" in name else (directories if within else names)
        kind.append("".join(_LETTERS.get(letter, re.escape(letter)) for letter in name))
    whole = "|".join(kind % "|".join(several) for kind, several in kinds.items() if several)
    return re.compile(whole or r"(?!)", re.DOTALL)


_LETTERS = {"*": "[^/]*", "?": "[^/]"}


def _shadows(path: str, imported_from: Collection[str]) -> bool:
    """Whether it would be imported instead of a module of Python's own or of a runner."""
    place, name = dirname(path), basename(path)
    module, _, suffix = name.partition(".")
    if module == "__init__":
        place, module = dirname(place), basename(place)
    is_module = suffix in ("py", "pyc") or f".{suffix}".endswith(".so")
    return is_module and place in imported_from and (module in sys.stdlib_module_names or module in RUNNING)


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
