"""What differs between two answers, line by line. Pure."""

import difflib

from massgen_mcp.events.coordination import AnswerSubmitted
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.names import name_answer
from massgen_mcp.views.plain_text import plain
from massgen_mcp.views.styled import Line, Span, Style, wrap

MAX_LINES = 200
_CONTEXT = 2
_STYLES: dict[str, Style] = {"+": "good", "-": "bad", "@": "dim"}


def answers_to_compare(run: RunState, one: str, other: str) -> tuple[AnswerSubmitted, AnswerSubmitted] | None:
    """The newest answers of two agents; of one agent its last two. None where there are not two."""
    first, second = run.agents[one].answers, run.agents[other].answers
    if one == other:
        return (first[-2], first[-1]) if len(first) > 1 else None
    return (first[-1], second[-1]) if first and second else None


def difference_lines(run: RunState, old: AnswerSubmitted, new: AnswerSubmitted, width: int) -> list[Line]:
    """`-` stands in front of what only `old` says, `+` in front of what only `new` says."""
    title = f"{name_answer(run, old.label)} → {name_answer(run, new.label)}"
    rows = [*difflib.unified_diff(_answer_lines(old, width), _answer_lines(new, width), n=_CONTEXT, lineterm="")][2:]
    lines: list[Line] = [(Span(f"Difference: {plain(title)}", "title"),)]
    lines += [(Span(row, _STYLES.get(row[:1], "")),) for row in rows[:MAX_LINES]]
    if len(rows) > MAX_LINES:
        lines.append((Span(f"… and {len(rows) - MAX_LINES} more lines", "dim"),))
    return lines if rows else [*lines, (Span("The two answers are identical.", "dim"),)]


def _answer_lines(answer: AnswerSubmitted, width: int) -> list[str]:
    return [part for row in answer.content.splitlines() for part in wrap(row.expandtabs(4), width - 1)]
