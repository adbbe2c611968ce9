"""What was applied of a run's patch, so that it can be taken back: a record for each time, the last one at the end."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ValidationError

from massgen_mcp.changes.intent import IntentPart
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import write_durably


class AppliedRecord(BaseModel, frozen=True, extra="forbid"):
    """`before` and `after`: trees of the run's repository, as `Plan` says. `time`: seconds since the epoch.
    `permissions`: of the files that were removed.
    """

    id: str
    time: float
    before: str
    after: str
    permissions: dict[str, int] = {}


class _Records(BaseModel, frozen=True, extra="forbid"):
    v: int = 1
    applied: tuple[AppliedRecord, ...] = ()


class AppliedRecords:
    """Kept in `RUN/changes/applied.json`."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "applied.json"

    def read(self) -> tuple[AppliedRecord, ...]:
        """Raises `MassgenError` run_damaged."""
        try:
            return _Records.model_validate_json(self._file.read_bytes()).applied
        except FileNotFoundError:
            return ()
        except ValidationError as error:
            raise MassgenError("run_damaged", f"{self._file} cannot be read") from error

    def add(self, record: AppliedRecord) -> None:
        """Safe to repeat."""
        self._write_records([*(one for one in self.read() if one.id != record.id), record])

    def drop(self, record: AppliedRecord) -> None:
        """Safe to repeat."""
        self._write_records(one for one in self.read() if one.id != record.id)

    def _write_records(self, records: Iterable[AppliedRecord]) -> None:
        """A run that was deleted meanwhile needs none."""
        if self._file.parent.is_dir():
            write_durably(self._file, _Records(applied=tuple(records)).model_dump_json(indent=1).encode())


def applied_at(directory: Path) -> float | None:
    """When what stands of a run's patch in the caller's directories was applied last, in seconds since the epoch; None:
    nothing stands there, as far as is known.
    """
    with suppress(MassgenError, OSError):
        return max((one.time for one in AppliedRecords(directory).read()), default=None)
    return None


def permissions_of_removed(parts: Iterable[IntentPart]) -> dict[str, int]:
    """By the names of trees; without names that no record can hold."""
    removed = ((f"{part.name}/{step.path}", step) for part in parts for step in part.steps if step.new is None)
    return {path: step.permissions for path, step in removed if step.permissions is not None and path.isprintable()}
