"""Tells a person who looks elsewhere meanwhile that a run has ended: the terminal's bell and title, and a notice on the
desktop where the terminal is known to show one.
"""

from collections.abc import Mapping

from massgen_mcp.cli.output import send_to_terminal
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.plain_text import plain, preview

_QUESTION = 60
_BELL, _OSC, _ST = "\a", "\x1b]", "\x1b\\"


def draw_attention(run: RunState, environ: Mapping[str, str]) -> None:
    """Of a run that was shown live, unless it was cancelled there."""
    if run.state == "cancelled":
        return
    words = f"massgen: {run.state.replace('_', ' ')}: {preview(plain(run.question), _QUESTION)}"
    send_to_terminal(f"{_BELL}{_title(words, environ)}{_notice(words, environ)}")


def _title(words: str, environ: Mapping[str, str]) -> str:
    return "" if environ.get("TERM") == "linux" else f"{_OSC}2;{words}{_ST}"


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
