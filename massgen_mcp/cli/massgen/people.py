"""What a person reads before and after a run: on a terminal beside the answer, in a pipe on standard error, so that
standard output has the answer and nothing else.
"""

import os

from massgen_mcp.cli.live.telling import Telling, kept_of
from massgen_mcp.cli.massgen.applying import ApplyLine
from massgen_mcp.cli.massgen.display import shown_live
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.output import print_error, print_line
from massgen_mcp.config.models.config import Config
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.host.foreground_run import ForegroundRun
from massgen_mcp.views.answer_text import outcome_line
from massgen_mcp.views.ending import RemainingFiles
from massgen_mcp.views.spent import dollars
from massgen_mcp.views.styled import text_of

_MOST_NAMED = 4
"""Agents in the line about the team."""


class Account:
    """For people, and for programs that take the answer or `--json` and leave the rest to people."""

    def __init__(self, options: Options) -> None:
        self._options = options
        terminal = None
        self._shown = shown_live(options, os.environ)
        if self._shown:
            from massgen_mcp.cli.live.terminal import Terminal  # a terminal library, for terminals only

            terminal = Terminal(os.environ)
        self._telling = Telling(terminal, _print_nothing if options.quiet else print_error)

    def begin(self, run: ForegroundRun, question: str, config: Config, team: str, notes: list[str]) -> None:  # noqa: ARG002 - as of `Lines`
        """The team in one line: who, from where and what it reaches (`team`), and what it may cost at most; then what a
        person should know of the config (`notes`).
        """
        self.aside(f"Team: {_members(config)}; {team}; {at_most(config)}")
        for note in notes:
            self.aside(f"Note: {note}")
        if self._shown:
            self.aside(way_back(run))

    def aside(self, text: str) -> None:
        """Something that a person should know."""
        self._telling.aside(text)

    def end(self, run: RunState, made: ForegroundRun, applied: list[ApplyLine]) -> None:
        """The answer, and around it how the run ended. `applied`: what became of the files that it changed."""
        self._ending(run, made)
        for outcome in applied:
            if not self._options.quiet:
                self.aside(outcome.text)
            elif outcome.matters:
                print_error(outcome.text)

    def _ending(self, run: RunState, made: ForegroundRun) -> None:
        if made.note:
            self.aside(f"Note: {made.note}")
        if self._options.json:
            from massgen_mcp.server.results import whole_result  # with the MCP SDK, for this form alone
            from massgen_mcp.server.results.reply import as_json

            print_line(as_json(whole_result(made.view(run), "summary", None).structured()))
            return
        if self._options.quiet and run.answered_by is None:
            print_error(text_of(outcome_line(run)))
        copy = self._options.output_file.absolute() if self._options.output_file and run.best_answer else None
        lost = self._options.no_logs
        kept = RemainingFiles(copy=copy) if lost else kept_of(run, made.directory, copy=copy, listed=made.listed)
        self._telling.ending(run, kept)


def way_back(run: ForegroundRun) -> str:
    """How one comes back to a run that is shown live."""
    if not run.listed:
        return "It ends if this terminal is closed, because nothing of it is kept."
    return f"It goes on if you close this terminal, or press d: massgen-mcp watch {run.run_id}"


def _members(config: Config) -> str:
    names = [f"{agent.id} ({agent.asked})" for agent in config.agents]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def at_most(config: Config) -> str:
    """What a run may take at most."""
    seconds = config.timeout_settings.orchestrator_timeout_seconds
    time = f"{seconds / 60:.3g} minutes" if seconds > 60 else f"{seconds:g} seconds"
    return f"at most {dollars(config.budget.max_usd)} and {time}"


def _print_nothing(_: str) -> None:
    """With --quiet."""
