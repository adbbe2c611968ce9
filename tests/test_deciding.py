"""The benchmark of deciding in a short form: each row is there. What doubles are right in is not asserted."""

import pytest

from benchmarks.deciding.__main__ import line, rows

pytestmark = pytest.mark.uncounted


def test_every_row_is_told_with_its_bar_and_agrees_with_a_second_program_and_the_sandbox() -> None:
    found = {row.what: row for row in rows(seed=1, trials=2, sandbox=1, jobs=2)}
    assert len(found) == 35
    assert found["what tests choose, against a second program"].met == "met"
    assert found["in the real sandbox, against the kept outputs"].met == "met"
    assert found["twin: verdicts of two answers swapped"].met == "fails, as it must"
    assert all(row.found in line(row) and row.bar in line(row) for row in found.values())
    assert all(each in line(row) for row in found.values() for each in row.costs)
    missing = next(row for name, row in found.items() if name.startswith("vote, the last agent's answer never comes"))
    assert "weak 100.0% (left_out 100.0%" in line(missing)
