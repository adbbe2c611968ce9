"""The outcome of a run as one sentence, the same in every view: who agrees, what checks say, what makes it weak, who
disagrees and why. Pure.

"2 of 3 agree; claude disagrees: a second system will never be switched off"
"""

from collections.abc import Iterator
from typing import Literal, assert_never

from massgen_mcp.events.parts import Outcome
from massgen_mcp.run_state.state import RunState
from massgen_mcp.run_state.work_done import Weakness
from massgen_mcp.views.names import join_few, name_agent
from massgen_mcp.views.plain_text import counted, preview, unmarked
from massgen_mcp.views.votes_text import MAX_REASON, list_dissent

WEAKNESSES: dict[Weakness, str] = {
    "nobody_left": "no agent was left to review the answer",
    "unreviewed": "no agent reviewed the answer",
    "checks_failed": "checks fail",
    "refuted": "a confirmed test refutes the answer",
    "one_survivor": "only one agent was left",
    "shown_in_part": "some agents saw only part of the material",
    "cut_short": "the run was decided early",
    "left_out": "an agent was left out",
    "tests_disagree": "tests favour another answer",
    "no_majority": "no majority",
    "tied": "the votes are tied",
    "checks_void": "not all checks ran",
}


def describe_outcome(run: RunState, *, reasons: bool = True) -> str:
    """Say how a completed run was decided; empty for a run that has not completed, and for an agent alone. Without
    `reasons` nothing that an agent wrote is in it.
    """
    if run.state != "completed" or run.outcome is None:
        return ""
    clauses = [
        _describe_agreement(run, run.outcome),
        *_describe_checks(run),
        *_describe_weaknesses(run),
        *describe_dissent(run, reasons=reasons),
    ]
    return "; ".join(filter(None, clauses))


def describe_dissent(run: RunState, *, reasons: bool = True) -> list[str]:
    """Say which agents voted for something else than the winner says, and why: one clause, or none."""
    if not (others := list_dissent(run)):
        return []
    reason = preview(unmarked(others[0].reason), MAX_REASON).rstrip(".")
    names = join_few([name_agent(run, vote.voter) for vote in others])
    clause = f"{names} {_conjugate('disagree', len(others))}"
    if reasons and reason:
        clause += f": {reason}"
    return [clause]


def _describe_agreement(run: RunState, outcome: Outcome) -> str:
    """Say in one clause what the answer rests on, from counts."""
    match outcome:
        case "consensus" | "majority" | "plurality" | "tie_broken" | "best_so_far":
            return _describe_votes(run)
        case "single" | "single_survivor" | "unfinished":
            return _describe_lone_answer(run, outcome)
        case "synthesised":
            return f"{run.author} wrote it from {counted(_count_answers(run), 'answer')}"
        case "judged":
            return f"the judge chose {run.author}'s answer from {_count_answers(run)}"
        case "agreed":
            return f"{_share(_count_answers(run), _count_answers(run))} say the same"
        case "checked":
            return _describe_checked(run)
        case "tested":
            return f"{run.author}'s answer passes most of the tests that the agents wrote"
        case "same_files":
            return f"{_share(_count_same_files(run), _count_answers(run))} made the same change"
        case _:
            assert_never(outcome)


def _describe_lone_answer(run: RunState, outcome: Literal["single", "single_survivor", "unfinished"]) -> str:
    match outcome:
        case "single":
            return ""
        case "single_survivor":
            return f"of {counted(len(run.agents), 'agent')}, only {run.author} remained"
        case "unfinished":
            return f"no agent answered; these are the unfinished files of {run.author}"


def _describe_votes(run: RunState) -> str:
    work = run.work_done
    if run.winner is not None and run.winner.agreeing:
        return f"{_share(len(run.winner.agreeing), len(run.coordination.asked))} gave the same answer"
    if not work.voted:
        return ""
    return f"{_share(work.agree, work.voted)} {_conjugate('agree', work.agree)}"


def _describe_checked(run: RunState) -> str:
    answers = _count_answers(run)
    passing = answers
    if run.winner is not None:
        passing -= len(run.winner.excluded)
    if answers == 1:
        return f"{run.author}'s change passes your checks"
    if passing <= 1:
        return f"only {run.author}'s change passes your checks"
    return f"{_share(passing, answers)} pass your checks"


def _describe_checks(run: RunState) -> Iterator[str]:
    """Say how the checks of the user stand on the final files."""
    work = run.work_done
    if work.checked is None:
        return
    total = work.checks
    yours = "your check" if total == 1 else f"your {total} checks"
    match work.checked:
        case "passed" if run.outcome != "checked":
            yield f"{yours} {_conjugate('pass', total)}"
        case "failed" if total == 1:
            yield "your check fails"
        case "failed":
            failing = max(1, len(work.failing))
            yield f"{failing} of {yours} {_conjugate('fail', failing)}"
        case "nothing_checked":
            yield f"{yours} gave no result"
        case _:
            pass


_TOLD_ELSEWHERE: frozenset[Weakness] = frozenset({"checks_failed", "one_survivor"})
"""Weaknesses that another clause names."""


def _describe_weaknesses(run: RunState) -> Iterator[str]:
    work = run.work_done
    for weakness in work.weak:
        told = weakness in _TOLD_ELSEWHERE or (weakness == "checks_void" and work.checked == "nothing_checked")
        if not told:
            yield WEAKNESSES[weakness]


def _count_same_files(run: RunState) -> int:
    """Count the agents whose answers have the winner's files."""
    if run.winner is None:
        return 0
    return len({run.coordination.author(label) for label in (run.winner.label, *run.winner.drawn)})


def _count_answers(run: RunState) -> int:
    return sum(bool(agent.answers) for agent in run.agents.values())


def _share(part: int, whole: int) -> str:
    if part < whole or whole == 1:
        return f"{part} of {whole}"
    if whole == 2:
        return "both"
    return f"all {whole}"


def _conjugate(verb: str, count: int) -> str:
    if count != 1:
        return verb
    return f"{verb}es" if verb.endswith("s") else f"{verb}s"
