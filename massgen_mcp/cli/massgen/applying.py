"""What a run changed, brought into the directories that it was given with `write`: at its end, on a terminal if the
person says yes.
"""

import os
from collections.abc import Mapping

from massgen_mcp.changes.base import path_text
from massgen_mcp.cli.asking import confirm, person_at_terminal
from massgen_mcp.cli.massgen.options import Options
from massgen_mcp.cli.output import print_line
from massgen_mcp.errors import MassgenError
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.applying import Application
from massgen_mcp.runs.foreground import ForegroundRun
from massgen_mcp.views.plain_text import preview
from massgen_mcp.views.styled import Span, Style, line

NOT_APPLIED = "NOT_APPLIED"
MAX_DIFF_LINES = 400
MAX_DIFF_BYTES = 200_000
REASONS = 3


def asks_first(options: Options) -> bool:
    """Whether there is a person who is shown the diff, and decides."""
    return person_at_terminal(os.environ) and not (options.automation or options.quiet or options.json)


async def apply_at_end(run: ForegroundRun, ended: RunState, options: Options) -> list[str]:
    """Lines that say what became of it; none if the run changed nothing that may be applied. Never raises."""
    try:
        asked = asks_first(options)
        application = await run.apply(ended, dry_run=asked)
        if application is None:
            return []
        if asked and application.state == "clean":
            _show(run, ended, os.environ)
            if not _wanted(application):
                return [f"{NOT_APPLIED}: as you wished; {_later(run)}"]
            application = await run.apply(ended) or application
    except MassgenError as error:
        return [f"{NOT_APPLIED}: {preview(str(error), 500)}"]
    return [_told(run, application)]


def _wanted(application: Application) -> bool:
    count = len(application.changes)
    try:
        return confirm(f"Apply {_files(count, 'changed ')}", default=True)
    except KeyboardInterrupt:
        return False


def _told(run: ForegroundRun, application: Application) -> str:
    match application.state:
        case "conflicts":
            refused = [f"{path_text(os.fsencode(one.path))}: {one.reason}" for one in application.refused]
            more = f"; and {len(refused) - REASONS} more" if len(refused) > REASONS else ""
            return f"{NOT_APPLIED}: your files are untouched; {'; '.join(refused[:REASONS])}{more}; {_later(run)}"
        case "unchanged":
            return "APPLIED: your files have these changes already"
        case "clean" | "applied" | "undone":
            undo = f"; `massgen-mcp apply --undo {run.run_id}` takes them back" if run.listed else ""
            return f"APPLIED: {_files(len(application.changes))}{undo}"


def _files(count: int, what: str = "") -> str:
    return f"{count} {what}{'file' if count == 1 else 'files'}"


def _later(run: ForegroundRun) -> str:
    return f"`massgen-mcp apply {run.run_id}` does it later" if run.listed else "they are in no list of runs"


def _show(run: ForegroundRun, ended: RunState, environ: Mapping[str, str]) -> None:
    """The patch, as a diff with colours."""
    from massgen_mcp.cli.live.terminal import Terminal

    made = ended.best_changes
    if made is None or made.patch is None:
        return
    file = run.directory.path / made.patch
    with file.open("rb") as patch:
        text = patch.read(MAX_DIFF_BYTES).decode(errors="replace")
    shown = text.splitlines()[:MAX_DIFF_LINES]
    styled = [line(Span(one.expandtabs(4), _style(one))) for one in shown]
    if len(shown) < len(text.splitlines()) or made.patch_bytes > MAX_DIFF_BYTES:
        styled.append(line(Span(f"... the whole is in {file}", "dim")))
    print_line()
    Terminal(environ).print(styled)


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
