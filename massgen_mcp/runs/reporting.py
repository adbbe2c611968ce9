"""The page of a run, from its own record and those of the runs inside it, and its `report.html`.

Imported when there is a page to draw, never when a process starts.
"""

from collections.abc import Callable, Iterator

from massgen_mcp.errors import MassgenError
from massgen_mcp.events import LogRecord
from massgen_mcp.page.build import NestedRuns, Told, run_page
from massgen_mcp.page.data import RunPage
from massgen_mcp.page.growing import GrowingPage
from massgen_mcp.page.report import report
from massgen_mcp.run_state.state import RunState, folded
from massgen_mcp.runs.engine import DamagedJournal, RunFiles

BATCH = 2000
"""So many records are in memory at once."""

FilesOf = Callable[[str], RunFiles]
"""The files of another run, by its id. Raises `MassgenError`."""


def page_of(run: RunFiles, state: RunState, files_of: FilesOf | None, *, redacted: bool = False) -> RunPage:
    """The page of a run that stands as in `state`. A damaged record is drawn as far as it is whole. `files_of`: of
    nested runs; None where there can be none. Raises `MassgenError` store_unavailable.
    """
    return run_page((state, _records(run)), _nested(files_of), redacted=redacted)


def growing_page(files_of: FilesOf) -> GrowingPage:
    """The page of a run that is looked at while it goes on."""
    return GrowingPage(_nested(files_of))


def write_report(run: RunFiles, state: RunState, files_of: FilesOf | None) -> None:
    """Raises `MassgenError` store_unavailable, `OSError`."""
    run.write_report(report(page_of(run, state, files_of)))


def _nested(files_of: FilesOf | None) -> NestedRuns:
    def nested(run_id: str) -> Told | None:
        if files_of is None:
            return None
        try:
            files = files_of(run_id)
            return folded(_records(files)), _records(files)
        except (MassgenError, LookupError):  # it is not there any more, or cannot be read
            return None

    return nested


def _records(run: RunFiles) -> Iterator[LogRecord]:
    """The whole ones before a damage, if there is one."""
    reader = run.event_log.follow(text=False)
    try:
        while records := reader.read(BATCH):
            yield from records
    except DamagedJournal as damage:
        yield from damage.intact
