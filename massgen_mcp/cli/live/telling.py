"""What a person is told before and after a run: on a terminal in colours, elsewhere as plain sentences. Whoever looks
elsewhere meanwhile hears of its end by the terminal's bell and title, and a notice on the desktop where it shows one.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from massgen_mcp.cli.output import print_lines, print_text, send_to_terminal
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.views.ending import RemainingFiles, ending_lines, outcome_line
from massgen_mcp.views.firmness import cautions
from massgen_mcp.views.plain_text import plain, preview
from massgen_mcp.views.styled import Line, Span, text_of, wrap

if TYPE_CHECKING:
    from massgen_mcp.cli.live.terminal import Terminal  # a terminal library, for terminals only


_UNBROKEN = 10_000
"""Columns where there is no terminal: whoever shows a sentence breaks it, a screen reader reads it as it is."""
_SIGNS = "★☆✗≠✓•! "


def kept_of(run: RunState, directory: RunFiles, *, copy: Path | None = None, listed: bool = True) -> RemainingFiles:
    """What is left of a run in its directory."""
    answer = directory.final_of(run.answered_by) / "answer.txt" if run.answered_by and not run.unkept else None
    return RemainingFiles(directory.path, answer, copy, directory.report, listed=listed)


def open_terminal(*, wanted: bool) -> "Terminal | None":
    """Return the terminal that a person sees, if one is wanted. Only then its library is imported."""
    if not wanted:
        return None
    from massgen_mcp.cli.live.terminal import Terminal

    return Terminal(os.environ)


def print_styled(lines: Sequence[Line], terminal: "Terminal | None") -> None:
    if terminal is None:
        print_lines(map(text_of, lines))
    else:
        terminal.print(lines)


class Telling:
    """`say` prints one sentence where there is no terminal."""

    def __init__(self, terminal: "Terminal | None", say: Callable[[str], object]) -> None:
        self._terminal, self._say = terminal, say

    def aside(self, text: str) -> None:
        """A sentence beside what was asked for."""
        self._lines([(Span(part, "dim"),) for part in wrap(text, self._width, indent=2)])

    def ending(self, run: RunState, kept: RemainingFiles) -> None:
        """The answer, on standard output, and around it how the run ended. Raises as `print_text`, after the rest."""
        self.outcome(run)
        try:
            if run.best_answer is not None and self._terminal is not None:
                self._terminal.print([*self._terminal.text(run.best_answer), ()])
            elif run.best_answer is not None:
                print_text(run.best_answer)
        finally:
            self.rest(run, kept)

    def outcome(self, run: RunState) -> None:
        """How it ended, and what a reader must know before the answer."""
        warnings = [(Span(part, "busy"),) for caution in cautions(run) for part in wrap(caution, self._width)]
        self._lines([(), outcome_line(run), *warnings, ()])

    def rest(self, run: RunState, kept: RemainingFiles) -> None:
        """What led to it, its cost, and where it lies."""
        self._lines(ending_lines(run, kept, self._width))

    @property
    def _width(self) -> int:
        return self._terminal.width if self._terminal else _UNBROKEN

    def _lines(self, lines: Sequence[Line]) -> None:
        if self._terminal is not None:
            self._terminal.print(lines)
            return
        for one in lines:
            if text := text_of(one).lstrip(_SIGNS):
                self._say(text)


_QUESTION = 60
_BELL, _OSC, _ST = "\a", "\x1b]", "\x1b\\"


def draw_attention(run: RunState, environ: Mapping[str, str]) -> None:
    """Of a run that was shown live, unless it was cancelled there."""
    if run.state == "cancelled":
        return
    words = f"massgen: {run.state.replace('_', ' ')}: {preview(plain(run.question), _QUESTION)}"
    send_to_terminal(f"{_BELL}{_title(words, environ)}{_notice(words, environ)}")


def _title(words: str, environ: Mapping[str, str]) -> str:
    if environ.get("TERM") == "linux":
        return ""
    return f"{_OSC}2;{words}{_ST}"


def _notice(words: str, environ: Mapping[str, str]) -> str:
    """Each terminal has its own sequence. A multiplexer would pass none on."""
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    if environ.get("TMUX") or environ.get("STY"):
        return ""
    if term == "xterm-kitty":
        return f"{_OSC}99;;{words}{_ST}"
    if term.startswith(("rxvt-unicode", "foot")):
        return f"{_OSC}777;notify;massgen;{words.replace(';', ',')}{_ST}"
    if term == "xterm-ghostty" or program in ("iTerm.app", "WezTerm", "ghostty"):
        return f"{_OSC}9;{words}{_ST}"
    return ""
