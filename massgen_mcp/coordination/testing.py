"""What agents' tests come to, read from the state: which runs are due, what a stage of tests says and which answer it
chooses, and what scripts against a winner prove. Pure.

Against a winner an agent of another vendor writes tests that its files should fail. A third one is shown the scripts,
and no answer, and says what they have to print. Where both say the same, and the files print something else twice, that
is proven. The author may mend its answer once: the mended one has to pass what is proven, and everything that the
winner passed.
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


def objections(state: Coordination) -> list[WrittenTest]:
    """The tests against the winner that its files fail, both times."""
    return [
        test
        for test in _refuting(state)
        if (one := _on_winner(state, test)) and one.result == "failed" and not one.flaky
    ]


def proven(state: Coordination) -> list[WrittenTest]:
    """Those of them of which a third agent says the same, without having seen an answer or what is expected."""
    settled = {(test.script, test.expected.strip()) for test in state.proofs.get("settle", ())}
    return [test for test in objections(state) if (test.script, test.expected.strip()) in settled]


def ran(state: Coordination) -> bool:
    """Whether some test against the winner could be run, or none was written."""
    outcomes = [_on_winner(state, test) for test in _refuting(state)]
    return not outcomes or any(one is not None and one.result != "not_run" for one in outcomes)


def runs_of_challenge(state: Coordination) -> list[tuple[str, WrittenTest]]:
    """What has to run: the tests against the winner on its files; on those of the mended answer what it must pass."""
    stage = state.stage
    if stage is None or stage.elected is None:
        return []
    tree = state.changed_tree(stage.elected.label)
    runs = [(tree, test) for test in _refuting(state)] if tree else []
    mended = None if state.mended is None else state.changed_tree(state.mended.label)
    return [*runs, *((mended, test) for test in _to_pass(state))] if mended else runs


def mended_passes(state: Coordination) -> bool:
    """Whether the mended answer passes what is proven, and everything that the winner passed."""
    stage, mended = state.stage, state.mended
    tree = None if mended is None else state.changed_tree(mended.label)
    if stage is None or stage.elected is None or mended is None or tree is None:
        return False
    before, now = (state.evidence.get(label) for label in (stage.elected.label, mended.label))
    passed = {one.command for one in now.outcomes if _passed(one)} if now else set[str]()
    checks = all(one.command in passed for one in before.outcomes if _passed(one)) if before else True
    return checks and all(_passed(state.test_outcomes.get(key(tree, test))) for test in _to_pass(state))


def _to_pass(state: Coordination) -> list[WrittenTest]:
    others = [*_refuting(state), *(test for seat in state.seats.values() for test in seat.tests or ())]
    return [*proven(state), *(test for test in others if _passed(_on_winner(state, test)))]


def _refuting(state: Coordination) -> tuple[WrittenTest, ...]:
    return state.proofs.get("refute", ())


def _on_winner(state: Coordination, test: WrittenTest) -> CheckOutcome | None:
    """On the winner's files, once nothing more is awaited of it."""
    stage = state.stage
    tree = state.changed_tree(stage.elected.label) if stage is not None and stage.elected is not None else None
    outcome = state.test_outcomes.get(key(tree, test)) if tree else None
    return outcome if finished(outcome) else None


def _passed(outcome: CheckOutcome | None) -> bool:
    return outcome is not None and outcome.result == "passed" and not outcome.flaky


class TestRun(NamedTuple):
    """One run of a test on the files `tree`. `before`: how it came out there so far, if it ran."""

    __test__ = False
    tree: str
    test: WrittenTest
    before: CheckOutcome | None


def files_of(state: Coordination) -> dict[str, str]:
    """The trees of the answers that tests are about, by label; empty without such a stage."""
    subjects = next((stage.subjects for stage in state.stages if stage.kind == "test"), ())
    found: dict[str, str] = {}
    for label in subjects:
        changes = state.answer_of(state.author(label)).changes
        if changes is not None:
            found[label] = changes.tree
    return found


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
        return [(state.base, one.test) for one in state.failing_tests if one.void is None]
    return state.goal_runs


def _wanted(state: Coordination) -> Iterable[tuple[str, WrittenTest]]:
    """Tests on the base and on the files of every answer; what shows claims on the base; tests against the winner on
    its files.
    """
    base = () if state.base is None else (state.base,)
    if state.stage is not None and state.stage.kind == "test":
        trees = dict.fromkeys((*base, *files_of(state).values()))
        return ((tree, test) for _, test in tests_of(state) for tree in trees)
    if not state.rules.can_run:
        return ()
    if state.synthesis is not None:
        return ((tree, claim.test) for claim in state.synthesis.claims or () if claim.test for tree in base)
    return runs_of_challenge(state)


def judged_tests(state: Coordination) -> tuple[JudgedTest, ...]:
    """What the tests say that have run on all answers."""
    trees = files_of(state)
    return judged(tests_of(state), trees, {label: state.author(label) for label in trees}, state.test_outcomes)


def tests_with_first(state: Coordination) -> tuple[JudgedTest, ...]:
    """The same, and before them those that were written before anybody answered."""
    trees = {label: tree for label in state.standing if (tree := state.changed_tree(label)) is not None}
    first: list[JudgedTest] = []
    for one in state.failing_tests:
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


def best_of(state: Coordination) -> tuple[str, ...]:
    """The answers that pass the largest share of the others' tests; none if that share is not clear."""
    found = shares_of(state)
    most = max(found.values(), default=Fraction())
    return tuple(label for label, share in found.items() if share == most) if most >= CLEAR else ()


def chosen(state: Coordination) -> str | None:
    """The answer that tests choose; of several with the same files the one that is drawn. None: they do not tell."""
    best, trees = best_of(state), files_of(state)
    alike = len({trees[label] for label in best}) == 1
    return drawn(state.rules.seed, best) if alike else None
