"""The parser of both commands: a wrong command line is one line that says what was most likely meant."""

import argparse
from collections.abc import Iterator, Sequence
from typing import ClassVar, NoReturn, cast

from massgen_mcp.nearest import did_you_mean


class Parser(argparse.ArgumentParser):
    exit_code: ClassVar[int]
    """Of a wrong command line."""
    quoted: ClassVar[str | None] = None
    """The argument that is a text of several words."""

    def error(self, message: str) -> NoReturn:
        self.exit(self.exit_code, f"ERROR invalid_arguments: {message}\n`{self.prog} --help` shows what there is.\n")

    def parse(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """As `parse_args`, with other words for what is left over."""
        given, rest = self.parse_known_args(arguments)
        if rest:
            self.error(self._about(rest, given))
        return given

    def _about(self, rest: Sequence[str], given: argparse.Namespace) -> str:
        unknown = [word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"]
        if unknown:
            return f"there is no option {unknown[0]}{did_you_mean(unknown[0], _options(self))}"
        if self.quoted is not None:
            import shlex  # a right command line needs none of it

            text = shlex.quote(" ".join([getattr(given, self.quoted), *rest]))
            return f"a question of several words has to be quoted: {self.prog} {text}"
        return f"there is no place for {' '.join(rest)}"

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """argparse's own check of a choice, with the nearest one in its words."""
        choices = [str(choice) for choice in action.choices or ()]
        if action.choices is not None and value not in action.choices:
            hint = did_you_mean(str(value), choices) or f"; there are: {', '.join(choices)}"
            raise argparse.ArgumentError(action, f"there is no {str(value)[:80]!r}{hint}")


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Of the parser and of those of its verbs."""
    for action in parser._actions:  # noqa: SLF001 - argparse tells them in no other way
        yield from (option for option in action.option_strings if option.startswith("--"))
        choices: object = action.choices
        for verb in cast("dict[str, object]", choices).values() if isinstance(choices, dict) else ():
            if isinstance(verb, argparse.ArgumentParser):
                yield from _options(verb)
