"""What `--automation` prints: few stable lines for programs. A contract: docs/cli.md has each of them."""

from massgen_mcp.cli.massgen.applying import ApplyLine
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.output import print_error, print_line
from massgen_mcp.config.models.config import Config
from massgen_mcp.events.parts import public_agent_name
from massgen_mcp.events.run import RunFailed, RunTimedOut
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.host.foreground_run import ForegroundRun
from massgen_mcp.views.checks import check_notes
from massgen_mcp.views.firmness import dissent, firmness, why_weak
from massgen_mcp.views.plain_text import preview
from massgen_mcp.views.spent import money_notes, spent_text

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
        print_line(f"LOG_DIR: {run.directory.path}")
        print_line(f"STATUS: {run.directory.status}")
        print_line(f"AGENTS: {_members(config)}")
        print_line(f"QUESTION: {preview(question)}")
        print_line("[Coordination in progress - monitor status.json for real-time updates]")
        print_line(f"TEAM: {team}")
        for note in notes:
            print_line(f"NOTE: {note}")
        self._announced = OPENING_LINES + len(notes)

    def aside(self, text: str) -> None:
        """What is no line of the contract."""
        print_error(text)

    def end(self, run: RunState, made: ForegroundRun, applied: list[ApplyLine]) -> None:
        """Warnings, then the lines from the winner on."""
        (*closing, last) = self._closing(run, made.directory)
        closing += [*(outcome.text for outcome in applied), last]
        notes = [made.note] if made.note else []
        for warning in [*notes, *_warnings(run, MAX_LINES - self._announced - len(closing) - len(notes))]:
            print_line(f"WARNING: {warning}")
        for line in closing:
            print_line(line)

    def _closing(self, run: RunState, directory: RunFiles) -> list[str]:
        seconds = run.elapsed(run.updated_at or 0.0)
        lines = [f"WINNER: {run.answered_by}"] if run.answered_by else []
        weak = ", ".join(firmness(run).weak)
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
                return [*lines, f"COMPLETED: {len(run.agents) - len(run.dropped)} agents, {seconds:.1f}s total"]
            case "timed_out":
                return [*lines, f"TIMED_OUT: {_cause(run)}"]
            case "cancelled":
                return [*lines, "CANCELLED: interrupted"]
            case _:
                return [*lines, f"FAILED: {_cause(run)}"]


def _members(config: Config) -> str:
    models = (agent.asked for agent in config.agents)
    return ", ".join(f"{public_agent_name(place)} ({model})" for place, model in enumerate(models))


def _warnings(run: RunState, limit: int) -> list[str]:
    """What went wrong on the way, in at most `limit` lines."""
    weak = why_weak(run, checks=False)
    warnings = [*weak, *filter(None, [dissent(run)])] if weak else []
    warnings += [f"{agent} was dropped ({reason}): {preview(message)}" for agent, reason, message in run.degraded]
    warnings += map(preview, run.server_losses)
    warnings += map(preview, check_notes(run))
    if run.budget_reached:  # calls of unknown price are in the line of the cost already
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
