"""Code in an agent's reply as a command for the sandbox, as AG2's executor of command lines runs it. Pure.

Each block is written to a file and run there, one after the other, until one fails.
"""

import hashlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"[ \t]*```[ \t]*(\w*)[ \t]*")
_FILE_NAME = re.compile(r"#\s*filename:\s*(?P<name>[\w][\w.-]*)\s*$")
"""AG2's way to say in the first line where a block is to be kept."""
_PROGRAMS = {
    **dict.fromkeys(("python", "python3", "py"), ("python3", "py")),
    **dict.fromkeys(("sh", "shell"), ("sh", "sh")),
    "bash": ("bash", "sh"),
}
"""The program that runs a language, and how its files end. Blocks in others, or in none, are not run."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    program: str
    file: str
    code: str


def code_blocks(text: str) -> list[CodeBlock]:
    """The blocks of `text` that can be run, in their order."""
    return list(_found(text))


def as_command(blocks: list[CodeBlock], directory: str) -> str:
    """A shell command that runs them in this directory of the workspace, and exits as the last one that ran."""
    place = shlex.quote(directory)
    steps = [f"mkdir -p -- {place} && cd -- {place} || exit"]
    for block in blocks:
        end = f"END_OF_{_digest(block.code)}"
        steps.append(f"cat > {block.file} <<'{end}' || exit\n{block.code}\n{end}\n{block.program} {block.file} || exit")
    return "\n".join(steps)


def _found(text: str) -> Iterator[CodeBlock]:
    language: str | None = None
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        fence = _FENCE.fullmatch(line)
        if language is None:
            language, lines = (fence[1] if fence else None), []
        elif fence is None or fence[1]:
            lines.append(line)
        else:
            if runs := _PROGRAMS.get(language.lower()):
                yield _block("\n".join(lines).rstrip(), *runs)
            language = None


def _block(code: str, program: str, suffix: str) -> CodeBlock:
    named = _FILE_NAME.match(code.partition("\n")[0])
    return CodeBlock(program, named["name"] if named else f"code_{_digest(code)}.{suffix}", code)


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()[:16]
