"""Questions that somebody types or sends: from the command line, from standard input, or one after the other in the
interactive mode, where a person at a terminal has the reader of `line_editor`; and `@path` in a question, a file or
directory that the agents may read in this run.
"""

import re
import shlex
import sys
from pathlib import Path
from typing import Protocol

import anyio.to_thread

from massgen_mcp.cli.output import print_line
from massgen_mcp.config.adjusted import given_path
from massgen_mcp.config.loader import is_config
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.orchestrator import ContextPath
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.question import MAX_QUESTION_CHARACTERS

STANDARD_INPUT = "-"
PROMPT = "You: "
NOT_UTF8 = "the question on standard input isn't valid UTF-8; convert it with `iconv -t UTF-8`"
TEXT = "utf-8-sig"
"""UTF-8, without the mark that programs of Windows put before it."""
_MENTION = re.compile(r"(?:^|(?<=\s))@(\S+)")
_TRAILING = ".,;:!?)]}'\""
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif"})


def whole_question(given: str) -> str:
    """Raises `MassgenError` invalid_arguments for what is no text, nothing, or the name of a file."""
    if given != STANDARD_INPUT:
        if Path(given).suffix and not re.search(r"\s", given) and is_config(Path(given)):
            message = f"{given} is a file, not a question; to ask the question in it: massgen - < {shlex.quote(given)}"
            raise MassgenError("invalid_arguments", message)
        return given
    data = sys.stdin.buffer.read(4 * MAX_QUESTION_CHARACTERS + 1)
    if not data.strip():
        raise MassgenError(
            "invalid_arguments", "standard input was empty; to ask the question in a file: massgen - < question.md"
        )
    try:
        return data.decode(TEXT)
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and len(data) > 4 * MAX_QUESTION_CHARACTERS:
            return data.decode(TEXT, errors="ignore")  # far too long in any case, and refused for that
        raise MassgenError("invalid_arguments", NOT_UTF8) from None


class Reader(Protocol):
    async def read(self) -> str | None:
        """The next line or lines; None when the person leaves or nothing more comes."""
        ...


class PipeReader:
    """One question a line, for pipes and terminals that cannot do more."""

    async def read(self) -> str | None:
        line = await anyio.to_thread.run_sync(sys.stdin.buffer.readline, abandon_on_cancel=True)
        try:
            text = line.decode(TEXT)
        except UnicodeDecodeError:
            raise MassgenError("invalid_arguments", NOT_UTF8) from None
        if line:
            print_line(f"{PROMPT}{text.rstrip()}")
        return text if line else None


def mentioned_paths(question: str, config: Config, cwd: Path) -> tuple[ContextPath, ...]:
    """Every path that the question names as `@path`, besides the config's own.

    An @ before something that is no path stays a word. Raises `MassgenError` invalid_action for a path outside of the
    directory, for an image, and if the agents have no file tools.
    """
    known = {context.path for context in config.orchestrator.context_paths}
    found = [path for word in _MENTION.findall(question) if (path := _path(word, cwd)) and str(path) not in known]
    for path in found:
        _check(path, config, cwd.resolve())
    return tuple(given_path(path) for path in dict.fromkeys(map(str, found)))


def unread_mentions(question: str, cwd: Path, *, read: bool) -> list[str]:
    """What a person should know of each `@path` that looks like a file and is not shown to the agents. `read`: those
    that exist are.
    """
    named = dict.fromkeys(word.rstrip(_TRAILING) for word in _MENTION.findall(question))
    found = {word: _path(word, cwd) for word in named if re.fullmatch(r"\.[A-Za-z]\w{0,4}", Path(word).suffix)}
    unread = "agents see only this name; to let them read the file, add it under context_paths"
    return [
        f"@{word}: {unread if path else 'this file does not exist here'}"
        for word, path in found.items()
        if path is None or not read
    ]


def _check(path: Path, config: Config, cwd: Path) -> None:
    if not path.is_relative_to(cwd):
        message = f"@{path}: with @, you can name only files in {cwd}; name others in the config, under `context_paths`"
        raise MassgenError("invalid_action", message)
    if path.suffix.lower() in _IMAGES:
        models = ", ".join(dict.fromkeys(agent.asked for agent in config.agents))
        message = (
            f"@{path.name} is an image, but massgen sends only text to models ({models}); describe it in the question"
        )
        raise MassgenError("invalid_action", message)
    if not config.orchestrator.enable_filesystem:
        raise MassgenError("invalid_action", f"@{path}: these agents can't read files (enable_filesystem: false)")


def _path(word: str, cwd: Path) -> Path | None:
    """The existing path that a word means, also if punctuation follows it."""
    for name in dict.fromkeys((word, word.rstrip(_TRAILING))):
        try:
            path = (cwd / Path(name).expanduser()).resolve() if name else None
            if path is not None and path.exists():
                return path
        except (OSError, ValueError, RuntimeError):
            continue
    return None
