"""What decided a run, how firm that is, and both in words: the one owner of these facts, whoever draws them. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from massgen_mcp.events.parts import Outcome
from massgen_mcp.events.run import RunFailed
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.plain_text import counted
from massgen_mcp.views.votes_text import name_of, nobody_voted

Weakness = Literal[
    "nobody_left",
    "unreviewed",
    "checks_failed",
    "refuted",
    "one_survivor",
    "cut_short",
    "no_majority",
    "drawn",
    "checks_void",
]
"""What makes a decision a weak one, the gravest first. Nobody of the team was left to judge the answer; nobody did; the
final files fail checks; they fail a test that was written against them and confirmed; one agent was left; the run was
told to finish; less than half of the votes are for what the winner says; the lot fell among answers that say different
things; some check could not say anything.
"""

DecidedBy = Literal["checks", "files", "tests", "synthesis", "reading", "judge", "votes", "lot"]
"""What a winner was found by: required checks that others fail; that all have the same files; tests that the team
wrote; that it was written from all answers; an agent that found them to say the same; the judge that the
config names; votes; the lot.
"""


@dataclass(frozen=True, slots=True)
class Firmness:
    weak: tuple[Weakness, ...] = ()
    """Nothing: it is firm, as far as anybody knows."""
    decided_by: tuple[DecidedBy, ...] = ()
    """In the order in which they did."""
    agree: int = 0
    """Last votes, of a run-off or before, for an answer that says what the winner's does."""
    others: tuple[tuple[str, int], ...] = ()
    """The other last votes: the label of one answer for all that say the same, and how many."""

    @property
    def voted(self) -> int:
        return self.agree + self.dissent

    @property
    def dissent(self) -> int:
        """Last votes for something else."""
        return sum(votes for _, votes in self.others)


def firmness(run: RunState) -> Firmness:
    """Of a run whose winner is chosen, or that has ended with an answer; of any other there is nothing to tell."""
    if run.winner is None and run.best_answer is None:
        return Firmness()
    camp_of = {label: camp.answers[0] for camp in run.camps for label in camp.answers}
    last = {**run.votes, **run.run_off_votes}
    agree = sum(vote.label in run.agreed for vote in last.values())
    others = Counter(camp_of.get(vote.label, vote.label) for vote in last.values() if vote.label not in run.agreed)
    if run.winner is None:
        return Firmness(_weaknesses(run, agree, agree), (), agree)
    place = {label: place for place, label in enumerate(run.tally)}
    most_first = sorted(others.items(), key=lambda one: (-one[1], place.get(one[0], 0)))
    return Firmness(_weaknesses(run, agree, agree + others.total()), _decided_by(run), agree, tuple(most_first))


def _weaknesses(run: RunState, agree: int, voted: int) -> tuple[Weakness, ...]:
    winner = run.winner
    ended_early = run.coordination.finish_requested or (winner is None and not isinstance(run.end, RunFailed))
    holds: dict[Weakness, bool] = {
        "nobody_left": run.unreviewed and not ended_early,
        "unreviewed": run.unreviewed and ended_early,
        "checks_failed": bool(run.failing_checks) or run.checks_verdict == "failed",
        "refuted": winner is not None and winner.challenge == "refuted",
        "one_survivor": run.outcome == "single_survivor" and not run.unreviewed,
        "cut_short": run.outcome == "best_so_far" and not run.unreviewed,
        "no_majority": 2 * agree < voted,
        "drawn": _drawn(run),
        "checks_void": run.checks_verdict == "nothing_checked" or run.mute_checks,
    }
    return tuple(weakness for weakness, held in holds.items() if held)


def _decided_by(run: RunState) -> tuple[DecidedBy, ...]:
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
    return (*ways, "lot") if _drawn(run) else tuple(ways)


_WAYS: Mapping[Outcome, DecidedBy] = {
    "checked": "checks",
    "same_files": "files",
    "tested": "tests",
    "synthesised": "synthesis",
    "agreed": "reading",
    "judged": "judge",
}
"""What an outcome says of it; the others: votes, if there are any."""


def _drawn(run: RunState) -> bool:
    """Whether the lot fell among answers that say different things."""
    winner = run.winner
    return winner is not None and winner.outcome != "same_files" and not {*winner.drawn} <= {*run.agreed}


# -- in words ---------------------------------------------------------------------------------------------------------

_SHORTLY: Mapping[str, str] = {
    "nobody_left": "nobody left to vote",
    "unreviewed": "nobody voted",
    "checks_failed": "checks fail",
    "refuted": "refuted by a test",
    "one_survivor": "one agent left",
    "cut_short": "cut short",
    "no_majority": "no majority",
    "drawn": "drawn by lot",
    "checks_void": "not all checks ran",
}


def shortly(weak: Sequence[str]) -> str:
    """The two gravest weaknesses in a few words; empty without one."""
    return ", ".join(_SHORTLY.get(one, one) for one in weak[:2])


def cautions(run: RunState) -> list[str]:
    """What a reader must know before the answer, as sentences: why the decision is weak, then the dissent."""
    return [*why_weak(run), *filter(None, [dissent(run)])]


def why_weak(run: RunState, *, checks: bool = True) -> list[str]:
    """As sentences; without `checks` nothing that `check_notes` says."""
    firm = firmness(run)
    return [_sentence(run, firm, one) for one in firm.weak if checks or one not in ("checks_failed", "checks_void")]


def _sentence(run: RunState, firm: Firmness, weakness: Weakness) -> str:
    match weakness:
        case "nobody_left" | "unreviewed":
            return nobody_voted(run) or ""
        case "checks_failed":
            failing = len(run.failing_checks)
            return f"The final files fail {counted(failing, 'check') if failing else 'checks'}."
        case "refuted":
            return "It fails a test that an agent of another vendor wrote, and that a third one confirmed blind."
        case "one_survivor":
            return f"Only {run.author} was left of {len(run.agents)} agents."
        case "cut_short":
            return f"It was decided early, with {firm.voted} of {counted(len(run.agents), 'vote')}."
        case "no_majority":
            return f"Only {firm.agree} of {firm.voted} votes are for it: no majority."
        case "drawn":
            drawn = run.winner.drawn if run.winner is not None else ()
            return f"It was drawn by lot among {', '.join(drawn)}."
        case "checks_void":
            nothing = run.checks_verdict == "nothing_checked"
            return "Nothing was checked of the final files." if nothing else "Not every check could run."


def dissent(run: RunState) -> str:
    """Which other answers had votes, the most voted first, and what was said against the winner and not proven, in
    sentences; empty without any.
    """
    firm = firmness(run)
    unproven = run.winner is not None and run.winner.challenge == "unproven"
    objection = "It fails a test of an agent of another vendor, which nobody confirmed." if unproven else ""
    if not firm.others:
        return objection
    whose = [f"{votes} for {name_of(run, run.coordination.author(label))}'s" for label, votes in firm.others]
    listed = ", ".join(whose[:3]) + (" and others" if len(whose) > 3 else "")
    verb = "wants" if firm.dissent == 1 else "want"
    others = f"{firm.dissent} of {firm.voted} {verb} another answer: {listed}."
    return f"{others} {objection}".strip()
