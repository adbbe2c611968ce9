"""What checks say of the answers on a ballot, in words for a model. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from massgen_mcp.coordination.guidance import Ballot
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.testing import files_of, judged_tests
from massgen_mcp.coordination.written_tests import JudgedTest, key
from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.events.parts import CheckOutcome

BALLOT_CHARACTERS = 12_000
"""So much of the output of checks stands on one ballot, shared out alike."""
LEAST_CHARACTERS = 200
FLAKY = "flaky, passed once and failed once on the same files, so it counts for nobody"
NO_CHANGE = "This answer changes no files, so nothing was checked."


def evidence_of(ballot: Ballot, state: Coordination, base: FilesChecked | None) -> dict[str, str]:
    """By the name of the answer on the ballot; those without checks are absent. `base`: what checks say of that."""
    found = {entry.name: state.evidence[entry.label] for entry in ballot.entries if entry.label in state.evidence}
    printed = sum(bool(outcome.excerpt) for one in found.values() for outcome in (*one.outcomes, *one.own))
    limit = max(LEAST_CHARACTERS, BALLOT_CHARACTERS // max(1, printed))
    before = {outcome.command: outcome for outcome in (base.outcomes if base is not None else ())}
    lines = {name: [*_evidence_lines(checked, before, limit)] for name, checked in found.items()}
    tested, goal = results_of(state), state.checks.goal
    for entry in ballot.entries:
        passed = [] if goal is None else [f"failing test: {'passed' if state.checks.passes(entry.label) else 'failed'}"]
        lines.setdefault(entry.name, []).extend((*tested.get(entry.label, ()), *passed))
    return {name: "\n".join(those) for name, those in lines.items() if those}


def _evidence_lines(checked: FilesChecked, before: Mapping[str, CheckOutcome], limit: int) -> Iterator[str]:
    if checked.problem:
        yield f"The files could not be checked: {checked.problem}"
    elif not checked.outcomes:
        yield NO_CHANGE
    for outcome in checked.outcomes:
        known = before.get(outcome.command)
        notes = [_fails_before(outcome)] if outcome.command in checked.fails_before else []
        yield from _outcome_lines(outcome, limit, [*notes, *_tests(outcome, known)])
        if known is not None and outcome.result == known.result == "passed" and known.excerpt != outcome.excerpt:
            yield "  On the unchanged files it ended so:"
            yield _indented(known.excerpt or "(nothing printed)", limit)
    if checked.restored:
        names = ", ".join(checked.restored)
        yield f"Protected files that the answer changed were checked as they were before: {names}"
        yield "With the answer's own versions of them:"
        for outcome in checked.own:
            yield from _outcome_lines(outcome, limit, [])


def _fails_before(outcome: CheckOutcome) -> str:
    if outcome.obstacle is not None:
        return "It fails for the environment, on the unchanged files, too, and says nothing of the answer."
    passes = outcome.result == "passed"
    return "It does not pass on the unchanged files." if passes else "It does not pass on the unchanged files either."


def _tests(outcome: CheckOutcome, before: CheckOutcome | None) -> Iterator[str]:
    """A pass of fewer tests proves less."""
    if outcome.tests is not None:
        on_base = "" if before is None or before.tests is None else f", {before.tests} on the unchanged files"
        yield f"Tests, as printed by the check: {outcome.tests}{on_base}."
    yield from (f"Warning: {warning}." for warning in outcome.warnings)


def _outcome_lines(outcome: CheckOutcome, limit: int, notes: Iterable[str]) -> Iterator[str]:
    result = FLAKY if outcome.flaky else f"{outcome.result} twice" if outcome.runs > 1 else outcome.result
    line = f"{result.replace('_', ' ')}: {outcome.command} ({outcome.how}, {outcome.seconds:.1f} s)."
    yield " ".join([line, *notes])
    if outcome.excerpt:
        yield _indented(outcome.excerpt, limit)


def _indented(excerpt: str, limit: int) -> str:
    shown = excerpt if len(excerpt) <= limit else f"…{excerpt[1 - limit :]}"
    return "\n".join(f"  {line}" for line in shown.splitlines())


# ---------------------------------------------------------------------------------------------------------------------
# What the tests that a team wrote say of its answers, in words for a model that has to choose one. Pure.


def tests_text(state: Coordination) -> str:
    """The tests by number, with their scripts; empty where none has run. Whoever confirms one is not shown what is
    expected.
    """
    if state.stage is not None and state.stage.kind == "confirm":
        return "\n".join(
            f"Script {number}:\n{one.script}" for number, one in enumerate(state.checks.to_settle, start=1)
        )
    return "\n".join(line for number, one in enumerate(judged_tests(state), start=1) for line in _test(number, one))


def goal_text(state: Coordination) -> str:
    """The failing test that answers have to pass; empty where there is none."""
    goal = state.checks.goal
    if goal is None:
        return ""
    return f"{goal.title}\n{goal.script}\nIt has to print: {goal.expected}"


def results_of(state: Coordination) -> dict[str, list[str]]:
    """By label of an answer, how each test came out, by number."""
    tests = list(enumerate(judged_tests(state), start=1))
    return {
        label: [_test_line(state, tree, number, one) for number, one in tests]
        for label, tree in files_of(state).items()
    }


def _test(number: int, one: JudgedTest) -> Iterator[str]:
    void = f" (does not count: {one.why_void})" if one.void else ""
    yield f"Test {number}: {one.test.title}{void}"
    yield from (f"  {line}" for line in one.test.script.splitlines())
    yield f"  It should print: {one.test.expected}"


def _test_line(state: Coordination, tree: str, number: int, one: JudgedTest) -> str:
    outcome = state.test_outcomes[key(tree, one.test)]
    printed = " ".join(outcome.excerpt.split())[:200]
    if outcome.result == "passed":
        return f"test {number}: passed"
    return f"test {number}: {outcome.result.replace('_', ' ')} ({outcome.how}); it printed: {printed or 'nothing'}"
