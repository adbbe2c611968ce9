"""The blocks of `programmatic_api.md`, and a place in which they can be run."""

import contextlib
import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness import ROOT

PAGE = ROOT / "tests" / "api" / "programmatic_api.md"


@dataclass(frozen=True)
class Block:
    number: int
    title: str
    outcome: str
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.number} {self.title}"


def read_blocks() -> dict[int, Block]:
    found = re.findall(r"^## (\d+)\. (.+?)\n\n(.+?)\n\n```(\w+)\n(.*?)```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return {int(number): Block(int(number), *rest) for number, *rest in found}


BLOCKS = read_blocks()


@dataclass
class Place:
    """A working directory, and what a reader of the page has defined so far."""

    path: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    output: str = ""

    def run(self, number: int, replacements: Mapping[str, str] | None = None) -> str:
        """Run a block of Python as written, up to names of packages and places; returns what it printed."""
        code = self.adapted(BLOCKS[number].code, replacements)
        file = self.path / f"block_{number}.py"
        file.write_text(code)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(file), "exec"), self.names)  # noqa: S102 - the page is ours
        self.output += printed.getvalue()
        return printed.getvalue()

    def adapted(self, code: str, replacements: Mapping[str, str] | None = None) -> str:
        code = re.sub(r"^import massgen$", "import massgen_mcp as massgen", code, flags=re.MULTILINE)
        code = re.sub(r"^from massgen import", "from massgen_mcp import", code, flags=re.MULTILINE)
        code = re.sub("/path/to|/tmp(?=/answer)", str(self.path), code)
        for old, new in (replacements or {}).items():
            code = code.replace(old, new)
        return code


@contextlib.contextmanager
def restored_environment() -> Any:
    """Whatever the block does to the environment is undone."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
