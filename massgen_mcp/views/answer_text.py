"""A run's result as a person reads it on a terminal. Pure: text in, styled lines out; nothing of the text is lost."""

import re

from massgen_mcp.events.run import RunFailed, RunTimedOut
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.firmness import firmness, shortly
from massgen_mcp.views.plain_text import plain, preview
from massgen_mcp.views.spent import clock, spent_figures
from massgen_mcp.views.styled import Line, Span, wrap
from massgen_mcp.views.votes_text import votes_won

MAX_WIDTH = 100
"""Wider lines are hard to read."""

_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)]) +")


def as_written(text: str, width: int) -> list[Line]:
    """Markdown as it was written. Prose is broken at words; code is left to the terminal, so that it can be copied."""
    lines, fenced = list[Line](), False
    for raw in text.splitlines():
        row = plain(raw.expandtabs(4)).rstrip()
        fence = bool(_FENCE.match(row))
        fenced ^= fence
        if fence or fenced:
            lines.append((Span(row),))
        else:
            item = _ITEM.match(row)
            lines += [(Span(part),) for part in wrap(row, min(width, MAX_WIDTH), indent=len(item[0]) if item else 0)]
    return lines


def outcome_line(run: RunState) -> Line:
    """How the run ended, in a line above its answer."""
    figures = " · ".join([clock(run.elapsed(run.updated_at or 0.0)), *spent_figures(run.spent)])
    match run.state:
        case "completed":
            how, weak = _agreement(run), shortly(firmness(run).weak)
            if weak:
                return (Span(f"☆ {run.author} · weak: {weak}", "busy"), Span(f" · {how} · {figures}", "dim"))
            return (Span(f"★ {run.author}", "good"), Span(f" · {how} · {figures}", "dim"))
        case "cancelled":
            return (Span(f"Cancelled{_best(run)}", "busy"), Span(f" · {figures}", "dim"))
        case "timed_out":
            why = run.end.message if isinstance(run.end, RunTimedOut) else ""
            return (Span(plain(f"Timed out{_best(run)}: {why}"), "busy"), Span(f" · {figures}", "dim"))
        case _:
            why = f" ({run.end.reason}): {preview(run.end.message, 500)}" if isinstance(run.end, RunFailed) else ""
            best = _best(run) if run.best_answer is not None else ""
            return (Span(plain(f"✗ Failed{best}{why}"), "bad"),)


def _agreement(run: RunState) -> str:
    if run.winner is None or len(run.agents) == 1:
        return "answered"
    outcome = run.winner.outcome.replace("_", " ")
    won = votes_won(run)
    return f"{outcome}, {won}" if won else outcome


def _best(run: RunState) -> str:
    return "; there is no answer yet" if run.best_answer is None else f"; the best answer so far is {run.author}'s"
