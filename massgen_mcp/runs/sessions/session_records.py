"""What a project keeps of the turns of a session: `.massgen/sessions/SESSION/turn_N/`, once a turn has ended.

The session itself is what the run store says (see `sessions`). A turn that was continued elsewhere is written down by
whoever opens or lists the session next. `metadata.json` is written last.
"""

import json
import re
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pydantic import BaseModel, Field, ValidationError

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import public_agent_name
from massgen_mcp.home import sync_directory, write_durably
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.runs.engine.files import replace_file
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.views.coordination_record import coordination_events
from massgen_mcp.workspace.guard import PathRefused, safe_id
from massgen_mcp.workspace.snapshot import take_snapshot

_TURN = re.compile(r"turn_([1-9][0-9]{0,5})")


class SessionTurn(BaseModel, frozen=True, defer_build=True, extra="ignore", serialize_by_alias=True):
    """A turn that has ended, as `turn_N/metadata.json` tells it. The first five keys are MassGen's."""

    number: int = Field(alias="turn")
    began: str = Field(alias="timestamp")
    """In UTC."""
    winner: str | None = Field(default=None, alias="winning_agent")
    """As the config calls it."""
    question: str = Field(alias="task")
    session_id: str
    state: str
    outcome: str | None = None
    seconds: float | None = None
    log_dir: Path
    path: Path = Field(default=Path(), exclude=True)
    """The directory that this is kept in."""

    @property
    def answer(self) -> str | None:
        """The final answer, or the best one of a turn that was cut short, or None."""
        with suppress(FileNotFoundError):
            return (self.path / "answer.txt").read_text(encoding="utf-8", errors="replace")
        return None

    @property
    def workspace(self) -> Path | None:
        """The winner's files as the turn left them (read-only), if there were any."""
        directory = self.path / "workspace"
        return directory if directory.is_dir() else None


class SessionRecords:
    """What is kept of a session at `path`; there need not be anything yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, parent: Path, *, now: float | None = None) -> Self:
        """Of a new session below `parent`; its id is the time in UTC, made distinct if there is one of that second.

        Raises `MassgenError` store_unavailable.
        """
        stem = datetime.fromtimestamp(time.time() if now is None else now, UTC).strftime("session_%Y%m%d_%H%M%S")
        try:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            for number in range(1, 1000):
                path = parent / (stem if number == 1 else f"{stem}_{number}")
                with suppress(FileExistsError):
                    path.mkdir(mode=0o700)
                    return cls(path)
        except OSError as error:
            raise MassgenError("store_unavailable", f"cannot create a session: {error.strerror}") from error
        raise MassgenError("store_unavailable", f"cannot create a session: too many sessions are already named {stem}")

    @property
    def session_id(self) -> str:
        return self.path.name

    @property
    def exist(self) -> bool:
        return self.path.is_dir()

    def make(self) -> None:
        """Let there be records from now on. Raises `MassgenError` store_unavailable."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise MassgenError("store_unavailable", f"cannot open the session: {error.strerror}") from error

    @property
    def changed_at(self) -> float:
        """In seconds since the epoch."""
        return max(path.stat().st_mtime for path in (self.path, *self._directories()))

    @property
    def turns(self) -> list[SessionTurn]:
        """In order. Damaged ones are left out."""
        known = map(_read_turn, self._directories())
        return [turn for turn in known if turn and turn.state in TERMINAL_STATES]

    @property
    def history(self) -> tuple[EarlierTurn, ...]:
        """What agents are shown of a session that no run store knows: every turn with an answer."""
        pairs = ((turn.question, turn.answer) for turn in self.turns)
        return tuple(EarlierTurn(question=question, answer=answer) for question, answer in pairs if answer is not None)

    def lay_out_files(self, run: RunFiles, agents: int) -> None:
        """Put what the newest turn left into the workspaces of a run that has not begun. Raises `MassgenError`
        store_unavailable.
        """
        files = next((turn.workspace for turn in reversed(self.turns) if turn.workspace is not None), None)
        if files is None:
            return
        try:
            for place in range(agents):
                _copy_files(files, run.workspace_of(public_agent_name(place)))
        except OSError as error:
            raise MassgenError("store_unavailable", f"cannot copy the session's files: {error.strerror}") from error

    def complete(self, runs: Sequence[RunView], look: Callable[[str], RunView]) -> None:
        """Write down what is not yet: `runs` are the session's in the run store, oldest first. What cannot be written
        now is written the next time.
        """
        turns = self.turns
        paths = [view.directory.path for view in runs]
        before = max((turn.number for turn in turns if turn.log_dir not in paths), default=0)
        recorded = {turn.log_dir for turn in turns}
        for place, view in enumerate(runs, 1):
            if view.ended and view.directory.path not in recorded:
                with suppress(MassgenError):
                    whole = look(view.row.run_id)
                    if whole.damage is None:
                        self.keep(whole.directory, whole.snapshot, before + place)

    def keep(self, run: RunFiles, snapshot: RunState, number: int | None = None) -> SessionTurn:
        """Write down what came of a turn, by default as the one after the last. Raises `MassgenError`
        store_unavailable.
        """
        try:
            number = number or max((turn.number for turn in self.turns), default=0) + 1
            path = self.path / f"turn_{number}"
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_outputs(path, run, snapshot)
            if snapshot.best_answer is not None:
                write_durably(path / "answer.txt", snapshot.best_answer.encode("utf-8", "replace"))
            turn = _turn(path, number, self.session_id, run, snapshot)
            write_durably(path / "metadata.json", turn.model_dump_json(indent=2).encode("utf-8", "replace"))
            sync_directory(self.path)
            replace_file(self.path / "SESSION_SUMMARY.txt", _summary(self).encode("utf-8", "replace"))
        except OSError as error:
            raise MassgenError("store_unavailable", f"cannot save the turn: {error.strerror}") from error
        return turn

    def _directories(self) -> list[Path]:
        if not self.exist:
            return []
        numbers = sorted(int(found[1]) for entry in self.path.iterdir() if (found := _TURN.fullmatch(entry.name)))
        return [self.path / f"turn_{number}" for number in numbers]


def sessions_in(parent: Path) -> list[SessionRecords]:
    """Of every session that has a directory below `parent`."""
    if not parent.is_dir():
        return []
    return [SessionRecords(path) for path in parent.iterdir() if is_session_id(path.name) and path.is_dir()]


def is_session_id(text: str) -> bool:
    """Whether a session can be called so, here and in the run store."""
    with suppress(MassgenError):
        return bool(safe_id(text, "session id"))
    return False


# -- files ------------------------------------------------------------------------------------------------------------


def _read_turn(directory: Path) -> SessionTurn | None:
    try:
        turn = SessionTurn.model_validate_json((directory / "metadata.json").read_bytes())
    except (OSError, ValidationError):
        return None
    return turn.model_copy(update={"path": directory})


def _turn(path: Path, number: int, session_id: str, run: RunFiles, snapshot: RunState) -> SessionTurn:
    began = datetime.fromtimestamp(snapshot.started_at or time.time(), UTC)
    return SessionTurn(
        turn=number,
        timestamp=began.isoformat(timespec="seconds"),
        winning_agent=snapshot.author,
        task=snapshot.question,
        session_id=session_id,
        state=snapshot.state,
        outcome=snapshot.outcome,
        seconds=round(snapshot.elapsed(snapshot.updated_at or 0.0), 3),
        log_dir=run.path,
        path=path,
    )


def _write_outputs(directory: Path, run: RunFiles, snapshot: RunState) -> None:
    """`agent_outputs/<agent>.txt`, `coordination_log.json` and the winner's `workspace/`."""
    outputs = directory / "agent_outputs"
    outputs.mkdir(mode=0o700, exist_ok=True)
    for name, view in snapshot.agents.items():
        texts = [
            f"{answer.label}\n\n{answer.content.rstrip()}\n" for answer in snapshot.answers if answer.agent == name
        ]
        whole = "\n".join(texts) or "no answer\n"
        write_durably(outputs / f"{view.info.id}.txt", whole.encode("utf-8", "replace"))
    log = coordination_events(snapshot, run.event_log.read(text=False))
    write_durably(directory / "coordination_log.json", json.dumps(log, indent=2).encode())
    author = snapshot.answered_by or (snapshot.winner.agent if snapshot.winner else None)
    files = run.final_of(author) / "workspace" if author else None
    if files is not None and files.is_dir() and any(files.iterdir()):
        with suppress(PathRefused, FileExistsError):
            take_snapshot(files, directory / "workspace")


def _copy_files(source: Path, target: Path) -> None:
    """A snapshot as a directory that its owner may write."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for directory in (target, *(path for path in target.rglob("*") if path.is_dir())):
        directory.chmod(0o700)


# -- for people -------------------------------------------------------------------------------------------------------


def _summary(session: SessionRecords) -> str:
    lines = [f"Session {session.session_id}", "=" * (8 + len(session.session_id)), ""]
    for turn in session.turns:
        lines += _turn_lines(turn)
    return "\n".join(lines) + "\n"


def _turn_lines(turn: SessionTurn) -> list[str]:
    by = f", answered by {turn.winner}" if turn.winner else ""
    return [
        f"Turn {turn.number} · {turn.began} · {turn.state}{by}, {turn.seconds or 0:.1f} s",
        f"Run: {turn.log_dir}",
        "",
        *(f"You: {line}" if at == 0 else f"     {line}" for at, line in enumerate(turn.question.splitlines())),
        "",
        *("(no answer)" if (answer := turn.answer) is None else answer.rstrip()).splitlines(),
        "",
        "-" * 40,
        "",
    ]
