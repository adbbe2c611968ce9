"""What the tests that a team wrote say of its answers, in words for a model that has to choose one. Pure."""

from collections.abc import Iterator

from massgen_mcp.coordination.challenge import changed_tree, proven
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.testing import files_of, judged_tests
from massgen_mcp.coordination.written_tests import JudgedTest, key


def tests_text(state: Coordination) -> str:
    """The tests by number, with their scripts; empty where none has run. In a challenge those against the winner: to
    whoever settles what they print without what is expected, to the author with what they printed.
    """
    kind = state.stage.kind if state.stage is not None else "vote"
    if kind == "settle":
        return "\n".join(
            f"Script {number}:\n{one.script}" for number, one in enumerate(state.proofs["refute"], start=1)
        )
    if state.stage is not None and state.stage.elected is not None and kind == "revise":
        tree = changed_tree(state, state.stage.elected.label) or ""
        shown = ((one, state.test_outcomes[key(tree, one)].excerpt) for one in proven(state))
        return "\n".join(
            f"{one.title}\n{one.script}\nIt should print: {one.expected}\nIt printed: {printed}"
            for one, printed in shown
        )
    return "\n".join(line for number, one in enumerate(judged_tests(state), start=1) for line in _test(number, one))


def results_of(state: Coordination) -> dict[str, list[str]]:
    """By label of an answer, how each test came out, by number."""
    tests = list(enumerate(judged_tests(state), start=1))
    return {
        label: [_result(state, tree, number, one) for number, one in tests] for label, tree in files_of(state).items()
    }


def _test(number: int, one: JudgedTest) -> Iterator[str]:
    void = f" (does not count: {one.why_void})" if one.void else ""
    yield f"Test {number}: {one.test.title}{void}"
    yield from (f"  {line}" for line in one.test.script.splitlines())
    yield f"  It should print: {one.test.expected}"


def _result(state: Coordination, tree: str, number: int, one: JudgedTest) -> str:
    outcome = state.test_outcomes[key(tree, one.test)]
    printed = " ".join(outcome.excerpt.split())[:200]
    if outcome.result == "passed":
        return f"test {number}: passed"
    return f"test {number}: {outcome.result.replace('_', ' ')} ({outcome.how}); it printed: {printed or 'nothing'}"
