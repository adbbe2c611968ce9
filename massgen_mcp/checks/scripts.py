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
INTERPRETERS = re.compile(
    r"python[\d.]*|pypy[\d.]*|node|deno|bun|tsx|ts-node|ruby|perl|php|Rscript|lua|bats|expect|coverage"
)
SETTINGS = ("--config", "--config-file", "--configuration", "--file", "--makefile", "--project", "--rcfile")
"""Options of whatever program whose value is a file with settings."""
SHORT_SETTINGS = {
    "-c": "bandit c8 commitlint coverage eslint golangci-lint jest nose2 nyc phpstan phpunit prettier psalm py.test"
    " pytest rollup rubocop stylelint tox vitest webpack yamllint",
    "-f": "ant awk compose docker-compose gawk gmake just make mawk mvn nawk ninja nox phing psql rake sed",
}
"""The same for these programs alone: with others it is the `-c file.c` of a compiler, or the `-f` of `test`."""
WRAPPERS = {
    "env": "-u --unset -C --chdir",
    "nice": "-n --adjustment",
    "ionice": "-c -n --class --classdata",
    "stdbuf": "-i -o -e --input --output --error",
    "sudo": "-u -g --user --group",
    "time": "-f -o --format --output",
    "timeout": "-k -s --kill-after --signal",
    "uv": "--with --python -p --extra --group --package --project --directory",
    "xvfb-run": "-n -s -e -f --server-num --server-args",
    "npx": "-p --package",
    **dict.fromkeys(("builtin", "bundle", "command", "exec", "nohup", "setsid", "unbuffer", "winpty"), ""),
    **dict.fromkeys(("hatch", "pdm", "pipenv", "poetry", "rye"), ""),
}
"""Programs that run another one, which is among their arguments, each with those of its options that take a value."""
_VALUED = {
    "coverage": "--source --rcfile --include --omit --context --data-file --concurrency",
    "node": "-r --require --import --loader --experimental-loader -C --conditions --env-file --test-reporter",
    "perl": "-I",
    "php": "-d -c",
    "py": "-X -W",
    "ruby": "-I -r -C -E",
}
"""Options of interpreters that take a value, by what the name of the interpreter begins with."""
_LOADING = ("-r", "--require", "--import", "--loader", "--experimental-loader")
"""Options of these whose value is run as well."""
_COMMAND_FLAG = re.compile(r"-[A-Za-z]*c")
_SHELL_VALUED = re.compile(r"[-+][A-Za-z]*[oO]|--rcfile|--init-file")
_OF_WRAPPERS = re.compile(r"-.*|run|[\d.]+[smhd]?")
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_SUBCOMMANDS = {("bun", "run"), ("coverage", "run"), ("deno", "run")}
_OPERATORS = "();<>|&\n"
_KEYWORDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{"})
_LEADING_VARIABLE = re.compile(r"\$(?:\w+|\{[^{}]*\}|\([^()]*\))/")
_VARIABLE = re.compile(r"\$\{?(\w+)(?::-[^}]*)?\}?")


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """A program with its arguments, without what only runs it. `directory`: where, from where the command begins."""

    directory: str
    words: tuple[str, ...]

    @property
    def program(self) -> str:
        return _program(self.words)

    def scripts(self) -> Iterator[str]:
        """Relative paths, as seen from where the command begins."""
        return (normpath(join(self.directory, _LEADING_VARIABLE.sub("", name))) for name in _of_simple(self.words))


def calls_of(command: str) -> Iterator[ProgramCall]:
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


def _calls_of_simple(directory: str, words: Sequence[str]) -> Iterator[ProgramCall]:
    call = ProgramCall(directory, tuple(_without_wrappers(words)))
    yield call
    if (given := _given_to_shell(call.words)) is not None:
        for inner in calls_of(given):
            yield ProgramCall(join(directory, inner.directory), inner.words)


def _program(words: Sequence[str]) -> str:
    """The name of the program; one in a variable is taken for what the variable is named after: `"$PYTHON" x.py`."""
    name = basename(words[0]) if words else ""
    variable = _VARIABLE.fullmatch(words[0]) if words else None
    parts = variable[1].lower().split("_") if variable else []
    usual = ("python" if part == "py" else part for part in parts)
    return next((part for part in usual if INTERPRETERS.fullmatch(part) or SHELLS.fullmatch(part)), name)


def _given_to_shell(words: Sequence[str]) -> str | None:
    """The command that a shell is given: `bash -lc COMMAND`. None: the program is no shell, or is given a script."""
    if not SHELLS.fullmatch(_program(words)):
        return None
    arguments, wanted = iter(words[1:]), False
    for argument in arguments:
        if _SHELL_VALUED.fullmatch(argument):
            next(arguments, None)
        elif argument[:1] not in ("-", "+"):
            return argument if wanted else None
        wanted = wanted or _COMMAND_FLAG.fullmatch(argument) is not None
    return None


def _of_simple(words: Sequence[str]) -> Iterator[str]:
    """Of one program with its arguments."""
    programs = set[str]()
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if name in SETTINGS or not programs.isdisjoint(SHORT_SETTINGS.get(name, "").split()):
            yield value if equals else following
        programs.add(basename(word))  # also a module after `python -m`
    program, *arguments = words or [""]
    yield program
    if program in (".", "source"):
        yield from arguments[:1]
    elif _given_to_shell(words) is not None:
        return
    elif SHELLS.fullmatch(_program(words)) or INTERPRETERS.fullmatch(_program(words)):
        yield from _interpreted(_program(words), arguments)


def _without_wrappers(words: Sequence[str]) -> list[str]:
    rest, valued = list(words), None
    while rest and rest[0] in _KEYWORDS:
        del rest[0]
    while rest:
        name = rest[0].removeprefix("/usr/bin/")
        if name in WRAPPERS:
            valued = WRAPPERS[name].split()
        elif valued is not None and rest[0] in valued:
            del rest[:1]
        elif not _ASSIGNMENT.fullmatch(rest[0]) and (valued is None or not _OF_WRAPPERS.fullmatch(rest[0])):
            break
        del rest[:1]
    return rest


def _interpreted(program: str, arguments: Sequence[str]) -> Iterator[str]:
    """The script or the module that an interpreter is given, and what it loads before."""
    pending = [*arguments]
    while pending:
        argument = pending.pop(0)
        valued = next((options.split() for name, options in _VALUED.items() if program.startswith(name)), ())
        if argument == "-m" and pending[:1] == ["coverage"]:
            program = pending.pop(0)
        elif argument == "-m":
            path = "".join(pending[:1]).replace(".", "/")
            yield from (f"{path}.py", f"{path}/__main__.py")
            return
        elif argument in valued or (SHELLS.fullmatch(program) and _SHELL_VALUED.fullmatch(argument)):
            yield from pending[:1] if argument in _LOADING else ()
            del pending[:1]
        elif not argument.startswith(("-", "+")) and (program, argument) not in _SUBCOMMANDS:
            yield argument
            return
