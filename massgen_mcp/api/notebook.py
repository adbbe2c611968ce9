"""A run in a notebook: its words while it works, and its result as a cell shows it.

Must not import IPython, which is there only where a notebook has loaded it. Everything that a model wrote is shown as
text or as Markdown without HTML and images: nothing of it runs, and nothing is fetched.
"""

import sys
from collections.abc import Iterable
from dataclasses import replace
from html import escape
from importlib import import_module
from typing import Any

from massgen_mcp.events.record import LogRecord
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.ending import RemainingFiles, ending_lines, outcome_line
from massgen_mcp.views.event_lines import spoken_line
from massgen_mcp.views.firmness import cautions
from massgen_mcp.views.plain_text import plain
from massgen_mcp.views.styled import text_of, wrap

_LINES = 12
"""Of what happened, while the run works."""
_WIDTH = 80


class NotebookResult(dict[str, Any]):
    """The dictionary that `run` promises, and how a notebook draws it."""

    def __init__(self, fields: dict[str, Any], html: str) -> None:
        super().__init__(fields)
        self._html = html

    def _repr_html_(self) -> str:
        return self._html


class Notebook:
    """Where a cell waits for a run. Everything here is called in the run's own event loop."""

    def __init__(self) -> None:
        self._run = RunState()
        self._lines: list[str] = []
        self._handle: Any = None

    def record(self, record: LogRecord) -> None:
        """Something happened."""
        self._run.apply(record)
        if line := spoken_line(record, self._run):
            self._lines += wrap(line, _WIDTH, indent=6)
            self._show(self._lines[-_LINES:])

    def result(self, fields: dict[str, Any], run: RunState, kept: RemainingFiles) -> NotebookResult:
        """The run has ended; of what happened there remains how."""
        self._show([text_of(outcome_line(run))])
        return NotebookResult(fields, _html(run, kept))

    def _show(self, lines: Iterable[str]) -> None:
        text = "\n".join(lines)
        shown = {"text/plain": text, "text/html": f"<pre>{escape(text)}</pre>"}
        if self._handle is None:
            self._handle = import_module("IPython.display").display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def this_notebook() -> Notebook | None:
    """None: no cell of a notebook calls us, but a program, or a person in a terminal."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return None
    return Notebook()


def _html(run: RunState, kept: RemainingFiles) -> str:
    from massgen_mcp.views.markdown import parser  # it brings what draws on terminals, too

    warnings = "".join(f"<p><em>{escape(plain(one))}</em></p>" for one in cautions(run))
    answer = parser().render(run.best_answer or "")
    ending = escape("\n".join(plain(text_of(line)) for line in ending_lines(run, replace(kept, report=None), _WIDTH)))
    page = ""
    if kept.report is not None:  # many browsers open no file from a page of a server, so its path is there to copy
        address, path = escape(kept.report.as_uri()), escape(plain(str(kept.report)))
        page = f'<p>The run as a page: <a href="{address}" target="_blank">{path}</a></p>'
    return f"<p><b>{escape(plain(text_of(outcome_line(run))))}</b></p>{warnings}{answer}<hr><pre>{ending}</pre>{page}"
