"""What agents' tests come to, read from the state: which runs are due, what a stage of tests says and which answer it
chooses. Pure.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from massgen_mcp.coordination.count import drawn
from massgen_mcp.coordination.evidence import RUNS
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.written_tests import CLEAR, DECIDING_RUNS, JudgedTest, finished, judged, key, shares
from massgen_mcp.events.coordination import StageOpened
from massgen_mcp.events.parts import CheckOutcome, WrittenTest


class TestRun(NamedTuple):
    """One run of a test on the files `tree`. `before`: how it came out there so far, if it ran."""

    __test__ = False
    tree: str
    test: WrittenTest
    before: CheckOutcome | None


def files_of(state: Coordination) -> dict[str, str]:
    """The trees of the answers that tests are about, by label; empty without such a stage."""
    return list_trees(state, next((stage.subjects for stage in state.stages if stage.kind == "test"), ()))


def list_trees(state: Coordination, labels: Iterable[str]) -> dict[str, str]:
    """Return the trees of those of these answers that have files, by label."""
    changes = {label: state.answer_of(state.author(label)).changes for label in labels}
    return {label: made.tree for label, made in changes.items() if made is not None}


def tests_of(state: Coordination) -> list[tuple[str, WrittenTest]]:
    """All tests with their authors, in the order of the config."""
    return [(agent, test) for agent, seat in state.seats.items() for test in seat.tests or ()]


def due_runs(state: Coordination) -> list[TestRun]:
    """What has to run once more, on which files, before the stage that is open can end."""
    wanted = (*_first_wanted(state), *_wanted(state))
    return _due(state, wanted, RUNS) or _due(state, _deciding(state), DECIDING_RUNS)


def _due(state: Coordination, wanted: Iterable[tuple[str, WrittenTest]], runs: int) -> list[TestRun]:
    known = state.test_outcomes
    due = (TestRun(tree, test, known.get(key(tree, test))) for tree, test in dict.fromkeys(wanted))
    return [run for run in due if not finished(run.before, runs)]


def awaited_writers(state: Coordination, stage: StageOpened) -> list[str]:
    """The agents that have yet to write their tests."""
    return [agent for agent in stage.agents if agent in state.live and state.seats[agent].tests is None]


def _deciding(state: Coordination) -> Iterable[tuple[str, WrittenTest]]:
    """The tests that count, on the files of every answer, once all are there and choose one of them."""
    stage = state.stage
    if stage is None or stage.kind != "test" or state.closing or awaited_writers(state, stage):
        return ()
    if chosen(state) is None:
        return ()
    return ((tree, one.test) for one in judged_tests(state) if one.void is None for tree in files_of(state).values())


def _first_wanted(state: Coordination) -> Iterable[tuple[str, WrittenTest]]:
    """A test that has to fail before anybody answers, on the base, and then on the files of every answer."""
    if state.stage is not None and state.stage.kind == "check" and state.base is not None:
        return [(state.base, one.test) for one in state.checks.failing_tests if one.void is None]
    return state.checks.goal_runs


def _wanted(state: Coordination) -> Iterable[tuple[str, WrittenTest]]:
    """Tests on the base and on the files of every answer; what shows claims on the base."""
    base = () if state.base is None else (state.base,)
    if state.stage is not None and state.stage.kind == "test":
        trees = dict.fromkeys((*base, *files_of(state).values()))
        return ((tree, test) for _, test in tests_of(state) for tree in trees)
    if not state.rules.can_run or state.synthesis is None:
        return ()
    return ((tree, claim.test) for claim in state.synthesis.claims or () if claim.test for tree in base)


def judged_tests(state: Coordination) -> tuple[JudgedTest, ...]:
    """What the tests say that have run on all answers."""
    trees = files_of(state)
    return judged(tests_of(state), trees, {label: state.author(label) for label in trees}, state.test_outcomes)


def tests_with_first(state: Coordination) -> tuple[JudgedTest, ...]:
    """The same, and before them those that were written before anybody answered."""
    trees = {label: tree for label in state.standing if (tree := state.changed_tree(label)) is not None}
    first: list[JudgedTest] = []
    for one in state.checks.failing_tests:
        results = {label: state.test_outcomes.get(key(tree, one.test)) for label, tree in trees.items()}
        came_out = {label: outcome.result for label, outcome in results.items() if outcome is not None}
        passed, failed = (
            tuple(label for label, one in came_out.items() if (one == "passed") is yes) for yes in (True, False)
        )
        if one.confirmed or one.void is not None:
            first.append(JudgedTest(one.author, one.test, passed, failed, one.void, first=True))
    return (*first, *judged_tests(state))


def shares_of(state: Coordination) -> dict[str, Fraction]:
    """The share of the others' tests that each answer passes, by label; empty if no test counts."""
    return shares(judged_tests(state), {label: state.author(label) for label in files_of(state)})


def list_best(state: Coordination) -> tuple[str, ...]:
    """The answers that pass the largest share of the others' tests; none if that share is not clear."""
    found = shares_of(state)
    most = max(found.values(), default=Fraction())
    return tuple(label for label, share in found.items() if share == most) if most >= CLEAR else ()


def chosen(state: Coordination) -> str | None:
    """The answer that tests choose; of several with the same files the one that is drawn. None: they do not tell."""
    best, trees = list_best(state), files_of(state)
    alike = len({trees[label] for label in best}) == 1
    return drawn(state.rules.seed, best) if alike else None
