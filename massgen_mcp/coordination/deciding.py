"""When do votes decide a coordination, and who wins it? Pure, like the state that it is read from."""

from collections.abc import Sequence

from massgen_mcp.coordination.count import Count, drawn, possible_camps
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.testing import chosen
from massgen_mcp.events.coordination import StageOpened, WinnerChosen
from massgen_mcp.events.parts import DECIDED_WITHOUT_VOTES, Outcome

NextStep = StageOpened | WinnerChosen | None
"""What is due; None: nothing yet."""


def decision(state: Coordination) -> NextStep:
    """The winner, as soon as the votes name one; or a run-off, once they need one. Some answer stands."""
    live = state.live
    if state.finish_requested or (not live and state.closing):
        return best_so_far(state)
    if not live:
        return None  # no vote stands, and none can come: no answer has won
    if len(live) == 1 and state.answered == live:
        if state.closing and len(state.asked) < state.most_asked:
            return best_so_far(state)
        if len(state.involved) == 1:
            return won(state, live[0], "single")
        return won(state, live[0], "single_survivor")
    if state.run_off is not None:
        awaited = any(agent in live and state.seats[agent].run_off_vote is None for agent in state.run_off.agents)
        return None if awaited else _run_off_decided(state, state.run_off)
    voters = live if state.stage is None else state.stage.agents
    undecided = [agent for agent in live if state.seats[agent].vote is None and agent in voters]
    if not undecided and not state.choices:
        return best_so_far(state)  # whoever could vote has fallen out, and who is left comes too late
    if undecided and not _early(state, undecided):
        return None
    return _decided(state, state.count)


def best_so_far(state: Coordination) -> WinnerChosen | None:
    """The winner if everything ended now: as voted, while it is challenged; as written from all answers; by the tests
    of the team; else by the votes that stand, by lot where they are tied. Without any of these it is the first answer
    in the order of the config whose checks do not exclude it.
    """
    if not state.answered:
        return None
    if state.stage is not None and state.stage.elected is not None:
        return state.stage.elected
    if state.synthesis is not None:
        return won(state, state.synthesis.agent, "best_so_far")
    if (label := chosen(state)) is not None:
        return won(state, state.author(label), "best_so_far")
    count = state.count
    if state.run_off is not None:
        return _drawn(state, _run_off_leaders(state, state.run_off), count, "best_so_far")
    if not any(count.votes.values()):
        able = (agent for agent in state.answered if state.label(agent) not in state.excluded)
        return won(state, next(able), "best_so_far")
    return _drawn(state, [count.leader(camp) for camp in count.top], count, "best_so_far")


def _decided(state: Coordination, count: Count) -> WinnerChosen | StageOpened:
    """What the votes come to, none of which is awaited any more."""
    top = count.top
    candidates = tuple(count.leader(camp) for camp in top)
    if len(top) == 1:
        voters = [seat for seat in state.seats.values() if seat.vote is not None]
        judged = not all(seat.constrained for seat in voters) or len(top[0].answers) == len(state.standing)
        agreed = judged and top[0].votes == len(state.live)
        return _drawn(state, candidates, count, "consensus" if agreed else "plurality")
    if state.closing:
        return _drawn(state, candidates, count, "tie_broken")
    writers = {state.author(label) for camp in top for label in camp.answers}
    able = tuple(agent for agent in state.live if agent in state.answered)
    neutral = tuple(agent for agent in able if agent not in writers)
    return StageOpened(kind="vote", subjects=candidates, agents=neutral or able, because="tied", camps=count.camps)


def _run_off_decided(state: Coordination, run_off: StageOpened) -> WinnerChosen:
    leaders = _run_off_leaders(state, run_off)
    return _drawn(state, leaders, state.count, "plurality" if len(leaders) == 1 else "tie_broken")


def _run_off_leaders(state: Coordination, run_off: StageOpened) -> list[str]:
    votes = _run_off_votes(state, run_off)
    return [label for label in run_off.subjects if votes[label] == max(votes.values())]


def _run_off_votes(state: Coordination, run_off: StageOpened) -> dict[str, int]:
    """Those of live agents, every candidate listed."""
    cast = [seat.run_off_vote for seat in state.seats.values()]
    return {label: cast.count(label) for label in run_off.subjects}


def _drawn(state: Coordination, labels: Sequence[str], count: Count, outcome: Outcome) -> WinnerChosen:
    """`labels` are of different camps; of several the lot decides, as it did among equals within a camp."""
    label = drawn(state.rules.seed, labels)
    equals = count.leaders(count.camp_of(label)) if len(labels) == 1 else tuple(labels)
    by_lot = len(equals) > 1 and label == drawn(state.rules.seed, equals)
    return won(state, state.author(label), outcome, drawn_among=equals if by_lot else ())


def won(state: Coordination, agent: str, outcome: Outcome, *, drawn_among: tuple[str, ...] = ()) -> WinnerChosen:
    """This agent's answer wins."""
    in_turn = any(stage.kind == "answer" for stage in state.stages)
    alone = len(state.live) == 1 and outcome in ("consensus", "plurality", "tie_broken")
    return WinnerChosen(
        agent=agent,
        label=state.label(agent),
        outcome="single_survivor" if alone else outcome,
        votes=state.tally,
        early=outcome not in DECIDED_WITHOUT_VOTES | {"agreed"}
        and any(not state.seats[agent].vote for agent in state.live),
        camps=state.camps,
        run_off=None if state.run_off is None else _run_off_votes(state, state.run_off),
        drawn=drawn_among,
        asked=len(state.asked) if in_turn else None,
        of=state.most_asked if in_turn else None,
        excluded=tuple(label for label in state.standing if label in state.excluded),
    )


def _early(state: Coordination, undecided: list[str]) -> bool:
    """Whether the undecided agents need not be waited for. Majority: a camp has more than half of their votes."""
    match state.rules.early_decision:
        case "off":
            return False
        case "majority":
            return state.count.top[0].votes * 2 > len(state.live)
        case "proven":
            return not any(state.within_limit(agent) for agent in undecided) and _proven(state, len(undecided))


def _proven(state: Coordination, undecided: int) -> bool:
    """Whether further votes, as many as `undecided`, cannot change the winner, whatever they say.

    At worst they take every other answer out of the leader's camp, put together what can be put together of the
    others, and all vote for that; or all vote for one that stays in the leader's camp.
    """
    votes = state.tally
    leader = max(votes, key=lambda label: votes[label])
    others = [label for label in votes if label != leader]
    rivals = possible_camps(others, state.choices, undecided, state.alike, state.contradictions)
    return all(sum(votes[label] for label in rival) + undecided < votes[leader] for rival in rivals)
