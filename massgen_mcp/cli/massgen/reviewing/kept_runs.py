"""The runs of a review by what they were asked, kept until the review has ended: the same call continues a killed one.

Each review has a file of its own in the state directory, a line for each run. The runs are in the run store.
"""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from massgen_mcp.cli.run_service import run_service
from massgen_mcp.errors import MassgenError, storage_error
from massgen_mcp.home import find_home
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.host.foreground import continue_here
from massgen_mcp.runs.view.run_view import RunView

WAIT_SECONDS = 60.0


class KeptRuns:
    """`file` None: nothing is kept, and nothing is continued."""

    def __init__(self, file: BinaryIO | None) -> None:
        self._file = file
        self._run_ids = dict(_read_lines(file)) if file is not None else {}

    @property
    def count(self) -> int:
        """The number of runs that an earlier process began."""
        return len(self._run_ids)

    def note(self, subject: str, run_id: str) -> None:
        """Keep a run, before it asks a model. Raises `MassgenError` disk_full, store_unavailable."""
        if self._file is None:
            return
        try:
            self._file.write(json.dumps([subject, run_id]).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise storage_error("cannot save this review's runs", error) from error

    async def finish(self, subject: str) -> tuple[str, RunState] | None:
        """Return the run that was asked this before, and its end; an interrupted one is continued here. None where
        there is none that can be used: a run that has failed is asked again. Raises `MassgenError` as `continue_here`.
        """
        run_id = self._run_ids.get(subject)
        view = await _find_end(run_id) if run_id is not None else None
        if view is None or run_id is None:
            return None
        ended = view.snapshot
        if view.state == "interrupted":
            with continue_here(view.row, environ=os.environ) as run:
                ended = await run.execute()
        return (run_id, ended) if ended.state == "completed" or ended.work_done.partly_read else None

    def forget(self) -> None:
        """Forget the runs of a review that has ended: its next call is another review."""
        if self._file is not None:
            with suppress(OSError):
                Path(self._file.name).unlink(missing_ok=True)


@contextmanager
def keep_runs(subject: str, *, keeps: bool) -> Generator[KeptRuns]:
    """Hold the runs of the review of this subject. None are kept where the state directory cannot be used, or while
    another process reviews the same.
    """
    file = _open_file(subject) if keeps else None
    if file is None:
        yield KeptRuns(None)
        return
    with file:
        yield KeptRuns(file)


def compute_digest(*parts: object) -> str:
    """Return a digest of JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _open_file(subject: str) -> BinaryIO | None:
    try:
        home = find_home(os.environ).ensure()
        place = home.path / "reviews"
        place.mkdir(mode=0o700, exist_ok=True)
        _remove_expired(place, time.time() - home.limits.results_seconds)
        file = (place / f"{subject}.jsonl").open("ab+")
    except (OSError, MassgenError):
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def _remove_expired(place: Path, since: float) -> None:
    """Remove files whose runs are not kept any more."""
    for path in place.glob("*.jsonl"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < since:
                path.unlink()


def _read_lines(file: BinaryIO) -> Mapping[str, str]:
    """Read what each run was asked, and its id. A line that was cut off was never noted."""
    file.seek(0)
    found: dict[str, str] = {}
    for line in file.read().splitlines():
        with suppress(ValueError):
            match json.loads(line):
                case [str(subject), str(run_id)]:
                    found[subject] = run_id
                case _:
                    pass
    return found


async def _find_end(run_id: str) -> RunView | None:
    """Return a run that has ended or was interrupted; one that another process continues is waited for. None: it cannot
    be used.
    """
    with run_service(here=True) as service:
        try:
            view = await service.watcher.get_run(run_id)
            while not view.stands_still:
                view = await service.watcher.wait(run_id, until="terminal", seconds=WAIT_SECONDS, cursor=None)
        except MassgenError as error:
            if error.code in ("unknown_run", "expired"):
                return None
            raise
    return None if view.newer or view.damage or view.row.moved else view
