"""The rules of coordination a second time, as docs/coordination.md and the sections it names tell them.

It has nothing of the package: it keeps what happened, and reads everything from that anew, slowly. `test_reference.py`
holds the state machine against it. Agents are places in the config, from 0; a label is the agent with the number of its
answer, from 1.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from itertools import combinations
from typing import Literal, TypeVar

T = TypeVar("T")
Label = tuple[int, int]
Asked = Literal["answer", "answer or vote", "vote", "run-off", "tie", "tests"]


@dataclass(frozen=True)
class Settings:
    """What the config says of a run."""

    agents: int
    run_id: str
    answers_each: int
    early: Literal["off", "proven", "majority"]
    by_tests: bool
    checks: bool
    """A ballot waits for the checks of its answers."""
    required: bool
    """An answer that fails a check may be out."""


@dataclass(frozen=True)
class CastVote:
    """A standing vote: whose, for what, and which other answers its voter calls the same. None: it did not say."""

    voter: int
    choice: Label
    same_as: frozenset[Label] | None
    repeats: bool = False
    """Its voter only wrote its own answer once more."""

    @property
    def group(self) -> frozenset[Label] | None:
        """The voter's set."""
        return None if self.same_as is None else self.same_as | {self.choice}


@dataclass(frozen=True)
class Won:
    """How a coordination ended."""

    label: Label
    outcome: str


@dataclass(frozen=True)
class FallsOut:
    """An agent that could not vote, in a team of which no agent could."""

    agent: int


@dataclass(frozen=True)
class Stage:
    """One thing that some agents are asked, about some answers."""

    asked: Asked
    about: tuple[Label, ...]
    agents: tuple[int, ...]


@dataclass(frozen=True)
class OneTest:
    """A test of the team, and whether it passes, run by run, by files; None for those on which it cannot run."""

    author: int
    passes: Mapping[str, tuple[bool, ...] | None]
    name: str


@dataclass
class Reference:
    """One coordination. What may happen is a method; one that an agent tries says whether it was accepted."""

    settings: Settings
    answers: dict[Label, str] = field(default_factory=dict[Label, str])
    files: dict[Label, str] = field(default_factory=dict[Label, str])
    checked: dict[Label, dict[str, str]] = field(default_factory=dict[Label, dict[str, str]])
    """`passed`, `failed`, `flaky` or `not run`, by check."""
    votes: list[CastVote] = field(default_factory=list[CastVote])
    run_off_votes: list[CastVote] = field(default_factory=list[CastVote])
    verdicts: dict[tuple[Label, ...], Label] = field(default_factory=dict[tuple[Label, ...], Label])
    """What a judge chose of two answers, in the order in which it was shown them."""
    tests: dict[int, list[OneTest]] = field(default_factory=dict[int, list[OneTest]])
    further_runs: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """How often a test ran on files, by its name and these, beyond the two runs of all tests."""
    dropped: set[int] = field(default_factory=set[int])
    shown: dict[int, frozenset[Label]] = field(default_factory=dict[int, frozenset[Label]])
    first_answers_closed: bool = False
    late: set[int] = field(default_factory=set[int])
    """Who answered for the first time when others decided already."""
    unpaid: set[int] = field(default_factory=set[int])
    """Whose answer came late, and the budget had no room for more votes."""
    finish: bool = False
    budget_reached: bool = False
    stages: list[Stage] = field(default_factory=list[Stage])
    won: Won | None = None

    # what is there

    @property
    def live(self) -> list[int]:
        """The agents that have not fallen out."""
        return [agent for agent in range(self.settings.agents) if agent not in self.dropped]

    @property
    def standing(self) -> list[Label]:
        """The latest answer of each agent; those of dropped agents stay."""
        return [written[-1] for agent in range(self.settings.agents) if (written := self.written_by(agent))]

    @property
    def ballot(self) -> frozenset[Label]:
        """What an agent is shown: in a stage, the answers that it is about."""
        return frozenset(self.stages[-1].about if self.stages else self.standing)

    @property
    def out(self) -> set[Label]:
        """The answers that checks exclude: another one passes what they fail, and all that they pass."""
        if not self.settings.required:
            return set()
        known = {label: self.checked.get(label, {}) for label in self.standing}
        flaky = {check for results in known.values() for check, result in results.items() if result == "flaky"}

        def having(label: Label, result: str) -> set[str]:
            return {check for check, one in known[label].items() if one == result} - flaky

        def better(one: Label, other: Label) -> bool:
            passes = having(one, "passed")
            return bool(passes & having(other, "failed")) and passes >= having(other, "passed")

        return {label for label in known if any(better(other, label) for other in known)}

    @property
    def limit(self) -> int:
        """So many answers an agent may give."""
        return 1 if self.settings.by_tests else self.settings.answers_each

    def written_by(self, agent: int) -> list[Label]:
        """All answers of an agent, oldest first."""
        return [label for label in self.answers if label[0] == agent]

    def has_voted(self, agent: int) -> bool:
        """Whether a vote of the agent stands."""
        return any(vote.voter == agent for vote in self.votes)

    # who is asked for what

    def asked(self, agent: int) -> Asked | None:
        """What the agent is asked now, if it is not in the middle of a round."""
        if self.won or agent in self.dropped:
            return None
        if self.stages:
            return self._asked_in_stage(self.stages[-1], agent)
        if not self.written_by(agent):
            return "answer"
        waits = self.settings.by_tests or self.has_voted(agent) or self._field_incomplete() or self._checks_missing()
        return None if waits or len(self.standing) < 2 else "answer or vote"

    def _asked_in_stage(self, stage: Stage, agent: int) -> Asked | None:
        done = {
            "tests": agent in self.tests or self.budget_reached,
            "vote": self.has_voted(agent),
            "run-off": any(vote.voter == agent for vote in self.run_off_votes),
            "tie": stage.about in self.verdicts,
        }
        return stage.asked if agent in stage.agents and not done[stage.asked] else None

    def _field_incomplete(self) -> bool:
        return not self.first_answers_closed and not all(map(self.written_by, self.live))

    def _checks_missing(self) -> bool:
        return self.settings.checks and any(label not in self.checked for label in self.standing)

    # what happens

    def show(self, agent: int) -> None:
        """An agent is shown the ballot; in its first round it sees no other answer."""
        self.shown[agent] = self.ballot if self.written_by(agent) else frozenset()

    def answer(self, agent: int, content: str, files: str | None = None) -> bool:
        """A new answer. It voids all votes. A late one closes what was opened to decide, unless the run is ending."""
        number = len(self.written_by(agent)) + 1
        seen = {*self.shown.get(agent, ()), *self.written_by(agent)}
        if (self.stages and number > 1) or number > self.limit or content in {self.answers[label] for label in seen}:
            return False
        if number == 1 and (self.stages or (self.first_answers_closed and self.votes)) and self.is_ending(agent):
            return False
        if self.stages:
            self.reopen(agent)
        self.answers[agent, number] = content
        if files is not None:
            self.files[agent, number] = files
        self.votes.clear()
        return True

    def is_ending(self, agent: int) -> bool:
        """Whether no late answer is accepted any more."""
        return self.finish or self.budget_reached or agent in self.unpaid

    def reopen(self, agent: int) -> None:
        """After a late answer nothing was opened yet, and all votes are cast anew."""
        self.late.add(agent)
        self.stages.clear()
        self.run_off_votes.clear()

    def vote(self, agent: int, choice: Label, same_as: Iterable[Label] | None, *, repeats: bool = False) -> bool:
        """A vote on the ballot that the agent was shown; on an outdated one it is refused. `repeats`: the agent wrote
        its own answer once more.
        """
        if self.stages and self.stages[-1].asked == "tests":
            return False
        ballot = self.shown.get(agent, frozenset())
        if ballot != self.ballot or choice not in ballot - self.out:
            return False
        if self.stages and self.stages[-1].asked == "tie":
            self.verdicts[self.stages[-1].about] = choice
            return True
        same = None if same_as is None else frozenset(same_as) & ballot - {choice}
        in_run_off = bool(self.stages) and self.stages[-1].asked == "run-off"
        (self.run_off_votes if in_run_off else self.votes).append(CastVote(agent, choice, same, repeats))
        return True

    def write_tests(self, agent: int, tests: list[OneTest]) -> bool:
        """Tests that tell the answers apart."""
        if not self.stages or self.stages[-1].asked != "tests":
            return False
        self.tests[agent] = tests
        return True

    def drop(self, agent: int) -> None:
        """An agent falls out. Its answers and tests stay, its votes do not."""
        self.dropped.add(agent)
        self.votes = [vote for vote in self.votes if vote.voter != agent]
        self.run_off_votes = [vote for vote in self.run_off_votes if vote.voter != agent]

    # what is due

    def due(self) -> Won | Stage | FallsOut | None:
        """What comes next without anybody's doing."""
        if self.won or not self.answers:
            return None
        if self.finish or (self.budget_reached and not self.live):
            return self._cut_short()
        if not self.live:
            agreed = self.agreement()
            return Won(agreed[0], "best_so_far") if len(agreed) > 1 and 2 * len(agreed) > len(self.told) else None
        if self.standing == [label for label in self.standing if [label[0]] == self.live]:
            return Won(self.standing[0], "single" if self.settings.agents == 1 else "single_survivor")
        if self.stages and self.stages[-1].asked in ("run-off", "tie"):
            return self._after_run_off(self.stages[-1])
        if self.stages and self.stages[-1].asked == "vote":
            return self._after_votes([agent for agent in self.stages[-1].agents if agent in self.live])
        if self.stages:
            return self._after_tests(self.stages[-1])
        return self._after_answers() if self.settings.by_tests else self._after_votes(self.live)

    def _after_votes(self, voters: list[int]) -> Won | Stage | FallsOut | None:
        missing = [agent for agent in voters if not self.has_voted(agent)]
        if not missing and not self.votes:
            return self._cut_short()
        left_out = self.first_answers_closed and self.votes
        awaited = [agent for agent in missing if self.written_by(agent) or not left_out]
        if self.votes and all(vote.repeats for vote in self.votes):
            return None if awaited else FallsOut(min(vote.voter for vote in self.votes))
        if awaited and not self._early(missing):
            return None
        camps = self.top_camps()
        if len(camps) == 1:
            return self._by_votes(most(camps[0], self.count), all(map(self.has_voted, self.live)))
        candidates = tuple(sorted(self.lot(most(camp, self.count)) for camp in camps))
        if self.budget_reached:
            return self._drawn(candidates, "tie_broken")
        answered = [agent for agent in self.live if self.written_by(agent)]
        authors = {label[0] for camp in camps for label in camp}
        neutral = [agent for agent in answered if agent not in authors]
        return Stage("run-off", candidates, tuple(neutral or answered))

    def _by_votes(self, best: list[Label], everybody: bool) -> Won:
        """By how many of those that were asked: all, more than half, or fewer."""
        votes = sum(map(self.count, self.camp_of(best[0])))
        consensus = everybody and votes == len(self.told)
        return self._drawn(best, "consensus" if consensus else self._more_than_half(votes))

    def _more_than_half(self, votes: int) -> str:
        return "majority" if 2 * votes > len(self.told) else "plurality"

    @property
    def told(self) -> list[int]:
        """Who was asked for an answer; agents that have fallen out count."""
        return list(range(self.settings.agents))

    def _after_run_off(self, stage: Stage) -> Won | Stage | None:
        """One answer leads; or an agent outside the tie compares the leaders, each with the best one so far, in both
        orders, until its verdicts differ.
        """
        voted = {vote.voter for vote in self.run_off_votes}
        waits = stage.about not in self.verdicts and not self.budget_reached
        if any(
            agent in self.live and (waits if stage.asked == "tie" else agent not in voted) for agent in stage.agents
        ):
            return None
        best = self._run_off_leaders()
        if len(best) == 1:
            last = {vote.voter: vote.choice for vote in (*self.votes, *self.run_off_votes)}
            agreeing = sum(choice in self.camp_of(best[0]) for choice in last.values())
            return self._drawn(best, self._more_than_half(agreeing))
        winner, *others = sorted(best)
        for label in others:
            for pair in ((winner, label), (label, winner)):
                if pair not in self.verdicts:
                    judge = None if self.budget_reached else self.judge_of(pair, best)
                    return self._drawn(best, "tie_broken") if judge is None else Stage("tie", pair, (judge,))
            if self.verdicts[winner, label] != self.verdicts[label, winner]:
                return self._drawn(best, "tie_broken")
            winner = self.verdicts[winner, label]
        return self._drawn([winner], "tie_broken")

    def judge_of(self, pair: tuple[Label, Label], tied: Iterable[Label]) -> int | None:
        """Who judges between two of the tied answers: the first agent that wrote no tied answer."""
        del pair
        authors = self.authors_of(tied)
        return next((agent for agent in self.live if self.written_by(agent) and agent not in authors), None)

    def authors_of(self, labels: Iterable[Label]) -> set[int]:
        """Who wrote one of these answers, or one that says the same."""
        return {one[0] for label in labels for one in self.camp_of(label)}

    def _run_off_leaders(self) -> list[Label]:
        about = next(stage.about for stage in self.stages if stage.asked == "run-off")
        return most(about, lambda label: sum(vote.choice == label for vote in self.run_off_votes))

    def _drawn(self, among: Iterable[Label], outcome: str) -> Won:
        return Won(self.lot(among), "single_survivor" if len(self.live) == 1 else outcome)

    def _early(self, missing: list[int]) -> bool:
        if self.settings.early == "majority":
            return self._more_than_half(sum(map(self.count, self.top_camps()[0]))) == "majority"
        if self.settings.early == "off" or any(len(self.written_by(agent)) < self.limit for agent in missing):
            return False
        leader = most(self.standing, self.count)[0]
        others = [label for label in self.standing if label != leader]

        def possible(labels: list[Label]) -> list[int]:
            """The votes that camps of these answers might have in the end."""
            joined = self.joined(labels, lambda same, apart, _: len(same) + len(missing) >= max(2, apart))
            return [sum(map(self.count, camp)) + len(missing) for camp in linked(labels, joined)]

        firm = self._more_than_half(self.count(leader)) == "majority"
        if not firm and self._more_than_half(max(possible(self.standing))) == "majority":
            return False  # a vote that is missing may make it one
        return all(votes < self.count(leader) for votes in possible(others))

    def _cut_short(self) -> Won:
        if (tested := self.chosen_by_tests()) is not None:
            return Won(tested, "best_so_far")
        if self.stages and self.stages[-1].asked in ("run-off", "tie"):
            return Won(self.lot(self._run_off_leaders()), "best_so_far")
        if not self.votes:
            return Won(self.agreement()[0], "best_so_far")
        return Won(self.lot(self.lot(most(camp, self.count)) for camp in self.top_camps()), "best_so_far")

    # camps, counts and lots

    def agreement(self) -> list[Label]:
        """The most answers that need no vote to agree: with the same files, the same text, or the same number."""
        able = [label for label in self.standing if label not in self.out]

        def agrees(one: Label, other: Label) -> bool:
            if self.changes_files(one) or self.changes_files(other):
                return self.changes_files(one) and self.files.get(one) == self.files.get(other)
            return agree(self.answers[one], self.answers[other])

        groups: list[list[Label]] = []
        for label in able:
            group = next((group for group in groups if all(agrees(label, other) for other in group)), None)
            groups = groups if group else [*groups, []]
            (group if group else groups[-1]).append(label)
        return most(groups, len)[0]

    def top_camps(self) -> list[frozenset[Label]]:
        """The camps with the most votes."""
        return most(self.camps(), lambda camp: sum(map(self.count, camp)))

    def camps(self) -> list[frozenset[Label]]:
        """The standing answers in groups that say the same: of what is joined, who contradicts the same ones of it."""

        def joins(same: set[int], apart: int, authors: set[int]) -> bool:
            return len(same) >= 2 and (len(same) > apart or (len(same) == apart and authors <= same))

        joined = self.joined(self.standing, joins)
        against = {label: self.rivals(label, group) for group in linked(self.standing, joined) for label in group}
        return linked(self.standing, [(one, other) for one, other in joined if against[one] == against[other]])

    def camp_of(self, label: Label) -> frozenset[Label]:
        """The camp that holds an answer."""
        return next(camp for camp in self.camps() if label in camp)

    def joined(
        self, labels: list[Label], joins: Callable[[set[int], int, set[int]], bool]
    ) -> list[tuple[Label, Label]]:
        """Pairs of answers that say the same. `joins` hears who calls two answers the same, how many tell them apart,
        and who wrote them; it is not asked of two that contradict each other.
        """
        said = [(vote.voter, self.with_copies(vote.group)) for vote in self.votes if vote.group is not None]
        joined: list[tuple[Label, Label]] = []
        for one, other in combinations(labels, 2):
            same = {voter for voter, group in said if one in group and other in group}
            apart = sum((one in group) != (other in group) for _, group in said)
            said_so = joins(same, apart, {one[0], other[0]}) and not self.rivals(one, {other})
            if said_so or other in self.with_copies({one}):
                joined.append((one, other))
        return joined

    def rivals(self, label: Label, among: Iterable[Label]) -> set[Label]:
        """Those of these answers that contradict this one. An answer that changes files says more than its text."""
        if self.changes_files(label):
            return set()
        return {
            other
            for other in among
            if not self.changes_files(other) and contradict(self.answers[label], self.answers[other])
        }

    def changes_files(self, label: Label) -> bool:
        """Whether files come with an answer."""
        return label in self.files

    def with_copies(self, labels: Iterable[Label]) -> set[Label]:
        """These, and the standing answers with the same text and files as one of them."""
        known = {(self.answers[label], self.files.get(label)) for label in labels}
        return {label for label in self.standing if (self.answers[label], self.files.get(label)) in known}

    def count(self, label: Label) -> int:
        """The standing votes for one answer, those of a run-off not counted."""
        return sum(vote.choice == label for vote in self.votes)

    def lot(self, labels: Iterable[Label]) -> Label:
        """The draw: the lowest SHA-256 of `RUN_ID/LABEL`."""
        return min(labels, key=lambda label: sha256(f"{self.settings.run_id}/{name(label)}".encode()).hexdigest())

    # decided by tests

    def _after_answers(self) -> Won | Stage | None:
        if self._field_incomplete() or self._checks_missing():
            return None
        left = [label for label in self.standing if label not in self.out]
        if len(left) == 1 and self.out:
            return Won(left[0], "checked")
        if len(left) > 1 and len({self.files[label] for label in left}) == 1:
            return Won(self.lot(left), "same_files")
        if self.budget_reached:
            return self._cut_short()
        agents = tuple(agent for agent in self.live if self.written_by(agent))
        writers = tuple(agent for agent in agents if agent not in self.late)
        tell = len(self.standing) >= 3 and len(left) > 1 and writers
        return Stage("tests", tuple(left), writers) if tell else Stage("vote", tuple(left), agents)

    def _after_tests(self, stage: Stage) -> Won | Stage | None:
        if self._writing(stage) and not self.budget_reached:
            return None
        if self.to_run_again():
            return None
        if (label := self.chosen_by_tests()) is not None:
            return Won(label, "tested")
        if self.budget_reached:
            return self._cut_short()
        agents = tuple(agent for agent in self.live if self.written_by(agent))
        return Stage("vote", tuple(self._best_by_tests() or stage.about), agents)

    def _writing(self, stage: Stage) -> list[int]:
        return [agent for agent in stage.agents if agent in self.live and agent not in self.tests]

    def to_run_again(self) -> set[tuple[str, str]]:
        """Tests, by name, and files: where tests choose an answer, those that count run five times on all answers."""
        if not self.stages or self.stages[-1].asked != "tests" or self._writing(self.stages[-1]):
            return set()
        if self.finish or self.budget_reached or self.chosen_by_tests() is None:
            return set()
        files = [self.files[label] for label in self.stages[-1].about]
        counting = [test.name for tests in self._counting().values() for test, _ in tests]
        return {(test, one) for test in counting for one in files if 2 + self.further_runs[test, one] < 5}

    def chosen_by_tests(self) -> Label | None:
        best = self._best_by_tests()
        return self.lot(best) if len({self.files[label] for label in best}) == 1 else None

    def _best_by_tests(self) -> list[Label]:
        """The answers with the largest share of the others' tests, if that is two thirds."""
        about = next((stage.about for stage in self.stages if stage.asked == "tests"), ())
        shares: dict[Label, Fraction] = {}
        for label in about:
            parts = [
                Fraction(sum(label in passing for _, passing in tests), len(tests))
                for author, tests in self._counting().items()
                if author != label[0]
            ]
            if parts:
                shares[label] = sum(parts, Fraction()) / len(parts)
        mean = sum(shares.values(), Fraction()) / len(shares) if shares else Fraction()
        best = most(about, lambda label: shares.get(label, mean))
        return best if best and shares.get(best[0], mean) >= Fraction(2, 3) else []

    def _counting(self) -> dict[int, list[tuple[OneTest, set[Label]]]]:
        """The tests that count, by author, each with the answers that pass it."""
        about = next((stage.about for stage in self.stages if stage.asked == "tests"), ())
        counting: dict[int, list[tuple[OneTest, set[Label]]]] = {}
        for author, tests in sorted(self.tests.items()):
            for test in tests:
                verdicts = {label: self._verdict(test, self.files[label]) for label in about}
                passing = {label for label, verdict in verdicts.items() if verdict == {True}}
                steady = all(verdict in ({True}, {False}) for verdict in verdicts.values())
                if steady and 0 < len(passing) < len(about) and {label[0] for label in passing} != {author}:
                    counting.setdefault(author, []).append((test, passing))
        return counting

    def _verdict(self, test: OneTest, files: str) -> set[bool]:
        """What the runs so far say."""
        return {*(test.passes[files] or ())[: 2 + self.further_runs[test.name, files]]}


def most(of: Iterable[T], worth: Callable[[T], int | Fraction]) -> list[T]:
    """Those that are worth most."""
    each = [(one, worth(one)) for one in of]
    return [one for one, value in each if value == max(value for _, value in each)]


def linked(labels: list[Label], joined: list[tuple[Label, Label]]) -> list[frozenset[Label]]:
    """Groups of what is joined, directly or through others."""
    groups = {label: frozenset({label}) for label in labels}
    for one, other in joined:
        both = groups[one] | groups[other]
        groups |= dict.fromkeys(both, both)
    return list(dict.fromkeys(groups.values()))


def contradict(one: str, other: str) -> bool:
    """Whether two texts, as histories write them, cannot say the same: other numbers, other names, or a yes and a no.
    A text of more than twelve words is not compared.
    """
    first, second = ({word for word in text.split() if word.isalnum()} for text in (one, other))
    if max(len(one.split()), len(other.split())) > 12:
        return False
    numbers, names, said = (
        [{word for word in words if test(word)} for words in (first, second)]
        for test in (str.isdigit, str.istitle, ("yes", "no").__contains__)
    )
    parted = (all(both) and both[0] != both[1] for both in (names, said))
    return numbers[0] != numbers[1] or any(parted)


def agree(one: str, other: str) -> bool:
    """Whether two texts, as histories write them, say the same: by all words, or by a number if both are short."""
    first, second = ([word for word in text.split() if word.isalnum()] for text in (one, other))
    short = max(len(one.split()), len(other.split())) < 13
    numbers = [{word for word in words if word.isdigit()} for words in (first, second)]
    return one == other or first == second or (short and bool(numbers[0]) and numbers[0] == numbers[1])


def write_text(made: int) -> str:
    """A text that no other answer of a history has, with a number, a name, a yes, a no or none; seldom a long one."""
    serial = "".join(";:&%$#@~|/"[int(digit)] for digit in str(made))
    told = ("it", "it", "it makes 3", "it makes 4", "Ann", "it was Ann", "it was Bob", "it is yes", "it is no")
    return f"{told[made * 7 % len(told)]} {serial}" + " and on" * (12 if made % 4 == 3 else 0)


def name(label: Label) -> str:
    """A label as records write it."""
    return f"agent{label[0] + 1}.{label[1]}"
