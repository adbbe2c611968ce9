"""What a person sees while a run goes on, and the one place where it is chosen.

Must not know what is printed before and after a run; that is the report's business (`one_run`).
"""

import sys
from collections.abc import Mapping

import anyio

from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.output import print_error, print_line
from massgen_mcp.events import LogRecord
from massgen_mcp.runs.execute import RunHandle
from massgen_mcp.views.log_text import log_line


class Display:
    """Shows nothing. Everything here is called in the run's own event loop; nothing may block it."""

    def started(self, run: RunHandle) -> None:
        """The run begins; `run.state` is always up to date."""

    def record(self, record: LogRecord) -> None:
        """Something happened."""

    async def refresh(self) -> None:
        """Runs beside the run and is cancelled when it has ended: for clocks and keys."""
        await anyio.sleep_forever()

    def close(self) -> None:
        """The run has ended, well or not. Leaves the terminal as it was."""


class PlainLines(Display):
    """One line per event that a person following a run wants to read: for pipes and files."""

    def record(self, record: LogRecord) -> None:
        if line := log_line(record, debug=False):
            print_line(line)


class DebugLines(Display):
    """Every line of the log on standard error, so that standard output stays what it is."""

    def record(self, record: LogRecord) -> None:
        if line := log_line(record):
            print_error(line)


def person_at_terminal(environ: Mapping[str, str]) -> bool:
    """Whether somebody sits at a terminal that can do more than print lines."""
    if environ.get("TERM", "dumb") in ("dumb", "unknown", "") or environ.get("CI"):
        return False
    return sys.stdin.isatty() and sys.stdout.isatty()


def shown_live(options: Options, environ: Mapping[str, str]) -> bool:
    """Whether somebody follows the run on a terminal, and may say something to it."""
    return not (options.debug or options.automation or options.no_display) and person_at_terminal(environ)


def choose_display(options: Options, environ: Mapping[str, str]) -> Display:
    """The display for this command line and this standard output."""
    if shown_live(options, environ):
        from massgen_mcp.cli.massgen.live import LiveView  # a terminal library, for terminals only
        from massgen_mcp.cli.massgen.terminal import Terminal

        return LiveView(Terminal(environ))
    if options.debug:
        return DebugLines()
    return Display() if options.automation or options.no_display else PlainLines()
