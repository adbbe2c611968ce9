"""The page of a run, from its own record and those of the runs inside it, and its `report.html`.

Imported when there is a page to draw, never when a process starts.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from massgen_mcp.config.held_keys import redactor_for
from massgen_mcp.config.models import BackendConfig, ChecksPolicy
from massgen_mcp.errors import MassgenError
from massgen_mcp.events import Changes
from massgen_mcp.page.build import NestedRuns, Told, run_page
from massgen_mcp.page.data import RunPage
from massgen_mcp.page.growing import GrowingPage
from massgen_mcp.page.report import report
from massgen_mcp.page.texts import WHOLE, Most
from massgen_mcp.run_state.state import RunState, folded
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.records import whole_records

FilesOf = Callable[[str], RunFiles]
"""The files of another run, by its id. Raises `MassgenError`."""


def page_of(
    run: RunFiles,
    state: RunState,
    files_of: FilesOf | None,
    environ: Mapping[str, str],
    *,
    redacted: bool = False,
    most: Most = WHOLE,
) -> RunPage:
    """The page of a run that stands as in `state`, without the keys of `environ`. A damaged record is drawn as far as
    it is whole. `files_of`: of nested runs; None where there can be none. Raises `MassgenError` store_unavailable.
    """
    return run_page(_told(run, state, environ), _nested(files_of, environ), redacted=redacted, most=most)


def growing_page(run: RunFiles, state: RunState, files_of: FilesOf, environ: Mapping[str, str]) -> GrowingPage:
    """The page of a run that is looked at while it goes on, without the keys of `environ`."""
    return GrowingPage(_told(run, state, environ), _nested(files_of, environ))


def write_report(run: RunFiles, state: RunState, files_of: FilesOf | None, environ: Mapping[str, str]) -> None:
    """Raises `MassgenError` store_unavailable, `OSError`."""
    run.write_report(report(page_of(run, state, files_of, environ)))


def _nested(files_of: FilesOf | None, environ: Mapping[str, str]) -> NestedRuns:
    def nested(run_id: str) -> Told | None:
        if files_of is None:
            return None
        try:
            files = files_of(run_id)
            return _told(files, folded(whole_records(files)), environ)
        except (MassgenError, LookupError):  # it is not there any more, or cannot be read
            return None

    return nested


def _told(run: RunFiles, state: RunState, environ: Mapping[str, str]) -> Told:
    def patch_of(changes: Changes, most: int) -> bytes:
        with suppress(OSError), (run.path / (changes.patch or "")).open("rb") as file:
            return file.read(most)
        return b""

    policy: ChecksPolicy = "informative"
    backends: Iterable[BackendConfig] = ()
    with suppress(MassgenError):
        config = run.read_request().config
        policy, backends = config.orchestrator.checks_policy, [agent.backend for agent in config.agents]
    return Told(state, whole_records(run), patch_of, redactor_for(environ, backends), policy)
