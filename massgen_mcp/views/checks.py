"""What checks, and the tests that a team wrote, say of a run's files and answers: whole for programs, and in sentences
for people. Pure.
"""

from dataclasses import dataclass
from typing import Any, Literal

from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.events.parts import CheckObstacle, CheckOutcome
from massgen_mcp.run_state.facts import JudgedTest
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.work_done import judge_files
from massgen_mcp.views.names import name_answer, replace_names
from massgen_mcp.views.plain_text import counted

MISUNDERSTANDING = "The agents wrote these tests themselves, so a shared misunderstanding would go unnoticed"


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
    whole = f"{MISUNDERSTANDING}; `massgen result {run.run_id} --view votes` shows the scripts"
    standing = [(one, False) for one in filter(None, [standing_in_tests(run)])]
    return [*standing, *((replace_names(run, _test(one)), one.void is not None) for one in tests), (whole, True)]


def standing_in_tests(run: RunState) -> str:
    """How many of the others' tests the winner passes; empty without a winner, or without tests."""
    goal = next((one for one in run.judged_tests if one.first and one.void is None), None)
    tests = [one for one in run.judged_tests if not one.first]
    if run.winner is None or not (goal or tests):
        return ""
    winner = name_answer(run, run.winner.label)
    if goal is not None:
        came_out = "passes" if run.winner.label in goal.passed else "fails"
        author = replace_names(run, goal.author)
        reached = f"{winner} {came_out} {author}'s test, which failed at first and was confirmed by two other agents"
        if not tests:
            return reached
    others = [one for one in tests if one.void is None and one.author != run.winner.agent]
    passed = sum(run.winner.label in one.passed for one in others)
    authors = len({one.author for one in others})
    by = f" written by {authors} other agent{'s' if authors > 1 else ''}" if authors else " written by others"
    void = sum(one.void is not None for one in tests)
    uncounted = f"; {counted(void, 'test')} not counted" if void else ""
    return f"{winner} passes {passed} of {counted(len(others), 'test')}{by}{uncounted}"


def _test(one: JudgedTest) -> str:
    passed, failed = ", ".join(one.passed) or "none", ", ".join(one.failed) or "none"
    came_out = f"not counted, {one.why_void}" if one.void else f"passed by {passed}, failed by {failed}"
    return f"{came_out}: {' '.join(one.test.title.split()).rstrip('.')}"


CheckState = Literal["passed", "failed", "void", "unfinished", "untried"]
"""`failed`: for the code as it is; `void`: for the environment, so that it says nothing of the code."""


@dataclass(frozen=True, slots=True)
class TriedCheck:
    """What a check says of the unchanged files."""

    command: str
    state: CheckState
    how: str = ""
    """How it ended, in words."""
    cure: str = ""
    """What helps where it is void, or where the sandbox may have made it fail."""
    excerpt: str = ""
    """The end of its output."""

    def __str__(self) -> str:
        how = f" ({self.how})" if self.how else ""
        why = f": {self.excerpt.splitlines()[0]}" if self.state == "failed" and self.excerpt else ""
        return f"{self.state}: {self.command}{how}{why}{f'. Fix: {self.cure}' if self.cure else ''}"


def checks(run: RunState) -> dict[str, Any]:
    """`{verdict, base, answers by label, unfinished by agent, final, tests}`, as far as they have run; empty where
    there are none.
    """
    checked = run.work_done.checked
    record: dict[str, Any] = {} if checked is None else {"verdict": checked}
    if run.checked_base is not None:
        record["base"] = _checked_fields(run.checked_base)
    if answers := run.coordination.evidence:
        record["answers"] = {label: _checked_fields(checked) for label, checked in answers.items()}
    if left := run.checked_unfinished:
        record["unfinished"] = {agent: _checked_fields(checked) for agent, checked in left.items()}
    if run.checked_final is not None:
        record["final"] = _checked_fields(run.checked_final)
    if tests := written_tests(run):
        record["tests"] = tests
    return record


def check_notes(run: RunState) -> list[str]:
    """What must not be overlooked, as sentences without a full stop."""
    work = run.work_done
    nothing = work.checked == "nothing_checked"
    notes = ["Nothing was checked: no check could test the final files"] if nothing else []
    checked = (run.checked_final, run.checked_base)
    problem = next((one.problem for one in checked if one is not None and one.problem), "")
    notes += [f"The checks did not run: {problem}"] if problem else []
    notes += map(hindered, work.void)
    if run.outcome == "unfinished" and run.end is not None and run.end.winner is not None:
        notes += filter(None, [state_of_unfinished(run, run.end.winner)])
    outcomes = run.checked_final.outcomes if run.checked_final is not None else ()
    whys = {one.command: f" ({one.why})" for one in outcomes if one.why}
    notes += [f"`{one.command}` passes, but {warning}" for one in outcomes for warning in one.warnings]
    notes += [sentence for one in checked if one is not None for sentence in one.unfollowed]
    failing = [f"{one}{whys.get(one, '')}" for one in work.failing if not nothing]
    return [*notes, *([f"The final files fail checks: {', '.join(failing)}"] if failing else [])]


def checks_state(run: RunState) -> str:
    """How the final checks stand, for whoever is about to apply the files; empty where there was nothing to check."""
    return "" if run.checked_final is None else _checks_state(run, run.checked_final, "final files")


def state_of_unfinished(run: RunState, agent: str) -> str:
    """The same of what a dropped agent left."""
    checked = run.checked_unfinished.get(agent)
    return "" if checked is None else _checks_state(run, checked, f"unfinished files of {run.agents[agent].info.id}")


def _checks_state(run: RunState, checked: FilesChecked, files: str) -> str:
    match judge_files(run, checked):
        case None:
            return ""
        case "passed":
            silent = len(run.work_done.void)
            void = f", but {counted(silent, 'check')} gave no result" if silent else ""
            return f"The {files} pass the checks{void}"
        case "failed":
            failed = [one.command for one in checked.outcomes if one.result == "failed"]
            return f"The {files} fail checks: {', '.join(failed)}"
        case "nothing_checked":
            return f"No check ran on the {files}"


def hindered(outcome: CheckOutcome) -> str:
    """Why a check says nothing of the files, and what helps; without a full stop."""
    if outcome.obstacle is None:
        return f"`{outcome.command}` {outcome.how}"
    why = HINDRANCES[outcome.obstacle]
    return (
        f"`{outcome.command}` can't run in this environment, not even on the unchanged files: {why}. Fix: "
        f"{outcome.cure}"
    )


HINDRANCES: dict[CheckObstacle, str] = {
    "program_missing": "a program isn't installed",
    "no_network": "it has no network",
    "read_only": "it tries to write to a read-only location",
    "no_toolchain": "a toolchain isn't installed",
    "not_permitted": "the sandbox doesn't allow it",
}


def _checked_fields(checked: FilesChecked) -> dict[str, Any]:
    own = {"restored": list(checked.restored), "with_own_files": [*map(_outcome_fields, checked.own)]}
    fields: dict[str, Any] = {
        "outcomes": [*map(_outcome_fields, checked.outcomes)],
        **({"not_passed_before": list(checked.fails_before)} if checked.fails_before else {}),
        **(own if checked.restored else {}),
        **({"problem": checked.problem} if checked.problem else {}),
    }
    if checked.unfollowed:
        fields["unfollowed"] = list(checked.unfollowed)
    return fields


def _outcome_fields(outcome: CheckOutcome) -> dict[str, Any]:
    return outcome.model_dump(mode="json", exclude={"excerpt"})
