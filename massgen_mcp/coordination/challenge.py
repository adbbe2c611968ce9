"""What scripts against a winner come to, read from the state. Pure.

An agent of another vendor writes tests that the winner's files should fail. A third one is shown the scripts, and no
answer, and says what they have to print. Where both say the same, and the files print something else twice, that is
proven. The author may mend its answer once: the mended one has to pass what is proven, and everything that the winner
passed.
"""

from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.written_tests import finished, key
from massgen_mcp.events.parts import CheckOutcome, WrittenTest


def objections(state: Coordination) -> list[WrittenTest]:
    """The tests against the winner that its files fail, both times."""
    return [
        test for test in _tests(state) if (one := _outcome(state, test)) and one.result == "failed" and not one.flaky
    ]


def proven(state: Coordination) -> list[WrittenTest]:
    """Those of them of which a third agent says the same, without having seen an answer or what is expected."""
    settled = {(test.script, test.expected.strip()) for test in state.proofs.get("settle", ())}
    return [test for test in objections(state) if (test.script, test.expected.strip()) in settled]


def ran(state: Coordination) -> bool:
    """Whether some test against the winner could be run, or none was written."""
    outcomes = [_outcome(state, test) for test in _tests(state)]
    return not outcomes or any(one is not None and one.result != "not_run" for one in outcomes)


def runs_of_challenge(state: Coordination) -> list[tuple[str, WrittenTest]]:
    """What has to run: the tests against the winner on its files; on those of the mended answer what it must pass."""
    stage = state.stage
    if stage is None or stage.elected is None:
        return []
    tree = state.changed_tree(stage.elected.label)
    runs = [(tree, test) for test in _tests(state)] if tree else []
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
    others = [*_tests(state), *(test for seat in state.seats.values() for test in seat.tests or ())]
    return [*proven(state), *(test for test in others if _passed(_outcome(state, test)))]


def _tests(state: Coordination) -> tuple[WrittenTest, ...]:
    return state.proofs.get("refute", ())


def _outcome(state: Coordination, test: WrittenTest) -> CheckOutcome | None:
    """On the winner's files, once nothing more is awaited of it."""
    stage = state.stage
    tree = state.changed_tree(stage.elected.label) if stage is not None and stage.elected is not None else None
    outcome = state.test_outcomes.get(key(tree, test)) if tree else None
    return outcome if finished(outcome) else None


def _passed(outcome: CheckOutcome | None) -> bool:
    return outcome is not None and outcome.result == "passed" and not outcome.flaky
