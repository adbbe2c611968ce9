"""A judge that the config names compares the answers, and gives none itself. Pure.

A knock-out: each answer, in the order of lots, is compared with the one that is left of those before it, in both
orders. Where both verdicts are for the same answer, the other one is out; else both stay. No verdict is asked about an
answer whose author has a model of the judge's vendor. If one answer is left it wins, else their authors vote on those.
"""

from massgen_mcp.coordination.count import lot
from massgen_mcp.coordination.deciding import decision, won
from massgen_mcp.coordination.procedures.by_votes import NextStep, vote_on
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.events.coordination import StageOpened


class DecideByJudge:
    def next(self, state: Coordination) -> NextStep:
        stage, judge = state.stage, state.rules.judge
        alone = len(state.live) == 1 and state.answered == state.live
        if alone or not state.live or (stage is not None and stage.kind == "vote"):
            return decision(state)
        left, pair = _knock_out(state)
        if state.finish_requested or (state.closing and state.complete):
            return won(state, state.author(left[0]), "best_so_far")
        if not state.complete:
            return None
        if judge is not None and pair is not None and not state.seats[judge].dropped:
            due = StageOpened(kind="compare", subjects=pair, agents=(judge,), because="compared")
            return None if stage is not None and stage.subjects == pair else due
        if len(left) == 1 and state.verdicts:
            return won(state, state.author(left[0]), "judged")
        return vote_on(state, left, "no_verdict")


def _knock_out(state: Coordination) -> tuple[list[str], tuple[str, ...] | None]:
    """The answers that are not out, and the two that are to be compared now."""
    able = (label for label in state.standing if label not in state.excluded)
    first, *others = sorted(able, key=lambda label: lot(state.rules.seed, label))
    left, due = [first], None
    for label in others:
        pair = left[-1], label
        verdicts = [state.verdicts.get(one) for one in (pair, pair[::-1])] if _neutral(state, pair) else []
        if due is None and None in verdicts:
            due = pair if verdicts[0] is None else pair[::-1]
        if not verdicts or None in verdicts or verdicts[0] != verdicts[1]:
            left.append(label)
        elif verdicts[0] == label:
            left[-1] = label
    return left, due


def _neutral(state: Coordination, pair: tuple[str, ...]) -> bool:
    vendor = state.rules.vendor(state.rules.judge or "")
    return all(state.rules.vendor(state.author(label)) != vendor for label in pair)
