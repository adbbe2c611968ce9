"""What judges an answer must not be weakened by it: files that are judged as they are in the base. Pure.

A pattern is of one of three kinds: `NAME` means files of that name anywhere, `NAME/` everything in a directory of that
name anywhere, and one with a slash elsewhere is a path from the directory that is checked. `*` and `?` stand for
characters within a name.
"""

import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from massgen_mcp.changes.files import parents
from massgen_mcp.checks.followed import files_run_by

FileT = TypeVar("FileT")
MAX_READ_BYTES = 1024 * 1024
"""Of a file that says what a check runs."""

TESTS = (
    *("test/", "tests/", "spec/", "specs/", "__tests__/", "testdata/"),
    *("test_*.py", "*_test.py", "*_test.go", "*.test.*", "*.spec.*", "*_spec.rb", "*Test.java", "*Tests.java"),
    *("*Test.kt", "*Tests.cs", "*Test.php", "*Test.swift", "*Tests.swift", "*_test.dart", "*.bats"),
)
"""Put back where the base has them. New ones stay: an answer may add tests."""

RUNNERS = (
    *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "tox.toml", "setup.cfg"),
    *("pyproject.toml", "noxfile.py", "sitecustomize.py", "usercustomize.py", "*.pth", ".coveragerc", "mypy.ini"),
    *(".mypy.ini", "ruff.toml", ".ruff.toml", "pyrightconfig.json", ".flake8", ".pylintrc", "pylintrc", ".bandit"),
    *("setup.py", ".pre-commit-config.yaml", "dodo.py"),
    *("Makefile", "makefile", "GNUmakefile", "*.mk", "justfile", ".justfile", "Justfile"),
    *("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"),
    *("package.json", ".npmrc", "jest.config.*", "jest.setup.*", "vitest.config.*", "vitest.setup.*", "vite.config.*"),
    *("vitest.workspace.*", "karma.conf.*", ".mocharc*", "playwright.config.*", "cypress.config.*", ".eslintrc*"),
    *("eslint.config.*", "babel.config.*", ".babelrc*", "node_modules/", "phpunit.xml*", ".rspec", "Rakefile"),
    *(
        "ava.config.*",
        "wdio.conf.*",
        "nightwatch.conf.*",
        ".nycrc*",
        ".c8rc*",
        ".swcrc",
        "tsconfig*.json",
        "biome.json*",
    ),
    *("deno.json*", "bunfig.toml", "nx.json", "turbo.json", ".yarnrc*", ".pnp.*", "gulpfile.*", "Gruntfile.*"),
    *("Cargo.toml", "build.rs", ".cargo/", "clippy.toml", ".clippy.toml", "rust-toolchain*", "go.mod", "go.work"),
    *(".golangci.*", "pom.xml", "mvnw", ".mvn/", "build.gradle*", "settings.gradle*", "gradle.properties", "gradlew"),
    *("gradle/", "Directory.Build.*", ".rubocop.yml", "phpstan.neon*", "psalm.xml*", "venv/", ".venv/"),
)
"""Settings and plugins of what runs checks. Put back where the base has them; new ones are left out."""

RUNNING = frozenset({"pytest", "_pytest", "pluggy", "nose2", "tox", "nox", "coverage", "xdist", "hypothesis", "mypy"})
"""Python packages that run checks: new modules of their names at the top would be run instead of them."""


@dataclass(frozen=True, slots=True)
class Protection:
    """`patterns`: the user's own; None: those of this module. `commands`: the checks, whose scripts are protected."""

    patterns: tuple[str, ...] | None
    commands: tuple[str, ...]

    def judged(
        self, base: Mapping[bytes, FileT], answer: Mapping[bytes, FileT], content: Callable[[FileT], bytes]
    ) -> tuple[dict[bytes, FileT], list[bytes]]:
        """The files of an answer as they are judged, and the paths in which they differ from it, sorted. Paths are from
        the directory that is checked.
        """
        kept, new_kept = self._of_base(base, content), self._left_out
        files = {path: file for path, file in answer.items() if path in base or not new_kept(_text(path))}
        directories = {parent for path in files for parent in parents(path)}
        for path in kept:
            for other in _in_the_way(path, files, directories):
                del files[other]
            files[path] = base[path]
        return files, sorted(path for path in {*answer, *files} if answer.get(path) != files.get(path))

    def _of_base(self, base: Mapping[bytes, FileT], content: Callable[[FileT], bytes]) -> list[bytes]:
        def read(path: str) -> str | None:
            file = base.get(os.fsencode(path))
            return None if file is None else content(file)[:MAX_READ_BYTES].decode(errors="replace")

        patterns = (*TESTS, *RUNNERS) if self.patterns is None else self.patterns
        scripts = files_run_by(self.commands, read)
        return [path for path in base if (text := _text(path)) in scripts or matches(text, patterns)]

    def _left_out(self, path: str) -> bool:
        """Whether a file that the base has not is left out."""
        if self.patterns is not None:
            return matches(path, self.patterns)
        return matches(path, RUNNERS) or _shadows(path)


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


def _shadows(path: str) -> bool:
    top = path.partition("/")[0].removesuffix(".py")
    is_python = path.endswith(".py")
    return is_python and (top in sys.stdlib_module_names or top in RUNNING)


def _in_the_way(path: bytes, files: Collection[bytes], directories: Collection[bytes]) -> list[bytes]:
    """Files where `path` has a directory, and files in a directory where it is a file."""
    above = [parent for parent in parents(path) if parent in files]
    return above + ([one for one in files if one.startswith(path + b"/")] if path in directories else [])


def _text(path: bytes) -> str:
    return os.fsdecode(path)
