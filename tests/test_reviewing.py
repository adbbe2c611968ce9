"""The benchmark of reviewing in a short form: changes of real packages, and figures that fit together."""

import anyio
import pytest

from benchmarks.reviewing import Skill, changes, measured

pytestmark = pytest.mark.uncounted


def test_changes_are_the_same_for_a_seed_and_their_bugs_lie_in_what_they_add() -> None:
    found = [*changes(1, 5)]
    assert found == [*changes(1, 5)]
    assert [change.bug is not None for change in found] == [True] * 5 + [False] * 5
    for change in found:
        assert change.bug is None or change.bug in change.added
        assert f"+++ b/{change.file}\n" in change.diff


def test_who_refutes_without_a_fault_leaves_all_bugs_and_nothing_else() -> None:
    told = anyio.run(measured, 1, 2, Skill(sees=1, spread=0, imagines=1, refutes=1, misjudges=0))
    assert told.union == told.together.right == told.refuted.right == told.alone.right == 2
    assert (told.refuted.false, told.refuted.flagged_clean) == (0, 0)
    assert told.together.false >= told.alone.false == 4
    assert told.alone.calls == 4
    assert told.together.calls == 16 < told.refuted.calls
