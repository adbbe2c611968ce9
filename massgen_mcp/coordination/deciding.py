"""When is a coordination decided, and who wins it? Pure, like the state that it is read from."""

from collections.abc import Sequence

from massgen_mcp.coordination.camps import possible_camps
from massgen_mcp.coordination.count import Count, drawn
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.events.coordination import RunOffStarted, WinnerChosen
from massgen_mcp.events.parts import Outcome


def decision(state: Coordination) -> WinnerChosen | RunOffStarted | None:
    """The winner, as soon as the rules name one; or a run-off, once they need one."""
    if state.winner is not None or not state.answered:
        return None
    live = state.live
    if state.finish_requested or (not live and state.closing):
        return best_so_far(state)
    if not live:
        return None  # no vote stands, and none can come: no answer has won
    if len(live) == 1 and state.answered == live:
        return _won(state, live[0], "single" if len(state.seats) == 1 else "single_survivor")
    if state.run_off is not None:
        awaited = any(agent in live and state.seats[agent].run_off_vote is None for agent in state.run_off.voters)
        return None if awaited else _run_off_decided(state, state.run_off)
    undecided = [agent for agent in live if state.seats[agent].vote is None]
    if undecided and not _early(state, undecided):
        return None
    return _decided(state, state.count)


def best_so_far(state: Coordination) -> WinnerChosen | None:
    """The winner if everything ended now: by the votes that stand, by lot where they are tied. Without any vote it
    is the first answer in the order of the config whose checks do not exclude it.
    """
    if not state.answered:
        return None
    count = state.count
    if state.run_off is not None:
        return _drawn(state, _run_off_leaders(state, state.run_off), count, "best_so_far")
    if not any(count.votes.values()):
        able = (agent for agent in state.answered if state.label(agent) not in state.excluded)
        return _won(state, next(able), "best_so_far")
    return _drawn(state, [count.leader(camp) for camp in count.top], count, "best_so_far")


def _decided(state: Coordination, count: Count) -> WinnerChosen | RunOffStarted:
    """What the votes come to, none of which is awaited any more."""
    top = count.top
    candidates = tuple(count.leader(camp) for camp in top)
    if len(top) == 1:
        return _drawn(state, candidates, count, "consensus" if top[0].votes == len(state.live) else "plurality")
    if state.closing:
        return _drawn(state, candidates, count, "tie_broken")
    writers = {state.author(label) for camp in top for label in camp.answers}
    neutral = tuple(agent for agent in state.live if agent not in writers)
    return RunOffStarted(candidates=candidates, voters=neutral or state.live, camps=count.camps)


def _run_off_decided(state: Coordination, run_off: RunOffStarted) -> WinnerChosen:
    leaders = _run_off_leaders(state, run_off)
    return _drawn(state, leaders, state.count, "plurality" if len(leaders) == 1 else "tie_broken")


def _run_off_leaders(state: Coordination, run_off: RunOffStarted) -> list[str]:
    votes = _run_off_votes(state, run_off)
    return [label for label in run_off.candidates if votes[label] == max(votes.values())]


def _run_off_votes(state: Coordination, run_off: RunOffStarted) -> dict[str, int]:
    """Those of live agents, every candidate listed."""
    cast = [seat.run_off_vote for seat in state.seats.values()]
    return {label: cast.count(label) for label in run_off.candidates}


def _drawn(state: Coordination, labels: Sequence[str], count: Count, outcome: Outcome) -> WinnerChosen:
    """`labels` are of different camps; of several the lot decides, as it did among equals within a camp."""
    label = drawn(state.rules.seed, labels)
    equals = count.leaders(count.camp_of(label)) if len(labels) == 1 else tuple(labels)
    by_lot = len(equals) > 1 and label == drawn(state.rules.seed, equals)
    return _won(state, state.author(label), outcome, drawn_among=equals if by_lot else ())


def _won(state: Coordination, agent: str, outcome: Outcome, *, drawn_among: tuple[str, ...] = ()) -> WinnerChosen:
    alone = len(state.live) == 1 and outcome in ("consensus", "plurality", "tie_broken")
    return WinnerChosen(
        agent=agent,
        label=state.label(agent),
        outcome="single_survivor" if alone else outcome,
        votes=state.tally,
        early=any(state.seats[agent].vote is None for agent in state.live),
        camps=state.camps,
        run_off=None if state.run_off is None else _run_off_votes(state, state.run_off),
        drawn=drawn_among,
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
    rivals = possible_camps(others, state.choices, undecided)
    return all(sum(votes[label] for label in rival) + undecided < votes[leader] for rival in rivals)
