"""A refuter after the vote, with and without blind confirmation. Its rule is written here: scripts of another agent
against the winner; with confirmation a third agent says, without the expectation, what must be printed.
"""

from dataclasses import dataclass, replace

from benchmarks.deciding.doubles import TESTS, Trial

MENDS = 0.5
"""How often an author that is shown a proof mends a wrong answer, or spoils a right one."""


@dataclass(frozen=True, slots=True)
class Challenged:
    """What came of the winner's answer."""

    proven: bool
    false: bool
    """It was proven wrong, and is right."""
    right: bool
    """The answer that stands in the end."""
    calls: int


def challenged(trial: Trial, winner: int, *, confirmed: bool, tie: str = "refute") -> Challenged:
    """Unconfirmed, any script that fails proves, and the next candidate stands; confirmed, the author mends."""
    others = [agent for agent in range(len(trial.programs)) if agent != winner]
    refuter, third = others[0], others[-1]
    random = trial.luck(refuter, tie)
    blind = trial.luck(third, f"{tie} blind")
    own, is_right = trial.programs[winner], trial.right(winner)
    failing: list[int] = []
    for _ in range(TESTS):
        at = trial.place((own, trial.programs[refuter]), random)
        expected = trial.expectation(refuter, at, random)
        if own.seen[at] != expected and (not confirmed or trial.expectation(third, at, blind) == expected):
            failing.append(at)
    if not failing:
        return Challenged(proven=False, false=False, right=is_right, calls=1 + confirmed)
    if not confirmed:
        return Challenged(proven=True, false=is_right, right=trial.right(random.choice(others)), calls=1)
    turned = random.random() < MENDS
    return Challenged(proven=True, false=is_right, right=is_right != turned, calls=3)


def unanimous(trial: Trial) -> Trial:
    """The same question, where everybody has the same wrong program."""
    wrong = trial.luck(0, "planted").choice(trial.task.wrong)
    return replace(trial, programs=(wrong,) * len(trial.programs))
