"""The parser of both commands: a wrong command line is one line that says what was most likely meant."""

import argparse
from collections.abc import Iterator, Sequence
from typing import ClassVar, NoReturn, cast

from massgen_mcp.nearest import did_you_mean

_PLAINER = (
    (r"argument (\S+): expected (?:at least )?one argument", r"\1 needs a value"),
    (r"argument (\S+): ignored explicit argument .*", r"\1 takes no value"),
    (r"argument (\S+): not allowed with argument (\S+)", r"\1 does not go with \2"),
    (r"the following arguments are required: (ID.*)", r"needs \1; `massgen-mcp runs` lists the ids of runs"),
    (r"the following arguments are required: (.*)", r"\1 is missing"),
    (r"argument (\S+: .*)", r"\1"),
)
"""What argparse says, and what we say."""


class Parser(argparse.ArgumentParser):
    exit_code: ClassVar[int]
    """Of a wrong command line."""
    quoted: ClassVar[str | None] = None
    """The argument that is a text of several words."""

    def error(self, message: str) -> NoReturn:
        import re  # a right command line needs none of it

        for theirs, ours in _PLAINER:
            message = re.sub(theirs, ours, message, count=1, flags=re.DOTALL)
        self.exit(self.exit_code, f"ERROR invalid_arguments: {message}\n`{self.prog} --help` shows what there is.\n")

    def parse(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """As `parse_args`, with other words for what is left over."""
        given, rest = self.parse_known_args(arguments)
        if fault := self.fault(given, rest):
            self.of_verb(given).error(fault)
        return given

    def of_verb(self, given: argparse.Namespace) -> "Parser":
        """The parser of the verb that was given; this one where there is none."""
        verbs = next((action for action in self._actions if isinstance(action.choices, dict)), None)
        return cast("dict[str, Parser]", verbs.choices).get(getattr(given, verbs.dest), self) if verbs else self

    def fault(self, given: argparse.Namespace, rest: Sequence[str]) -> str | None:
        """What is wrong with the words that are left over; None: nothing."""
        parser = self.of_verb(given)
        unknown = [word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"]
        if unknown and parser is not self and unknown[0] in _options(parser):
            return f"{unknown[0]} goes after the verb: {parser.prog} {unknown[0]}"
        if unknown:
            beginning = [option for option in _options(parser) if option.startswith(unknown[0])]
            near = f"; did you mean {beginning[0]!r}?" if beginning else did_you_mean(unknown[0], _options(parser))
            behind = f"; a question that begins with - goes after --: {self.prog} -- '-...'" if self.quoted else ""
            return f"there is no option {unknown[0]}{near or behind}"
        if rest and self.quoted is not None:
            import shlex  # a right command line needs none of it

            text = shlex.quote(" ".join([getattr(given, self.quoted), *rest]))
            return f"a question of several words has to be quoted: {self.prog} {text}"
        return f"there is no place for {' '.join(rest)}" if rest else None

    def _get_value(self, action: argparse.Action, arg_string: str) -> object:
        """argparse's own, without an empty value of an option, as of a variable of the shell that is not set."""
        if action.option_strings and not arg_string:
            raise argparse.ArgumentError(action, "the value is empty")
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """argparse's own check of a choice, with the nearest one in its words."""
        choices = [str(choice) for choice in action.choices or ()]
        if action.choices is not None and value not in action.choices:
            hint = did_you_mean(str(value), choices) or f"; there are: {', '.join(choices)}"
            raise argparse.ArgumentError(action, f"there is no {str(value)[:80]!r}{hint}")


def whole_number(text: str) -> int:
    if text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError("expected a whole number")


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:  # noqa: SLF001 - argparse tells them in no other way
        yield from (option for option in action.option_strings if option.startswith("--"))
