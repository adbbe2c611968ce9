"""Which checks a directory seems to have, for a person to choose from. Reads a few files, and runs nothing."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from massgen_mcp.changes.files import small_file
from massgen_mcp.checks.recipes import get_member, read_scripts

TARGETS = ("check", "test", "tests", "lint")
"""Names of targets and scripts that judge files, as people call them."""
SCRIPTS = ("test", "lint", "typecheck", "type-check", "check")


def proposed_checks(directories: Iterable[Path]) -> tuple[str, ...]:
    """Commands that would run in the first directory that has some; empty where none is found."""
    for directory in directories:
        if found := tuple(dict.fromkeys(_proposed(directory))):
            return found
    return ()


def _proposed(directory: Path) -> Iterator[str]:
    targets = re.findall(r"^([A-Za-z][\w-]*)\s*:(?!=)", _file_text(directory, "Makefile"), re.MULTILINE)
    yield from (f"make {target}" for target in TARGETS if target in targets)
    scripts = read_scripts(_file_text(directory, "package.json"))
    yield from ("npm test" if name == "test" else f"npm run {name}" for name in SCRIPTS if name in scripts)
    tools = get_member(_toml(directory, "pyproject.toml"), "tool")
    if "pytest" in tools or (directory / "pytest.ini").is_file() or (directory / "conftest.py").is_file():
        yield "python -m pytest -q"
    yield from (command for tool, command in _OF_TOOLS.items() if tool in tools)
    yield from (command for name, command in _OF_FILES.items() if (directory / name).is_file())


_OF_TOOLS = {"ruff": "ruff check .", "mypy": "mypy .", "pyright": "pyright"}
_OF_FILES = {"Cargo.toml": "cargo test --offline", "go.mod": "go test ./...", "tox.ini": "tox"}


def _file_text(directory: Path, name: str) -> str:
    with suppress(OSError):
        return small_file(directory / name).decode(errors="replace")
    return ""


def _toml(directory: Path, name: str) -> object:
    with suppress(ValueError, RecursionError):
        return tomllib.loads(_file_text(directory, name))
    return None
