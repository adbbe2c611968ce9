"""The page of a run, from its own record and those of the runs inside it, and its `report.html`.

Imported when there is a page to draw, never when a process starts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from massgen_mcp.changes.apply_records import applied_at
from massgen_mcp.changes.patch_parts import beginnings, marked
from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import Changes, ChecksPolicy
from massgen_mcp.events.record import LogRecord
from massgen_mcp.page.build import GrowingPage, ReportedRun, RunById, run_page, smaller_pages
from massgen_mcp.page.data import RunPage
from massgen_mcp.page.document import report
from massgen_mcp.page.left_out import Most
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import RunFiles

FilesOf = Callable[[str], RunFiles]
"""The files of another run, by its id. Raises `MassgenError`."""


def page_of(
    run: RunFiles,
    state: RunState,
    files_of: FilesOf | None,
    environ: Mapping[str, str],
    *,
    redacted: bool = False,
) -> RunPage:
    """The page of a run that stands as in `state`, without the keys of `environ`. A damaged record is drawn as far as
    it is whole. `files_of`: of nested runs; None where there can be none. Raises `MassgenError` store_unavailable.
    """
    return run_page(_reported(run, state, environ), _nested(files_of, environ), redacted=redacted)


def smaller_pages_of(
    run: RunFiles, state: RunState, files_of: FilesOf, environ: Mapping[str, str], sizes: Iterable[Most]
) -> Iterator[RunPage]:
    """As `page_of`, in each of these sizes."""
    return smaller_pages(_reported(run, state, environ), _nested(files_of, environ), sizes)


def growing_page(run: RunFiles, state: RunState, files_of: FilesOf, environ: Mapping[str, str]) -> GrowingPage:
    """The page of a run that is looked at while it goes on, without the keys of `environ`."""
    return GrowingPage(_reported(run, state, environ), _nested(files_of, environ))


def write_report(run: RunFiles, state: RunState, files_of: FilesOf | None, environ: Mapping[str, str]) -> None:
    """Raises `MassgenError` store_unavailable, `OSError`."""
    run.write_report(report(page_of(run, state, files_of, environ)))


def _nested(files_of: FilesOf | None, environ: Mapping[str, str]) -> RunById:
    """Each is read once, and then what is new in it, however often it is drawn."""
    known: dict[str, _Nested] = {}

    def nested(run_id: str) -> ReportedRun | None:
        if files_of is None:
            return None
        try:
            run = known[run_id] = known.get(run_id) or _Nested(files_of(run_id), environ)
            return run.reported()
        except (MassgenError, LookupError):  # it is not there any more, or cannot be read
            known.pop(run_id, None)
            return None

    return nested


class _Nested:
    """A run inside another one, as far as it was read."""

    def __init__(self, files: RunFiles, environ: Mapping[str, str]) -> None:
        self._reader = files.event_log.follow(text=False)
        self._state = RunState()
        self._records: list[LogRecord] = []
        self._reported = replace(_reported(files, self._state, environ), records=self._records)

    def reported(self) -> ReportedRun:
        """Raises `MassgenError` store_unavailable, `LookupError`."""
        for record in self._reader.read_intact():
            self._state.apply(record)
            self._records.append(record)
        return self._reported


def _reported(run: RunFiles, state: RunState, environ: Mapping[str, str]) -> ReportedRun:
    def patch_of(changes: Changes, most: int) -> bytes:
        with suppress(OSError):
            return marked(beginnings(run.path / (changes.patch or ""), most))
        return b""

    policy: ChecksPolicy = "informative"
    backends: Iterable[BackendConfig] = ()
    with suppress(MassgenError):
        config = run.read_request().config
        policy, backends = config.orchestrator.checks_policy, [agent.backend for agent in config.agents]
    return ReportedRun(
        state, run.event_log.read_intact(), patch_of, redactor_for(environ, backends), policy, applied_at(run.changes)
    )
