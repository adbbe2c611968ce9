"""How our commands explain themselves: `--help` as a manual page that fits the terminal."""

import argparse
import re
from textwrap import fill

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
