"""What is written down of an apply: before anything of it is done, what is about to be done with a person's files;
after it, what was applied of a run's patch, so that it can be taken back.
"""

import json
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ValidationError

from massgen_mcp.changes.files import TreeFile
from massgen_mcp.changes.held_directory import HeldDirectory
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import write_durably


@dataclass(frozen=True, slots=True)
class ChangeStep:
    """`old` is None for a file that is made, `new` for one that is removed. `permissions`: of a file that is removed,
    and of one that is made where they are known from before. `like`: where a file that is renamed was, as long as it is
    there; no row has it.
    """

    path: str
    old: TreeFile | None
    new: TreeFile | None
    permissions: int | None = None
    like: str | None = None


def steps_between(before: Mapping[bytes, TreeFile], after: Mapping[bytes, TreeFile]) -> list[ChangeStep]:
    """What makes the files of one tree those of another."""
    paths = [path for path in {**before, **after} if before.get(path) != after.get(path)]
    return [ChangeStep(os.fsdecode(path), before.get(path), after.get(path)) for path in paths]


def parents_of(path: str) -> list[str]:
    """The directories above a path, outermost first; the root is not among them."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


STAGING = ".massgen-apply-"
"""How the directory is called that lies beside the files while they are changed; git ignores it."""
StagedKind = Literal["old", "new", "taken", "left"]
STAGED: tuple[StagedKind, ...] = get_args(StagedKind)
"""The directories in it: see `IntentPart.staged`."""
INTENT_VERSION = 1

ApplyPhase = Literal["staging", "changing", "done"]
"""`staging`: no file is changed. `changing`: some may be. `done`: all are."""


@dataclass(frozen=True, slots=True)
class IntentPart:
    """What is done in one directory. `make`: directories to be made, outermost first. `emptied`: directories that are
    removed where nothing is left in them, outermost first.
    """

    name: str
    """How people and models call it."""
    root: str
    steps: tuple[ChangeStep, ...]
    make: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()
    staging: str = ""

    @property
    def making(self) -> str:
        """Where a directory is made before it comes to its place."""
        return f"{self.staging}/made"

    def staged(self, kind: StagedKind, number: int) -> str:
        """Where what belongs to a step lies: its `new` file before it comes to its place, the `old` one from then on,
        and a new one that is looked at because it is `taken` back; or a directory that was `left` empty.
        """
        return f"{self.staging}/{kind}/{number}"


@dataclass(frozen=True, slots=True)
class Intent:
    """`facts` go along unread: it is what the caller needs once the change has happened."""

    parts: tuple[IntentPart, ...]
    facts: dict[str, Any]
    phase: ApplyPhase = "staging"


def planned(name: str, root: Path, steps: Iterable[ChangeStep]) -> IntentPart:
    """What has to be done in `root` for these steps. Raises `OSError` where it cannot be looked at."""
    with HeldDirectory.open(root) as held:
        # As they can be done one after the other: what is removed makes room for what is made.
        in_order = sorted(steps, key=lambda step: (step.new is not None, step.path))
        ordered = tuple(_as_it_is(held, step) for step in in_order)
        removed = {step.path for step in ordered if step.new is None}
        above_made = {parent for step in ordered if step.new is not None for parent in parents_of(step.path)}
        emptied = tuple(sorted({parent for path in removed for parent in parents_of(path)} - above_made))
        make = tuple(path for path in sorted(above_made) if path in removed or held.status(path) is None)
    return IntentPart(name, str(root), ordered, make, emptied, f"{STAGING}{secrets.token_hex(8)}")


def _as_it_is(held: HeldDirectory, step: ChangeStep) -> ChangeStep:
    """The step with the permissions of the file that it removes."""
    found = held.status(step.path) if step.new is None else None
    return step if found is None else replace(step, permissions=stat.S_IMODE(found.st_mode))


def write_intent(file: Path, intent: Intent) -> None:
    parts = [
        {**asdict(part), "steps": [(step.path, step.old, step.new, step.permissions) for step in part.steps]}
        for part in intent.parts
    ]
    document = {"v": INTENT_VERSION, "phase": intent.phase, "parts": parts, "told": intent.facts}
    write_durably(file, json.dumps(document).encode())


def read_intent(file: Path) -> Intent | None:
    """Raises `MassgenError` store_unavailable, journal_newer."""
    try:
        document = json.loads(file.read_bytes())
        if document["v"] > INTENT_VERSION:
            raise MassgenError(
                "journal_newer", f"a newer massgen-mcp version wrote {file}; upgrade massgen-mcp to continue"
            )
        parts = tuple(_part(part) for part in document["parts"])
        phases: tuple[ApplyPhase, ...] = get_args(ApplyPhase)
        return Intent(parts, dict(document["told"]), phases[phases.index(document["phase"])])
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        message = f"cannot read {file}, the record of an interrupted apply"
        raise MassgenError("store_unavailable", message) from error


def _part(document: dict[str, Any]) -> IntentPart:
    return IntentPart(
        document["name"],
        document["root"],
        tuple(
            ChangeStep(path, old and TreeFile(*old), new and TreeFile(*new), permissions)
            for path, old, new, permissions in document["steps"]
        ),
        tuple(document["make"]),
        tuple(document["emptied"]),
        document["staging"],
    )


class AppliedRecord(BaseModel, frozen=True, defer_build=True, extra="forbid"):
    """`before` and `after`: trees of the run's repository, as in `ApplyPlan`. `time`: seconds since the epoch.
    `permissions`: of the files that were removed.
    """

    id: str
    time: float
    before: str
    after: str
    permissions: dict[str, int] = {}


class _Records(BaseModel, frozen=True, defer_build=True, extra="forbid"):
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

    @property
    def exist(self) -> bool:
        """True once something was applied, even if all of it was taken back."""
        return self._file.exists()

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
