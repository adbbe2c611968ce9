"""Who may answer, who may vote, which votes stand: the rules of coordination as a pure state machine.

The theory. An attempt is one coordination; a further attempt begins from nothing, without those who fell out. In it N
agents take part. Each accepted answer raises the *revision*; the answers that stand at a revision (the latest of every
agent) form the *ballot* of that revision. An agent's round begins with a ballot being shown to it and ends with exactly
one accepted action:

- a *new answer* stands at once. Nobody has voted knowing it, so every standing vote is void.
- a *vote* names an answer on the ballot that the voter was shown, and the others on it that say the same. The state
  remembers what was shown to whom, so a vote can only ever count for an answer its voter saw; a vote on an outdated
  ballot is refused as stale.

An agent's first round shows no ballot: first answers are independent. After that it judges only a complete field: it
waits until every live agent has answered once, or until the stragglers were given up on.

Votes are counted by *camp*: answers that say the same do not split the vote (see `camps`). The most voted answer of the
camp with the most votes wins. If camps are tied when all votes are in, there is one *run-off* among their most voted
answers: only votes count in it, first of all of those who wrote nothing for a tied camp. What is tied after that is
decided by lot (see `count`; who wins, and when, is `deciding`).

With checks a ballot is shown only when the checks of its answers have run, so that a voter knows what the rules know:
which answers cannot win, and cannot be voted for (see `evidence`).

An action is asked for (`answer`, `vote`, ...) and answered by an event or a `Violation`; only `after(event)` changes
anything, by returning the next state. Folding the events of a run therefore *is* its state.

Knows no I/O, no models, no configs; needs no mock to be tested.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal, assert_never

from massgen_mcp.coordination.ballot import Ballot
from massgen_mcp.coordination.camps import StandingVote
from massgen_mcp.coordination.count import Count
from massgen_mcp.coordination.evidence import ChecksPolicy, excluded, to_repeat
from massgen_mcp.coordination.guidance import Duty, Rest, Violation, Wait, Work
from massgen_mcp.coordination.novelty import MAX_OVERLAP, Novelty, overlap
from massgen_mcp.coordination.visible import is_visible
from massgen_mcp.errors import DropReason
from massgen_mcp.events.agent_work import (
    BallotChanged,
    ConversationCondensed,
    ConversationShortened,
    MessagesShown,
    ModelCallAborted,
    ModelCallAdmitted,
    ModelCallFailed,
    ModelCallRetried,
    ModelCallStarted,
    ModelCallWaiting,
    ModelReplied,
    RoundStarted,
    RuleViolated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerEvaluated,
    AnswerPresented,
    AnswerSubmitted,
    CheckFinished,
    FilesChecked,
    FirstAnswersClosed,
    PresentationFailed,
    PresentationStarted,
    RunOffStarted,
    VoteCast,
    WinnerChosen,
)
from massgen_mcp.events.parts import BallotEntry, Camp, Changes
from massgen_mcp.events.record import AnyEvent, UnknownEvent
from massgen_mcp.events.run import (
    AttemptStarted,
    BaseTaken,
    BudgetMark,
    BudgetRaised,
    BudgetReached,
    CallerMessage,
    FinishRequested,
    InputGiven,
    InputRequired,
    NestedRunEnded,
    NestedRunStarted,
    ReservationExceeded,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
    RunTimedOut,
    ServerLost,
    SetupFinished,
    TimeReturned,
)

EarlyDecision = Literal["off", "proven", "majority"]

MAX_ANSWER_CHARACTERS = 200_000
"""A longer answer would have to be read by every other agent; it belongs into a file."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that the rules depend on. `seed` decides the neutral names and the lots; a run uses its id."""

    max_answers: int | None = 5
    early_decision: EarlyDecision = "proven"
    novelty: Novelty = "lenient"
    seed: str = ""
    checks: ChecksPolicy | None = None
    """What follows from the checks of answers; None: there are none."""


@dataclass(frozen=True, slots=True)
class Seat:
    """One agent's standing."""

    answers: tuple[AnswerSubmitted, ...] = ()
    """Those of this attempt, oldest first."""
    shown: Ballot | None = None
    """The newest ballot that the agent was shown."""
    vote: str | None = None
    """Label of the answer its standing vote is for; a dropped agent has none."""
    same_as: tuple[str, ...] | None = None
    """What its standing vote says of sameness, as in `VoteCast`."""
    run_off_vote: str | None = None
    dropped: AgentDropped | None = None
    """Why it takes part no more."""

    def __deepcopy__(self, memo: object) -> "Seat":
        return self  # nobody changes it


@dataclass(frozen=True, slots=True)
class Coordination:
    """The state at one moment. `seats` is keyed by agent name, in the order of the config."""

    rules: Rules
    seats: dict[str, Seat]
    revision: int = 0
    stragglers_given_up: bool = False
    finish_requested: bool = False
    closing: bool = False
    """The budget is reached: who has answered votes, and no answer is begun."""
    run_off: RunOffStarted | None = None
    evidence: dict[str, FilesChecked] = field(default_factory=dict[str, FilesChecked])
    """What checks said of the answers of this attempt, by label."""
    winner: WinnerChosen | None = field(default=None)

    def __deepcopy__(self, memo: object) -> "Coordination":
        return self  # nobody changes it

    @classmethod
    def begin(cls, agents: tuple[str, ...], rules: Rules) -> "Coordination":
        return cls(rules, {agent: Seat() for agent in agents})

    # -- questions ----------------------------------------------------------------------------------------------

    @property
    def live(self) -> tuple[str, ...]:
        return tuple(agent for agent, seat in self.seats.items() if not seat.dropped)

    @property
    def answered(self) -> tuple[str, ...]:
        """Agents with an answer on the ballot; a dropped agent's answer stays."""
        return tuple(agent for agent, seat in self.seats.items() if seat.answers)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Live agents that have not answered yet."""
        return tuple(agent for agent in self.live if not self.seats[agent].answers)

    @property
    def tally(self) -> dict[str, int]:
        """Standing votes by answer label, every standing answer listed, in the order of the config."""
        return dict(self.count.votes)

    @property
    def camps(self) -> tuple[Camp, ...]:
        """The standing answers by what they say in the eyes of the standing votes, in the order of the config."""
        return self.count.camps

    @property
    def count(self) -> Count:
        """The standing votes, counted."""
        authors = {self.label(agent): agent for agent in self.answered}
        return Count.of(self.rules.seed, authors, self.choices)

    @property
    def choices(self) -> list[StandingVote]:
        """The standing votes, in the order of the config."""
        return [
            StandingVote(agent, seat.vote, seat.same_as) for agent, seat in self.seats.items() if seat.vote is not None
        ]

    @property
    def standing(self) -> tuple[str, ...]:
        """Labels of the standing answers, in the order of the config."""
        return tuple(self.label(agent) for agent in self.answered)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Those of them whose checks have not run yet."""
        return () if self.rules.checks is None else tuple(one for one in self.standing if one not in self.evidence)

    @property
    def excluded(self) -> frozenset[str]:
        """Those of them that cannot win, because they fail checks that another one passes."""
        return excluded(self._standing_evidence, self.rules.checks)

    @property
    def to_repeat(self) -> dict[str, tuple[str, ...]]:
        """The checks, by label, that tell them apart and have to run once more before they may."""
        return {} if self.unchecked else to_repeat(self._standing_evidence, self.rules.checks)

    @property
    def checking(self) -> bool:
        """Whether checks are awaited that a voter should know."""
        return bool(self.unchecked or self.to_repeat)

    @property
    def _standing_evidence(self) -> dict[str, FilesChecked]:
        return {label: self.evidence[label] for label in self.standing if label in self.evidence}

    def label(self, agent: str) -> str:
        """Label of the agent's latest answer: agent{place}.{how many it had given}."""
        return self.seats[agent].answers[-1].label

    def ballot(self, viewer: str, *, whole: bool = False) -> Ballot:
        """The standing answers under this viewer's neutral names; in a run-off its candidates, unless `whole`.

        The names are dealt by a shuffle of all agents that is fixed for the viewer and differs between viewers: neither
        a name nor a place tells who wrote what.
        """
        agents = list(self.seats)
        Random(f"{self.rules.seed}/{viewer}").shuffle(agents)
        candidates = None if whole or self.run_off is None else self.run_off.candidates
        entries = tuple(
            BallotEntry(name=f"agent{place}", label=self.label(agent))
            for place, agent in enumerate(agents, start=1)
            if self.seats[agent].answers and (candidates is None or self.label(agent) in candidates)
        )
        return Ballot(viewer=viewer, revision=self.revision, entries=entries)

    def votable(self, ballot: Ballot) -> Ballot:
        """The part of a ballot that may be voted for."""
        out = self.excluded
        return replace(ballot, entries=tuple(entry for entry in ballot.entries if entry.label not in out))

    def content(self, label: str) -> str:
        """The text of a standing or earlier answer."""
        place, number = label.removeprefix("agent").split(".")
        return list(self.seats.values())[int(place) - 1].answers[int(number) - 1].content

    def author(self, label: str) -> str:
        return tuple(self.seats)[int(label.removeprefix("agent").partition(".")[0]) - 1]

    def may_answer(self, agent: str) -> bool:
        """Whether the agent may begin an answer now."""
        return not self.closing and self.run_off is None and self.within_limit(agent)

    def within_limit(self, agent: str) -> bool:
        """Whether the agent has answers left."""
        limit = self.rules.max_answers
        return limit is None or len(self.seats[agent].answers) < limit

    def duty(self, agent: str) -> Duty:
        """What the agent should do now, if it is not in the middle of a round."""
        seat = self.seats[agent]
        if seat.dropped or self.winner is not None:
            return Rest()
        if not seat.answers:
            return Work(Ballot(agent, 0, ()))
        if self.run_off is not None:
            asked = agent in self.run_off.voters and seat.run_off_vote is None
            return Work(self.ballot(agent)) if asked else Wait()
        if seat.vote is not None or (self.unanswered and not self.stragglers_given_up):
            return Wait()
        ballot = self.ballot(agent)
        return Wait() if len(ballot.entries) < 2 or self.checking else Work(ballot)

    def outdated(self, agent: str) -> bool:
        """Whether an agent in the middle of a round should be shown a newer ballot before its next step."""
        seat = self.seats[agent]
        return bool(seat.answers) and seat.shown is not None and seat.shown.revision != self.revision

    # -- actions: an event, or why not --------------------------------------------------------------------------

    def answer(self, agent: str, content: str) -> AnswerSubmitted | Violation:
        seat = self.seats[agent]
        shown = seat.shown or Ballot(agent, 0, ())
        text = content.strip()
        if not is_visible(text):
            return Violation("empty_answer")
        if len(text) > MAX_ANSWER_CHARACTERS:
            return Violation("answer_too_long", {"length": len(text), "limit": MAX_ANSWER_CHARACTERS})
        if self.run_off is not None:
            return Violation("only_votes")
        if not self.within_limit(agent):
            return Violation("answer_limit")
        for entry in shown.entries:
            if self.content(entry.label).strip() == text:
                return Violation("duplicate_answer", {"name": entry.name})
        if text in (earlier.content.strip() for earlier in seat.answers):
            return Violation("repeated_answer")
        if similar := self._too_similar(text, shown):
            return similar
        place = tuple(self.seats).index(agent) + 1
        return AnswerSubmitted(
            agent=agent,
            label=f"agent{place}.{len(seat.answers) + 1}",
            content=content,
            based_on_revision=shown.revision,
            revision=self.revision + 1,
            voided_votes=tuple(name for name, other in self.seats.items() if other.vote is not None),
        )

    def _too_similar(self, text: str, shown: Ballot) -> Violation | None:
        """Compared with what the author was shown; its own earlier answer is on that ballot, too."""
        limit = MAX_OVERLAP[self.rules.novelty]
        if limit is None:
            return None
        for entry in shown.entries:
            found = overlap(text, self.content(entry.label))
            if found > limit:
                return Violation("not_novel", {"name": entry.name, "overlap": found, "limit": limit})
        return None

    def vote(self, agent: str, name: str, reason: str, same_as: Sequence[str] | None = None) -> VoteCast | Violation:
        """Vote for the answer that stands under `name` on the ballot that this agent was shown.

        `same_as`: names of the others on it that say the same; what names none of the others is left out. None: the
        voter does not say.
        """
        shown = self.seats[agent].shown
        if shown is None or not shown.entries:
            return Violation("nothing_to_vote_for")
        if shown.revision != self.revision:
            return Violation("stale_ballot", counts=False)
        label = shown.label_of(name)
        if label is None:
            choices = ", ".join(entry.name for entry in shown.entries)
            return Violation("unknown_answer", {"name": name[:60], "choices": choices})
        if label in self.excluded:
            left = ", ".join(entry.name for entry in self.votable(shown).entries)
            return Violation("checks_fail", {"name": name, "choices": left})
        if not is_visible(reason):
            return Violation("empty_reason")
        if self.run_off is not None:
            return VoteCast(agent=agent, label=label, reason=reason, revision=shown.revision, run_off=True)
        named = None
        if same_as is not None:
            named = tuple(entry.label for entry in shown.entries if entry.name in same_as and entry.name != name)
        return VoteCast(agent=agent, label=label, reason=reason, revision=shown.revision, same_as=named)

    def drop(self, agent: str, reason: DropReason, message: str, changes: Changes | None = None) -> AgentDropped:
        """`changes`: what its copies hold. An agent that leaves what it answered leaves nothing unfinished."""
        known = [answer.changes.tree for answer in self.seats[agent].answers[-1:] if answer.changes is not None]
        unfinished = changes if changes is not None and changes.count and changes.tree not in known else None
        return AgentDropped(agent=agent, reason=reason, message=message, changes=unfinished)

    # -- the fold -----------------------------------------------------------------------------------------------

    def after(self, event: AnyEvent | UnknownEvent) -> "Coordination":  # noqa: C901 - one case per event, nothing else
        """The state after an event; events that are not about coordination change nothing."""
        match event:
            case RoundStarted() | BallotChanged():
                shown = Ballot(event.agent, event.revision, event.ballot)
                return self._with(event.agent, replace(self.seats[event.agent], shown=shown))
            case AnswerSubmitted():
                seats = {agent: _without_votes(seat) for agent, seat in self.seats.items()}
                seat = seats[event.agent]
                seats[event.agent] = replace(seat, answers=(*seat.answers, event))
                return replace(self, seats=seats, revision=event.revision)
            case VoteCast(run_off=True):
                return self._with(event.agent, replace(self.seats[event.agent], run_off_vote=event.label))
            case VoteCast():
                seat = replace(self.seats[event.agent], vote=event.label, same_as=event.same_as)
                return self._with(event.agent, seat)
            case RunOffStarted():
                return replace(self, run_off=event)
            case FilesChecked(subject="answer", label=str(label)):
                return replace(self, evidence={**self.evidence, label: event})
            case AgentDropped():
                return self._with(event.agent, replace(_without_votes(self.seats[event.agent]), dropped=event))
            case FirstAnswersClosed():
                return replace(self, stragglers_given_up=True)
            case AttemptStarted():
                seats = {agent: Seat(dropped=seat.dropped) for agent, seat in self.seats.items()}
                return Coordination(self.rules, seats, finish_requested=self.finish_requested, closing=self.closing)
            case FinishRequested():
                return replace(self, finish_requested=True)
            case BudgetReached() | BudgetRaised():
                return replace(self, closing=isinstance(event, BudgetReached))
            case WinnerChosen():
                return replace(self, winner=event)
            case (
                RunStarted()
                | BaseTaken()
                | SetupFinished()
                | ServerLost()
                | TimeReturned()
                | BudgetMark()
                | ReservationExceeded()
                | RunResumed()
                | CallerMessage()
                | InputRequired()
                | InputGiven()
                | NestedRunStarted()
                | NestedRunEnded()
                | RunCompleted()
                | RunFailed()
                | RunCancelled()
                | RunTimedOut()
                | MessagesShown()
                | ModelCallStarted()
                | ModelCallWaiting()
                | ModelCallAdmitted()
                | TextDelta()
                | ModelCallRetried()
                | ModelReplied()
                | ModelCallFailed()
                | ModelCallAborted()
                | ToolStarted()
                | ToolFinished()
                | RuleViolated()
                | ConversationShortened()
                | ConversationCondensed()
                | CheckFinished()
                | FilesChecked()
                | PresentationStarted()
                | AnswerPresented()
                | AnswerEvaluated()
                | PresentationFailed()
                | UnknownEvent()
            ):
                return self
            case _:
                assert_never(event)

    def _with(self, agent: str, seat: Seat) -> "Coordination":
        return replace(self, seats={**self.seats, agent: seat})


def _without_votes(seat: Seat) -> Seat:
    return seat if seat.vote is None else replace(seat, vote=None, same_as=None, run_off_vote=None)
