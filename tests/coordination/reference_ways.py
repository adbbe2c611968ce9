"""The other ways to decide a second time, as docs/coordination.md tells them: one after the other, fewer agents first,
one text from all, a judge, a failing test first, and tests against a winner.

It hears what happens, and says what may come next. Where the page says that somebody is drawn, all that may be drawn
are allowed.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from math import comb, factorial
from typing import Literal

from tests.coordination.reference import FallsOut, Label, Reference, Settings, Stage, Won, name

FIRST = {"low": 2, "auto": 3}
Runs = dict[tuple[str, str, str], tuple[str, int, bool]]
"""Of a script on files, with what it has to print: how it came out, how often it ran, and whether differently."""


@dataclass(frozen=True)
class Plan(Settings):
    """What the config says of a run that may be decided in any way."""

    decide: Literal["auto", "vote", "checks", "synthesise", "judge"]
    effort: Literal["low", "auto", "high"]
    max_agents: int | None
    listed: bool
    writer: int | None
    judge: int | None
    write_check: bool
    can_run: bool
    vendors: tuple[str, ...]
    fallbacks: tuple[str, ...]
    """The vendors of the agents' fallbacks; empty texts for those that have none."""


@dataclass(frozen=True)
class Drawn:
    """A stage that may come: so many of these agents are asked, about these answers."""

    asked: str
    about: tuple[Label, ...]
    among: frozenset[int]
    count: int = 1

    def holds(self, stage: "Opened") -> bool:
        """Whether the stage is one of these."""
        same = (stage.asked, stage.about, len(stage.agents)) == (self.asked, self.about, self.count)
        return same and {*stage.agents} <= self.among


@dataclass(frozen=True)
class Opened:
    """A stage as it was opened."""

    asked: str
    about: tuple[Label, ...]
    agents: tuple[int, ...]


@dataclass(frozen=True)
class Script:
    """A script with what its author expects."""

    script: str
    expected: str


Next = Won | Opened | Drawn | FallsOut


@dataclass
class Ways(Reference):
    """One coordination, by any of the ways."""

    opened: list[Opened] = field(default_factory=list[Opened])
    said: dict[tuple[int, int], tuple[Script, ...]] = field(default_factory=dict[tuple[int, int], tuple[Script, ...]])
    """What agents submitted, by the number of the stage and the agent."""
    written: dict[int, tuple[Script, ...]] = field(default_factory=dict[int, tuple[Script, ...]])
    """The tests that tell answers apart, by author."""
    runs: Runs = field(default_factory=Runs)
    base: dict[str, str] = field(default_factory=dict[str, str])
    """How checks came out on the base."""
    base_files: str = ""
    again: dict[Label, set[str]] = field(default_factory=dict[Label, set[str]])
    """The checks of an answer that ran twice."""
    text: Label | None = None
    claims: tuple[Script, ...] = ()

    @property
    def plan(self) -> Plan:
        assert isinstance(self.settings, Plan)
        return self.settings

    # -- who is asked for an answer ---------------------------------------------------------------------------------

    @property
    def authors(self) -> list[int]:
        """Who may answer: all but the judge."""
        return [agent for agent in range(self.plan.agents) if agent != self.plan.judge]

    @property
    def told(self) -> list[int]:
        """Who was asked for an answer so far: all, unless stages say who."""
        stages = [stage for stage in self.opened if stage.asked == "answer"]
        return [agent for agent in self.authors if not stages or any(agent in stage.agents for stage in stages)]

    @property
    def live(self) -> list[int]:
        """Those of them that have not fallen out."""
        return [agent for agent in self.told if agent not in self.dropped]

    @property
    def able(self) -> tuple[int, ...]:
        """Those of them that have answered."""
        return tuple(agent for agent in self.live if self.written_by(agent))

    @property
    def most(self) -> int:
        """So many are asked for an answer at most."""
        team = self.plan.agents
        return min(self.plan.max_agents or (team if self.plan.effort == "high" else 7), team)

    @property
    def left(self) -> int:
        """So many may still be asked."""
        if self.budget_reached:
            return 0
        waiting = [agent for agent in self.live if not self.written_by(agent)]
        return max(0, min(self.most - len(self.standing) - len(waiting), len(self._unasked())))

    def _unasked(self) -> list[int]:
        return [agent for agent in self.authors if agent not in self.told and agent not in self.dropped]

    def ask(self, count: int, among: list[int] | None = None) -> Drawn:
        """The next so many agents answer."""
        free = self._unasked() if among is None else among
        count = min(count, len(free))
        return Drawn("answer", (), frozenset(free[:count] if self.plan.listed else free), count)

    @property
    def limit(self) -> int:
        """So many answers an agent may give: one, where not all are asked at once."""
        return 1 if self.plan.decide == "checks" or self.opened else self.plan.answers_each

    # -- what is due ------------------------------------------------------------------------------------------------

    def allowed(self) -> list[Next]:
        """All that may come next without anybody's doing; nothing: something is awaited."""
        if self.won is not None:
            return []
        for part in (self._before_answers, self._asking):
            if (due := part()) is not None:
                return due
        return self._decided() if self.answers else []

    def _stopped(self) -> bool:
        return self.finish or self.budget_reached or not self.plan.can_run

    def changes_files(self, label: Label) -> bool:
        """Whether an answer changes files."""
        return self.files.get(label, self.base_files) != self.base_files

    def _missing(self) -> bool:
        """Whether checks or scripts are awaited that a voter should know."""
        if self.plan.checks and any(label not in self.checked for label in self.standing):
            return True
        return bool(self._to_repeat()) or self._goal_missing()

    def _to_repeat(self) -> bool:
        """Whether a check has to run once more on the same files: it tells answers apart, or was passed first."""
        once = {
            (label, check): result
            for label in self.standing
            for check, result in self.checked.get(label, {}).items()
            if check not in self.again.get(label, ()) and result != "not run"
        }
        results = {
            (check, result)
            for label in self.standing
            for check, result in self.checked.get(label, {}).items()
            if check not in self._flaky()
        }
        apart = {check for check, _ in results if {(check, "passed"), (check, "failed")} <= results}
        if self.plan.required and any(check in apart for _, check in once):
            return True
        tells = self._failing()
        nearly = {
            label
            for label in self.standing
            if self._tells() and all(self.checked.get(label, {}).get(check) == "passed" for check in tells)
        }
        return any(label in nearly and check in (self._broken(label) or tells) for label, check in once)

    def _flaky(self) -> set[str]:
        return {
            check for label in self.standing for check, one in self.checked.get(label, {}).items() if one == "flaky"
        }

    # -- a failing test first ---------------------------------------------------------------------------------------

    def _before_answers(self) -> list[Next] | None:
        """None: nothing more before the answers."""
        later = self.answers or any(stage.asked not in ("check", "confirm") for stage in self.opened)
        if not self.plan.write_check or self._stopped() or later or self._tells():
            return None
        if not self.opened:
            return self._writer()
        stage, number = self.opened[-1], len(self.opened)
        if any(agent in self.live and (number, agent) not in self.said for agent in stage.agents):
            return []
        for test in self.said.get((number, stage.agents[0]), ()) if stage.asked == "check" else ():
            result, times, differs = self.runs.get((self.base_files, test.script, test.expected), ("", 0, False))
            if times < 2 and result != "not_run":
                return []
            if result == "failed" and not differs:
                others = frozenset(agent for agent in self.live if agent != stage.agents[0])
                return [Drawn("confirm", (), others, 2)] if len(others) > 1 else None
        return self._writer()

    def _writer(self) -> list[Next] | None:
        writers = [stage.agents[0] for stage in self.opened if stage.asked == "check"]
        able = frozenset(self.live) - {*writers}
        return [Drawn("check", (), able)] if len(writers) < 2 and able and len(self.live) > 2 else None

    def _goal(self) -> Script | None:
        """The failing test that two others confirmed."""
        for number, stage in enumerate(self.opened, start=1):
            if stage.asked == "confirm":
                (test,) = self.said[number - 1, self.opened[number - 2].agents[0]]
                both = [one.expected.strip() for agent in stage.agents for one in self.said.get((number, agent), ())]
                if both == [test.expected.strip()] * 2:
                    return test
        return None

    def _goal_run(self, label: Label) -> tuple[str, int, bool]:
        goal = self._goal()
        assert goal is not None
        return self.runs.get((self.files[label], goal.script, goal.expected), ("", 0, False))

    def _goal_missing(self) -> bool:
        if self._goal() is None or not self.plan.can_run:
            return False
        ran = [self._goal_run(label) for label in self.standing if self.changes_files(label)]
        return any(times < 2 and result != "not_run" for result, times, _ in ran)

    # -- fewer agents first, or one after the other -----------------------------------------------------------------

    def _failing(self) -> set[str]:
        """The user's checks that fail on the base, where attempts are made one after the other for them."""
        tell = self.plan.checks and (self.plan.effort != "high" or self._goal() is not None)
        return {check for check, result in self.base.items() if result == "failed"} if tell else set()

    def _tells(self) -> bool:
        return bool(self._failing()) or self._goal() is not None

    def _passes_checks(self, label: Label) -> bool:
        results = self.checked.get(label, {})
        return not self._broken(label) and all(results.get(check) == "passed" for check in self._failing())

    def _broken(self, label: Label) -> set[str]:
        """What passes on the base and fails for an answer; what is flaky for anybody does not count."""
        failed = {check for check, one in self.checked.get(label, {}).items() if one == "failed"}
        return {check for check in failed - self._flaky() if self.base.get(check) == "passed"}

    def _passes(self, label: Label) -> bool:
        """Whether an answer passes all that failed on the base, and fails nothing that passed."""
        if self._goal() is not None and (
            not self.changes_files(label) or self._goal_run(label)[::2] != ("passed", False)
        ):
            return False
        return not self.plan.checks or self._passes_checks(label)

    def _asking(self) -> list[Next] | None:
        """None: those that answered have to do."""
        stage = self.opened[-1] if self.opened else None
        between = ("answer", "compare", "check", "confirm")
        if (self.finish and self.answers) or (stage is not None and stage.asked not in between):
            return None
        if not any(one.asked == "answer" for one in self.opened):
            return self._first()
        lost = [agent for agent in self.told if agent in self.dropped and not self.written_by(agent)]
        count = min(len(lost) - self.replaced, self.left)
        if count > 0:
            return [self.ask(count)]
        if not self._complete():
            return []
        if self._tells() and self.answers:
            return self._one_by_one()
        if len(self.standing) < 2:
            return [self.ask(1)] if self.left else [] if self._waiting() else None
        if self._votes() or self.plan.decide not in ("auto", "checks"):
            return self._by_reading(stage)
        if self.plan.effort == "auto" and self.left:
            return [self.ask(self.left)]
        camps = sorted(Counter(self.files[label] for label in self.standing).values(), reverse=True)
        return self._grown(camps[0], camps[1] if len(camps) > 1 else 0)

    replaced: int = 0
    """So many were asked in place of others."""

    def _waiting(self) -> bool:
        return any(not self.written_by(agent) for agent in self.live)

    def _first(self) -> list[Next] | None:
        everybody = [agent for agent in self.authors if agent not in self.dropped]
        most = min(self.most, len(everybody))
        fewer = self.plan.decide in ("auto", "vote", "checks")
        first = FIRST.get(self.plan.effort, most) if fewer else most
        size = min(most, 1 if self._tells() else first)
        return None if size >= len(everybody) and not self.opened else [self.ask(size, everybody)]

    def _votes(self) -> bool:
        changed = any(map(self.changes_files, self.standing))
        return self.plan.decide == "vote" or (self.plan.decide == "auto" and not changed)

    def _one_by_one(self) -> list[Next] | None:
        passing = [label for label in self.standing if self._passes(label)]
        if len({self.files.get(label) for label in passing}) == 1:
            return [Won(self.lot(passing), "checked")]
        if not passing and self.left:
            return [self.ask(1)]
        return self._all_vote(tuple(passing or self.standing))

    def _all_vote(self, about: tuple[Label, ...]) -> list[Next] | None:
        decides = self._votes() and len(self.standing) > 1 and self.able
        return [Opened("vote", tuple(sorted(about)), self.able)] if decides else None

    def _by_reading(self, stage: Opened | None) -> list[Next] | None:
        reading = stage is not None and stage.asked == "compare"
        standing = tuple(self.standing)
        if not reading and not self.left:
            return self._all_vote(standing)
        vote = next((one for one in self.votes if stage is not None and reading and one.voter == stage.agents[0]), None)
        if vote is None:
            if stage is not None and reading and stage.agents[0] in self.able:
                return []
            if self.able:
                return [Drawn("compare", standing, frozenset(self.able))]
            return [self.ask(1)] if self.left else None
        named = {vote.choice, *(vote.same_as or ())}
        same = sum(self.rivals(label, named) == self.rivals(vote.choice, named) for label in named)
        rival, lead = sorted((same, len(standing) - same))
        if not rival and self.safe(lead, rival, self.left):
            return [Won(vote.choice, "agreed")]
        return self._grown(lead, rival)

    def _grown(self, lead: int, rival: int) -> list[Next] | None:
        if self.left and not self.safe(lead, rival, self.left):
            fewest = [more for more in range(1, self.left + 1) if self.safe(lead + more, rival, self.left - more)]
            return [self.ask(min(fewest, default=self.left))]
        return self._all_vote(tuple(self.standing))

    def safe(self, lead: int, rival: int, left: int) -> bool:
        """Whether the agents left would change who leads with a chance of at most 1 in 20."""

        def beta(one: int, other: int) -> Fraction:
            return Fraction(factorial(one - 1) * factorial(other - 1), factorial(one + other - 1))

        chance = sum(
            (
                comb(left, more) * beta(rival + 1 + more, lead + 1 + left - more) / beta(rival + 1, lead + 1)
                for more in range(left + 1)
                if rival + more > lead + left - more
            ),
            Fraction(),
        )
        return lead > rival and chance <= Fraction(1, 20)

    # -- the ways to decide -----------------------------------------------------------------------------------------

    def _decided(self) -> list[Next]:
        stage = self.opened[-1] if self.opened and self.opened[-1].asked not in ("answer", "check", "confirm") else None
        voting = stage is not None and stage.asked in ("vote", "run-off", "tie")
        alone = len(self.live) == 1 and {one[0] for one in self.standing} == {*self.live}
        if self.text is not None:
            ran = all(self.ran(self.base_files, one) for one in self.claims)
            waits = self.plan.can_run and not ran and not self.finish and not self.budget_reached
            return [] if waits else [Won(self.text, "synthesised")]
        if voting or alone or (self.finish and self.plan.decide != "judge"):
            return self._voting(stage)
        match self.plan.decide:
            case "judge":
                return self._by_judge(stage)
            case "synthesise":
                return self._by_one_text(stage)
            case "checks":
                return self._by_tests(stage)
            case "auto" if self._tests_decide(stage):
                return self._by_tests(stage)
            case _:
                return self._voting(stage)

    def ran(self, files: str, test: Script) -> bool:
        result, times, _ = self.runs.get((files, test.script, test.expected), ("", 0, False))
        return times >= 2 or result == "not_run"

    def _voting(self, stage: Opened | None) -> list[Next]:
        if self.finish or (self.budget_reached and not self.live):
            return [self._cut_short()]
        if not self.live:
            agreed = self.agreement()
            enough = len(agreed) > 1 and 2 * len(agreed) > len(self.told)
            return [Won(agreed[0], "best_so_far")] if enough else []
        if len(self.live) == 1 and {one[0] for one in self.standing} == {*self.live}:
            if self.budget_reached and len(self.told) < self.most:
                return [self._cut_short()]
            return [Won(self.standing[0], "single" if len(self.told) == 1 else "single_survivor")]
        if stage is not None and stage.asked in ("run-off", "tie"):
            due = self._after_run_off(Stage("tie" if stage.asked == "tie" else "run-off", stage.about, stage.agents))
        else:
            due = self._after_votes(
                [agent for agent in (self.live if stage is None else stage.agents) if agent in self.live]
            )
        return [Opened(due.asked, due.about, due.agents) if isinstance(due, Stage) else due] if due else []

    def judge_of(self, pair: tuple[Label, Label], tied: Iterable[Label]) -> int | None:
        """Else an agent of a vendor that neither answer comes from, else a fallback of a vendor that both come from,
        or neither.
        """
        outside = super().judge_of(pair, tied)
        if outside is not None:
            return outside
        authors = self.authors_of(pair)
        known = [{self.plan.vendors[agent] for agent in self.authors_of([label])} for label in pair]
        others = [
            agent for agent in self.able if agent not in authors and self.plan.vendors[agent] not in set().union(*known)
        ]
        favours = {vendor for vendor in self.plan.fallbacks if sum(vendor in side for side in known) == 1}
        spare = [agent for agent in self.able if self.plan.fallbacks[agent] not in {*favours, ""}]
        return next(iter((*others, *spare)), None)

    def vote_on(self, about: tuple[Label, ...]) -> list[Next]:
        return [Opened("vote", tuple(sorted(about)), self.able)]

    def _complete(self) -> bool:
        return not self._field_incomplete() and not self._missing()

    def _tests_decide(self, stage: Opened | None) -> bool:
        """Where the first answers are three or more, and change files differently."""
        if stage is not None:
            return stage.asked == "tests"
        if any(one.asked == "answer" for one in self.opened):
            return True
        differ = len({self.files[label] for label in self.standing if label in self.files}) > 1
        once = all(label[1] == 1 for label in self.answers)
        return self._complete() and differ and once and len(self.standing) > 2 and not self.budget_reached

    def _by_tests(self, stage: Opened | None) -> list[Next]:
        if stage is not None:
            return self._after_tests_of(stage)
        if not self.live:
            return self._voting(stage)
        if not self._complete():
            return []
        left = [label for label in self.standing if label not in self.out]
        if len(left) == 1 and self.out:
            return [Won(left[0], "checked")]
        files = {self.files[label] for label in left if label in self.files}
        unchanged = files == {self.base_files}
        if len(left) > 1 and len(files) == 1 and not unchanged:
            return [Won(self.lot(left), "same_files")]
        if self.budget_reached:
            return [self._cut_short()]
        tell = len(self.standing) > 2 and len(left) > 1 and not unchanged
        writers = tuple(agent for agent in self.able if agent not in self.late)
        return [Opened("tests", tuple(left), writers)] if tell and writers else self.vote_on(tuple(left))

    def reopen(self, agent: int) -> None:
        super().reopen(agent)
        self.opened = [one for one in self.opened if one.asked in ("answer", "check", "confirm")]

    def _after_tests_of(self, stage: Opened) -> list[Next]:
        writing = [agent for agent in stage.agents if agent in self.live and agent not in self.tests]
        trees = {self.base_files, *(self.files[label] for label in stage.about)}
        written = [test for tests in self.written.values() for test in tests]
        awaited = any(not self.ran(tree, test) for test in written for tree in trees)
        if (writing and not self.budget_reached) or awaited:
            return []
        if (label := self.chosen_by_tests()) is not None:
            return [] if self._ran_too_seldom(stage) and not self.budget_reached else [Won(label, "tested")]
        if self.budget_reached:
            return [self._cut_short()]
        if not self.live:
            return self._voting(stage)
        return self.vote_on(tuple(self._best_by_tests() or stage.about))

    def _ran_too_seldom(self, stage: Opened) -> bool:
        """Whether one of the tests that count has not run five times on all answers."""
        files = {self.files[label] for label in stage.about}
        scripts = {test.name for tests in self._counting().values() for test, _ in tests}
        ran = [times for (tree, script, _), (_, times, _) in self.runs.items() if tree in files and script in scripts]
        return min(ran) < 5

    def _by_one_text(self, stage: Opened | None) -> list[Next]:
        if not self.live:
            return self._voting(stage)
        stopped = self.budget_reached
        if (stage is None and not self._complete()) or (stage and stage.agents[0] in self.live and not stopped):
            return []
        if stopped:
            return [self._cut_short()]
        written = sum(one.asked == "synthesise" for one in self.opened)
        if written > 1 or not self.able:
            return self.vote_on(tuple(self.standing))
        named = self.plan.writer if self.plan.writer in self.able else None
        return [Drawn("synthesise", tuple(self.standing), frozenset(self.able if named is None else {named}))]

    def _by_judge(self, stage: Opened | None) -> list[Next]:
        """Each answer, in the order of lots, against the one that is left of those before it."""
        if not self.live:
            return self._voting(stage)
        order = sorted((label for label in self.standing if label not in self.out), key=self.place)
        left, due = [order[0]], None
        for label in order[1:]:
            pair = (left[-1], label)
            vendors = {self.plan.vendors[one[0]] for one in pair}
            if self.plan.judge is not None and self.plan.vendors[self.plan.judge] in vendors:
                left.append(label)
                continue
            missing = [one for one in (pair, pair[::-1]) if one not in self.verdicts]
            due = due or (missing[0] if missing else None)
            chosen = {self.verdicts[one] for one in (pair, pair[::-1])} if not missing else set[Label]()
            if chosen == {label}:
                left[-1] = label
            elif chosen != {left[-1]}:
                left.append(label)
        if self.finish or (self.budget_reached and self._complete()):
            return [Won(left[0], "best_so_far")]
        if not self._complete():
            return []
        if due is not None and self.plan.judge is not None and self.plan.judge not in self.dropped:
            open_now = stage is not None and stage.asked == "judge" and stage.about == due
            return [] if open_now else [Opened("judge", due, (self.plan.judge,))]
        return [Won(left[0], "judged")] if len(left) == 1 and self.verdicts else self.vote_on(tuple(left))

    def place(self, label: Label) -> str:
        """Its lot."""
        return sha256(f"{self.settings.run_id}/{name(label)}".encode()).hexdigest()
