"""What checks say of the answers: which of them count, and which answers cannot win. Pure.

Answers are compared check by check. A check that one answer passes counts against those that fail it, whether the base
passes it or not. One that nobody passes tells nobody apart, and neither does one that came out differently on the same
files: it is flaky. So that a flaky one is found out, what tells answers apart is run twice.
"""

from collections.abc import Mapping

from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.events.parts import CheckOutcome, ChecksPolicy, ChecksVerdict

RUNS = 2
"""So often a check is run that tells answers apart."""

Evidence = Mapping[str, FilesChecked]
"""Of answers, by label."""


def failing(final: FilesChecked, answers: Evidence, policy: ChecksPolicy) -> tuple[str, ...]:
    """The commands that the final files fail, and that count: all where passing them is the goal, else those that pass
    on the base or for an answer.
    """
    unsteady = flaky(answers)
    passed = {outcome.command for one in answers.values() for outcome in one.outcomes if outcome.result == "passed"}
    return tuple(
        outcome.command
        for outcome in final.outcomes
        if outcome.result == "failed"
        and outcome.command not in unsteady
        and (policy == "goal" or outcome.command not in final.fails_before or outcome.command in passed)
    )


def excluded(answers: Evidence, policy: ChecksPolicy | None) -> frozenset[str]:
    """The standing answers, by label, that cannot win. One is always left: nobody is better than all others are."""
    if not _decides(policy):
        return frozenset()
    steady = _results(answers)
    return frozenset(
        label for label, results in steady.items() if any(_better(other, results) for other in steady.values())
    )


def to_repeat(answers: Evidence, policy: ChecksPolicy | None) -> dict[str, tuple[str, ...]]:
    """What tells these answers apart and has run only once on their files: the commands by label."""
    if not _decides(policy):
        return {}
    found = [set(results.items()) for results in _results(answers).values()]
    seen = {one for results in found for one in results}
    telling = {command for command, _ in seen if {(command, "passed"), (command, "failed")} <= seen}
    waiting = {
        label: tuple(
            outcome.command
            for outcome in one.outcomes
            if outcome.command in telling and outcome.runs < RUNS and outcome.result != "not_run"
        )
        for label, one in answers.items()
    }
    return {label: commands for label, commands in waiting.items() if commands}


def telling(base: FilesChecked | None) -> frozenset[str]:
    """The checks that fail on the base for its own sake."""
    return frozenset(one.command for one in base.outcomes if one.speaks_against) if base is not None else frozenset()


def passes(base: FilesChecked | None, answers: Evidence, label: str) -> bool:
    """Whether an answer passes everything that tells on this base, and breaks nothing that passes there."""
    return _passes_what_tells(base, answers[label]) and not _broken(base, answers, label)


def to_confirm(base: FilesChecked | None, answers: Evidence) -> dict[str, tuple[str, ...]]:
    """What decides whether an answer that passes what tells on the base ends the run, and has run only once: the
    commands by label.
    """
    found: dict[str, tuple[str, ...]] = {}
    for label, answer in answers.items():
        if _passes_what_tells(base, answer):
            deciding = _broken(base, answers, label) or [one for one in answer.outcomes if one.command in telling(base)]
            found[label] = tuple(one.command for one in deciding if one.runs < RUNS)
    return {label: commands for label, commands in found.items() if commands}


def _passes_what_tells(base: FilesChecked | None, answer: FilesChecked) -> bool:
    return telling(base) <= {one.command for one in answer.outcomes if one.result == "passed" and not one.flaky}


def _broken(base: FilesChecked | None, answers: Evidence, label: str) -> list[CheckOutcome]:
    """What passes on the base, and fails on this answer's files; a flaky check counts for nobody."""
    whole = {one.command for one in (base.outcomes if base is not None else ()) if one.result == "passed"}
    whole -= flaky(answers)
    return [one for one in answers[label].outcomes if one.result == "failed" and one.command in whole]


def flaky(answers: Evidence) -> frozenset[str]:
    """The checks that came out differently on the same files, whoever's they were."""
    return frozenset(outcome.command for one in answers.values() for outcome in one.outcomes if outcome.flaky)


def void(checked: FilesChecked) -> tuple[CheckOutcome, ...]:
    """Those that say nothing of the files, because the sandbox or the environment kept them from it."""
    return tuple(one for one in checked.outcomes if one.result == "not_run" or one.obstacle is not None)


def verdict(final: FilesChecked, answers: Evidence) -> ChecksVerdict | None:
    """None: the final files are those of the base, so there was nothing to check."""
    if not final.outcomes and not final.problem:
        return None
    unsteady = flaky(answers)
    mute = void(final)
    telling = [one.result for one in final.outcomes if one not in mute and one.command not in unsteady]
    if not telling:
        return "nothing_checked"
    if "failed" in telling:
        return "failed"
    return "passed"


def _decides(policy: ChecksPolicy | None) -> bool:
    return policy in ("required", "goal")


def _results(answers: Evidence) -> dict[str, dict[str, str]]:
    """How the checks that are not flaky came out, by command, for each answer."""
    unsteady = flaky(answers)
    return {
        label: {outcome.command: outcome.result for outcome in one.outcomes if outcome.command not in unsteady}
        for label, one in answers.items()
    }


def _better(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether `one` passes a check that `other` fails, and each that it passes."""
    passes_more = any(result == "failed" and one.get(command) == "passed" for command, result in other.items())
    return passes_more and all(result != "passed" or one.get(command) == "passed" for command, result in other.items())
