"""The data of a run's page: its state as it stands, and its history, put into the words and figures that are drawn."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from massgen_mcp.events.agent_work import TextDelta
from massgen_mcp.events.parts import ChecksPolicy
from massgen_mcp.events.record import LogRecord
from massgen_mcp.page.data import (
    Answer,
    CheckRun,
    Doing,
    Lane,
    Nested,
    PageModelCall,
    PageMoment,
    PageToolCall,
    PageVote,
    RunPage,
    Text,
    TimeLine,
)
from massgen_mcp.page.head import actions, facts, headline, tone, why_it_ended
from massgen_mcp.page.history import PastAnswer, PastVote, RunHistory, key_of
from massgen_mcp.page.left_out import Most, Nameless, TextRoom
from massgen_mcp.page.parts import Patches, PatchOf, checks_of, shown_of, sums_of, tests_of, time_line
from massgen_mcp.redaction import Redactor
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.status import TERMINAL_STATES
from massgen_mcp.views.activity import Activities, story
from massgen_mcp.views.ending import helps
from massgen_mcp.views.firmness import cautions
from massgen_mcp.views.live_view import newest_words, status_of
from massgen_mcp.views.names import replace_names
from massgen_mcp.views.plain_text import counted, preview
from massgen_mcp.views.sentences import sentence_of
from massgen_mcp.views.votes_text import list_decisions

DETAIL = 240
"""Characters of what was written, beside the sentence of a moment."""
MOST_DEPTH = 4
"""So deep nested runs are drawn with their own lanes."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A run at one moment, its records, those after that moment, too, and what its other files tell."""

    state: RunState
    records: Iterable[LogRecord]
    patch_of: PatchOf
    redactor: Redactor
    policy: ChecksPolicy = "informative"
    applied_at: float | None = None
    """When its changes were applied, in seconds since the epoch; None: they are not."""


RunById = Callable[[str], ReportedRun | None]
"""Another run by its id; None where it cannot be read."""


def run_page(reported: ReportedRun, nested: RunById, *, redacted: bool = False) -> RunPage:
    """The page of a run. `redacted`: without anything that was written by people, models and tools. `nested` reads the
    runs that were started inside it.
    """
    return page_with(reported, _history(reported, redacted=redacted), nested, TextRoom(redacted=redacted))


def smaller_pages(reported: ReportedRun, nested: RunById, sizes: Iterable[Most]) -> Iterator[RunPage]:
    """The page of a run in each of these sizes; its records are read once."""
    history = _history(reported)
    for most in sizes:
        yield page_with(reported, history, nested, TextRoom(redacted=False, most=most))


def _history(reported: ReportedRun, *, redacted: bool = False) -> RunHistory:
    history, nameless = RunHistory(), Nameless()
    for record in reported.records:
        if record.seq <= reported.state.seq:
            history.add(nameless.record(record) if redacted else record)
    return history


def page_with(
    reported: ReportedRun, history: RunHistory, nested: RunById, room: TextRoom, depth: int = MOST_DEPTH
) -> RunPage:
    """The page of a run whose records, as far as its state holds them, are in `history`."""
    patches = Patches(reported.patch_of, room, reported.redactor)
    return _Builder(reported, history, nested, room, depth, patches).page()


MAX_LOSS = 500
"""Characters of why an MCP server was not there."""


@dataclass
class _Builder:
    reported: ReportedRun
    history: RunHistory
    nested_runs: RunById
    room: TextRoom
    depth: int
    patches: Patches
    notes: list[str] = field(default_factory=list[str])

    @property
    def run(self) -> RunState:
        return self.reported.state

    def page(self) -> RunPage:
        """Texts are taken in the order of their importance."""
        run, room = self.run, self.room
        answer = None if run.best_answer is None else room.take(run.best_answer)
        question = room.take(run.question)
        why = why_it_ended(run)
        reason: Text | None = None
        if why is not None:
            reason = room.take(why)
        changes = self.patches.changes(run.best_changes)
        answers = self._answers()
        votes = self._votes({answer.key: answer.agent for answer in answers})
        sent = self._last(self.history.sent, "ballots and messages")
        shown = tuple(shown_of(one, run.caller.messages, room, self.history.since(one.at)) for one in sent)
        moments = self._moments()
        page = RunPage(
            run_id=run.run_id,
            state=run.state,
            tone=tone(run),
            ended=run.state in TERMINAL_STATES,
            actions=tuple(actions(run)),
            max_usd=run.max_usd,
            started_at=run.started_at,
            question=question,
            headline=headline(run, reasons=not room.redacted),
            cautions=tuple(cautions(run)),
            facts=tuple(facts(run)),
            story="" if run.state in TERMINAL_STATES else story(run, Activities()),
            reason=reason,
            helps=tuple(helps(run)) if run.end is not None else (),
            answer=answer,
            final=run.final_answer is not None,
            decided_at=None if self.history.decided is None else self.history.since(self.history.decided),
            decided=tuple(f"{one[0].upper()}{one[1:]}." for one in list_decisions(run)),
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
            changes=changes,
            applied_at=self.reported.applied_at,
            patches=self.patches.texts,
            checks=checks_of(run, self.reported.policy, self.history.checked, room),
            tests=tests_of(run, room),
            check_runs=self._check_runs(),
            notes=(),
            redacted=room.redacted,
        )
        return page.model_copy(update={"notes": tuple(self._notes())})

    # -- the run --------------------------------------------------------------------------------------------------

    def _notes(self) -> Iterable[str]:
        if self.room.redacted:
            yield "This page intentionally leaves out everything that people, models and tools wrote."
        elif self.room.shortened:
            yield f"This page shortens {counted(self.room.shortened, 'text')}; the run's directory has the full text."
        if not self.room.redacted:
            yield from (preview(loss, MAX_LOSS) for loss in self.run.server_losses)
        yield from self.notes

    def _agents(self) -> tuple[Lane, ...]:
        return tuple(
            Lane(
                name=name,
                id=agent.info.id,
                model=agent.info.model,
                dropped=agent.dropped.reason if agent.dropped else "",
                dropped_at=None if agent.dropped_at is None else self.history.since(agent.dropped_at),
                author=self.run.end is not None and self.run.end.winner == name,
                changed=str(agent.latest_changes) if agent.latest_changes and agent.latest_changes.count else "",
            )
            for name, agent in self.run.agents.items()
        )

    # -- time -----------------------------------------------------------------------------------------------------

    def _time_line(self) -> TimeLine:
        history, last = self.history, self.history.since(self.history.last)
        work = [(call.start, last if call.ended == "open" else call.end) for call in history.calls]
        work += [(tool.start, tool.end) for tool in history.tools]
        work += [
            (history.since(check.at - check.event.outcome.seconds), history.since(check.at))
            for check in history.check_runs
        ]
        work += [
            (history.since(since), history.since(until or history.last)) for since, until in history.nested.values()
        ]
        work += [(moment.at, moment.at) for moment in history.moments]
        return time_line(((since, max(since, until)) for since, until in work), last)

    def _calls(self) -> tuple[PageModelCall, ...]:
        """One that has not ended goes on until the last thing that happened."""
        now = {"end": self.history.since(self.history.last)}
        calls = self._last(self.history.calls, "model calls")
        return tuple(call.model_copy(update=now) if call.ended == "open" else call for call in calls)

    def _tools(self) -> tuple[PageToolCall, ...]:
        return tuple(
            tool.model_copy(update={"shown": self.room.beginning(tool.shown, DETAIL)})
            for tool in self._last(self.history.tools, "tool calls")
        )

    def _check_runs(self) -> tuple[CheckRun, ...]:
        return tuple(
            CheckRun(
                agent=self.history.authors.get(check.event.tree),
                start=self.history.since(check.at - check.event.outcome.seconds),
                end=self.history.since(check.at),
                result=check.event.outcome.result,
                say=sentence_of(check.event).text,
            )
            for check in self._last(self.history.check_runs, "checks")
        )

    def _moments(self) -> tuple[PageMoment, ...]:
        return tuple(
            moment.model_copy(
                update={
                    "say": replace_names(self.run, moment.say),
                    "detail": self.room.beginning(moment.detail, DETAIL),
                }
            )
            for moment in self._last(self.history.moments, "moments")
        )

    def _last(self, items: Sequence[T], what: str) -> Sequence[T]:
        most = self.room.most.marks
        if len(items) > most:
            self.notes.append(f"This page doesn't show {len(items) - most} earlier {what}; events.jsonl has them.")
        return items[-most:]

    # -- answers and votes ----------------------------------------------------------------------------------------

    def _answers(self) -> tuple[Answer, ...]:
        """In the order of time. What won has room first, then what stands, then the rest, the latest first."""
        standing = {answer.label for answer in self.run.current_answers}

        def less_important(past: PastAnswer) -> tuple[bool, bool, float]:
            return not self._won(past), past.event.label not in standing, -past.at

        texts = {
            key_of(past.attempt, past.event.label): self.room.take(past.event.content)
            for past in sorted(self.history.answers, key=less_important)
        }
        answers: list[Answer] = []
        latest: dict[str, str] = {}
        for past in self.history.answers:
            key, agent = key_of(past.attempt, past.event.label), past.event.agent
            answers.append(
                Answer(
                    key=key,
                    label=past.event.label,
                    agent=agent,
                    at=self.history.since(past.at),
                    text=texts[key],
                    earlier=latest.get(agent),
                    won=self._won(past),
                    changes=self.patches.changes(past.event.changes),
                )
            )
            latest[agent] = key
        return tuple(answers)

    def _won(self, past: PastAnswer) -> bool:
        winner = self.run.winner
        return winner is not None and past.attempt == self.run.attempt and past.event.label == winner.label

    def _votes(self, authors: Mapping[str, str]) -> tuple[PageVote, ...]:
        """`authors`: of the answers, by key."""
        votes: list[PageVote] = []
        latest: dict[str, str] = {}
        for past in self.history.votes:
            vote = self._vote(past)
            before = latest.get(vote.agent)
            if before is not None and authors.get(before) != authors.get(vote.answer):
                vote = vote.model_copy(update={"changed_from": before})
            votes.append(vote)
            latest[vote.agent] = vote.answer
        return tuple(votes)

    def _vote(self, past: PastVote) -> PageVote:
        run, event = self.run, past.event
        counted = (run.run_off_votes if event.run_off else run.votes).get(event.agent)
        stands = past.attempt == run.attempt and counted is not None and counted.time == past.at
        return PageVote(
            agent=event.agent,
            answer=key_of(past.attempt, event.label),
            at=self.history.since(past.at),
            reason=self.room.take(event.reason),
            void_at=None if past.void_at is None else self.history.since(past.void_at),
            run_off=event.run_off,
            stands=stands,
            dissent=stands and run.winner is not None and event.label not in run.agreed,
        )

    # -- nested runs ----------------------------------------------------------------------------------------------

    def _nested(self, run_id: str) -> Nested:
        started, ended = self.run.nested_runs[run_id], self.run.nested_ends.get(run_id)
        since, until = self.history.nested[run_id]
        return Nested(
            run_id=run_id,
            agent=started.agent,
            start=self.history.since(since),
            end=None if until is None else self.history.since(until),
            state=(ended.state if ended else "running").replace("_", " "),
            say=self.room.beginning(started.question, DETAIL),
            run=self._draw_nested(self.nested_runs(run_id) if self.depth > 1 else None),
        )

    def _draw_nested(self, reported: ReportedRun | None) -> RunPage | None:
        if reported is None:
            return None
        history = _history(reported, redacted=self.room.redacted)
        return page_with(reported, history, self.nested_runs, self.room, self.depth - 1)


# ---------------------------------------------------------------------------------------------------------------------
# The page of a run that is looked at while it goes on: what is new is added to what was read before.


GROWS_SECONDS = 1.0
"""So often the bars of calls grow while agents only go on writing."""
NEWEST = 160
"""Characters of what an agent is writing."""


class GrowingPage:
    """One run, seen again and again. From one thread at a time."""

    def __init__(self, reported: ReportedRun, nested: RunById) -> None:
        self._reported = reported
        self._nested = nested
        self._history = RunHistory()
        self._doing = Activities()
        self._coming: list[LogRecord] = []
        """Records that the state does not hold yet."""
        self._page: RunPage | None = None
        self._drawn_to = 0.0
        self.seconds = 0.0
        """Of work that the newest page took."""

    def drawn(self, run: RunState, records: Iterable[LogRecord]) -> RunPage:
        """The page as the run stands in `run`. `records`: what is new. Where agents only went on writing, and not for
        long, it is the page of before with the same parts, but for `doing`.
        """
        began = time.thread_time()
        coming, self._coming = [*self._coming, *records], []
        page = self._page if self._page is not None and self._page.state == run.state else None
        for record in coming:
            if record.seq > run.seq:
                self._coming.append(record)
                continue
            self._history.add(record)
            self._doing.apply(record)
            if not isinstance(record.event, TextDelta) or record.time >= self._drawn_to + GROWS_SECONDS:
                page = None
        if page is None:
            self._drawn_to = self._history.last
            page = page_with(replace(self._reported, state=run), self._history, self._nested, TextRoom(redacted=False))
        text = "" if page.ended else story(run, self._doing)
        self._page = page.model_copy(update={"doing": self._what_they_do(run), "story": text})
        self.seconds = time.thread_time() - began
        return self._page

    def _what_they_do(self, run: RunState) -> tuple[Doing, ...]:
        if run.state not in ("running", "input_required"):
            return ()
        return tuple(
            Doing(agent=name, what=status_of(run, agent)[0], line=newest_words(run, agent, self._doing, NEWEST))
            for name, agent in run.agents.items()
        )
