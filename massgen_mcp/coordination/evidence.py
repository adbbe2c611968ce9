"""What checks say of the answers: which of them count, and which answers cannot win. Pure.

A check that does not pass on the base says nothing of an answer, so it counts against nobody; it does where passing it
is the goal of the run.
"""

from collections.abc import Mapping
from typing import Literal

from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.events.parts import CheckOutcome

ChecksPolicy = Literal["informative", "required", "goal"]
"""`informative`: voters see the evidence and decide. `required`: besides, an answer whose checks fail cannot win while
another one passes. `goal`: the same, and checks that fail on the base count, too.
"""


def counts(outcome: CheckOutcome, checked: FilesChecked, policy: ChecksPolicy) -> bool:
    """Whether the outcome may speak against the answer."""
    return policy == "goal" or outcome.command not in checked.fails_before


def failing(checked: FilesChecked, policy: ChecksPolicy) -> tuple[str, ...]:
    """The commands that fail and count."""
    return tuple(
        outcome.command
        for outcome in checked.outcomes
        if outcome.result == "failed" and counts(outcome, checked, policy)
    )


def passes(checked: FilesChecked, policy: ChecksPolicy) -> bool:
    """Whether every check that counts has run and passed."""
    return bool(checked.outcomes) and all(
        outcome.result == "passed" or not counts(outcome, checked, policy) for outcome in checked.outcomes
    )


def excluded(evidence: Mapping[str, FilesChecked], policy: ChecksPolicy | None) -> frozenset[str]:
    """The answers, by label, that cannot win. `evidence`: of the standing answers."""
    if policy is None or policy == "informative" or not any(passes(one, policy) for one in evidence.values()):
        return frozenset()
    return frozenset(label for label, one in evidence.items() if failing(one, policy))
