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

Votes are counted by *camp*: answers that say the same do not split the vote (see `count`). The most voted answer of the
camp with the most votes wins. If camps are tied when all votes are in, there is one *run-off* among their most voted
answers: only votes count in it, first of all of those who wrote nothing for a tied camp. What is tied after that an
agent outside the tie judges, or a model of another vendor; else the final answer states the tied positions (who wins,
and when, is `deciding`).

Further *stages* may be opened (see `procedures`): of tests, which agents write to tell the answers apart, of votes, and
others. A run-off is one of them. Some come before the first answers (see `before_answers`), or say who is asked for
one. Once another stage is open no answer is accepted, unless the stage asks for one, or is overtaken by a first answer
that comes late; it names the agents that act and the answers that it is about.

Whoever is late with its first answer is not waited for any more once first answers are closed, and is left out if a
winner is found without it. Until then its answer counts, if the budget has room for the votes that it costs: stages
that were opened to decide are closed again, votes are void, and the decision begins anew with all answers. What was
written and found for it stays: tests, how they came out, verdicts.

With checks a ballot is shown only when the checks of its answers have run, so that a voter knows what the rules know:
which answers cannot win, and cannot be voted for (see `evidence`).

An action is asked for (`answer`, `vote`, ...) and answered by an event or a `Violation`; only `after(event)` changes
anything, by returning the next state. Folding the events of a run therefore *is* its state.

Knows no I/O, no models, no configs; needs no mock to be tested.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Literal

from massgen_mcp.coordination.answer_text import Novelty
from massgen_mcp.coordination.checked_answers import CheckedAnswers
from massgen_mcp.coordination.count import Count, StandingVote
from massgen_mcp.coordination.guidance import Ballot
from massgen_mcp.coordination.substance import find_agreement, find_contradictions
from massgen_mcp.coordination.written_tests import BEFORE_ANSWERS, Submitted, TestKey
from massgen_mcp.events.agent_work import BallotChanged, RoundStarted
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerSubmitted,
    CheckFinished,
    FilesChecked,
    FirstAnswersClosed,
    ModelReplaced,
    StageOpened,
    VoteCast,
    WinnerChosen,
    WrittenTestsSubmitted,
)
from massgen_mcp.events.parts import (
    STRATEGIES,
    BallotEntry,
    CheckOutcome,
    ChecksPolicy,
    Decide,
    Effort,
    StageKind,
    Strategy,
    WrittenTest,
    most_asked,
)
from massgen_mcp.events.record import AnyEvent, UnknownEvent
from massgen_mcp.events.run import AttemptStarted, BaseTaken, BudgetRaised, BudgetReached, FinishRequested

EarlyDecision = Literal["off", "proven", "majority"]

STAGE_TOOLS: Mapping[StageKind, str] = {
    "test": "submit_tests",
    "synthesise": "submit_synthesis",
    "check": "submit_tests",
    "confirm": "submit_outputs",
}
"""What ends the rounds of a stage; in the others that is a vote."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that the rules depend on. `seed` decides the neutral names and the lots; a run uses its id."""

    max_answers: int | None = 5
    early_decision: EarlyDecision = "proven"
    novelty: Novelty = "lenient"
    seed: str = ""
    checks: ChecksPolicy | None = None
    """What follows from the checks of answers; None: there are none."""
    decide: Decide = "vote"
    effort: Effort = "high"
    max_agents: int | None = None
    """So many are asked at most; None: all of them, and with less than high effort seven."""
    order: Literal["random", "listed"] = "random"
    """The order in which they are asked, where not all are at once: random, or as in the config."""
    writer: str | None = None
    """The agent that writes from all answers; None: a random one."""
    judge: str | None = None
    """The agent that compares answers, and gives none."""
    write_check: bool = False
    """Whether an agent writes a failing test before anybody answers."""
    can_run: bool = True
    """Whether scripts can be run on files."""
    vendors: Mapping[str, str] = field(default_factory=dict[str, str])
    """Who makes each agent's model, by agent."""
    fallback_vendors: Mapping[str, str] = field(default_factory=dict[str, str])
    """Who makes the model of each agent's fallback, by agent; agents without one are left out."""

    @property
    def strategy(self) -> Strategy:
        return STRATEGIES[self.decide]

    def vendor(self, agent: str) -> str:
        return self.vendors.get(agent, "")


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
    constrained: bool = False
    """Whether its standing vote is one, as in `VoteCast`."""
    repeated: bool = False
    """Whether its standing vote repeats its own answer, as in `VoteCast`."""
    run_off_vote: str | None = None
    tests: tuple[WrittenTest, ...] | None = None
    """Those that it wrote in a stage of tests; None: it has not submitted any."""
    is_replaced: bool = False
    """Its fallback has taken its place."""
    dropped: AgentDropped | None = None
    """Why it takes part no more."""

    def __deepcopy__(self, memo: object) -> "Seat":
        return self  # nobody changes it


@dataclass(frozen=True)
class Coordination:
    """The state at one moment. `seats` is keyed by agent name, in the order of the config."""

    rules: Rules
    seats: dict[str, Seat]
    begun: bool = False
    """The attempt has; agents may be asked."""
    revision: int = 0
    stragglers_given_up: bool = False
    late: tuple[str, ...] = ()
    """Agents whose first answer came while others decided already; they write no tests."""
    finish_requested: bool = False
    closing: bool = False
    """The budget is reached: who has answered votes, and no answer is begun."""
    base: str | None = None
    """Id of the caller's files as they were taken."""
    base_checks: FilesChecked | None = None
    """What checks said of them."""
    stages: tuple[StageOpened, ...] = ()
    """Those of this attempt, oldest first."""
    test_outcomes: dict[TestKey, CheckOutcome] = field(default_factory=dict[TestKey, CheckOutcome])
    """How tests came out that agents wrote."""
    submitted: Submitted = field(default_factory=dict[tuple[int, str], tuple[WrittenTest, ...]])
    """What was submitted for a failing test before anybody answered."""
    verdicts: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """What the judge chose of two answers, by their labels in the order in which they were shown."""
    evidence: dict[str, FilesChecked] = field(default_factory=dict[str, FilesChecked])
    """What checks said of the answers of this attempt, by label."""
    winner: WinnerChosen | None = field(default=None)

    def __deepcopy__(self, memo: object) -> "Coordination":
        return self  # nobody changes it

    @classmethod
    def begin(cls, agents: tuple[str, ...], rules: Rules) -> "Coordination":
        return cls(rules, {agent: Seat() for agent in agents})

    # -- questions ----------------------------------------------------------------------------------------------

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """Agents that were asked for an answer in this attempt: all but a judge, unless stages say who."""
        named = [stage.agents for stage in self.stages if stage.kind == "answer"]
        able = [agent for agent in self.seats if agent != self.rules.judge]
        return tuple(agent for agent in able if any(agent in agents for agents in named)) if named else tuple(able)

    def is_majority(self, votes: int) -> bool:
        """Check whether these are more than half of the agents that were asked; those that dropped out count."""
        return votes * 2 > len(self.asked)

    @property
    def involved(self) -> tuple[str, ...]:
        """Agents that were asked for an answer, and those that dropped out before they could be asked."""
        return tuple(agent for agent, seat in self.seats.items() if agent in self.asked or seat.dropped)

    @property
    def live(self) -> tuple[str, ...]:
        """Agents that were asked for an answer and take part."""
        return tuple(agent for agent in self.asked if not self.seats[agent].dropped)

    @property
    def answered(self) -> tuple[str, ...]:
        """Agents with an answer on the ballot; a dropped agent's answer stays."""
        return tuple(agent for agent, seat in self.seats.items() if seat.answers)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Live agents that have not answered yet."""
        return tuple(agent for agent in self.live if not self.seats[agent].answers)

    @property
    def live_authors(self) -> tuple[str, ...]:
        """Live agents that have answered."""
        return tuple(agent for agent in self.live if self.seats[agent].answers)

    @property
    def has_lone_author(self) -> bool:
        """One agent takes part, and no other has answered."""
        return len(self.live) == 1 and self.answered == self.live

    @property
    def checks(self) -> CheckedAnswers:
        """The checks and failing tests of the standing answers."""
        return CheckedAnswers(self)

    @cached_property
    def count(self) -> Count:
        """The standing votes, counted."""
        authors = {self.label(agent): agent for agent in self.answered}
        return Count.of(self.rules.seed, authors, self.choices, self._alike, self._contradictions)

    @property
    def _alike(self) -> dict[str, str]:
        """Standing answers that are another one once more, in text and changed files: label by label of the first."""
        first: dict[tuple[str, str | None], str] = {}
        answers = [self.seats[agent].answers[-1] for agent in self.answered]
        found = {
            one.label: first.setdefault((one.content.strip(), one.changes and one.changes.tree), one.label)
            for one in answers
        }
        return {label: other for label, other in found.items() if label != other}

    @property
    def _contradictions(self) -> frozenset[frozenset[str]]:
        """Pairs of standing answers that cannot say the same, by their texts; what changes files is not its text."""
        labels = (label for label in self.standing if self.changed_tree(label) is None)
        return find_contradictions({label: self.content(label) for label in labels})

    @property
    def agreement(self) -> tuple[str, ...]:
        """The largest group of standing answers that agree without a vote: by their files, else by their texts or
        numbers. Of groups of one size the one that comes first in the config.
        """
        able = [label for label in self.standing if label not in self.checks.excluded]
        trees = {label: tree for label in able if (tree := self.changed_tree(label)) is not None}
        by_files = (tuple(one for one in trees if trees[one] == tree) for tree in dict.fromkeys(trees.values()))
        by_text = find_agreement({label: self.content(label) for label in able if label not in trees})
        groups = sorted((*by_files, *by_text), key=lambda group: able.index(group[0]))
        return max(groups, key=len, default=())

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
    def most_asked(self) -> int:
        """So many agents are asked for an answer at most."""
        return most_asked(self.rules.effort, self.rules.max_agents, len(self.seats))

    @property
    def stage(self) -> StageOpened | None:
        """The one that is open; None: agents answer, and vote."""
        return self.stages[-1] if self.stages and self.stages[-1].kind != "answer" else None

    @property
    def run_off(self) -> StageOpened | None:
        """The stage, where votes were tied and are cast once more."""
        stage = self.stage
        return stage if stage is not None and stage.because == "tied" else None

    @property
    def complete(self) -> bool:
        """Whether no first answer is awaited any more, nor checks of those that are there."""
        return not (self.unanswered and not self.stragglers_given_up) and not self.checks.is_pending

    @property
    def synthesis(self) -> AnswerSubmitted | None:
        """The answer that was written from all."""
        return next((one for agent in self.answered if (one := self.answer_of(agent)).claims is not None), None)

    @property
    def _mended(self) -> AnswerSubmitted | None:
        """The winner as its author mended it, in a journal of before; it stands only if it is chosen."""
        if self.stage is None or self.stage.kind != "revise":
            return None
        newest = self.seats[self.stage.agents[0]].answers[-1]
        return None if newest.label in self.stage.subjects else newest

    def label(self, agent: str) -> str:
        """Label of the agent's standing answer: agent{place}.{how many it had given}."""
        return self.answer_of(agent).label

    def answer_of(self, agent: str) -> AnswerSubmitted:
        """The agent's standing answer: its latest, but for one in which it mended the winner."""
        answers = self.seats[agent].answers
        return answers[-2] if len(answers) != 1 and self._mended is answers[-1] else answers[-1]

    def changed_tree(self, label: str) -> str | None:
        """The files of an answer; None: it changes none."""
        answers = self.seats[self.author(label)].answers
        changes = next(one.changes for one in answers if one.label == label)
        return None if changes is None or changes.tree == self.base else changes.tree

    def ballot(self, viewer: str, *, whole: bool = False) -> Ballot:
        """The standing answers under this viewer's neutral names; in a stage those it is about, unless `whole`.

        The names are dealt by a shuffle of all agents that is fixed for the viewer and differs between viewers: neither
        a name nor a place tells who wrote what. Two answers that are compared stand in the order of their stage, and
        whoever settles what tests print is shown no answer.
        """
        if self.stage is not None and self.stage.kind in ("compare", "settle") and not whole:
            shown = self.stage.subjects if self.stage.kind == "compare" else ()
            pair = (BallotEntry(name=f"agent{place}", label=label) for place, label in enumerate(shown, start=1))
            return Ballot(viewer=viewer, revision=self.revision, entries=tuple(pair))
        agents = list(self.seats)
        Random(f"{self.rules.seed}/{viewer}").shuffle(agents)
        subjects = None if whole or self.stage is None else self.stage.subjects
        entries = tuple(
            BallotEntry(name=f"agent{place}", label=self.label(agent))
            for place, agent in enumerate(agents, start=1)
            if self.seats[agent].answers and (subjects is None or self.label(agent) in subjects)
        )
        return Ballot(viewer=viewer, revision=self.revision, entries=entries)

    def content(self, label: str) -> str:
        """The text of a standing or earlier answer."""
        place, number = label.removeprefix("agent").split(".")
        return list(self.seats.values())[int(place) - 1].answers[int(number) - 1].content

    def author(self, label: str) -> str:
        return tuple(self.seats)[int(label.removeprefix("agent").partition(".")[0]) - 1]

    # -- the fold -----------------------------------------------------------------------------------------------

    def after(self, event: AnyEvent | UnknownEvent) -> "Coordination":  # noqa: C901 - one case per event, nothing else
        """The state after an event; events that are not about coordination change nothing."""
        match event:
            case RoundStarted() | BallotChanged():
                shown = Ballot(event.agent, event.revision, event.ballot)
                return self._with_seat(event.agent, replace(self.seats[event.agent], shown=shown))
            case AnswerSubmitted():
                reopens = self.stage is not None and not self.seats[event.agent].answers
                voided = self.stage is None or reopens
                seats = {agent: _without_votes(seat) if voided else seat for agent, seat in self.seats.items()}
                seat = seats[event.agent]
                seats[event.agent] = replace(seat, answers=(*seat.answers, event))
                late = (*self.late, event.agent) if reopens else self.late
                stages = self._list_undeciding_stages() if reopens else self.stages
                return replace(self, seats=seats, revision=event.revision, stages=stages, late=late)
            case VoteCast() if self.stage is not None and self.stage.kind == "compare":
                return replace(self, verdicts={**self.verdicts, self.stage.subjects: event.label})
            case VoteCast(run_off=True):
                return self._with_seat(event.agent, replace(self.seats[event.agent], run_off_vote=event.label))
            case VoteCast():
                seat = replace(
                    self.seats[event.agent],
                    vote=event.label,
                    same_as=event.same_as,
                    constrained=event.constrained,
                    repeated=event.repeated,
                )
                return self._with_seat(event.agent, seat)
            case StageOpened():
                given_up = self.stragglers_given_up and event.kind != "answer"
                return replace(self, stages=(*self.stages, event), stragglers_given_up=given_up)
            case WrittenTestsSubmitted() if self.stage is not None and self.stage.elected is not None:
                return self  # tests against the winner, in a journal of before
            case WrittenTestsSubmitted() if self.stage is not None and self.stage.kind in BEFORE_ANSWERS:
                submitted = {**self.submitted, (len(self.stages), event.agent): event.tests}
                return replace(self, submitted=submitted)
            case WrittenTestsSubmitted():
                return self._with_seat(event.agent, replace(self.seats[event.agent], tests=event.tests))
            case CheckFinished(outcome=CheckOutcome(expected=str(expected)) as outcome):
                key = (event.tree, outcome.command, expected)
                return replace(self, test_outcomes={**self.test_outcomes, key: outcome})
            case BaseTaken():
                return replace(self, base=event.tree)
            case FilesChecked(subject="base"):
                return replace(self, base_checks=event)
            case FilesChecked(subject="answer", label=str(label)):
                return replace(self, evidence={**self.evidence, label: event})
            case AgentDropped():
                return self._with_seat(event.agent, replace(_without_votes(self.seats[event.agent]), dropped=event))
            case ModelReplaced():
                return self._with_seat(event.agent, replace(self.seats[event.agent], is_replaced=True))
            case FirstAnswersClosed():
                return replace(self, stragglers_given_up=True)
            case AttemptStarted():
                seats = {
                    agent: Seat(is_replaced=seat.is_replaced, dropped=seat.dropped)
                    for agent, seat in self.seats.items()
                }
                anew = Coordination(self.rules, seats, base=self.base, test_outcomes=self.test_outcomes)
                before = tuple(stage for stage in self.stages if stage.kind in BEFORE_ANSWERS)
                anew = replace(anew, begun=True, base_checks=self.base_checks, stages=before, submitted=self.submitted)
                return replace(anew, finish_requested=self.finish_requested, closing=self.closing)
            case FinishRequested():
                return replace(self, finish_requested=True)
            case BudgetReached() | BudgetRaised():
                return replace(self, closing=isinstance(event, BudgetReached))
            case WinnerChosen():
                return replace(self, winner=event)
            case _:
                return self

    def _list_undeciding_stages(self) -> tuple[StageOpened, ...]:
        """Return the stages that ask for answers, or come before them: what stays when a decision begins anew."""
        return tuple(stage for stage in self.stages if stage.kind == "answer" or stage.kind in BEFORE_ANSWERS)

    def _with_seat(self, agent: str, seat: Seat) -> "Coordination":
        return replace(self, seats={**self.seats, agent: seat})


def _without_votes(seat: Seat) -> Seat:
    return replace(seat, vote=None, same_as=None, run_off_vote=None)
