"""Sessions: the runs of the store with the same session id are the turns of a conversation. Any run begins one, which
is called by the id of the run.

The team of a new turn reads question and answer of the earlier ones, as many of the newest as fit.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from massgen_mcp.errors import MassgenError
from massgen_mcp.request.question import EarlierTurn
from massgen_mcp.runs.engine import EarlierChanges, RunFilter, RunIndex, RunRow
from massgen_mcp.runs.view.run_view import RunView
from massgen_mcp.views.plain_text import counted

MAX_TURNS = 100_000
MAX_TURNS_RECALLED = 200

MAX_HISTORY_CHARACTERS = 100_000
"""Of all questions and answers together; agents read them before every first step."""


@dataclass(frozen=True, slots=True)
class SessionHistory:
    """Earlier turns, oldest first. `left_out`: how many are missing, too long for the limit or lost."""

    turns: tuple[EarlierTurn, ...] = ()
    left_out: int = 0
    begins_with: EarlierChanges | None = None

    @property
    def note(self) -> str:
        """What the one who starts the turn should know."""
        return f"{self._seen}{start_note(self.begins_with)}"

    @property
    def _seen(self) -> str:
        count = len(self.turns)
        lead = f"The team reads {count} earlier turn{('' if count == 1 else 's')} of this session" if count else ""
        if self.left_out:
            lead = lead or "The team reads no earlier turns of this session"
            return f"{lead}; left out: {self.left_out} older or lost turn{('' if self.left_out == 1 else 's')}. "
        return f"{lead}. " if lead else ""


def start_note(earlier: EarlierChanges | None) -> str:
    """What copies begin with, in words for the one who starts the turn."""
    if earlier is None:
        return ""
    what = f"what {earlier.agent} changed in {earlier.run_id} ({counted(earlier.files, 'file')})"
    return f"The run starts from {what}; the patch of this run will include these changes. "


class SessionTurns:
    """The turns of sessions: the runs of the store with that session id. `glance` may give less of a run that has
    ended than `look`.
    """

    def __init__(self, index: RunIndex, glance: Callable[[RunRow], RunView], look: Callable[[str], RunView]) -> None:
        self._index = index
        self._glance = glance
        self.look = look

    def runs(self, session_id: str) -> list[RunView]:
        """Oldest first; none of a session that the store does not know. Raises `MassgenError` store_unavailable."""
        return [self._glance(row) for row in reversed(self._rows(session_id, MAX_TURNS))]

    def ended(self, session_id: str | None) -> Iterator[RunView]:
        """The turns that have ended, newest first. Raises `MassgenError` expired, unknown_run."""
        for listed in reversed(self.runs(session_id) if session_id is not None else []):
            if listed.ended:
                yield self.look(listed.row.run_id)

    def history(self, session_id: str | None) -> tuple[SessionHistory, frozenset[int]]:
        """What the next turn of the session is told, and the numbers of the turns that are over: the turns of the last
        runs, and before them what its first run was told. Raises `MassgenError` session_busy.
        """
        if session_id is None:
            return SessionHistory(), frozenset()
        views = self._newest(session_id)
        if views and views[-1].row.run_id == session_id and not views[-1].ended:
            raise MassgenError("session_busy", f"run {session_id} is active; wait until it ends, or cancel it")
        over = [view for view in views if view.ended]
        first = views[-1:] if len(views) < MAX_TURNS_RECALLED else []
        turns = recall(chain(self._turns(over), _given_at_start(first)))
        return turns, frozenset(view.row.number for view in over)

    def list_ended_numbers(self, session_id: str | None) -> frozenset[int]:
        """Return the numbers of the turns that have ended, as `history` does."""
        if session_id is None:
            return frozenset()
        return frozenset(view.row.number for view in self._newest(session_id) if view.ended)

    def _newest(self, session_id: str) -> list[RunView]:
        return [self._glance(row) for row in self._rows(session_id, MAX_TURNS_RECALLED)]

    def _rows(self, session_id: str, most: int) -> list[RunRow]:
        """The newest first, and the run that is called so at the end."""
        rows = self._index.list_recent(RunFilter(session_id=session_id), limit=most)
        begun_by = self._index.find_known([session_id]) if len(rows) < most else ()
        return [*rows, *map(self._index.get, begun_by)]

    def _turns(self, views: list[RunView]) -> Iterator[EarlierTurn | None]:
        """The turns that have an answer; None for one whose answer is gone."""
        for listed in views:
            if listed.state == "failed":
                continue
            try:
                view = self.look(listed.row.run_id)
            except MassgenError:
                yield None
                continue
            if view.damage is not None:
                yield None
            elif answer := view.snapshot.best_answer:
                yield EarlierTurn(question=view.snapshot.question, answer=answer, opening=view.snapshot.opening)


def _given_at_start(first: list[RunView]) -> Iterator[EarlierTurn]:
    """What was said before a session began, newest first."""
    for view in first:
        with suppress(MassgenError):
            yield from reversed(view.directory.read_request().history)


def recall(newest_first: Iterable[EarlierTurn | None]) -> SessionHistory:
    """The newest turns that fit; a turn that is None is lost. The newest is cut rather than left out."""
    kept: list[EarlierTurn] = []
    room, left_out, full = MAX_HISTORY_CHARACTERS, 0, False
    for turn in newest_first:
        if turn is None:
            left_out += 1
            continue
        if not kept and not full:
            turn = _cut(turn)  # noqa: PLW2901 - the newest
        size = len(turn.question) + len(turn.answer)
        full = full or size > room
        if full:
            left_out += 1
            continue
        kept.append(turn)
        room -= size
    kept.reverse()
    if kept and left_out:
        kept[0] = kept[0].model_copy(update={"question": f"[{left_out} turns are left out]\n\n{kept[0].question}"})
    return SessionHistory(tuple(kept), left_out)


def _cut(turn: EarlierTurn) -> EarlierTurn:
    quarter = MAX_HISTORY_CHARACTERS // 4
    answer = _shortened(turn.answer, 3 * quarter - 100)
    return turn.model_copy(update={"question": _shortened(turn.question, quarter), "answer": answer})


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 50]}\n[{len(text) - limit + 50} characters left out]"
