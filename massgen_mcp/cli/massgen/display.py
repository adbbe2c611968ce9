"""Which display a command line gets, the log of `--debug` beside it, and its terminal, which may be closed, or wanted
back, before the run has ended: the run goes on without.
"""

import os
import signal
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from textwrap import indent
from typing import TextIO

from massgen_mcp.cli.asking import person_at_terminal
from massgen_mcp.cli.live.display import Display, Sentences
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.output import print_error
from massgen_mcp.events.agent_work import TextDelta
from massgen_mcp.events.record import LogRecord
from massgen_mcp.views.event_lines import log_line
from massgen_mcp.views.plain_text import plain_lines

DEBUG_LOG = "massgen_debug.log"


class DebugLog:
    """`massgen_debug.log`: everything that happened in a run, whole, for a person to read. Every line is plain text."""

    def __init__(self, directory: Path) -> None:
        self._file: TextIO = (directory / DEBUG_LOG).open("a", encoding="utf-8", errors="replace")

    def record(self, record: LogRecord) -> None:
        """Texts stand in full; streamed pieces are left out, because the whole reply follows them."""
        if isinstance(record.event, TextDelta):
            return
        moment = datetime.fromtimestamp(record.time, UTC).isoformat(sep=" ", timespec="milliseconds")
        lines = [f"{moment} {record.seq} {record.event.type}"]
        for name, value in record.event.model_dump(mode="json", exclude={"type"}, exclude_defaults=True).items():
            text = str(value)
            lines.append(f"    {name}:\n{indent(text, '      ')}" if "\n" in text else f"    {name}: {text}")
        self._file.writelines(plain_lines(lines))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def shown_live(options: Options, environ: Mapping[str, str]) -> bool:
    """Check whether a person follows the run on a terminal, and may say something to it."""
    quiet = options.debug or options.automation or options.no_display or options.quiet or options.plain or options.json
    return not quiet and person_at_terminal(environ)


def choose_display(options: Options, environ: Mapping[str, str], usual_time: str = "") -> Display:
    """The display for this command line and this standard output. `usual_time`: what runs of the team usually take."""
    if shown_live(options, environ):
        from massgen_mcp.cli.live.terminal import Terminal
        from massgen_mcp.cli.live.view import LiveView  # a terminal library, for terminals only

        return LiveView(Terminal(environ), usual_time=usual_time)
    if options.debug:
        return Sentences(print_error, log_line)  # standard output stays what it is
    return Display() if options.automation or options.no_display or options.quiet else Sentences(print_error)


RESUMED_AFTER = "0.3"
"""Seconds that a shell gets to notice that its job has stopped."""


class OwnTerminal:
    """The standard streams that are a terminal, as long as somebody sits there."""

    def __init__(self) -> None:
        self._streams = [number for number in range(3) if os.isatty(number)]
        self.left = False
        """From then on nothing is read or shown there, and nobody can be asked."""

    def leave(self) -> None:
        """The terminal is gone: what is written to it is thrown away."""
        self.left = True
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in self._streams:
            os.dup2(nowhere, number)
        os.close(nowhere)

    def let_shell_go_on(self) -> None:
        """The shell that waits for this process sees a job that was stopped, takes its terminal back, and the job goes
        on in the background. Where no shell waits, nothing is lost.
        """
        wake = f"sleep {RESUMED_AFTER}; kill -CONT {os.getpid()}"
        subprocess.Popen(["/bin/sh", "-c", wake], start_new_session=True, env={})  # noqa: S603 - our own number alone
        os.kill(os.getpid(), signal.SIGSTOP)

    def outlive(self) -> None:
        """Whatever the terminal still sends is of no effect."""
        if self.left:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
