"""A failing test that is written before anybody answers (`write_check`), read from what was submitted. Pure.

One agent writes it. It has to fail on the unchanged files, twice. Two others, who see its script alone, say what a
right answer prints. Where both expect what its author does it is a check that answers have to pass; else it is void.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from massgen_mcp.coordination.written_tests import TestKey, VoidReason, finished, key
from massgen_mcp.events.coordination import StageOpened
from massgen_mcp.events.parts import CONFIRM, CheckOutcome, StageKind, WrittenTest

BEFORE_ANSWERS: frozenset[StageKind | str] = frozenset({"check", "confirm"})
"""The stages in which it is written and confirmed."""

Submitted = Mapping[tuple[int, str], tuple[WrittenTest, ...]]
"""What agents submitted in these stages: by the number of the stage in its attempt, from 1, and the agent."""


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
            void = _void(outcome) if ran and outcome is not None else None
            asked = stages[number].agents if stages[number:] and stages[number].kind == "confirm" else ()
            results = [one.expected.strip() for agent in asked for one in submitted.get((number + 1, agent), ())]
            confirmed = void is None and ran and results == [test.expected.strip()] * CONFIRM
            if void is None and not confirmed and len(stages) > number + bool(asked):
                void = "unconfirmed"
            found.append(FailingTest(author, test, ran, confirmed, void))
    return found


def _void(outcome: CheckOutcome) -> VoidReason | None:
    if outcome.result == "not_run":
        return "not_run"
    return "flaky" if outcome.flaky else "passes_before" if outcome.result == "passed" else None
