"""Questions to a person at a terminal, one line each, answered with Enter. Works with screen readers and slow lines.

A prompt is short, because a line editor needs the rest of the line; what it is about is said before it.

Ctrl-C and the end of input leave a dialogue as `KeyboardInterrupt`.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module

from massgen_mcp.cli.output import print_line, print_lines


def on_terminal() -> bool:
    """Check whether a person is there to answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def person_at_terminal(environ: Mapping[str, str]) -> bool:
    """Check whether a person sits at a terminal that can do more than print lines."""
    if environ.get("TERM", "dumb") in ("dumb", "unknown", "") or environ.get("CI"):
        return False
    return on_terminal()


def ask(question: str, default: str = "") -> str:
    """The answer, or `default` for an empty one."""
    with suppress(ImportError):
        import_module("readline")  # lets a person edit the line, where there is one
    hint = f" [{default}]" if default else ""
    try:
        return input(f"{question}{hint}: ").strip() or default
    except EOFError:
        print_line()
        raise KeyboardInterrupt from None


def confirm(question: str, *, default: bool) -> bool:
    while True:
        match ask(f"{question} (y/n)", "y" if default else "n").lower():
            case "y" | "yes":
                return True
            case "n" | "no":
                return False
            case _:
                print_line("Type y or n.")


def choose(question: str, choices: Sequence[str], default: int = 0) -> int:
    """The place of one of `choices`, picked by its number or by a part of its text that only it has."""
    print_lines(f"  {number:>2}. {choice}" for number, choice in enumerate(choices, start=1))
    while True:
        answer = ask(question, str(default + 1))
        if answer.isdecimal() and 1 <= int(answer) <= len(choices):
            return int(answer) - 1
        fitting = [place for place, choice in enumerate(choices) if answer.lower() in choice.lower()]
        if len(fitting) == 1 and not answer.isdecimal():
            return fitting[0]
        print_line(f"Type a number from 1 to {len(choices)}, or part of an option.")
