"""What the tests that a team wrote say of its answers: whole for programs, and in sentences for people. Pure."""

from typing import Any

from massgen_mcp.run_state.facts import JudgedTest
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.plain_text import counted

MISUNDERSTANDING = "The agents wrote these tests, and may share a misunderstanding"


def written_tests(run: RunState) -> list[dict[str, Any]]:
    """`{title, script, expected, by, passed, failed, void}` of each test that has run; answers by their labels."""
    return [
        {
            **one.test.model_dump(mode="json"),
            "by": one.author,
            "passed": list(one.passed),
            "failed": list(one.failed),
            **({"void": one.why_void} if one.void else {}),
        }
        for one in run.judged_tests
    ]


def tests_notes(run: RunState) -> list[tuple[str, bool]]:
    """How the winner stands in the others' tests, then each test, as sentences without a full stop, each with whether
    it is of less weight, as a test that does not count.
    """
    tests = run.judged_tests
    if not tests:
        return []
    whole = f"{MISUNDERSTANDING}; `massgen-mcp result {run.run_id} --view votes` has the scripts"
    standing = [(one, False) for one in filter(None, [standing_in_tests(run)])]
    return [*standing, *((_test(one), one.void is not None) for one in tests), (whole, True)]


def standing_in_tests(run: RunState) -> str:
    """How many of the others' tests the winner passes; empty without a winner, or without tests."""
    goal = next((one for one in run.judged_tests if one.first and one.void is None), None)
    tests = [one for one in run.judged_tests if not one.first]
    if run.winner is None or not (goal or tests):
        return ""
    if goal is not None:
        came_out = "passes" if run.winner.label in goal.passed else "fails"
        reached = f"{run.winner.label} {came_out} the failing test that {goal.author} wrote and two others confirmed"
        if not tests:
            return reached
    others = [one for one in tests if one.void is None and one.author != run.winner.agent]
    passed = sum(run.winner.label in one.passed for one in others)
    authors = len({one.author for one in others})
    by = f" by {authors} other agent{'s' if authors > 1 else ''}" if authors else " of others"
    void = sum(one.void is not None for one in tests)
    uncounted = f"; {counted(void, 'test')} not counted" if void else ""
    return f"{run.winner.label} passes {passed} of {counted(len(others), 'test')}{by}{uncounted}"


def _test(one: JudgedTest) -> str:
    passed, failed = ", ".join(one.passed), ", ".join(one.failed)
    came_out = f"not counted, {one.why_void}" if one.void else f"passed by {passed}, failed by {failed}"
    return f"{came_out}: {' '.join(one.test.title.split()).rstrip('.')}"
