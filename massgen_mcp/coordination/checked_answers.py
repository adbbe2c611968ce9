"""The standing answers of a coordination as checks and failing tests see them: which of them can win, and what is still
to be run.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from massgen_mcp.coordination.evidence import excluded, passes, telling, to_confirm, to_repeat
from massgen_mcp.coordination.guidance import Ballot
from massgen_mcp.coordination.written_tests import FailingTest, failing_tests, finished, key
from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.events.parts import WrittenTest

if TYPE_CHECKING:
    from massgen_mcp.coordination.state import Coordination


class CheckedAnswers:
    """The checks of standing answers, at one moment of a coordination."""

    def __init__(self, state: "Coordination") -> None:
        self._state = state

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Those of them whose checks have not run yet."""
        if self._state.rules.checks is None:
            return ()
        return tuple(one for one in self._state.standing if one not in self._state.evidence)

    @property
    def excluded(self) -> frozenset[str]:
        """Those of them that cannot win, because they fail checks that another one passes."""
        return excluded(self._evidence, self._state.rules.checks)

    @property
    def to_repeat(self) -> dict[str, tuple[str, ...]]:
        """The checks, by label, that have to run once more before they tell the answers apart, or end the run."""
        if self.unchecked:
            return {}
        found = self._evidence
        again = to_confirm(self._state.base_checks, found) if self.telling else {}
        return again | to_repeat(found, self._state.rules.checks)

    @property
    def is_pending(self) -> bool:
        """Whether checks are awaited that a voter should know."""
        return bool(self.unchecked or self.to_repeat or self.goal_runs)

    @property
    def telling(self) -> frozenset[str]:
        """The checks that the first answer that passes them ends the run with: those that fail on the base, and the
        script of the failing test.
        """
        tells = self._state.rules.effort != "high" and self._state.rules.checks is not None
        checks = telling(self._state.base_checks) if tells else frozenset[str]()
        return checks if self.goal is None else checks | {self.goal.script}

    @property
    def failing_tests(self) -> list[FailingTest]:
        """Those that were written before anybody answered, oldest first."""
        return failing_tests(self._state.stages, self._state.submitted, self._state.test_outcomes, self._state.base)

    @property
    def goal(self) -> WrittenTest | None:
        """The one that was confirmed."""
        return next((one.test for one in self.failing_tests if one.confirmed), None)

    @property
    def goal_runs(self) -> tuple[tuple[str, WrittenTest], ...]:
        """Where it has yet to run: on the files of standing answers."""
        goal = self.goal if self._state.rules.can_run else None
        trees = () if goal is None else dict.fromkeys(filter(None, map(self._state.changed_tree, self._state.standing)))
        outcomes = self._state.test_outcomes
        return tuple((tree, goal) for tree in trees if goal and not finished(outcomes.get(key(tree, goal))))

    def passes(self, label: str) -> bool:
        """Whether a standing answer passes everything that tells, and breaks nothing that passes on the base."""
        tree, goal = self._state.changed_tree(label), self.goal
        outcome = self._state.test_outcomes.get(key(tree, goal)) if tree is not None and goal is not None else None
        reached = goal is None or (outcome is not None and outcome.result == "passed" and not outcome.flaky)
        return reached and (self._state.rules.checks is None or passes(self._state.base_checks, self._evidence, label))

    def get_votable(self, ballot: Ballot) -> Ballot:
        """The part of a ballot that may be voted for."""
        out = self.excluded
        return replace(ballot, entries=tuple(entry for entry in ballot.entries if entry.label not in out))

    @property
    def to_settle(self) -> tuple[WrittenTest, ...]:
        """The tests of which agents say, in the stage that is open, what they have to print."""
        failing = self.failing_tests if self._state.stage is not None and self._state.stage.kind == "confirm" else []
        return (failing[-1].test,) if failing else ()

    @property
    def _evidence(self) -> dict[str, FilesChecked]:
        return {label: self._state.evidence[label] for label in self._state.standing if label in self._state.evidence}
