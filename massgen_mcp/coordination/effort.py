"""How many agents are asked for an answer, and in which order. Pure, and without memory.

A check that fails on the untouched base, for the code's sake, *tells*: whoever passes it has done something; so does a
confirmed failing test, with any effort. With one, agents are asked one at a time. The first answer that passes
everything that failed on the base, twice, and fails nothing that passed there, wins. An agent that is asked later sees
nothing of the answers before.

Without one, the first two (`low`) or three (`auto`) are asked. Answers that say the same are a *camp*: by their files
where tests decide, else as one agent, chosen at random, says with its vote. As many further agents are asked as could
end the run; none, once those left would change which camp leads with a chance of at most 1 in 20 if they answer like
those before (`overturn`). Then the one camp wins, or all vote, or test. Where tests decide, `auto` asks all that are
left after the first three: agents that make the same error have the same files. With `high` all are asked at once.
"""

from collections import Counter
from fractions import Fraction
from math import comb, factorial
from typing import Literal

from massgen_mcp.coordination.count import drawn, find_rivals, lot
from massgen_mcp.coordination.deciding import won
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.written_tests import BEFORE_ANSWERS
from massgen_mcp.events.coordination import StageOpened, WinnerChosen
from massgen_mcp.events.parts import FIRST_ASKED, StageReason

MOST_RISK = Fraction(1, 20)

DueStep = StageOpened | WinnerChosen | Literal["enough"] | None
"""A stage; the winner; nothing, because something is awaited; or the answers there are have to do."""


def overturn(lead: int, rival: int, left: int) -> Fraction:
    """The chance that `left` further answers put the second camp ahead of the first, where every share of it is as
    likely as any other. 0: they cannot. A tie leaves the first one ahead.
    """
    return sum(
        (
            comb(left, more) * _beta(rival + 1 + more, lead + 1 + left - more) / _beta(rival + 1, lead + 1)
            for more in range(left + 1)
            if rival + more > lead + left - more
        ),
        Fraction(),
    )


def enough(lead: int, rival: int, left: int) -> bool:
    return lead > rival and overturn(lead, rival, left) <= MOST_RISK


def batch(lead: int, rival: int, left: int) -> int:
    """So many further answers are the fewest that could be enough."""
    return next((more for more in range(1, left + 1) if enough(lead + more, rival, left - more)), left)


def _beta(one: int, other: int) -> Fraction:
    return Fraction(factorial(one - 1) * factorial(other - 1), factorial(one + other - 1))


def next_asked(state: Coordination) -> DueStep:
    """Who is asked next, or what it came to."""
    stage = state.stage
    decides = stage is not None and stage.kind not in BEFORE_ANSWERS and stage.because != "compare"
    if decides or (state.finish_requested and state.answered):
        return "enough"
    if not any(one.kind == "answer" for one in state.stages):
        return _first(state)
    if lost := _lost(state):
        return _stage_for_next(state, lost, "dropped")
    if (state.unanswered and not state.stragglers_given_up) or state.checks.is_pending:
        return None
    if state.checks.telling and state.answered:
        return _one_by_one(state)
    if len(state.answered) < 2:
        pending = None if state.unanswered else "enough"
        return _stage_for_next(state, 1, "disagreement") if _left(state) else pending
    by_files = state.rules.strategy.counts_substance and not _votes_decide(state)
    return _by_files(state) if by_files else _by_reading(state)


def _first(state: Coordination) -> DueStep:
    most, first = min(state.most_asked, len(state.live)), FIRST_ASKED[state.rules.effort]
    size = min(most, 1 if state.checks.telling else first if first and state.rules.strategy.counts_substance else most)
    if size >= len(state.live) and not state.stages:
        return "enough"  # all at once
    if not state.begun:
        return None
    agents = tuple(_waiting(state, state.live)[:size])
    because = "check_tells" if state.checks.telling else "start"
    return StageOpened(kind="answer", subjects=(), agents=agents, because=because, left=most - size)


def _one_by_one(state: Coordination) -> DueStep:
    passing = [label for label in state.standing if state.checks.passes(label)]
    trees = {_tree(state, label) for label in passing}
    if len(trees) == 1:
        among = tuple(passing) if len(passing) > 1 else ()
        return won(state, state.author(drawn(state.rules.seed, passing)), "checked", drawn_among=among)
    if not passing and _left(state):
        return _stage_for_next(state, 1, "none_passes")
    return _decide(state, "disagreement" if passing else "none_passes", passing or state.standing)


def _by_files(state: Coordination) -> DueStep:
    if state.rules.effort == "auto" and (left := _left(state)):
        return _stage_for_next(state, left, "no_proof")
    camps = Counter(_tree(state, label) for label in state.standing)
    lead, rival = ([*sorted(camps.values(), reverse=True), 0])[:2]
    return _grown(state, lead, rival)


def _by_reading(state: Coordination) -> DueStep:
    stage = state.stage
    if stage is None and not _left(state):
        return _decide(state, "disagreement", state.standing)
    reader = None if stage is None else stage.agents[0]
    seat = None if reader is None else state.seats[reader]
    if seat is None or seat.vote is None:
        if reader in state.live_authors:
            return None
        if not state.live_authors:
            return _stage_for_next(state, 1, "dropped") if _left(state) else "enough"
        agents = (drawn(f"{state.rules.seed}/{len(state.stages)}", state.live_authors),)
        return StageOpened(kind="vote", subjects=state.standing, agents=agents, because="compare", left=_left(state))
    named = {seat.vote, *(seat.same_as or ())}
    rivals = {label: find_rivals(label, named, state.count.contradictions) for label in named}
    same = sum(found == rivals[seat.vote] for found in rivals.values())
    lead, rival = sorted((same, len(state.standing) - same), reverse=True)
    if not rival and enough(lead, rival, _left(state)):
        return won(state, state.author(seat.vote), "agreed")
    return _grown(state, lead, rival)


def _votes_decide(state: Coordination) -> bool:
    """Whether votes decide: tests may, of answers that change files."""
    strategy = state.rules.strategy
    changed = any(_tree(state, label) not in (label, state.base) for label in state.standing)
    return strategy.stage == "vote" and not (strategy.may_test and changed)


def _grown(state: Coordination, lead: int, rival: int) -> DueStep:
    left = _left(state)
    if left and not enough(lead, rival, left):
        return _stage_for_next(state, batch(lead, rival, left), "disagreement", lead, rival)
    return _decide(state, "disagreement", state.standing, lead, rival)


def _decide(
    state: Coordination, because: StageReason, subjects: tuple[str, ...] | list[str], lead: int = 0, rival: int = 0
) -> DueStep:
    """By what is due, or by a vote of all who answered."""
    voters = state.live_authors
    if not _votes_decide(state) or len(state.answered) < 2 or not voters:
        return "enough"
    subjects, left = tuple(subjects), _left(state)
    return StageOpened(
        kind="vote", subjects=subjects, agents=voters, because=because, lead=lead, rival=rival, left=left
    )


def _stage_for_next(
    state: Coordination, count: int, because: StageReason, lead: int = 0, rival: int = 0
) -> StageOpened:
    """The next `count` agents that were not asked yet."""
    agents = tuple(_waiting(state, _unasked(state))[:count])
    left = _left(state) - len(agents)
    return StageOpened(kind="answer", subjects=(), agents=agents, because=because, lead=lead, rival=rival, left=left)


def _unasked(state: Coordination) -> tuple[str, ...]:
    unasked = ((agent, seat) for agent, seat in state.seats.items() if agent not in (*state.asked, state.rules.judge))
    return tuple(agent for agent, seat in unasked if not seat.dropped)


def _waiting(state: Coordination, agents: tuple[str, ...]) -> list[str]:
    """In the order in which they are asked."""
    is_random = state.rules.order == "random"
    return sorted(agents, key=lambda agent: lot(state.rules.seed, agent)) if is_random else [*agents]


def _left(state: Coordination) -> int:
    """So many agents may still be asked: whoever fell out without an answer counts as not asked."""
    if state.closing:
        return 0
    return max(0, min(state.most_asked - len(state.answered) - len(state.unanswered), len(_unasked(state))))


def _lost(state: Coordination) -> int:
    """So many agents fell out without an answer, and can be replaced."""
    asked = [state.seats[agent] for agent in state.asked]
    replaced = sum(len(stage.agents) for stage in state.stages if stage.kind == "answer" and stage.because == "dropped")
    lost = sum(not seat.answers and seat.dropped is not None for seat in asked)
    return max(0, min(lost - replaced, _left(state)))


def _tree(state: Coordination, label: str) -> str:
    """The id of an answer's files; of one without files its label."""
    changes = state.seats[state.author(label)].answers[-1].changes
    return label if changes is None else changes.tree
