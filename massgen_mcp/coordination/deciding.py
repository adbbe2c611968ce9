"""When do votes decide a coordination, and who wins it? Pure, like the state that it is read from."""

from collections.abc import Mapping, Sequence

from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.count import Count, drawn, possible_camps
from massgen_mcp.coordination.state import Coordination
from massgen_mcp.coordination.testing import chosen
from massgen_mcp.events.coordination import AgentDropped, StageOpened, WinnerChosen
from massgen_mcp.events.parts import BY_VOTES, DECIDED_WITHOUT_VOTES, Camp, Outcome

NextStep = StageOpened | WinnerChosen | AgentDropped | None
"""What is due; None: nothing yet."""
REPEATED_OWN = "asked to vote, it wrote its own answer once more, and no agent chose between the answers"


def decision(state: Coordination) -> NextStep:
    """The winner, as soon as the votes name one; or a run-off, once they need one. Some answer stands."""
    live = state.live
    if state.finish_requested or (not live and state.closing):
        return best_so_far(state)
    if not live:
        return _agreed_without_votes(state)
    if state.has_lone_author:
        if state.closing and len(state.asked) < state.most_asked:
            return best_so_far(state)
        if len(state.involved) == 1:
            return won(state, live[0], "single")
        return won(state, live[0], "single_survivor")
    if state.stage is not None and state.stage.because == "still_tied":
        return _decide_judged_tie(state, state.stage)
    if state.run_off is not None:
        awaited = any(agent in live and state.seats[agent].run_off_vote is None for agent in state.run_off.agents)
        return None if awaited else _run_off_decided(state, state.run_off)
    return _decide_by_votes(state)


def _decide_by_votes(state: Coordination) -> NextStep:
    """Return what follows from the standing votes; nothing, as long as one is awaited that could change it."""
    live = state.live
    voters = live if state.stage is None else state.stage.agents
    undecided = [agent for agent in live if state.seats[agent].vote is None and agent in voters]
    if not undecided and not state.choices:
        return best_so_far(state)  # whoever could vote has fallen out, and who is left comes too late
    awaited = [agent for agent in undecided if agent in state.answered or not _is_left_behind(state)]
    if repeaters := _list_repeaters(state):
        return None if awaited else AgentDropped(agent=repeaters[0], reason="no_action", message=REPEATED_OWN)
    if awaited and not _early(state, undecided):
        return None
    return _settle_votes(state, state.count)


def _list_repeaters(state: Coordination) -> list[str]:
    """Return the agents that voted, if each of them only repeated its own answer: their team cannot vote."""
    voters = {agent: seat for agent, seat in state.seats.items() if seat.vote is not None}
    return [*voters] if all(seat.repeated for seat in voters.values()) else []


def _is_left_behind(state: Coordination) -> bool:
    """Return whether agents without an answer are not waited for: first answers are closed, and others have voted."""
    return state.stragglers_given_up and bool(state.choices)


def _agreed_without_votes(state: Coordination) -> WinnerChosen | None:
    """The answer that more than half of all agents gave, where no vote stands, and none can come."""
    agreeing = state.agreement
    if not state.is_majority(len(agreeing)) or len(agreeing) < 2:
        return None
    return won(state, state.author(agreeing[0]), "best_so_far", agreeing=agreeing)


def best_so_far(state: Coordination) -> WinnerChosen | None:
    """The winner if everything ended now: as voted, while it is challenged; as written from all answers; by the tests
    of the team; else by the votes that stand. Without any of these it is an answer that most others agree with, or the
    first in the order of the config, of those that checks do not exclude.
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
    if (run_off := _find_last_run_off(state)) is not None:
        return _drawn(state, _run_off_leaders(state, run_off), count, "best_so_far")
    if not any(count.votes.values()):
        return won(state, state.author(state.agreement[0]), "best_so_far")
    return _drawn(state, [count.leader(camp) for camp in count.top], count, "best_so_far")


def _settle_votes(state: Coordination, count: Count) -> WinnerChosen | StageOpened:
    """Return what the votes decide; none of them is awaited any more."""
    top = count.top
    candidates = tuple(count.leader(camp) for camp in top)
    if len(top) == 1:
        return _drawn(state, candidates, count, _strength(state, top[0].votes, unanimous=_is_judged(state, top[0])))
    if state.closing:
        return _drawn(state, candidates, count, "tie_broken")
    writers = {state.author(label) for camp in top for label in camp.answers}
    neutral = tuple(agent for agent in state.live_authors if agent not in writers)
    agents = neutral or state.live_authors
    return StageOpened(kind="vote", subjects=candidates, agents=agents, because="tied", camps=count.camps)


def _strength(state: Coordination, votes: int, *, unanimous: bool) -> Outcome:
    """Return how good the agreement is of so many votes for one camp. All agents that were asked for an answer count,
    also those that dropped out. `unanimous`: a consensus is possible.
    """
    if unanimous and votes == len(state.asked):
        return "consensus"
    return "majority" if state.is_majority(votes) else "plurality"


def _is_judged(state: Coordination, camp: Camp) -> bool:
    """Check that a voter that could judge calls the answers of this camp the same, or that all answers are in it and
    need no vote to agree.
    """
    voters = [seat for seat in state.seats.values() if seat.vote is not None]
    agree = len(state.agreement) == len(camp.answers) == len(state.standing)
    return agree or not all(seat.constrained for seat in voters)


def _find_last_run_off(state: Coordination) -> StageOpened | None:
    """Return the run-off, also while an agent judges between what is still tied after it."""
    stages = state.stages if state.stage is not None and state.stage.because in ("tied", "still_tied") else ()
    return next((stage for stage in reversed(stages) if stage.because == "tied"), None)


def _run_off_decided(state: Coordination, run_off: StageOpened) -> WinnerChosen | StageOpened:
    leaders = _run_off_leaders(state, run_off)
    if len(leaders) > 1:
        return _judge_tie(state, leaders)
    camp = state.count.camp_of(leaders[0]).answers
    last = [seat.run_off_vote or seat.vote for seat in state.seats.values()]
    return _drawn(state, leaders, state.count, _strength(state, sum(map(last.count, camp)), unanimous=False))


def _judge_tie(state: Coordination, leaders: Sequence[str]) -> WinnerChosen | StageOpened:
    """Have every two leaders of a run-off judged in both orders (see `_find_judge`); where no judge can be had, or the
    verdicts on two of them differ, they stay tied.
    """
    best, pair = _compare_in_turn([label for label in state.standing if label in leaders], state.verdicts)
    if best is not None:
        return won(state, state.author(best), "tie_broken", judge=state.stages[-1].agents[0])
    judge = None if pair is None or state.closing else _find_judge(state, leaders, pair)
    if pair is None or judge is None:
        return _drawn(state, leaders, state.count, "tie_broken")
    agent, by_fallback = judge
    return StageOpened(kind="compare", subjects=pair, agents=(agent,), because="still_tied", by_fallback=by_fallback)


def _find_judge(state: Coordination, leaders: Sequence[str], pair: tuple[str, str]) -> tuple[str, bool] | None:
    """Return the agent that judges between two tied answers, and whether its fallback does. An agent outside the tie
    comes first; then an agent of a vendor that neither of the two answers comes from; then a fallback that favours
    neither: of another vendor, or of one that both answers come from.
    """
    tied = _list_authors(state, leaders)
    if outside := [agent for agent in state.live_authors if agent not in tied]:
        return outside[0], False
    authors = _list_authors(state, pair)
    one, other = ({state.rules.vendor(agent) for agent in _list_authors(state, [label])} for label in pair)
    for agent in state.live_authors:
        if agent not in authors and state.rules.vendor(agent) not in one | other | {""}:
            return agent, False
    partial = (one ^ other) | {""}
    for agent in state.live_authors:
        if state.rules.fallback_vendors.get(agent, "") not in partial and not state.seats[agent].is_replaced:
            return agent, True
    return None


def _list_authors(state: Coordination, leaders: Sequence[str]) -> set[str]:
    """Return the authors of all answers that say the same as one of these."""
    return {state.author(label) for leader in leaders for label in state.count.camp_of(leader).answers}


def _decide_judged_tie(state: Coordination, stage: StageOpened) -> NextStep:
    """Return the next step while an agent judges between two tied answers."""
    awaited = stage.subjects not in state.verdicts and not state.closing and stage.agents[0] in state.live
    if awaited or (run_off := _find_last_run_off(state)) is None:
        return None
    return _run_off_decided(state, run_off)


def _compare_in_turn(
    labels: Sequence[str], verdicts: Mapping[tuple[str, ...], str]
) -> tuple[str | None, tuple[str, str] | None]:
    """Return the answer that is better than the others in both orders; or the two that are to be compared now, in this
    order; or neither, where two verdicts on the same answers differ.
    """
    best = labels[0]
    for label in labels[1:]:
        orders = (best, label), (label, best)
        found = [verdicts.get(order) for order in orders]
        if None in found:
            return None, orders[found.index(None)]
        if found[0] != found[1]:
            return None, None
        best = found[0] or best
    return best, None


def _run_off_leaders(state: Coordination, run_off: StageOpened) -> list[str]:
    votes = _run_off_votes(state, run_off)
    return [label for label in run_off.subjects if votes[label] == max(votes.values())]


def _run_off_votes(state: Coordination, run_off: StageOpened) -> dict[str, int]:
    """Those of live agents, every candidate listed."""
    cast = [seat.run_off_vote for seat in state.seats.values()]
    return {label: cast.count(label) for label in run_off.subjects}


def _drawn(state: Coordination, labels: Sequence[str], count: Count, outcome: Outcome) -> WinnerChosen:
    """Return that one of `labels`, which are of different camps, wins; of several the one whose hash is the lowest, as
    among equals within a camp.
    """
    label = drawn(state.rules.seed, labels)
    equals = count.leaders(count.camp_of(label)) if len(labels) == 1 else tuple(labels)
    by_lot = len(equals) > 1 and label == drawn(state.rules.seed, equals)
    return won(state, state.author(label), outcome, drawn_among=equals if by_lot else ())


def won(
    state: Coordination,
    agent: str,
    outcome: Outcome,
    *,
    drawn_among: tuple[str, ...] = (),
    judge: str | None = None,
    agreeing: tuple[str, ...] = (),
) -> WinnerChosen:
    """This agent's answer wins."""
    run_off = _find_last_run_off(state)
    in_turn = any(stage.kind == "answer" for stage in state.stages)
    alone = len(state.live) == 1 and outcome in BY_VOTES
    return WinnerChosen(
        agent=agent,
        label=state.label(agent),
        outcome="single_survivor" if alone else outcome,
        votes=dict(state.count.votes),
        early=outcome not in DECIDED_WITHOUT_VOTES | {"agreed"}
        and any(not state.seats[agent].vote for agent in state.live_authors),
        camps=state.count.camps,
        run_off=None if run_off is None else _run_off_votes(state, run_off),
        drawn=drawn_among,
        judge=judge,
        agreeing=agreeing,
        asked=len(state.asked) if in_turn else None,
        of=state.most_asked if in_turn else None,
        excluded=tuple(label for label in state.standing if label in state.checks.excluded),
    )


def _early(state: Coordination, undecided: list[str]) -> bool:
    """Whether the undecided agents need not be waited for. Majority: a camp has the votes of more than half of the
    agents that were asked.
    """
    match state.rules.early_decision:
        case "off":
            return False
        case "majority":
            return state.is_majority(state.count.top[0].votes)
        case "proven":
            return not any(AgentView(state, agent).has_answers_left() for agent in undecided) and _proven(
                state, len(undecided)
            )


def _proven(state: Coordination, undecided: int) -> bool:
    """Whether further votes, as many as `undecided`, can change neither the winner nor whether it has a majority,
    whatever they say.

    At worst they take every other answer out of the leader's camp, put together what can be put together of the
    others, and all vote for that; or all vote for one that stays in the leader's camp. At best they put together all
    that can be put together with the leader, and vote for it.
    """
    count = state.count
    votes = count.votes
    leader = max(votes, key=lambda label: votes[label])

    def might_join(labels: Sequence[str]) -> list[int]:
        """The votes of each camp that there might be."""
        found = possible_camps(labels, count.choices, undecided, count.alike, count.contradictions)
        return [sum(votes[label] for label in camp) + undecided for camp in found]

    if not state.is_majority(votes[leader]) and any(state.is_majority(most) for most in might_join([*votes])):
        return False
    return all(most < votes[leader] for most in might_join([label for label in votes if label != leader]))
