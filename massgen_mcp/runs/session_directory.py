"""A session of the command line on disk: `.massgen/sessions/session_YYYYMMDD_HHMMSS/turn_N/`, and who may write it.

One writer per session, by a lock that the kernel drops with its process. A turn counts once its `metadata.json` says
how it ended, which is written last: a turn that was killed counts only when its run has been continued and has ended.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from massgen_mcp.config.models import EarlierTurn
from massgen_mcp.errors import MassgenError
from massgen_mcp.events import public_agent_name
from massgen_mcp.home import sync_directory
from massgen_mcp.runs.directory import replace_file, write_durably
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.locks import acquire, is_held
from massgen_mcp.runs.project import SESSIONS
from massgen_mcp.views.coordination_record import coordination_events
from massgen_mcp.views.plain_text import preview
from massgen_mcp.views.snapshot import RunSnapshot
from massgen_mcp.workspace.guard import PathRefused
from massgen_mcp.workspace.snapshot import take_snapshot

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TURN = re.compile(r"turn_([1-9][0-9]{0,5})")
_LOCK = ".lock"
_GOING_ON = "running"


class _Metadata(BaseModel):
    """`turn_N/metadata.json`. The first five keys are MassGen's."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    turn: int
    timestamp: str
    """When it began, in UTC."""
    winning_agent: str | None = None
    """As the config calls it."""
    task: str
    session_id: str
    state: str
    """`running` until the turn has ended, then the run's state."""
    outcome: str | None = None
    seconds: float | None = None
    log_dir: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that has ended. `answer` is the final answer, or the best one of a turn that was cut short, or None."""

    number: int
    question: str
    answer: str | None
    state: str
    winner: str | None
    seconds: float
    log_dir: Path
    path: Path

    @property
    def workspace(self) -> Path | None:
        """The winner's files as the turn left them (read-only), if there were any."""
        directory = self.path / "workspace"
        return directory if directory.is_dir() else None


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A row of the list of sessions. Times are seconds since the epoch."""

    session_id: str
    turns: int
    changed_at: float
    first_question: str
    busy: bool
    """Another process is working on it."""


class Session:
    """A session that this process may write. `create` or `resume` one; `close` it, or use it as a context service."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock
        self._turns = _read_turns(path)

    @classmethod
    def create(cls, parent: Path, *, now: float | None = None) -> Self:
        """A new session below `parent`; its id is the time in UTC, made distinct if there is one of that second.

        Raises `MassgenError` store_unavailable.
        """
        stem = datetime.fromtimestamp(time.time() if now is None else now, UTC).strftime("session_%Y%m%d_%H%M%S")
        try:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            for number in range(1, 1000):
                path = parent / (stem if number == 1 else f"{stem}_{number}")
                with suppress(FileExistsError):
                    path.mkdir(mode=0o700)
                    lock = acquire(path / _LOCK)
                    if lock is not None:
                        return cls(path, lock)
        except OSError as error:
            raise MassgenError("store_unavailable", f"cannot create a session: {error.strerror}") from error
        raise MassgenError("store_unavailable", f"cannot create a session: {stem} is taken a thousand times")

    @classmethod
    def resume(cls, parent: Path, session_id: str) -> Self:
        """The session of that id, with its turns. Raises `MassgenError`: invalid_arguments if there is none,
        invalid_action if another process is working on it.
        """
        path = parent / session_id
        if not _ID.fullmatch(session_id) or not path.is_dir():
            raise MassgenError(
                "invalid_arguments",
                f"there is no session {preview(session_id, 80)!r} in {parent}; `massgen --list-sessions` shows them",
            )
        try:
            lock = acquire(path / _LOCK, patience=0.5)  # somebody may just be asking whether it is busy
        except OSError as error:
            raise MassgenError("store_unavailable", f"cannot open the session: {error.strerror}") from error
        if lock is None:
            raise MassgenError("invalid_action", f"{session_id} is in use by another process; end that one first")
        return cls(path, lock)

    @property
    def session_id(self) -> str:
        return self.path.name

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Those that have ended, in order."""
        return tuple(self._turns)

    @property
    def killed_turns(self) -> tuple["OpenTurn", ...]:
        """Those that another process began and that have not ended, in order."""
        return tuple(_killed_turns(self.path))

    @property
    def history(self) -> tuple[EarlierTurn, ...]:
        """What agents are shown: every turn with an answer, also one that was cut short."""
        return tuple(
            EarlierTurn(question=turn.question, answer=turn.answer) for turn in self._turns if turn.answer is not None
        )

    @property
    def files(self) -> Path | None:
        """The newest workspace that a turn has left."""
        return next((turn.workspace for turn in reversed(self._turns) if turn.workspace is not None), None)

    def lay_out_files(self, run: RunFiles, agents: int) -> None:
        """Put what the newest turn left into the workspaces of a run that has not begun. Raises `MassgenError`
        store_unavailable.
        """
        if self.files is None:
            return
        try:
            for place in range(agents):
                _copy_files(self.files, run.workspace_of(public_agent_name(place)))
        except OSError as error:
            raise MassgenError("store_unavailable", f"cannot copy the session's files: {error.strerror}") from error

    def begin_turn(self, question: str, log_dir: Path) -> "OpenTurn":
        """Begin the next turn; its run is kept in `log_dir`. Raises `MassgenError` store_unavailable."""
        number = max(_numbers(self.path), default=0) + 1
        metadata = _Metadata(
            turn=number,
            timestamp=datetime.now(UTC).isoformat(timespec="seconds"),
            task=question,
            session_id=self.session_id,
            state=_GOING_ON,
            log_dir=str(log_dir),
        )
        path = self.path / f"turn_{number}"
        try:
            path.mkdir(mode=0o700)
            _write_metadata(path, metadata)
            sync_directory(self.path)
            _write_summary(self.path)
        except OSError as error:
            raise MassgenError("store_unavailable", f"cannot begin a turn: {error.strerror}") from error
        return OpenTurn(path, metadata)

    def end_turn(self, turn: "OpenTurn", run: RunFiles, snapshot: RunSnapshot) -> Turn:
        """Keep what came of a turn. Raises `MassgenError` store_unavailable; the turn does not count then."""
        try:
            _write_outputs(turn.path, run, snapshot)
            if snapshot.best_answer is not None:
                write_durably(turn.path / "answer.txt", snapshot.best_answer.encode("utf-8", "replace"))
            ended = turn.metadata.model_copy(
                update={
                    "winning_agent": _winner(snapshot),
                    "state": snapshot.state,
                    "outcome": snapshot.outcome,
                    "seconds": round(snapshot.elapsed(snapshot.updated_at or 0.0), 3),
                }
            )
            _write_metadata(turn.path, ended)
            kept = _turn(turn.path, ended)
            self._turns = sorted((*self._turns, kept), key=lambda one: one.number)
            _write_summary(self.path)
        except OSError as error:
            raise MassgenError("store_unavailable", f"cannot keep the turn: {error.strerror}") from error
        return kept

    def close(self) -> None:
        """Let others write it. Safe to repeat."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn that has begun."""

    path: Path
    metadata: _Metadata

    @property
    def number(self) -> int:
        return self.metadata.turn

    @property
    def log_dir(self) -> Path:
        """The directory of its run."""
        return Path(self.metadata.log_dir)


def session_of_killed_turn(log_dir: Path) -> Path | None:
    """The session to which a turn belongs that has not ended and whose run is in `log_dir`, which is two levels below
    the same `.massgen`; None if there is no such turn.
    """
    parent = log_dir.parent.parent / SESSIONS.name
    if not parent.is_dir():
        return None
    sessions = (path for path in parent.iterdir() if _ID.fullmatch(path.name) and path.is_dir())
    return next((path for path in sessions if any(turn.log_dir == log_dir for turn in _killed_turns(path))), None)


def list_sessions(parent: Path) -> list[SessionInfo]:
    """All sessions below `parent`, the one that was changed last first. Damaged turns are left out."""
    if not parent.is_dir():
        return []
    found = [_info(path) for path in parent.iterdir() if _ID.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=lambda info: (info.changed_at, info.session_id), reverse=True)


def session_summary(path: Path) -> str:
    """`SESSION_SUMMARY.txt`: the turns of the session at `path`, for people."""
    lines = [f"Session {path.name}", "=" * (8 + len(path.name)), ""]
    for number in sorted(_numbers(path)):
        directory = path / f"turn_{number}"
        if metadata := _read_metadata(directory):
            lines += _told(directory, metadata)
    return "\n".join(lines) + "\n"


# -- files ------------------------------------------------------------------------------------------------------------


def _busy(path: Path) -> bool:
    try:
        return is_held(path / _LOCK)
    except OSError:
        return False


def _numbers(path: Path) -> Iterator[int]:
    return (int(found[1]) for entry in path.iterdir() if (found := _TURN.fullmatch(entry.name)))


def _read_turns(path: Path) -> list[Turn]:
    directories = [path / f"turn_{number}" for number in sorted(_numbers(path))]
    known = [(directory, _read_metadata(directory)) for directory in directories]
    return [_turn(directory, metadata) for directory, metadata in known if metadata and metadata.state != _GOING_ON]


def _killed_turns(path: Path) -> Iterator[OpenTurn]:
    for number in sorted(_numbers(path)):
        directory = path / f"turn_{number}"
        if (metadata := _read_metadata(directory)) and metadata.state == _GOING_ON:
            yield OpenTurn(directory, metadata)


def _turn(directory: Path, metadata: _Metadata) -> Turn:
    answer = directory / "answer.txt"
    return Turn(
        number=metadata.turn,
        question=metadata.task,
        answer=answer.read_text(encoding="utf-8", errors="replace") if answer.is_file() else None,
        state=metadata.state,
        winner=metadata.winning_agent,
        seconds=metadata.seconds or 0.0,
        log_dir=Path(metadata.log_dir),
        path=directory,
    )


def _read_metadata(directory: Path) -> _Metadata | None:
    try:
        return _Metadata.model_validate_json((directory / "metadata.json").read_bytes())
    except (OSError, ValidationError):
        return None


def _write_metadata(directory: Path, metadata: _Metadata) -> None:
    write_durably(directory / "metadata.json", metadata.model_dump_json(indent=2).encode("utf-8", "replace"))


def _write_outputs(directory: Path, run: RunFiles, snapshot: RunSnapshot) -> None:
    """`agent_outputs/<agent>.txt`, `coordination_log.json` and the winner's `workspace/`."""
    outputs = directory / "agent_outputs"
    outputs.mkdir(mode=0o700, exist_ok=True)
    for name, view in snapshot.agents.items():
        texts = [
            f"{answer.label}\n\n{answer.content.rstrip()}\n" for answer in snapshot.answers if answer.agent == name
        ]
        whole = "\n".join(texts) or "no answer\n"
        write_durably(outputs / f"{view.info.id}.txt", whole.encode("utf-8", "replace"))
    log = coordination_events(snapshot, run.event_log.read())
    write_durably(directory / "coordination_log.json", json.dumps(log, indent=2).encode())
    files = run.final_of(snapshot.winner.agent) / "workspace" if snapshot.winner else None
    if files is not None and files.is_dir() and any(files.iterdir()):
        with suppress(PathRefused, FileExistsError):
            take_snapshot(files, directory / "workspace")


def _copy_files(source: Path, target: Path) -> None:
    """A snapshot as a directory that its owner may write."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for directory in (target, *(path for path in target.rglob("*") if path.is_dir())):
        directory.chmod(0o700)


def _winner(snapshot: RunSnapshot) -> str | None:
    """Who wrote the turn's answer, as the config calls it."""
    name = getattr(snapshot.end, "winner", None)
    return snapshot.agents[name].info.id if name in snapshot.agents else None


# -- for people -------------------------------------------------------------------------------------------------------


def _write_summary(path: Path) -> None:
    replace_file(path / "SESSION_SUMMARY.txt", session_summary(path).encode("utf-8", "replace"))


def _told(directory: Path, metadata: _Metadata) -> list[str]:
    seconds = "" if metadata.seconds is None else f", {metadata.seconds:.1f} s"
    by = f", answered by {metadata.winning_agent}" if metadata.winning_agent else ""
    state = "not ended" if metadata.state == _GOING_ON else metadata.state
    answer = directory / "answer.txt"
    text = answer.read_text(encoding="utf-8", errors="replace").rstrip() if answer.is_file() else "(no answer)"
    return [
        f"Turn {metadata.turn} · {metadata.timestamp} · {state}{by}{seconds}",
        f"Run: {metadata.log_dir}",
        "",
        *(f"You: {line}" if at == 0 else f"     {line}" for at, line in enumerate(metadata.task.splitlines())),
        "",
        *text.splitlines(),
        "",
        "-" * 40,
        "",
    ]


def _info(path: Path) -> SessionInfo:
    turns = _read_turns(path)
    changed = max([path.stat().st_mtime, *(turn.path.stat().st_mtime for turn in turns)])
    return SessionInfo(
        session_id=path.name,
        turns=len(turns),
        changed_at=changed,
        first_question=preview(turns[0].question, 80) if turns else "",
        busy=_busy(path),
    )
