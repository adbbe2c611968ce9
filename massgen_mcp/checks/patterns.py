"""Names of files that judge an answer, and what a pattern means. Pure.

A pattern is of one of three kinds: `NAME` means files of that name anywhere, `NAME/` everything in a directory of that
name anywhere, and one with a slash elsewhere is a path from the directory that is checked. `*` and `?` stand for
characters within a name.
"""

import re
from functools import cache

TESTS = (
    *("test/", "tests/", "Tests/", "*.Tests/", "spec/", "specs/", "__tests__/", "testdata/", "e2e/", "cypress/"),
    *("test_*.*", "*_test.*", "*-test.*", "*.test.*", "*.spec.*", "*.cy.*", "test-*.js", "*_spec.rb", "*_spec.lua"),
    *("*_unittest.*", "test.py", "tests.py", "test.js", "test.mjs", "test.cjs", "test.ts"),
    *("*.bats", "*.feature", "*.t"),
    *("Test*.java", "*Test.java", "*Tests.java", "*TestCase.java", "*IT.java", "*Test.kt", "*Spec.kt", "*Spec.groovy"),
    *("*Spec.scala", "*Suite.scala", "*Spec.hs", "*Test.cs", "*Tests.cs", "*Test.php", "*Test.swift", "*Tests.swift"),
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
    *("gradle/", "Directory.Build.*", ".rubocop.yml", "phpstan.neon*", "psalm.xml*", "venv/", ".venv/", "__pycache__/"),
    *(".isort.cfg", ".importlinter", "hatch.toml", "mise.toml", ".mise.toml", ".yarn/", "lerna.json", ".eslintignore"),
    *(".prettierrc*", "prettier.config.*", ".prettierignore", ".stylelintrc*", "stylelint.config.*", ".oxlintrc.json"),
    *("tslint.json", ".jshintrc", ".yamllint*", ".shellcheckrc", ".clang-tidy", ".clang-format", "rustfmt.toml"),
    *(".rustfmt.toml", ".config/nextest.toml", "deny.toml", "phpcs.xml*", "behat.yml*", "codeception.yml"),
    *(".credo.exs", ".formatter.exs", ".scalafmt.conf", ".swiftlint.yml", "detekt.yml", "checkstyle.xml"),
    *("analysis_options.yaml",),
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
    ("mix.exs",),
    ("build.sbt",),
)
"""Files that make a project of a directory, by kind. Put back where the base has them. A new one stays where it makes a
new project: in a directory that the base has not, or, but for those of Python, where the base has none of its kind
there or above.
"""

RUNNING = (
    *("pytest", "_pytest", "pluggy", "nose2", "tox", "nox", "coverage", "xdist", "hypothesis", "mypy", "ruff"),
    *("pylint", "flake8", "black", "bandit", "isort", "pyflakes", "pycodestyle", "execnet", "iniconfig", "packaging"),
    *("pygments", "exceptiongroup", "tomli", "colorama"),
)
"""Python packages that run checks, and what these import: new modules of their names would be run instead of them."""
CODE = (
    *("", ".py", ".pyc", ".pyd", ".so", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".json", ".node"),
)
"""Endings of files that are imported without their ending."""


def matches(path: str, patterns: tuple[str, ...]) -> bool:
    return _compile(patterns).fullmatch(path) is not None


@cache
def _compile(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return an expression that matches every path that one of the patterns means."""
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
