"""Which files checks run, themselves or by way of others: recipes and shell scripts are followed, a few levels deep.

Pure.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from posixpath import dirname, join, normpath

from massgen_mcp.checks.recipes import Read, included_by, made_by, run_by
from massgen_mcp.checks.scripts import SHELLS, ProgramCall, calls_of

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
