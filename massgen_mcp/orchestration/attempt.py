"""What every phase of one attempt needs: the spec of the run, the live run, and how its conversations open."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from massgen_mcp.backends.base import Message, UserMessage
from massgen_mcp.events.parts import ShortenedText, TextKind
from massgen_mcp.markers import draw_nonce
from massgen_mcp.orchestration import prompts
from massgen_mcp.orchestration.live_run import LiveRun
from massgen_mcp.orchestration.team import Member, RunSpec
from massgen_mcp.orchestration.window import (
    LONGEST_SHOWN,
    Texts,
    measure_shortened,
    most_of_each,
    readable_bytes,
    within,
)
from massgen_mcp.request.question import EarlierTurn


@dataclass(frozen=True, slots=True)
class Briefing:
    """What a further attempt is told of the one before: its final answer, and how that was judged."""

    answer: str
    reason: str
    instructions: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """`number` counts from 1. `briefing` is what the attempt before left, if there was one."""

    run_spec: RunSpec
    live_run: LiveRun
    number: int
    briefing: Briefing | None = None

    @property
    def today(self) -> str | None:
        """The date on which the run began, in UTC; agents keep it, also after a resume. None: the record has none."""
        started = self.live_run.state.started_at
        return None if started is None else datetime.fromtimestamp(started, UTC).date().isoformat()

    @property
    def has_long_waits(self) -> bool:
        """Whether agents may wait longer for each other than a provider's cache usually lives: they work on files."""
        return len(self.run_spec.team) > 1 and any(one.commands is not None for one in self.run_spec.team)

    @property
    def shared_ends(self) -> tuple[int, ...]:
        """The places in the opening that end what other requests begin with, too."""
        turns, briefed = len(self.run_spec.history), self.briefing is not None
        return (*((turns - 1,) if turns else ()), turns + briefed)

    def opening(self, nonce: str, most: int | None) -> tuple[Message, ...]:
        """What every conversation opens with: the question, and in a further attempt the briefing. At most `most`
        characters of each text; None: all of it.
        """
        history = [
            EarlierTurn(question=within(one.question, most), answer=within(one.answer, most))
            for one in self.run_spec.history
        ]
        asked, commented = within(self.run_spec.question, most), within(self.run_spec.commented, most)
        blocks = [*prompts.make_history_blocks(history, nonce)]
        blocks.append(prompts.question_block(asked, nonce, commented))
        if (before := self.briefing) is not None:
            answer = within(before.answer, most)
            blocks.append(prompts.briefing_block(answer, before.reason, before.instructions, nonce))
        return tuple(map(UserMessage, blocks))

    def most_shown(self, member: Member, texts: Iterable[str]) -> int | None:
        """So many characters of each text of the opening, and of each of these, its model can read in one call. None:
        all, as far as is known.
        """
        room, texts = readable_bytes(member), [*texts]
        most = None if room is None else most_of_each([*self._list_opening(), *texts], room)
        if max(map(len, texts), default=0) <= LONGEST_SHOWN:
            return most
        return LONGEST_SHOWN if most is None else min(most, LONGEST_SHOWN)

    def measure_shares(self, texts: Texts, most: int | None) -> tuple[ShortenedText, ...]:
        """The kinds of text, of the opening and of these, that are shown in part where at most `most` characters of
        each text are.
        """
        opening: dict[TextKind, list[str]] = {}
        for kind, text in self._iter_opening():
            opening.setdefault(kind, []).append(text)
        return measure_shortened({**opening, **texts}, most)

    def nonces(self, agent: str, texts: Iterable[str]) -> tuple[str, str]:
        """For a conversation that begins with `texts` after its opening: the nonce of the opening and that of the rest.

        Agents of one model have the same one for the opening, so that providers can cache it, unless a text has come to
        hold it.
        """
        known = [*texts, *self._list_opening()]
        opening = self.opening_nonce(agent, known)
        return opening, draw_nonce([*known, opening])

    def opening_nonce(self, agent: str, texts: Iterable[str]) -> str:
        """The one that the agent has, or else another agent of the same model, or the turn before; unless a text holds
        it.
        """
        agents = self.live_run.state.agents
        own, known = agents[agent], [*texts]
        others = (one.opening for one in agents.values() if one.info.model == own.info.model)
        before = (turn.opening for turn in self.run_spec.history[-1:])
        for kept in filter(None, (own.opening, *others, *before)):
            if not any(kept in text.casefold() for text in known):
                return kept
        return draw_nonce(known)

    def _list_opening(self) -> Iterable[str]:
        return (text for _, text in self._iter_opening())

    def _iter_opening(self) -> Iterator[tuple[TextKind, str]]:
        yield "question", self.run_spec.question
        yield "question", self.run_spec.commented
        for turn in self.run_spec.history:
            yield "history", turn.question
            yield "history", turn.answer
        if self.briefing is not None:
            yield "history", self.briefing.answer
            yield "history", self.briefing.reason
            yield "history", self.briefing.instructions
