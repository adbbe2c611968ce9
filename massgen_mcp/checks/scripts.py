"""Which programs a command calls, and which files these run or take their settings from. Pure: whether there is such a
file, is for others to say.

What a command is given to look at (`ruff check src`) is none of these.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from posixpath import basename, join, normpath

SHELLS = re.compile(r"(ba|da|z|k|fi)?sh")
INTERPRETERS = re.compile(r"python[\d.]*|pypy[\d.]*|node|deno|bun|tsx|ts-node|ruby|perl|php|Rscript|lua|bats|expect")
SETTINGS = ("-c", "-f", "--config", "--config-file", "--configuration", "--file", "--makefile", "--project", "--rcfile")
WRAPPERS = ("env", "time", "timeout", "nice", "exec", "xvfb-run", "uv", "poetry", "pipenv", "hatch", "pdm", "npx")
"""Programs that run another one, which is among their arguments."""
_OF_WRAPPERS = re.compile(r"-.*|run|[\d.]+[smhd]?")
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_OPERATORS = "();<>|&\n"
_KEYWORDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{"})
_LEADING_VARIABLE = re.compile(r"\$(?:\w+|\{[^}]*\}|\([^)]*\))/")


@dataclass(frozen=True, slots=True)
class Call:
    """A program with its arguments, without what only runs it. `directory`: where, from where the command begins."""

    directory: str
    words: tuple[str, ...]

    @property
    def program(self) -> str:
        return basename(self.words[0]) if self.words else ""

    def scripts(self) -> Iterator[str]:
        """Relative paths, as seen from where the command begins."""
        return (normpath(join(self.directory, _LEADING_VARIABLE.sub("", name))) for name in _of_simple(self.words))


def calls_of(command: str) -> Iterator[Call]:
    """All calls in a command, also in one that a shell is given in it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        words = list(lexer)
    except ValueError:  # an open quotation mark: the shell will say so
        words = command.split()
    directory, simple = "", list[str]()
    for before, word in pairwise(["", *words, "\n"]):
        if not set(word) <= set(_OPERATORS):
            simple += [] if set(before) & set("<>") else [word]
            continue
        if set(word) & set("<>"):
            continue  # what follows is read or written by the program before it
        match simple:
            case ["cd", where, *_]:
                directory = join(directory, where)
            case _:
                yield from _calls_of_simple(directory, simple)
        simple = []


def _calls_of_simple(directory: str, words: Sequence[str]) -> Iterator[Call]:
    call = Call(directory, tuple(_without_wrappers(words)))
    yield call
    if SHELLS.fullmatch(call.program) and "-c" in call.words[1:-1]:
        for inner in calls_of(call.words[call.words.index("-c", 1) + 1]):
            yield Call(join(directory, inner.directory), inner.words)


def _of_simple(words: Sequence[str]) -> Iterator[str]:
    """Of one program with its arguments."""
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if name in SETTINGS:
            yield value if equals else following
    program, *arguments = words or [""]
    yield program
    if program in (".", "source"):
        yield from arguments[:1]
    elif SHELLS.fullmatch(basename(program)) and "-c" in arguments[:-1]:
        return
    elif SHELLS.fullmatch(basename(program)) or INTERPRETERS.fullmatch(basename(program)):
        yield from _interpreted(arguments)


def _without_wrappers(words: Sequence[str]) -> list[str]:
    rest, wrapped = list(words), False
    while rest and rest[0] in _KEYWORDS:
        del rest[0]
    while rest and (
        _ASSIGNMENT.fullmatch(rest[0]) or rest[0] in WRAPPERS or (wrapped and _OF_WRAPPERS.fullmatch(rest[0]))
    ):
        wrapped = wrapped or rest[0] in WRAPPERS
        del rest[0]
    return rest


def _interpreted(arguments: Sequence[str]) -> Iterator[str]:
    """The script or the module that an interpreter is given."""
    for argument, following in pairwise([*arguments, ""]):
        if argument == "-m":
            path = following.replace(".", "/")
            yield from (f"{path}.py", f"{path}/__main__.py")
            return
        if not argument.startswith("-"):
            yield argument
            return
