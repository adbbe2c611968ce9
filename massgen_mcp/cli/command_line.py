"""The parser of both commands: `--help` is a manual page, a wrong command line is one line that says what was most
likely meant.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import fill
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn

from massgen_mcp import __version__
from massgen_mcp.cli.exits import EXIT_USAGE, UsageError
from massgen_mcp.nearest import did_you_mean, nearest

_PLAINER = (
    (r"(--[\w-]+)/-\w\b", r"\1"),
    (r"argument (\S+): expected (?:at least )?one argument", r"\1 needs a value"),
    (r"argument (\S+): ignored explicit argument .*", r"\1 doesn't take a value"),
    (r"argument (\S+): not allowed with argument (\S+)", r"\1 and \2 can't be used together; leave one out"),
    (r"the following arguments are required: (ID.*)", r"\1 is missing; `massgen runs` lists run IDs"),
    (r"the following arguments are required: (.*)", r"\1 is missing"),
    (r"argument (\S+: .*)", r"\1"),
)
"""What argparse says, and what we say."""
_OF_OTHERS: Mapping[str, str] = MappingProxyType(
    {
        "-n": "--num-agents",
        "-s": "--session",
        "--agents": "--num-agents",
        "--apply-changes": "--apply",
        "--base": "--branch",
        "--budget": "--max-usd",
        "--cap": "--max-usd",
        "--cost": "--max-usd",
        "--file": "--output",
        "--force": "--yes",
        "--id": "--session",
        "--limit": "--max-usd",
        "--log-level": "--debug",
        "--max-cost": "--max-usd",
        "--n": "--num-agents",
        "--no-input": "--yes",
        "--out": "--output",
        "--price": "--max-usd",
        "--provider": "--backend",
        "--results": "--output",
        "--silent": "--quiet",
        "--team": "--config",
        "--test": "--check",
        "--verbose": "--debug",
    }
)
"""Options that people know from other programs, and ours."""
_IN_CONFIG = "set it in a config, under an agent's `backend`; `massgen init` creates a config"
_PATHS = "write @path in the question, or set `context_paths: [{{path: ., permission: {}}}]` in a config"
_IN_QUOTES = 'write the question itself: massgen "your question"'
_IN_BACKGROUND = 'start a run in the background: massgen start "your question"'
_DIRECTORY = "change to the directory first: cd DIRECTORY"
_COLOURS = "set NO_COLOR=1 in the environment to turn off colours"
_NO_OPTION: Mapping[str, str] = MappingProxyType(
    {
        "--api-key": "set keys in the environment: export OPENAI_API_KEY=...",
        "--attach": "write `@path` in the question to let agents read a file",
        "--bg": _IN_BACKGROUND,
        "--color": _COLOURS,
        "--cwd": _DIRECTORY,
        "--dir": _PATHS.format("read"),
        "--file": "write `@path` in the question to let agents read a file",
        "--format": "--json prints JSON, --quiet prints only the answer",
        "--host": "use it with `massgen serve --transport http`",
        "--key": "set keys in the environment: export OPENAI_API_KEY=...",
        "--image": "massgen sends only text to models; describe the image in the question",
        "--judge": "name the judge in a config: orchestrator: {decide: judge, judge: AGENT}",
        "--max-tokens": _IN_CONFIG,
        "--no-color": _COLOURS,
        "--path": _PATHS.format("read"),
        "--prompt": _IN_QUOTES,
        "--question": _IN_QUOTES,
        "--read": _PATHS.format("read"),
        "--rounds": "limit the answers in a config: orchestrator: {max_new_answers_per_agent: 2}",
        "--seed": _IN_CONFIG,
        "--stdin": "write - in place of the question: massgen - < question.md",
        "--port": "use it with `massgen web` or `massgen serve`",
        "--stream": "in a terminal, massgen shows agents as they write; elsewhere use `massgen watch`",
        "--temperature": _IN_CONFIG,
        "--timeout": "set the time limit in a config: timeout_settings: {orchestrator_timeout_seconds: 600}",
        "--transport": "use it with `massgen serve`",
        "--wait": "massgen always waits for the answer; `massgen wait ID` waits for a run in the background",
        "--web": "`massgen web` shows runs in a browser",
        "--workdir": _DIRECTORY,
        "--write": _PATHS.format("write"),
    }
)
"""Options that people look for, and what does it here."""
_DASHES = ("\N{EM DASH}", "\N{EN DASH}", "\N{MINUS SIGN}")
"""What an editor makes of two hyphens."""


AS_IT_IS = "as it is"
"""The value of `--trust` alone: accept it, whatever it is now."""

CommandArgument = tuple[tuple[str, ...], Mapping[str, Any]]
ArgumentGroups = Mapping[str, Sequence[CommandArgument]]
"""By the heading that they have in the help; none: as argparse heads them."""


def make_pattern_type(pattern: str, expected: str) -> Callable[[str], str]:
    """Return the check of a value for `add_argument`. It raises `ArgumentTypeError`."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise argparse.ArgumentTypeError(f"expected {expected}")
        return text

    return check


trust_argument = make_pattern_type(
    rf"{AS_IT_IS}|sha256:[0-9a-f]{{64}}", "sha256: followed by 64 hexadecimal digits, or no value"
)


def argument(*names: str, **how: Any) -> CommandArgument:  # noqa: ANN401 - as argparse
    """What `add_argument` of argparse takes, for a table."""
    return names, how


class Parser(argparse.ArgumentParser):
    """`exit_code`: of a wrong command line."""

    quoted: ClassVar[str | None] = None
    """The argument that is a text of several words."""

    def __init__(self, groups: ArgumentGroups, *, exit_code: int = EXIT_USAGE, **how: Any) -> None:  # noqa: ANN401 - as argparse
        super().__init__(formatter_class=Manual, allow_abbrev=False, **how)
        self.exit_code = exit_code
        for title, arguments in groups.items():
            group = self.add_argument_group(title) if title else self
            for names, settings in arguments:
                group.add_argument(*names, **settings)

    def error(self, message: str, *, means_verb: bool = False) -> NoReturn:
        for theirs, ours in _PLAINER:
            message = re.sub(theirs, ours, message, count=1, flags=re.DOTALL)
        for action in self._actions:
            if message == f"{action.metavar} is missing" and action.choices:
                message += f"; valid values: {', '.join(map(str, action.choices))}"
            elif message.partition(" ")[0] in action.option_strings and message.endswith(" needs a value"):
                message = f"{action.option_strings[0]} needs {action.metavar or 'a value'}"
        if message.endswith(" is missing"):
            message += f": {self._format_required()}"
        raise UsageError(message, self.exit_code, means_verb=means_verb)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """As `parse_args`, with other words for what is left over."""
        known = {*_options(self)}
        end = arguments.index("--") if "--" in arguments else len(arguments)
        for word in arguments[:end]:
            if re.match("-[^-].", word) and (long := f"-{word.partition('=')[0]}") in known:
                self.error(f"unknown option {long[1:]}; did you mean {long!r}?")
        given, rest = self.parse_known_args(arguments)
        if fault := self.fault(given, rest):
            self.error(fault)
        return given

    def fault(self, given: argparse.Namespace, rest: Sequence[str]) -> str | None:
        """What is wrong with the words that are left over; None: nothing."""
        unknown = [word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"]
        if unknown:
            return f"unknown option {unknown[0]}{self._instead(unknown[0], list(_options(self)))}"
        if rest and self.quoted is not None:
            import shlex  # a right command line needs none of it

            words = [getattr(given, self.quoted), *rest]
            if dashed := next((word for word in words if word.startswith(_DASHES)), None):
                option = dashed.lstrip("".join(_DASHES))
                return f"{dashed} starts with a long dash; options start with two hyphens: --{option}"
            return f"put the question in quotation marks: {self.prog} {shlex.quote(' '.join(words))}"
        if rest:
            return f"unexpected arguments: {' '.join(rest)}; {self._help_command} shows the valid ones"
        return None

    @property
    def _help_command(self) -> str:
        return f"`massgen help {self.prog.partition(' ')[2] or 'ask'}`"

    def _instead(self, unknown: str, known: Sequence[str]) -> str:
        """What was meant by an option that there is not, as far as can be said."""
        if unknown in _NO_OPTION and self.quoted:
            return f"; {_NO_OPTION[unknown]}"
        meant = [option for option in known if option.startswith(unknown) or option == _OF_OTHERS.get(unknown)]
        near = nearest(unknown.lstrip("-"), [option.lstrip("-") for option in known])
        if meant or near:
            return f"; did you mean {meant[-1] if meant else f'--{near}'!r}?"
        if self.quoted and not unknown.startswith("--"):
            return f"; put -- before a question that starts with -: {self.prog} -- '-...'"
        return f"; {self._help_command} lists its options"

    def _format_required(self) -> str:
        """Return the command with its required arguments."""
        words = [self.prog]
        for action in self._actions:
            if action.required:
                words += [*action.option_strings[:1], str(action.metavar)]
        return " ".join(words)

    def _get_value(self, action: argparse.Action, arg_string: str) -> object:
        """argparse's own, without an empty value of an option, as of a variable of the shell that is not set."""
        if action.option_strings and not arg_string:
            raise argparse.ArgumentError(action, "the value is empty")
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """argparse's own check of a choice, with the nearest one in its words."""
        choices = [str(choice) for choice in action.choices or ()]
        if action.choices is not None and value not in action.choices:
            near = did_you_mean(str(value), choices)
            hint = near or f"; valid values: {', '.join(choices)}"
            error = argparse.ArgumentError(action, f"unknown value {str(value)[:80]!r}{hint}")
            if near:
                self.error(str(error), means_verb=True)
            raise error


def whole_number(text: str) -> int:
    if text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError("expected a whole number, 0 or greater")


def counting_number(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 1 <= number <= 1000:
        raise argparse.ArgumentTypeError("expected a number from 1 to 1000")
    return number


def describe_arguments(parser: argparse.ArgumentParser) -> str:
    """Return the names of all arguments that the help shows, on one line."""
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS and action.dest != "help"]  # noqa: SLF001 - as below
    return " ".join("|".join(action.option_strings) or str(action.metavar) for action in shown)


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:  # noqa: SLF001 - argparse tells them in no other way
        yield from (option for option in action.option_strings if option.startswith("--"))


WIDEST_TERM = 24
"""A longer term stands on a line of its own, its text below it."""
DEEP = " " * 8
NARROWEST = 20
_TERM = re.compile(r"( +\S.*?  +)(\S.*)")


class Manual(argparse.HelpFormatter):
    """Wraps paragraphs at the terminal's width; indented lines stay, and `  term  text` hangs under its text."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(_wrapped(line, width, indent) for line in text.strip("\n").splitlines())


def _wrapped(line: str, width: int, indent: str) -> str:
    if term := _TERM.fullmatch(line):
        head, text = indent + term[1], term[2]
        if len(head) > WIDEST_TERM:
            return f"{head.rstrip()}\n{_filled(text, width, indent + DEEP)}"
        return head + _filled(text, width, " " * len(head)).lstrip()
    return indent + line if line.startswith(" ") or not line else _filled(line, width, indent)


def _filled(text: str, width: int, indent: str) -> str:
    width = max(width, len(indent) + NARROWEST)
    return fill(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


PROGRAMS = ["massgen", "massgen-mcp"]


class PrintCompletion(argparse.Action):
    """`--completion SHELL`: print what the shell has to evaluate, and exit."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002 - argparse's signature
        values: str | Sequence[object] | None,
        option_string: str | None = None,  # noqa: ARG002 - argparse's signature
    ) -> None:
        from argcomplete.shell_integration import shellcode

        sys.stdout.write(shellcode(PROGRAMS, shell=str(values)))
        parser.exit(0)


OF_EVERY_PROGRAM = (
    argument("--version", action="version", version=__version__),
    argument(
        "--completion",
        action=PrintCompletion,
        choices=("bash", "zsh", "fish"),
        help="print the completion script for your shell",
    ),
)
