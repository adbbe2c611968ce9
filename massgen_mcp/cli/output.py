"""What our commands print, whatever a model put into it. A reader that has gone (`| head`) ends and fails nothing; that
nothing can be written (`> answer.md` on a full disk) is an error.
"""

import os
import re
import stat
import sys
from collections.abc import Iterable
from typing import TextIO

from massgen_mcp.errors import storage_error
from massgen_mcp.views.plain_text import plain


def print_line(line: str = "") -> bool:
    """One line on standard output. False: nobody reads it any more. Raises `MassgenError` if it cannot be written."""
    return _write_whole(sys.stdout, f"{plain(line)}\n")


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print_line(line)


def print_either(lines: Iterable[str], document: str, *, as_json: bool) -> None:
    """Print what a verb found: lines for people, or with --json one document."""
    if as_json:
        print_line(document)
    else:
        print_lines(lines)


def print_text(text: str) -> None:
    """A text of several lines on standard output; tabs stay, other control characters go. Raises as `print_line`."""
    lines = ("\t".join(plain(part) for part in line.split("\t")) for line in text.splitlines())
    _write_whole(sys.stdout, "".join(f"{line}\n" for line in lines))


def print_error(line: str) -> None:
    """A message, which may have several lines, on standard error."""
    _write_whole(sys.stderr, "".join(f"{plain(part)}\n" for part in line.splitlines()))


def send_to_terminal(sequences: str) -> None:
    """Our own escape sequences, with texts in them that are plain already."""
    _write_whole(sys.stdout, sequences)


CI_COMMAND = re.compile(r"(?m)^(?P<indent>[ \t]*):(?=:[A-Za-z])|#(?=#(?:\[|vso\[|teamcity\[))", re.IGNORECASE)
"""Words that GitHub Actions takes for a command at the start of a line; Azure Pipelines, TeamCity and an older GitHub
runner anywhere in it. Other systems' commands need control characters.
"""
CI_VARIABLES = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")
COMMANDS_BROKEN = (
    "Note: your CI would treat a line of this output as a command, so massgen added a space to that line. "
    "To get the line unchanged, redirect the output to a file (`> FILE`)."
)


def break_ci_commands(stream: TextIO, text: str) -> str:
    """Return `text` with a space in everything that a CI would execute, if it reads this stream as a job's log."""
    if CI_COMMAND.search(text) and _is_ci_log(stream):
        return CI_COMMAND.sub(r"\g<0> ", text)
    return text


def _is_ci_log(stream: TextIO) -> bool:
    """Check whether a CI reads this stream. A file that a job writes is data, and stays as it is."""
    if not any(os.environ.get(name, "").lower() not in ("", "0", "false") for name in CI_VARIABLES):
        return False
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # a stream in memory
        return True


def _write_whole(stream: TextIO, text: str) -> bool:
    safe = break_ci_commands(stream, text)
    if safe != text and stream is not sys.stderr:
        _write_whole(sys.stderr, f"{COMMANDS_BROKEN}\n")
    text = safe
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError) and stream is sys.stdout:
            raise storage_error("cannot write to standard output", error) from error
        return False
    except UnicodeEncodeError:  # a terminal of another encoding
        stream.write(text.encode(stream.encoding, "replace").decode(stream.encoding))
        stream.flush()
    return True
