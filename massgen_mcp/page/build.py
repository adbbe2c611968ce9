"""The data of a run's page: its state as it stands, and its history, put into the words and figures that are drawn."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from massgen_mcp import events
from massgen_mcp.events import LogRecord
from massgen_mcp.page.data import (
    Answer,
    Call,
    Lane,
    Moment,
    Nested,
    RunPage,
    Shown,
    ShownAnswer,
    TimeLine,
    ToolCall,
    Vote,
)
from massgen_mcp.page.head import counted, facts, headline, why_it_ended
from massgen_mcp.page.history import History, PastAnswer, PastVote, Sent
from massgen_mcp.page.sums import sums_of
from massgen_mcp.page.texts import TextRoom
from massgen_mcp.page.time_line import time_line
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.sentences import decided_beyond_votes

MOST_MARKS = 4_000
"""Of calls, tools and moments each: a longer run shows the last ones."""
DETAIL = 240
"""Characters of what was written, beside the sentence of a moment."""
MOST_DEPTH = 4
"""So deep nested runs are drawn with their own lanes."""

T = TypeVar("T")

Told = tuple[RunState, Iterable[LogRecord]]
"""A run at one moment, and its records, those after that moment, too."""

NestedRuns = Callable[[str], Told | None]
"""Another run by its id; None where it cannot be read."""


def run_page(told: Told, nested: NestedRuns, *, redacted: bool = False) -> RunPage:
    """The page of a run. `redacted`: without anything that was written by people, models and tools. `nested` reads the
    runs that were started inside it.
    """
    return _page(told, nested, TextRoom(redacted=redacted), MOST_DEPTH)


def _page(told: Told, nested: NestedRuns, room: TextRoom, depth: int) -> RunPage:
    run, history = told[0], History()
    for record in told[1]:
        if record.seq <= run.seq:
            history.add(record)
    return page_with(run, history, nested, room, depth)


def page_with(run: RunState, history: History, nested: NestedRuns, room: TextRoom, depth: int = MOST_DEPTH) -> RunPage:
    """The page of a run whose records, as far as `run` holds them, are in `history`."""
    return _Builder(run, history, nested, room, depth).page()


@dataclass
class _Builder:
    run: RunState
    history: History
    nested_runs: NestedRuns
    room: TextRoom
    depth: int
    notes: list[str] = field(default_factory=list[str])

    def page(self) -> RunPage:
        """Texts are taken in the order of their importance."""
        run, room = self.run, self.room
        answer = None if run.best_answer is None else room.take(run.best_answer)
        question = room.take(run.question)
        why = why_it_ended(run)
        reason = None if why is None else room.take(why)
        answers = self._answers()
        votes = tuple(self._vote(vote) for vote in self.history.votes)
        shown = tuple(self._shown(sent) for sent in self._last(self.history.sent, "ballots and messages"))
        moments = self._moments()
        page = RunPage(
            run_id=run.run_id,
            state=run.state,
            started_at=run.started_at,
            question=question,
            headline=headline(run),
            facts=tuple(facts(run)),
            reason=reason,
            answer=answer,
            final=run.final_answer is not None,
            decided_at=None if self.history.decided is None else self._since(self.history.decided),
            decided=tuple(decided_beyond_votes(run.winner)) if run.winner else (),
            agents=self._agents(),
            time_line=self._time_line(),
            calls=self._calls(),
            tools=self._tools(),
            answers=answers,
            votes=votes,
            moments=moments,
            shown=shown,
            sums=sums_of(run, self.history.by_phase),
            nested=tuple(self._nested(run_id) for run_id in run.nested_runs),
            notes=(),
            redacted=room.redacted,
        )
        return page.model_copy(update={"notes": tuple(self._notes())})

    # -- the run --------------------------------------------------------------------------------------------------

    def _notes(self) -> Iterable[str]:
        if self.room.redacted:
            yield "Everything that people, models and tools wrote was left out of this page on purpose."
        elif self.room.shortened:
            yield f"{counted(self.room.shortened, 'text')} shortened here; the run directory has all of it."
        yield from self.notes

    def _agents(self) -> tuple[Lane, ...]:
        return tuple(
            Lane(
                name=name,
                id=agent.info.id,
                model=agent.info.model,
                dropped=agent.dropped.reason if agent.dropped else "",
                dropped_at=None if agent.dropped_at is None else self._since(agent.dropped_at),
                author=self.run.end is not None and self.run.end.winner == name,
            )
            for name, agent in self.run.agents.items()
        )

    def _id(self, name: str) -> str:
        return self.run.agents[name].info.id

    # -- time -----------------------------------------------------------------------------------------------------

    def _since(self, time: float) -> float:
        """Seconds since the run began; a clock that was set back cannot lead before that."""
        return round(max(0.0, time - (self.run.started_at or time)), 3)

    def _end_of(self, end: float) -> float:
        return self._since(end or self.history.last)

    def _time_line(self) -> TimeLine:
        history = self.history
        work = [(self._since(call.start), self._end_of(call.end)) for call in history.calls]
        work += [(self._since(tool.start), self._since(tool.end)) for tool in history.tools]
        work += [(self._since(since), self._end_of(until or 0.0)) for since, until in history.nested.values()]
        work += [(self._since(moment.at), self._since(moment.at)) for moment in history.moments]
        return time_line(((since, max(since, until)) for since, until in work), self._since(history.last))

    def _calls(self) -> tuple[Call, ...]:
        return tuple(
            Call(
                agent=call.agent,
                start=self._since(call.start),
                end=self._end_of(call.end),
                phase=call.phase,
                ended=call.ended,
                say=call.say,
            )
            for call in self._last(self.history.calls, "model calls")
        )

    def _tools(self) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall(
                agent=tool.agent,
                start=self._since(tool.start),
                end=self._since(tool.end),
                name=tool.name,
                shown=self.room.beginning(tool.shown, DETAIL),
                failed=tool.failed,
            )
            for tool in self._last(self.history.tools, "tool calls")
        )

    def _moments(self) -> tuple[Moment, ...]:
        return tuple(
            Moment(
                at=self._since(moment.at),
                agent=moment.agent,
                say=moment.sentence.text,
                detail=self.room.beginning(moment.sentence.detail, DETAIL),
                kind=moment.kind,
            )
            for moment in self._last(self.history.moments, "moments")
        )

    def _last(self, items: Sequence[T], what: str) -> Sequence[T]:
        if len(items) > MOST_MARKS:
            self.notes.append(f"{len(items) - MOST_MARKS} earlier {what} are not drawn; events.jsonl has them.")
        return items[-MOST_MARKS:]

    # -- answers and votes ----------------------------------------------------------------------------------------

    def _answers(self) -> tuple[Answer, ...]:
        """In the order of time. What won has room first, then what stands, then the rest, the latest first."""
        standing = {answer.label for answer in self.run.current_answers}

        def less_important(past: PastAnswer) -> tuple[bool, bool, float]:
            return not self._won(past), past.event.label not in standing, -past.at

        texts = {
            _key(past): self.room.take(past.event.content) for past in sorted(self.history.answers, key=less_important)
        }
        answers: list[Answer] = []
        latest: dict[str, str] = {}
        for past in self.history.answers:
            key, agent = _key(past), past.event.agent
            answers.append(
                Answer(
                    key=key,
                    label=past.event.label,
                    agent=agent,
                    at=self._since(past.at),
                    text=texts[key],
                    earlier=latest.get(agent),
                    won=self._won(past),
                )
            )
            latest[agent] = key
        return tuple(answers)

    def _won(self, past: PastAnswer) -> bool:
        winner = self.run.winner
        return winner is not None and past.attempt == self.run.attempt and past.event.label == winner.label

    def _vote(self, past: PastVote) -> Vote:
        run, event = self.run, past.event
        counted = (run.run_off_votes if event.run_off else run.votes).get(event.agent)
        stands = past.attempt == run.attempt and counted is not None and counted.time == past.at
        return Vote(
            agent=event.agent,
            answer=_key_of(past.attempt, event.label),
            at=self._since(past.at),
            reason=self.room.take(event.reason),
            void_at=None if past.void_at is None else self._since(past.void_at),
            run_off=event.run_off,
            stands=stands,
            dissent=stands and run.winner is not None and event.label not in run.agreed,
        )

    def _shown(self, sent: Sent) -> Shown:
        event, texts = sent.event, list[str]()
        ballot: tuple[events.BallotEntry, ...] = ()
        match event:
            case events.RoundStarted():
                what = f"Round {event.round}" + (" of the run-off" if event.run_off else "")
                ballot = event.ballot
                texts = [*_reasons(event), event.notes, *self._messages(event.heard)]
            case events.BallotChanged():
                what, ballot = "Newer answers", event.ballot
                texts = _reasons(event)
            case events.MessagesShown():
                what = "Messages of the caller"
                texts = self._messages(event.heard)
            case events.PresentationStarted():
                what = "All answers and votes, to write the final answer"
                texts = self._messages(event.heard)
        return Shown(
            at=self._since(sent.at),
            agent=event.agent,
            what=what,
            ballot=tuple(ShownAnswer(name=entry.name, answer=_key_of(sent.attempt, entry.label)) for entry in ballot),
            texts=tuple(self.room.take(text) for text in texts if text),
        )

    def _messages(self, heard: int) -> list[str]:
        return [f"Message of the caller: {message}" for message in self.run.caller.messages[:heard]]

    # -- nested runs ----------------------------------------------------------------------------------------------

    def _nested(self, run_id: str) -> Nested:
        started, ended = self.run.nested_runs[run_id], self.run.nested_ends.get(run_id)
        since, until = self.history.nested[run_id]
        told = self.nested_runs(run_id) if self.depth > 1 else None
        return Nested(
            run_id=run_id,
            agent=started.agent,
            start=self._since(since),
            end=None if until is None else self._since(until),
            state=(ended.state if ended else "running").replace("_", " "),
            say=self.room.beginning(started.question, DETAIL),
            run=None if told is None else _page(told, self.nested_runs, self.room, self.depth - 1),
        )


def _reasons(event: events.RoundStarted | events.BallotChanged) -> list[str]:
    return [f"Reason of {reason.name}: {reason.reason}" for reason in event.reasons]


def _key(past: PastAnswer) -> str:
    return _key_of(past.attempt, past.event.label)


def _key_of(attempt: int, label: str) -> str:
    return label if attempt == 1 else f"{label}, attempt {attempt}"
