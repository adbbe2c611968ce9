"""What the team of a new turn reads of the earlier turns: question and answer of each, the newest ones first kept."""

from collections.abc import Iterable
from dataclasses import dataclass

from massgen_mcp.config.models import EarlierTurn

MAX_HISTORY_CHARACTERS = 100_000
"""Of all questions and answers together; agents read them before every first step."""


@dataclass(frozen=True, slots=True)
class History:
    """Earlier turns, oldest first. `left_out`: how many are missing, too long for the limit or lost."""

    turns: tuple[EarlierTurn, ...] = ()
    left_out: int = 0

    @property
    def note(self) -> str:
        """What the one who starts the turn should know."""
        count = len(self.turns)
        told = f"The team sees {count} earlier turn{'' if count == 1 else 's'} of this session" if count else ""
        if self.left_out:
            told = told or "The team sees no earlier turn of this session"
            return f"{told}; {self.left_out} older or lost one{'' if self.left_out == 1 else 's'} left out. "
        return f"{told}. " if told else ""


def recall(newest_first: Iterable[EarlierTurn | None]) -> History:
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
    return History(tuple(kept), left_out)


def _cut(turn: EarlierTurn) -> EarlierTurn:
    quarter = MAX_HISTORY_CHARACTERS // 4
    return EarlierTurn(question=_shortened(turn.question, quarter), answer=_shortened(turn.answer, 3 * quarter - 100))


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 50]}\n[{len(text) - limit + 50} characters left out]"
