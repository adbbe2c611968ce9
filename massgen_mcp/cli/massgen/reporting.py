"""What is printed before and after a run: for people beside the answer, in a pipe on standard error, so that standard
output has the answer and nothing else; with `--automation` a few stable lines for programs (docs/cli.md has each).
"""

import os

from massgen_mcp.cli.live.telling import Telling, kept_of, open_terminal
from massgen_mcp.cli.massgen.applying import ApplyLine
from massgen_mcp.cli.massgen.display import shown_live
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.output import print_error, print_line, print_lines
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.parts import public_agent_name
from massgen_mcp.events.run import RunFailed, RunTimedOut
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.host.foreground_run import ForegroundRun
from massgen_mcp.views.checks import check_notes
from massgen_mcp.views.ending import RemainingFiles, describe_loss, list_replacement_notes, outcome_line
from massgen_mcp.views.firmness import list_limits, why_weak
from massgen_mcp.views.outcome import describe_dissent
from massgen_mcp.views.plain_text import preview
from massgen_mcp.views.spent import dollars, money_notes, spent_text
from massgen_mcp.views.styled import text_of

_MOST_NAMED = 4
"""Agents in the line about the team."""


class Account:
    """For people, and for programs that take the answer or `--json` and leave the rest to people."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._shown = shown_live(options, os.environ)
        self._telling = Telling(open_terminal(wanted=self._shown), (lambda _: None) if options.quiet else print_error)

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
            from massgen_mcp.server.results import render_result, whole_result  # with the MCP SDK, for this form alone

            view = made.view(run)
            print_line(render_result(view, whole_result(view, "summary", None)))
            return
        if self._options.quiet and not run.work_done.succeeded:
            print_error(text_of(outcome_line(run)))
        copy = self._options.output_file.absolute() if self._options.output_file and run.best_answer else None
        lost = self._options.no_logs
        kept = RemainingFiles(copy=copy) if lost else kept_of(run, made.directory, copy=copy, listed=made.listed)
        self._telling.ending(run, kept)


def way_back(run: ForegroundRun) -> str:
    """Say how to come back to a run that is shown live."""
    if not run.listed:
        return "The run ends if you close this terminal, because --no-logs keeps no record of it."
    return f"Press d to leave; the run continues. To follow it: massgen watch {run.run_id}"


def _members(config: Config) -> str:
    names = [f"{agent.id} ({agent.models})" for agent in config.agents]
    more = ""
    if len(names) > _MOST_NAMED:
        more = f" and {len(names) - _MOST_NAMED} more"
    return ", ".join(names[:_MOST_NAMED]) + more


def at_most(config: Config) -> str:
    """Name the most that a run may take."""
    seconds = config.timeout_settings.orchestrator_timeout_seconds
    time = f"{seconds / 60:.3g} minutes" if seconds > 60 else f"{seconds:g} seconds"
    return f"at most {dollars(config.budget.max_usd)} and {time}"


MAX_LINES = 20
"""What is printed, whatever happens."""
OPENING_LINES = 6
"""Those before the agents begin, without notes on the config."""


class Lines:
    """For programs."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._announced = OPENING_LINES

    def begin(self, run: ForegroundRun, question: str, config: Config, team: str, notes: list[str]) -> None:
        """The lines before the agents work."""
        print_lines(
            [
                f"LOG_DIR: {run.directory.path}",
                f"STATUS: {run.directory.status}",
                f"AGENTS: {_public_members(config)}",
                f"QUESTION: {preview(question)}",
                "[Coordination in progress - monitor status.json for real-time updates]",
                f"TEAM: {team}",
                *(f"NOTE: {note}" for note in notes),
            ]
        )
        self._announced = OPENING_LINES + len(notes)

    def aside(self, text: str) -> None:
        """What is no line of the contract."""
        print_error(text)

    def end(self, run: RunState, made: ForegroundRun, applied: list[ApplyLine]) -> None:
        """Warnings, then the lines from the winner on."""
        (*closing, last) = self._closing(run, made.directory)
        closing += [*(outcome.text for outcome in applied), last]
        notes = [made.note] if made.note else []
        warnings = [*notes, *_warnings(run, MAX_LINES - self._announced - len(closing) - len(notes))]
        print_lines([*(f"WARNING: {warning}" for warning in warnings), *closing])

    def _closing(self, run: RunState, directory: RunFiles) -> list[str]:
        seconds = run.elapsed(run.updated_at or 0.0)
        lines = [f"WINNER: {run.answered_by}"] if run.answered_by else []
        weak = ", ".join(run.work_done.weak)
        found = f"{run.outcome or 'none'}, {run.voted} of {len(run.agents)} voted"
        lines.append(f"OUTCOME: {found}; weak: {weak}" if weak else f"OUTCOME: {found}")
        lines.append(f"DURATION: {seconds:.1f}s")
        lines.append(f"COST: {spent_text(run.spent)}")
        if run.answered_by and not self._options.no_logs and not run.unkept:
            lines.append(f"ANSWER_FILE: {directory.final_of(run.answered_by) / 'answer.txt'}")
        if not self._options.no_logs:
            lines.append(f"REPORT: {directory.report}")
        if run.best_answer is not None:
            lines.append(f"ANSWER_PREVIEW: {preview(run.best_answer)}")
            if self._options.output_file is not None:
                lines.append(f"OUTPUT_FILE: {self._options.output_file.absolute()}")
        match run.state:
            case "completed":
                return [*lines, f"COMPLETED: {len(run.work_done.took_part)} agents, {seconds:.1f}s total"]
            case "timed_out":
                return [*lines, f"TIMED_OUT: {_cause(run)}"]
            case "cancelled":
                return [*lines, "CANCELLED: interrupted"]
            case _:
                return [*lines, f"FAILED: {_cause(run)}"]


def _public_members(config: Config) -> str:
    models = (agent.models for agent in config.agents)
    return ", ".join(f"{public_agent_name(place)} ({model})" for place, model in enumerate(models))


def _warnings(run: RunState, limit: int) -> list[str]:
    """What went wrong on the way, in at most `limit` lines."""
    weak = why_weak(run, checks=False)
    warnings = [*weak, *(f"{clause}." for clause in describe_dissent(run))] if weak else []
    warnings += list_limits(run.work_done)
    warnings += [f"{describe_loss(agent, reason)}: {preview(message)}" for agent, reason, message in run.degraded]
    warnings += map(preview, list_replacement_notes(run))
    warnings += map(preview, run.server_losses)
    warnings += map(preview, check_notes(run))
    if run.budget_reached or run.budget.spending.bounds:  # unpriced calls are in the line of the cost already
        warnings += money_notes(run)
    return warnings if len(warnings) <= limit else [*warnings[: limit - 1], f"and {len(warnings) - limit + 1} more"]


def _cause(run: RunState) -> str:
    match run.end:
        case RunFailed() as end:
            return f"{end.reason}: {preview(end.message, 500)}"
        case RunTimedOut() as end:
            return preview(end.message, 500)
        case _:
            return run.state
