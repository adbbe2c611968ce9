"""What the tests that a team wrote say: which of them count, what share each answer passes, and what became of a
failing test that is written before anybody answers. Pure.

Every test runs twice on the base and on the files of every answer; where tests choose one, those that count run three
times more on these files. A test counts if it passes for some answers and fails for others, comes out alike every time,
and does not pass for its author's answer alone. A test never judges its author's own answer. An answer's *share* is the
mean, over the other authors, of the part of their counting tests that it passes: so whoever writes more tests has no
more weight. Where no other author has any, it is the mean of the shares of the answers for which there are some. Shares
are exact fractions.

A failing test (`write_check`) has to fail on the unchanged files, twice. Two others, who see its script alone, say what
a right answer prints. Where both expect what its author does it is a check that answers have to pass; else it is void.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from massgen_mcp.coordination.evidence import RUNS
from massgen_mcp.events.coordination import StageOpened
from massgen_mcp.events.parts import CONFIRM, CheckOutcome, StageKind, WrittenTest

BEFORE_ANSWERS: frozenset[StageKind | str] = frozenset({"check", "confirm"})
"""The stages in which it is written and confirmed."""
Submitted = Mapping[tuple[int, str], tuple[WrittenTest, ...]]
"""What agents submitted in these stages: by the number of the stage in its attempt, from 1, and the agent."""


DECIDING_RUNS = 5
"""Of a test that helps to choose an answer: one that comes out by chance passes two runs too often."""
CLEAR = Fraction(2, 3)
"""An answer that passes at least this share of the others' tests can win by them."""

TestKey = tuple[str, str, str]
"""The files (tree), the script, and what it has to print."""

VoidReason = Literal[
    "not_run",
    "flaky",
    "passes_for_all",
    "fails_for_all",
    "passes_for_its_author_alone",
    "passes_before",
    "unconfirmed",
]
"""Why a test does not count."""


WHY_VOID: Mapping[VoidReason, str] = {
    "not_run": "it could not be run",
    "flaky": "it came out differently on the same files",
    "passes_for_all": "it passes for all answers",
    "fails_for_all": "it fails for all answers",
    "passes_for_its_author_alone": "it passes for its author's answer alone",
    "passes_before": "it passes on the unchanged files",
    "unconfirmed": "two others, who saw its script alone, do not both expect what it does",
}
"""The same in words."""


@dataclass(frozen=True, slots=True)
class JudgedTest:
    """A test, and what it says of the answers."""

    author: str
    """The agent that wrote it."""
    test: WrittenTest
    passed: tuple[str, ...]
    """Labels of the answers for which it passes."""
    failed: tuple[str, ...]
    """Labels of the others."""
    void: VoidReason | None = None
    """Why it does not count; None: it does."""
    first: bool = False
    """Whether it was written before anybody answered."""

    @property
    def why_void(self) -> str:
        """The same in words; empty where it counts."""
        return "" if self.void is None else WHY_VOID[self.void]


def key(tree: str, test: WrittenTest) -> TestKey:
    return tree, test.script, test.expected


def finished(outcome: CheckOutcome | None, runs: int = RUNS) -> bool:
    """Whether a test needs no further run on these files, of so many."""
    return outcome is not None and (outcome.runs >= runs or outcome.result == "not_run")


def shown_by_script(
    test: WrittenTest | None, tree: str | None, outcomes: Mapping[TestKey, CheckOutcome]
) -> bool | None:
    """Whether a script shows what it is to show. None: there is none, or it could not be tried."""
    outcome = outcomes.get(key(tree or "", test)) if test is not None else None
    if outcome is None or not finished(outcome) or outcome.result == "not_run":
        return None
    return outcome.result == "passed"


def judged(
    tests: Iterable[tuple[str, WrittenTest]],
    trees: Mapping[str, str],
    authors: Mapping[str, str],
    outcomes: Mapping[TestKey, CheckOutcome],
) -> tuple[JudgedTest, ...]:
    """The tests by author that have run on all of `trees`, the files of answers by label. `authors`: of the answers."""
    found: list[JudgedTest] = []
    for author, test in tests:
        came_out = {label: outcomes.get(key(tree, test)) for label, tree in trees.items()}
        ran = [outcome for outcome in came_out.values() if outcome is not None and finished(outcome)]
        if len(ran) == len(came_out):
            passed = tuple(label for label, one in came_out.items() if one is not None and one.result == "passed")
            failed = tuple(label for label in came_out if label not in passed)
            own = {label for label, of in authors.items() if of == author}
            found.append(JudgedTest(author, test, passed, failed, _void(ran, {*passed}, own)))
    return tuple(found)


def _void(ran: Sequence[CheckOutcome], passed: set[str], own: set[str]) -> VoidReason | None:
    if any(one.result == "not_run" for one in ran):
        return "not_run"
    if any(one.flaky for one in ran):
        return "flaky"
    if not passed:
        return "fails_for_all"
    if len(passed) == len(ran):
        return "passes_for_all"
    return "passes_for_its_author_alone" if passed <= own else None


def shares(tests: Iterable[JudgedTest], authors: Mapping[str, str]) -> dict[str, Fraction]:
    """The share of each answer, by label, of the others' tests; empty if no test counts. `authors`: of the answers."""
    by_author: dict[str, list[tuple[str, ...]]] = {}
    for one in tests:
        if one.void is None:
            by_author.setdefault(one.author, []).append(one.passed)
    known: dict[str, Fraction] = {}
    for label, author in authors.items():
        others = [passed for writer, passed in by_author.items() if writer != author]
        if others:
            parts = (Fraction(sum(label in one for one in passed), len(passed)) for passed in others)
            known[label] = sum(parts, Fraction()) / len(others)
    if not known:
        return {}
    mean = sum(known.values(), Fraction()) / len(known)
    return {label: known.get(label, mean) for label in authors}


@dataclass(frozen=True, slots=True)
class FailingTest:
    """A test that was written, and how far it has come."""

    author: str
    test: WrittenTest
    ran: bool
    """Whether it needs no further run on the unchanged files."""
    confirmed: bool
    """Whether it fails there, and the two others expect what its author does."""
    void: VoidReason | None
    """Why it is none; None: it is one, or nobody knows yet."""


def failing_tests(
    stages: Sequence[StageOpened], submitted: Submitted, outcomes: Mapping[TestKey, CheckOutcome], base: str | None
) -> list[FailingTest]:
    """All that were written, oldest first."""
    found: list[FailingTest] = []
    for number, stage in enumerate(stages, start=1):
        author = stage.agents[0] if stage.kind == "check" else ""
        for test in submitted.get((number, author), ()):
            outcome = None if base is None else outcomes.get(key(base, test))
            ran = finished(outcome)
            void = _void_before(outcome) if ran and outcome is not None else None
            asked = stages[number].agents if stages[number:] and stages[number].kind == "confirm" else ()
            results = [one.expected.strip() for agent in asked for one in submitted.get((number + 1, agent), ())]
            confirmed = void is None and ran and results == [test.expected.strip()] * CONFIRM
            if void is None and not confirmed and len(stages) > number + bool(asked):
                void = "unconfirmed"
            found.append(FailingTest(author, test, ran, confirmed, void))
    return found


def _void_before(outcome: CheckOutcome) -> VoidReason | None:
    if outcome.result == "not_run":
        return "not_run"
    return "flaky" if outcome.flaky else "passes_before" if outcome.result == "passed" else None
