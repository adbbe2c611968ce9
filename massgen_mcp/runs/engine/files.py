"""The files of a run and of all runs: what was asked, what agents write, what is left of it."""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, Protocol

from massgen_mcp.redaction import Redactor
from massgen_mcp.runs.engine.event_log import EventLog
from massgen_mcp.runs.engine.rows import FrozenRequest, NewRun, RunRow, WorkRow

Expirable = Literal["workspaces", "results"]
"""What of a run's files expires. `workspaces`: the agents' own, and the snapshots of their answers; `results`:
everything.
"""


class RunFiles(Protocol):
    """The files of one run, on the machine that executes it."""

    path: Path
    """The directory that holds all of them."""
    status: Path
    """`status.json`, for whoever automates."""
    log: Path
    """What is told of the run, for people."""
    report: Path
    """`report.html`, the page of the run; there a moment after the end."""
    event_log: EventLog

    def read_request(self) -> FrozenRequest:
        """The request as it was frozen. Raises `MassgenError` run_damaged, store_unavailable, and `JournalNewer`
        for one that is whole and holds what this version does not know.
        """
        ...

    def read_entry(self) -> NewRun:
        """What the store was told of the run when it was started, as far as it is here. Raises as `read_request`."""
        ...

    def attempt_of(self, attempt: int) -> Path: ...

    def workspace_of(self, agent: str) -> Path: ...

    def scratch_of(self, agent: str) -> Path:
        """For temporary files of the agent's commands; it goes with its workspace."""
        ...

    @property
    def changes(self) -> Path:
        """For the base of the caller's directories, and what answers make of it."""
        ...

    def private_of(self, agent: str) -> Path:
        """For an agent that is a program of its own: its home, while it works."""
        ...

    def final_of(self, agent: str) -> Path: ...

    def write_final(self, agent: str, answer: str) -> Path:
        """`final/<agent>/answer.txt`; returns its path."""
        ...

    def write_status(self, status: dict[str, Any]) -> None: ...

    def write_record(self, events: dict[str, Any], table: str) -> None:
        """`coordination_events.json` and `coordination_table.txt`."""

    def write_report(self, html: bytes) -> None: ...

    def write_metadata(self, metadata: dict[str, Any]) -> None:
        """`execution_metadata.yaml`: what ran, for people who compare runs."""

    def probe(self) -> None:
        """Raises `OSError` if the run could not write now."""


class FileStore(Protocol):
    """The files of all runs."""

    def create(
        self,
        run_id: str,
        request: FrozenRequest,
        redactor: Redactor,
        entry: NewRun | None = None,
    ) -> RunFiles:
        """Freeze the request of a new run, durably; `redactor` takes keys out before. `entry`: what the store is told,
        so that it can be told again. Raises `MassgenError` disk_full
        or store_unavailable.
        """
        ...

    def created(self, run_id: str) -> bool:
        """Whether the request of a run that was to be created is there: it may be in spite of an error."""
        ...

    def publish(self, run_id: str) -> None:
        """Let everybody have what was written here of a run that nobody executes. Raises `MassgenError`
        store_unavailable.
        """

    def fetch(self, row: RunRow) -> None:
        """Have here what was written elsewhere of a run that has ended. Raises `MassgenError` store_unavailable."""

    def whole(self, row: RunRow) -> AbstractContextManager[RunFiles]:
        """Have everything here that was written of a run that nobody executes, as long as the context lasts. Raises
        `MassgenError` store_unavailable.
        """
        ...

    def take_in(self, place: Path, request: FrozenRequest, redactor: Redactor, entry: NewRun, *, ended: bool) -> None:
        """Let what lies at `place`, a run's directory with its `events.jsonl`, be the files and the events of a run
        that has no row; frozen as in `create`. What a try that was cut off left gives way. Raises `MassgenError`.
        """

    def moving(self) -> AbstractContextManager[None]:
        """Held while a run is moved out of the store or into it, by one process of all. Raises `MassgenError`
        store_unavailable.
        """
        ...

    def discard(self, run_id: str) -> None:
        """Forget a run that was created here and is in no store. Raises `OSError`."""

    def of(self, row: RunRow | WorkRow) -> RunFiles: ...

    def making(self) -> AbstractContextManager[None]:
        """Held while a new run has files and no row yet. As long as it is held, no files without a row are deleted."""
        ...

    def pruning(self) -> AbstractContextManager[None]:
        """Held while old files are deleted, by one process at a time. Raises `BlockingIOError` if that is another."""
        ...

    def free_reserve(self) -> bool:
        """Give up the room that is kept for pruning a full disk, until the next pruning; False if there is none."""
        ...

    def size(self, row: RunRow, part: Expirable) -> int:
        """In bytes."""
        ...

    def awaits_apply(self, row: RunRow) -> bool:
        """Whether the run has a patch that may be applied, and was not yet."""
        ...

    def remove(self, row: RunRow, part: Expirable) -> None:
        """Safe to repeat. Raises `OSError`."""

    def remove_leftovers(self, known: Callable[[Collection[str]], set[str]], *, dry_run: bool) -> list[tuple[str, int]]:
        """Delete the files of starts that were never acknowledged: no row, nobody making them, and no event. Returns
        run ids and bytes. `known` says which of some runs have a row.
        """
        ...

    def begun(self) -> list[RunFiles]:
        """Of all runs below the home that have a request or events, whether a store knows them or not."""
        ...

    def with_events(self) -> list[str]:
        """Ids of the runs that have events, whether a store knows them or not."""
        ...
