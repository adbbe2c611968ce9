"""The files of a run and of all runs: where everything about one lies on disk, how it gets there, and what is left.

One writer per file: the process that runs the run.
"""

import json
import math
import os
import re
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args
from zlib import crc32

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from massgen_mcp.changes.apply_records import AppliedRecords
from massgen_mcp.changes.git import GitFailed
from massgen_mcp.changes.run_changes import PATCH, RunChanges
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import JournalNewer, MassgenError, storage_error
from massgen_mcp.home import Home, sync_directory, write_durably
from massgen_mcp.redaction import NO_KEYS, Redactor
from massgen_mcp.request.kind import RunKind
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.runs.engine.event_log import EventLog
from massgen_mcp.runs.engine.journal import JournalLog
from massgen_mcp.runs.engine.locks import acquire
from massgen_mcp.runs.engine.rows import EarlierChanges, FrozenRequest, Nesting, NewRun, RunRow, WorkRow
from massgen_mcp.workspace.snapshot import remove_tree

Expirable = Literal["workspaces", "results"]
"""What of a run's files expires. `workspaces`: the agents' own, and the snapshots of their answers; `results`:
everything.
"""
RUN_ID = re.compile(r"run-[a-z2-7]{26}")
RESERVE_BYTES = 512 * 1024
PROBE_BYTES = 256 * 1024
LEFT = ".left"
"""In the directory of a run that was moved to another store: where to, in words."""
REQUEST_VERSION = 1
"""Of the `config.json` that this program writes, and the highest that it can execute. 0: one that names none."""
ENTRY_KEYS = ("config", "fingerprint", "request_hash", "idempotency_key", "session_id", "owner", "usd")
REQUEST_KEYS = {
    "v",
    "question",
    "config",
    "history",
    "nesting",
    "begins_with",
    "entry",
    "bounded",
    "kind",
    "usual_seconds",
}
"""`nesting` is there in a nested run alone, `begins_with` where it goes on with changes; `entry`, these parts of its
`NewRun`, in no run of the foreground.
"""


class RunFiles:
    """The files of one run, on the machine that executes it. `create` a new one or name an existing one."""

    def __init__(self, path: Path, event_log: EventLog | None = None) -> None:
        """`event_log`: where its events are kept, if not in the directory."""
        self.path = path
        """The directory that holds all of them."""
        self.status = path / "status.json"
        """`status.json`, for whoever automates."""
        self.log = path / "massgen.log"
        """What is told of the run, for people."""
        self.report = path / "report.html"
        """`report.html`, the page of the run; there a moment after the end."""
        self.event_log: EventLog = event_log or JournalLog(path)
        self.request = path / "config.json"

    @classmethod
    def create(
        cls,
        path: Path,
        request: FrozenRequest,
        redactor: Redactor = NO_KEYS,
        entry: NewRun | None = None,
        event_log: EventLog | None = None,
    ) -> "RunFiles":
        """Make the directory with the frozen request in it, durably. The run is asked what is frozen: `redactor` takes
        keys out before.

        Raises `FileExistsError` if there is one already, `MassgenError` disk_full or store_unavailable.
        """
        run = cls(path, event_log)
        try:
            path.mkdir(mode=0o700, parents=True)
            run.event_log.make()
            run.freeze(request, redactor, entry)
            sync_directory(path.parent)
        except FileExistsError:
            raise
        except OSError as error:
            raise storage_error(f"cannot create the run directory {path}", error) from error
        return run

    def freeze(self, request: FrozenRequest, redactor: Redactor, entry: NewRun | None) -> None:
        """Write the request, durably. Raises `OSError`."""
        document: dict[str, Any] = {
            "v": REQUEST_VERSION,
            "question": request.question,
            "config": request.config.model_dump(mode="json"),
            "history": [turn.model_dump(mode="json") for turn in request.history],
        }
        if request.nesting is not None:
            document["nesting"] = asdict(request.nesting)
        if request.begins_with is not None:
            document["begins_with"] = asdict(request.begins_with)
        if request.bounded:
            document["bounded"] = True
        if request.usual_seconds:
            document["usual_seconds"] = dict(request.usual_seconds)
        if request.kind != "single":
            document["kind"] = request.kind
        if entry is not None:
            document["entry"] = {name: getattr(entry, name) for name in ENTRY_KEYS}
        document = redactor.value(document)
        sealed = {**document, "crc": _checksum(document)}
        write_durably(self.request, _laid_out(sealed))

    def read_request(self) -> FrozenRequest:
        """The request as it was frozen. Raises `MassgenError` run_damaged, store_unavailable, and `JournalNewer`
        for one that is whole and holds what this version does not know.
        """
        with self.request_read() as document:
            history = tuple(EarlierTurn.model_validate(turn) for turn in document["history"])
            nesting = Nesting(**document["nesting"]) if "nesting" in document else None
            earlier = EarlierChanges(**document["begins_with"]) if "begins_with" in document else None
            config = Config.model_validate(document["config"])
            bounded = document.get("bounded") is True
            kind = _read_kind(document)
            usual = {str(model): float(seconds) for model, seconds in document.get("usual_seconds", {}).items()}
            return FrozenRequest(str(document["question"]), config, history, nesting, earlier, bounded, kind, usual)

    def read_entry(self) -> NewRun:
        """What the store was told of the run when it was started, as far as it is here. Raises as `read_request`."""
        with self.request_read() as document:
            entry = dict.fromkeys(("config", "fingerprint", "request_hash"), "") | document.get("entry", {})
            nesting = document.get("nesting", {})
            parent, kind = nesting.get("parent"), _read_kind(document)
            return NewRun(self.path.name, str(document["question"]), **entry, parent=parent, kind=kind)

    @contextmanager
    def request_read(self) -> Generator[dict[str, Any]]:
        try:
            document = json.loads(self.request.read_bytes())
            if document.pop("crc") != _checksum(document):
                raise MassgenError("run_damaged", "the run's config.json was changed")
            if document.get("v", 0) > REQUEST_VERSION or document.keys() - REQUEST_KEYS:
                raise JournalNewer("the run's config.json")
            yield document
        except FileNotFoundError as error:
            raise MassgenError("run_damaged", "the run's config.json is missing") from error
        except OSError as error:
            raise storage_error("cannot read the run's config.json", error) from error
        except ValidationError as error:
            first = error.errors()[0]
            raise JournalNewer(f"the run's config.json ({'.'.join(map(str, first['loc']))}: {first['msg']})") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MassgenError("run_damaged", f"the run's config.json cannot be read: {error}") from error

    def attempt_of(self, attempt: int) -> Path:
        return self.path / "turn_1" / f"attempt_{attempt}"

    def workspace_of(self, agent: str) -> Path:
        return self.path / "workspaces" / agent

    def scratch_of(self, agent: str) -> Path:
        """For temporary files of the agent's commands; it goes with its workspace."""
        return self.path / "workspaces" / f".{agent}.scratch"

    @property
    def changes(self) -> Path:
        """For the base of the caller's directories, and what answers make of it."""
        return self.path / "changes"

    def private_of(self, agent: str) -> Path:
        """For an agent that is a program of its own: its home, while it works."""
        return self.path / "private" / agent

    def final_of(self, agent: str) -> Path:
        return self.path / "final" / agent

    def write_final(self, agent: str, answer: str) -> Path:
        """`final/<agent>/answer.txt`; returns its path."""
        directory = self.final_of(agent)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = directory / "answer.txt"
        write_durably(target, answer.encode("utf-8", "replace"))
        return target

    def write_status(self, status: dict[str, Any]) -> None:
        replace_file(self.status, _laid_out(status))

    def write_record(self, events: dict[str, Any], table: str) -> None:
        """`coordination_events.json` and `coordination_table.txt`."""
        replace_file(self.path / "coordination_events.json", _laid_out(events))
        replace_file(self.path / "coordination_table.txt", table.encode("utf-8", "replace"))

    def write_report(self, html: bytes) -> None:
        replace_file(self.report, html)

    def write_metadata(self, metadata: dict[str, Any]) -> None:
        """`execution_metadata.yaml`: what ran, for people who compare runs."""
        import yaml  # the server process never writes it

        quickest = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # not every platform has libyaml
        text: str = yaml.dump(metadata, Dumper=quickest, sort_keys=False)
        replace_file(self.path / "execution_metadata.yaml", text.encode())

    def probe(self) -> None:
        """Raises `OSError` if the run could not write now."""
        file = self.path / ".room"
        try:
            write_durably(file, bytes(PROBE_BYTES))
        finally:
            for path in (file, file.with_name(f".{file.name}.new")):
                path.unlink(missing_ok=True)


def _read_kind(document: Mapping[str, Any]) -> RunKind:
    """Return the kind of a run; of one of an earlier version it is not known."""
    kind = document.get("kind", "single")
    if kind not in get_args(RunKind):
        raise JournalNewer("the run's config.json")
    return kind


def _checksum(document: dict[str, Any]) -> str:
    """Of a JSON document's content, however it is laid out."""
    return f"{crc32(json.dumps(document, sort_keys=True).encode()):08x}"


def _laid_out(document: dict[str, Any]) -> bytes:
    """As JSON, indented for people. `json` takes many times as long, but can write half a character."""
    try:
        return to_json(document, indent=2)
    except PydanticSerializationError:
        return json.dumps(document, indent=2).encode()


def timestamp() -> str:
    """Now, as YYYYMMDD_HHMMSS_ffffff in UTC."""
    return datetime.now(UTC).strftime("%Y%m%d_%H%M%S_%f")


def replace_file(path: Path, data: bytes) -> None:
    """Readers see the old content or the new one, never a half; not durable against a power cut."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(data)
    temporary.replace(path)


class FileStore:
    """The files of all runs.

    `runs/<run id>` below the home, or where the program that executed the run wanted it.
    """

    def __init__(self, home: Home) -> None:
        self._home = home

    def _log_of(self, directory: Path) -> EventLog | None:  # noqa: ARG002 - as of all stores
        """The log of the run in this directory; None: in the directory itself."""
        return None

    def directory_at(self, path: Path) -> RunFiles:
        return RunFiles(path, self._log_of(path))

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
        path = self._home.runs / run_id
        return RunFiles.create(path, request, redactor, entry, self._log_of(path))

    def created(self, run_id: str) -> bool:
        """Whether the request of a run that was to be created is there: it may be in spite of an error."""
        return self.directory_at(self._home.runs / run_id).request.exists()

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
        return nullcontext(self.of(row))

    def take_in(self, place: Path, request: FrozenRequest, redactor: Redactor, entry: NewRun, *, ended: bool) -> None:  # noqa: ARG002 - as of all stores
        """Let what lies at `place`, a run's directory with its `events.jsonl`, be the files and the events of a run
        that has no row; frozen as in `create`. What a try that was cut off left gives way. Raises `MassgenError`.
        """
        target = self._home.runs / entry.run_id
        try:
            RunChanges(place / "changes").make_own()
            RunFiles(place).freeze(request, redactor, entry)
            remove_tree(target)
            place.rename(target)
            sync_directory(target.parent)
        except OSError as error:
            raise storage_error(f"cannot import run {entry.run_id}", error) from error

    def moving(self) -> AbstractContextManager[None]:
        """Held while a run is moved out of the store or into it, by one process of all. Raises `MassgenError`
        store_unavailable.
        """
        return locked(self._home.ensure().path / "moving.lock", patience=math.inf)

    def discard(self, run_id: str) -> None:
        """Forget a run that was created here and is in no store. Raises `OSError`."""
        remove_tree(self._home.runs / run_id)

    def of(self, row: RunRow | WorkRow) -> RunFiles:
        return self.directory_at(Path(row.directory) if row.directory else self._home.runs / row.run_id)

    def making(self) -> AbstractContextManager[None]:
        """Held while a new run has files and no row yet. As long as it is held, no files without a row are deleted."""
        return locked(self._home.path / "making.lock", shared=True, patience=math.inf)

    @contextmanager
    def pruning(self) -> Generator[None]:
        """Held while old files are deleted, by one process at a time. Raises `BlockingIOError` if that is another."""
        with locked(self._home.path / "prune.lock"):
            yield
            _make_reserve(self._reserve)

    @property
    def _reserve(self) -> Path:
        return self._home.path / "reserve"

    def free_reserve(self) -> bool:
        """Give up the room that is kept for pruning a full disk, until the next pruning; False if there is none."""
        try:
            self._reserve.unlink()
        except FileNotFoundError:
            return False
        return True

    def size(self, row: RunRow, part: Expirable) -> int:
        """In bytes."""
        return sum(map(_size, self._paths(row, part)))

    def awaits_apply(self, row: RunRow) -> bool:
        """Whether the run has a patch that may be applied, and was not yet."""
        run = self.of(row)
        with suppress(GitFailed, MassgenError):
            base = RunChanges(run.changes).base()
            if base is None or not any(directory.writable for directory in base.directories):
                return False
            return any(_patches(run.path)) and not AppliedRecords(run.changes).read()
        return False

    def remove(self, row: RunRow, part: Expirable) -> None:
        """Safe to repeat. Raises `OSError`."""
        for path in self._paths(row, part):
            remove_tree(path)

    def _paths(self, row: RunRow, part: Expirable) -> list[Path]:
        """The winner's final files are part of the result."""
        run = self.of(row).path
        return [run] if part == "results" else [run / "workspaces", *run.glob("turn_*/attempt_*/*/*/workspace")]

    def remove_leftovers(self, known: Callable[[Collection[str]], set[str]], *, dry_run: bool) -> list[tuple[str, int]]:
        """Delete the files of starts that were never acknowledged: no row, nobody making them, and no event. Returns
        run ids and bytes. `known` says which of some runs have a row.

        A directory with a journal had a row once. If the store does not know it, the store was lost, and the run is
        not ours to delete.
        """
        removed: list[tuple[str, int]] = []
        with locked(self._home.path / "making.lock"):
            found = [path for path in self._home.runs.iterdir() if RUN_ID.fullmatch(path.name)]
            of_runs = known([path.name for path in found])
            for path in found:
                if path.name in of_runs or self.directory_at(path).event_log.begun():
                    continue
                size = _size(path)
                if not dry_run:
                    remove_tree(path)
                removed.append((path.name, size))
        return removed

    def begun(self) -> list[RunFiles]:
        """Of all runs below the home that have a request or events, whether a store knows them or not."""
        found = (self.directory_at(path) for path in sorted(self._home.runs.iterdir()) if RUN_ID.fullmatch(path.name))
        return [run for run in found if run.request.exists() or run.event_log.begun()]

    def with_events(self) -> list[str]:
        """Ids of the runs that have events, whether a store knows them or not."""
        return sorted(path.name for path in self._home.runs.glob("*") if self.directory_at(path).event_log.begun())


def _patches(run: Path) -> Iterator[Path]:
    yield from run.glob(f"final/*/{PATCH}")
    yield from run.glob(f"turn_*/attempt_*/*/*/{PATCH}")


def _size(path: Path) -> int:
    """Bytes on disk of everything below `path`, links not followed. What cannot be looked at counts as nothing."""
    total = 0
    for directory, _, files in os.walk(path, followlinks=False):
        for name in files:
            with suppress(OSError):
                total += (Path(directory) / name).lstat().st_blocks * 512
    return total


@contextmanager
def locked(path: Path, *, shared: bool = False, patience: float = 0.0) -> Generator[None]:
    """Raises `BlockingIOError` if another process still holds the lock after `patience` seconds."""
    try:
        descriptor = acquire(path, shared=shared, patience=patience)
    except OSError as error:
        raise storage_error(f"cannot open {path.name}", error) from error
    if descriptor is None:
        raise BlockingIOError
    try:
        yield
    finally:
        os.close(descriptor)


def _make_reserve(path: Path) -> None:
    """Room kept for pruning a full disk: deleting must be noted first."""
    if path.exists():
        return
    try:
        with path.open("xb") as file:
            file.write(bytes(RESERVE_BYTES))
    except OSError:
        path.unlink(missing_ok=True)
