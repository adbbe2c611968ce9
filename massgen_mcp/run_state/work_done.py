"""The work that stands behind a run's result, and the work that was left undone.

A result claims no more than this type says. It is computed here alone, from the folded events; every interface, file
and exit code reads it, and none decides for itself whether a run was a success or how firm its decision is. A new way
in which work can be left undone is a `Weakness`, or a reason in `failure`, and so reaches all of them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from massgen_mcp.coordination.evidence import verdict, void
from massgen_mcp.coordination.testing import shares_of
from massgen_mcp.events.coordination import FilesChecked
from massgen_mcp.events.parts import (
    DECIDED_BY_RUNS,
    DECIDED_WITHOUT_VOTES,
    CheckOutcome,
    ChecksVerdict,
    Outcome,
    ShortenedText,
)
from massgen_mcp.events.run import RunCompleted, RunFailed
from massgen_mcp.name_lists import join_names
from massgen_mcp.run_state.facts import RunFacts

Weakness = Literal[
    "nobody_left",
    "unreviewed",
    "checks_failed",
    "refuted",
    "one_survivor",
    "shown_in_part",
    "cut_short",
    "left_out",
    "tests_disagree",
    "no_majority",
    "tied",
    "checks_void",
]
"""A reason for which a decision is weak, the gravest first. No agent of the team was left to judge the answer; none
did; the final files fail checks; they fail a test that was written against them and confirmed; one agent was left; an
agent answered or voted on texts that were shortened for its model; the run was told to finish; an agent was left out,
because its first answer did not come in time; tests that the team wrote speak for another answer; half or fewer of the
agents that were asked voted for what the winner says; answers that say different things are tied; some check could not
say anything.
"""

DecidedBy = Literal["checks", "files", "tests", "synthesis", "reading", "judge", "votes", "agreement"]
"""A way in which a winner was found: required checks that others fail; that all have the same files; tests that the
team wrote; that it was written from all answers; an agent that found them to say the same; the judge that the config
names, or the agent that judged a tie; votes; the answers themselves, where no agent could vote and more than half of
them say the same.
"""

Failure = Literal["not_completed", "nobody_left", "unproven"]
"""A reason for which a run is no success: it did not complete; no agent was left to judge its answer, and no more than
half of the answers agree with it; its files did not
pass the checks that are required.
"""


@dataclass(frozen=True, slots=True)
class PartlyRead:
    """The texts of which an agent's model was shown a part, because its window holds no more."""

    agent: str
    """The agent's public name."""
    texts: tuple[ShortenedText, ...]
    voted: bool
    """Whether its standing vote was cast on parts."""


@dataclass(frozen=True, slots=True)
class WorkDone:
    succeeded: bool = False
    """The run has completed, and nothing speaks against it."""
    failure: Failure | None = None
    """Why it is no success; None as long as it goes on."""
    weak: tuple[Weakness, ...] = ()
    """Empty: the decision is firm, as far as anything is known."""
    decided_by: tuple[DecidedBy, ...] = ()
    """In the order in which they did."""
    agree: int = 0
    """Last votes, of a run-off or before, for an answer that says what the winner's does."""
    others: tuple[tuple[str, int], ...] = ()
    """The other last votes: the label of one answer for all that say the same, and how many."""
    tied: tuple[str, ...] = ()
    """The labels of answers that say different things, and that nothing told apart, the winner's among them."""
    unreviewed: bool = False
    """The answer has neither a vote nor a test for it, though others could have judged it."""
    took_part: tuple[str, ...] = ()
    """Public names of the agents that were not dropped."""
    dropped: tuple[str, ...] = ()
    """Those of the others, whatever the phase in which they fell out."""
    partly_read: tuple[PartlyRead, ...] = ()
    """The agents that answered, voted or wrote on shortened texts."""
    checked: ChecksVerdict | None = None
    """The checks' verdict on the final files; None where there was nothing to check."""
    checks: int = 0
    """The number of checks that ran on the final files."""
    failing: tuple[str, ...] = ()
    """The checks that the final files do not pass and that count, of a completed run."""
    void: tuple[CheckOutcome, ...] = ()
    """The checks that say nothing of any files, as they came out on the base."""
    unproven: str = ""
    """Where checks are required: the clause that says why the final files did not pass them. Their changes are not
    applied unasked then. Empty where nothing speaks against that.
    """
    undecided: str = ""
    """Where answers are tied that change files: the clause that says so. Their changes are not applied unasked either.
    """
    copied: tuple[str, ...] = ()
    """Paths of the directories that agents had copies of."""
    not_copied: tuple[str, ...] = ()
    """The directories that agents could only read, each with the reason."""

    @classmethod
    def from_run(cls, run: RunFacts) -> "WorkDone":
        agree, others = _count_votes(run)
        unreviewed, unproven = _is_unreviewed(run), _explain_unproven(run)
        partly_read = _find_partly_read(run)
        checked: ChecksVerdict | None = None
        checks = 0
        if run.checked_final is not None:
            checked, checks = judge_files(run, run.checked_final), len(run.checked_final.outcomes)
        failing = run.end.failing_checks if isinstance(run.end, RunCompleted) else ()
        ended_early = run.coordination.finish_requested or (
            run.winner is None and run.end is not None and not isinstance(run.end, RunFailed)
        )
        found: dict[Weakness, bool] = {
            "nobody_left": unreviewed and not ended_early,
            "unreviewed": unreviewed and ended_early,
            "checks_failed": bool(failing) or checked == "failed",
            "refuted": run.winner is not None and run.winner.challenge == "refuted",
            "one_survivor": run.outcome == "single_survivor" and not unreviewed,
            "shown_in_part": bool(partly_read),
            "cut_short": run.outcome == "best_so_far" and not unreviewed,
            "left_out": bool(run.left_out),
            "tests_disagree": _is_contradicted_by_tests(run),
            "no_majority": _has_no_majority(run, agree, sum(votes for _, votes in others)),
            "tied": _is_tied(run),
            "checks_void": checked == "nothing_checked" or _is_void_in_part(run),
        }
        decided = run.winner is not None or run.best_answer is not None
        weak: tuple[Weakness, ...] = tuple(weakness for weakness, holds in found.items() if holds and decided)
        failure = _find_failure(run, weak, unproven)
        return cls(
            succeeded=run.end is not None and failure is None,
            failure=failure,
            weak=weak,
            decided_by=_list_ways(run),
            agree=agree,
            others=others,
            tied=_list_tied(run),
            unreviewed=unreviewed,
            took_part=tuple(name for name, agent in run.agents.items() if agent.dropped is None),
            dropped=tuple(name for name, agent in run.agents.items() if agent.dropped is not None),
            partly_read=partly_read,
            checked=checked,
            checks=checks,
            failing=failing,
            void=() if run.checked_base is None else void(run.checked_base),
            unproven=unproven,
            undecided=_explain_undecided(run),
            copied=() if run.base is None else tuple(one.path for one in run.base.directories),
            not_copied=() if run.base is None else run.base.refused,
        )

    @property
    def held_back(self) -> str:
        """Why the changes are not applied unasked, as a clause; empty where nothing speaks against that."""
        return self.unproven or self.undecided

    @property
    def voted(self) -> int:
        return self.agree + self.dissent

    @property
    def dissent(self) -> int:
        """Last votes for something else."""
        return sum(votes for _, votes in self.others)


def judge_files(run: RunFacts, checked: FilesChecked) -> ChecksVerdict | None:
    """Return the checks' verdict on these files; None where there was nothing to check."""
    return verdict(checked, run.coordination.evidence)


def _find_failure(run: RunFacts, weak: tuple[Weakness, ...], unproven: str) -> Failure | None:
    if run.end is None:
        return None
    if not isinstance(run.end, RunCompleted):
        return "not_completed"
    if "nobody_left" in weak and not (run.winner is not None and run.winner.agreeing):
        return "nobody_left"
    return "unproven" if unproven else None


# -- votes ------------------------------------------------------------------------------------------------------------


def _is_unreviewed(run: RunFacts) -> bool:
    """A `single` answer without a loss is that of the only agent which was to answer."""
    tested = run.winner is not None and run.winner.outcome in DECIDED_WITHOUT_VOTES and not _is_of_one_answer(run)
    alone = len(run.coordination.involved) == 1 or (run.outcome == "single" and not run.dropped)
    return run.best_answer is not None and run.voted == 0 and not tested and not alone


def _is_of_one_answer(run: RunFacts) -> bool:
    """Check whether the winner was to be written from all answers, and there was one alone."""
    return run.outcome == "synthesised" and len(run.coordination.answered) < 2


def _count_votes(run: RunFacts) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Return how many last votes agree with the winner, and the others by answer, most voted first."""
    camp_of = {label: camp.answers[0] for camp in run.camps for label in camp.answers}
    last = {**run.votes, **run.run_off_votes}
    agree = sum(vote.label in run.agreed for vote in last.values())
    if run.winner is None:
        return agree, ()
    others = Counter(camp_of.get(vote.label, vote.label) for vote in last.values() if vote.label not in run.agreed)
    place = {label: place for place, label in enumerate(run.tally)}
    return agree, tuple(sorted(others.items(), key=lambda one: (-one[1], place.get(one[0], 0))))


def _list_ways(run: RunFacts) -> tuple[DecidedBy, ...]:
    winner = run.winner
    if winner is None:
        return ()
    found = _WAYS.get(winner.outcome)
    ways: list[DecidedBy] = []
    if winner.excluded and found != "checks":
        ways.append("checks")
    if any(stage.because == "tests_tied" for stage in run.coordination.stages):
        ways.append("tests")
    if found is not None or any(winner.votes.values()):
        ways.append(found or "votes")
    if winner.judge is not None:
        ways.append("judge")
    if winner.agreeing:
        ways.append("agreement")
    return tuple(ways)


_WAYS: Mapping[Outcome, DecidedBy] = {
    "checked": "checks",
    "same_files": "files",
    "tested": "tests",
    "synthesised": "synthesis",
    "agreed": "reading",
    "judged": "judge",
}
"""The way that an outcome names; the others: votes, if there are any."""


def _has_no_majority(run: RunFacts, agree: int, dissent: int) -> bool:
    """Return whether half or fewer of the agents that were asked voted for what the winner says."""
    if run.winner is not None and run.winner.outcome == "plurality":
        return not run.coordination.is_majority(agree)
    return agree < dissent and not _is_tied(run)


def _is_tied(run: RunFacts) -> bool:
    """Return whether no votes, and nothing that ran, told the winner apart from answers that say something else."""
    winner = run.winner
    if winner is None or winner.outcome in DECIDED_BY_RUNS:
        return False
    return winner.judge is not None or not {*winner.drawn} <= {*run.agreed}


def _list_tied(run: RunFacts) -> tuple[str, ...]:
    return run.winner.drawn if run.winner is not None and _is_tied(run) else ()


def _explain_undecided(run: RunFacts) -> str:
    tied = [label for label in _list_tied(run) if run.coordination.changed_tree(label) is not None]
    if not tied:
        return ""
    names = [run.agents[run.coordination.author(label)].info.id for label in tied]
    commands = [f"`massgen apply {run.run_id} --agent {name}`" for name in names]
    return f"the votes are tied between {join_names(names)}; choose a patch: {join_names(commands, 'or')}"


def _is_contradicted_by_tests(run: RunFacts) -> bool:
    """Return whether votes chose an answer, and another one passes a larger share of the tests that the team wrote."""
    if run.winner is None or run.voted == 0 or run.winner.outcome in DECIDED_WITHOUT_VOTES:
        return False
    shares = shares_of(run.coordination)
    return run.winner.label in shares and shares[run.winner.label] < max(shares.values())


# -- texts ------------------------------------------------------------------------------------------------------------


def _find_partly_read(run: RunFacts) -> tuple[PartlyRead, ...]:
    standing = {*run.votes, *run.run_off_votes}
    return tuple(
        PartlyRead(name, agent.acted_on, voted=name in standing and bool(agent.voted_on))
        for name, agent in run.agents.items()
        if agent.acted_on
    )


# -- checks -----------------------------------------------------------------------------------------------------------


def _is_void_in_part(run: RunFacts) -> bool:
    """Whether some check says nothing of the final files."""
    return run.checked_final is not None and bool(void(run.checked_final))


def _explain_unproven(run: RunFacts) -> str:
    """A check that fails for every answer, and on the unchanged files, too, proves as little as one that cannot run."""
    if run.checks_policy in (None, "informative") or not isinstance(run.end, RunCompleted):
        return ""
    final = run.checked_final
    if final is None:
        return "no check ran on the final files"
    if judge_files(run, final) == "nothing_checked":
        return "nothing was checked"
    silent = void(final)
    failed = [one.command for one in final.outcomes if one.result == "failed" and one not in silent]
    if failed:
        return f"the final files fail {', '.join(failed)}"
    return f"{', '.join(one.command for one in silent)} could not run" if silent else ""
