"""Apply the changes of a run, at its end and with consent, to the directories that it was given with `write`."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from massgen_mcp.changes.base import path_text
from massgen_mcp.changes.obstacles import Obstacle
from massgen_mcp.cli.asking import confirm, on_terminal
from massgen_mcp.cli.live.telling import open_terminal, print_styled
from massgen_mcp.cli.massgen.display import shown_live
from massgen_mcp.cli.massgen.earlier_runs import left_if_closed
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.output import print_line
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.work_done import WorkDone
from massgen_mcp.runs.host.foreground_run import ForegroundRun
from massgen_mcp.runs.patches.application import Application, application_fields
from massgen_mcp.views.plain_text import preview
from massgen_mcp.views.styled import Span, Style, line

MAX_DIFF_LINES = 400
MAX_DIFF_BYTES = 200_000
MAX_ERROR = 2000
REASONS = 3
MAX_NAMED = 300
"""Of the checks that fail."""

ApplyConsent = Literal["given", "asked", "missing"]
"""Consent to apply a run's changes: given by an option or the config, to be asked for in the terminal, or missing."""


@dataclass(frozen=True, slots=True)
class ApplyLine:
    """One line. `matters`: also printed with --quiet. `failed`: the changes were to be applied, or could not be."""

    text: str
    matters: bool
    failed: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The same for programs (see `application_fields`)."""


def can_ask(options: Options, environ: Mapping[str, str]) -> bool:
    """Tell whether a person sits at this terminal and the output is meant for people."""
    for_programs = options.automation or options.quiet or options.json
    return on_terminal() and not for_programs and not environ.get("CI")


def find_consent(options: Options, config: Config, environ: Mapping[str, str]) -> ApplyConsent:
    """Tell whether the changes of a run of this config may be applied. `config.apply` counts as consent, because a
    config that came with a directory runs only after a person has accepted that.
    """
    if options.apply or config.apply == "always" or (options.automation and config.writes_paths):
        return "given"
    return "asked" if can_ask(options, environ) else "missing"


async def apply_at_end(run: ForegroundRun, ended: RunState, options: Options, consent: ApplyConsent) -> list[ApplyLine]:
    """Apply what the run changed, if that may be applied and `consent` is there. Returns a line about it; none if there
    is nothing to apply. Never raises.
    """
    settled: list[str] = []
    try:
        outcome = await _apply_by_consent(consent, run, ended, options, settled)
    except (MassgenError, OSError) as error:
        fields = {"status": "failed", "reason": str(error)}
        outcome = replace(_not_applied(preview(str(error), MAX_ERROR)), failed=True, fields=fields)
    if outcome is None:
        return []
    await run.note_application(ended, outcome.fields)
    return [replace(outcome, text=" ".join([f"{outcome.text}.", *settled]), matters=True) if settled else outcome]


async def _apply_by_consent(
    consent: ApplyConsent, run: ForegroundRun, ended: RunState, options: Options, settled: list[str]
) -> ApplyLine | None:
    """`settled` gets what was found half-done. Raises `MassgenError`, `OSError`."""
    held_back = ended.work_done.held_back
    application = await run.apply(ended, dry_run=consent != "given" or bool(held_back))
    if application is None:
        return None
    settled += [application.note] if application.note else []
    if application.state == "clean" and ended.work_done.undecided:
        return _not_applied(ended.work_done.undecided, application)
    if application.state == "clean":
        match consent:
            case "missing":
                because = f"; {preview(held_back, MAX_NAMED)}" if held_back else ""
                return _not_applied(f"{_files(len(application.changes))}{because}; {_later(run)}", application)
            case "asked":
                await _show(run, ended, application, options)
                with left_if_closed(Path.cwd(), run):
                    wanted = _wanted(application, ended.work_done)
                if not wanted:
                    return _not_applied(f"you said no; {_later(run)}", application)
            case "given":
                if held_back:
                    return _not_applied(f"{preview(held_back, MAX_NAMED)}; {_later(run)}", application)
        application = await run.apply(ended) or application
        settled += [application.note] if application.note else []
    return replace(_outcome_line(run, application), fields=application_fields(application))


def _not_applied(why: str, application: Application | None = None) -> ApplyLine:
    fields = {} if application is None else application_fields(application, f"Not applied: {why}.")
    return ApplyLine(f"NOT_APPLIED: {why}", matters=True, fields=fields)


def _wanted(application: Application, work: WorkDone) -> bool:
    although = ""
    if work.held_back:
        although = " even though required checks fail"
    if application.checks:
        print_line(f"{application.checks}.")
    question = f"Apply {_files(len(application.changes), 'changed ')}"
    try:
        return confirm(f"{question}{although}", default=not although)
    except KeyboardInterrupt:
        return False


def _outcome_line(run: ForegroundRun, application: Application) -> ApplyLine:
    left_out = _reasons(application.left_out)
    beside = f"; left out: {left_out}" if left_out else ""
    match application.state:
        case "conflicts":
            why = f"your files are unchanged; {_reasons(application.refused)}; {_later(run)}"
            return replace(_not_applied(why), failed=True)
        case "unchanged" if left_out:
            return ApplyLine(f"APPLIED: 0 files{beside}", matters=True)
        case "unchanged":
            return ApplyLine("APPLIED: 0 files; your files already contain these changes", matters=False)
        case "clean":  # it was there to be looked at, and has gone
            return _not_applied(_later(run))
        case "applied" | "undone":
            undo = f"; `massgen apply --undo {run.run_id}` undoes this" if run.listed else ""
            return ApplyLine(f"APPLIED: {_files(len(application.changes))}{undo}{beside}", matters=False)


def _reasons(refused: Sequence[Obstacle]) -> str:
    """The first of them in words."""
    reasons = [path_text(os.fsencode(f"{one.path}: {one.reason}")) for one in refused[:REASONS]]
    return "; ".join([*reasons, *([f"and {len(refused) - REASONS} more"] if len(refused) > REASONS else [])])


def _files(count: int, what: str = "") -> str:
    return f"{count} {what}{'file' if count == 1 else 'files'}"


def _later(run: ForegroundRun) -> str:
    """Say how the changes are applied after the run."""
    if run.listed:
        return f"apply them with `massgen apply {run.run_id}`"
    return "--no-logs would lose the changes; leave it out, or pass --apply"


async def _show(run: ForegroundRun, ended: RunState, planned: Application, options: Options) -> None:
    """Show the planned changes as a diff, with colours where the person is shown any."""
    patch, size = await run.difference(ended, planned, MAX_DIFF_BYTES)
    lines = patch.decode(errors="replace").splitlines()
    styled = [line(Span(one.expandtabs(4), _style(one))) for one in lines[:MAX_DIFF_LINES]]
    if size > len(patch) or len(lines) > MAX_DIFF_LINES:
        styled.append(line(Span(f"... (truncated; the full diff is {size:,} bytes long)", "dim")))
    print_line()
    if left_out := _reasons(planned.left_out):
        print_line(f"Left out: {left_out}")
    print_styled(styled, open_terminal(wanted=shown_live(options, os.environ)))


def _style(diff_line: str) -> Style:
    match diff_line[:2]:
        case "++" | "--" | "di" | "in":
            return "strong"
        case "@@":
            return "accent"
        case start if start.startswith("+"):
            return "good"
        case start if start.startswith("-"):
            return "bad"
        case _:
            return ""
