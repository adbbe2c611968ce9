"""The benchmark of deciding in a short form: each row is there. What doubles are right in is not asserted."""

import pytest

from benchmarks.deciding.__main__ import line, rows

pytestmark = pytest.mark.uncounted


def test_every_row_is_told_with_its_bar_and_agrees_with_a_second_program_and_the_sandbox() -> None:
    found = {row.what: row for row in rows(seed=1, trials=2, sandbox=1, jobs=2)}
    assert len(found) == 28
    assert found["what tests choose, against a second program"].met == "met"
    assert found["in the real sandbox, against the kept outputs"].met == "met"
    assert found["twin: verdicts of two answers swapped"].met == "fails, as it must"
    assert all(row.found in line(row) and row.bar in line(row) for row in found.values())
