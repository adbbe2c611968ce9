"""The rules of coordination, one sentence each. Nothing here needs a model, a file or a clock."""

from dataclasses import replace
from hashlib import sha256

import pytest

from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.coordination.count import drawn
from massgen_mcp.coordination.deciding import best_so_far
from massgen_mcp.coordination.guidance import Rest, Violation, Wait, Work
from massgen_mcp.coordination.procedures import next_step
from massgen_mcp.coordination.state import Coordination, EarlyDecision, Rules
from massgen_mcp.events.agent_work import BallotChanged, RoundStarted
from massgen_mcp.events.coordination import (
    AgentDropped,
    AnswerSubmitted,
    FirstAnswersClosed,
    StageOpened,
    VoteCast,
    WinnerChosen,
)
from massgen_mcp.events.parts import Camp, ChangedFile, Changes, Event
from massgen_mcp.events.run import AttemptStarted, BudgetRaised, BudgetReached, FinishRequested

TRIO = ("agent_a", "agent_b", "agent_c")


def begin(
    agents: tuple[str, ...] = TRIO, *, max_answers: int | None = 5, early: EarlyDecision = "proven"
) -> Coordination:
    return Coordination.begin(agents, Rules(max_answers, early, seed="test"))


def show(state: Coordination, agent: str) -> Coordination:
    """The agent is shown what its duty lets it see."""
    duty = AgentView(state, agent).get_duty()
    assert isinstance(duty, Work)
    ballot = duty.ballot
    return state.after(RoundStarted(agent=agent, round=1, revision=ballot.revision, ballot=ballot.entries))


def answer(state: Coordination, agent: str, content: str) -> Coordination:
    event = AgentView(state, agent).answer(content)
    assert isinstance(event, AnswerSubmitted)
    return state.after(event)


def all_answered(
    agents: tuple[str, ...] = TRIO, *, max_answers: int | None = 5, early: EarlyDecision = "proven"
) -> Coordination:
    state = begin(agents, max_answers=max_answers, early=early)
    for agent in agents:
        state = answer(show(state, agent), agent, f"the answer of {agent}")
    return state


def name_for(state: Coordination, viewer: str, author: str) -> str:
    """The neutral name of `author`'s answer on the ballot that `viewer` was shown."""
    shown = state.seats[viewer].shown
    assert shown is not None
    return next(entry.name for entry in shown.entries if state.author(entry.label) == author)


def vote(state: Coordination, voter: str, author: str, *same: str) -> Coordination:
    """`same`: the authors of the answers that the voter says are the same as `author`'s."""
    state = show(state, voter)
    names = [name_for(state, voter, other) for other in same]
    event = AgentView(state, voter).vote(name_for(state, voter, author), "a reason", names)
    assert isinstance(event, VoteCast)
    return state.after(event)


def tied(state: Coordination) -> Coordination:
    """The run-off that the votes call for has begun."""
    event = next_step(state)
    assert isinstance(event, StageOpened)
    return state.after(event)


def refusal(verdict: Event | Violation) -> str:
    assert isinstance(verdict, Violation)
    return verdict.code


def decided(state: Coordination) -> WinnerChosen:
    winner = next_step(state)
    assert isinstance(winner, WinnerChosen)
    return winner


# -- first answers ------------------------------------------------------------------------------------------------


def test_first_answers_are_independent_even_when_others_have_answered_already() -> None:
    state = answer(show(begin(), "agent_a"), "agent_a", "early")
    duty = AgentView(state, "agent_b").get_duty()
    assert isinstance(duty, Work)
    assert duty.ballot.entries == ()
    assert AgentView(state, "agent_b").may_answer()


def test_an_agent_that_answered_waits_for_the_first_answers_of_the_others() -> None:
    state = answer(show(begin(), "agent_a"), "agent_a", "early")
    assert AgentView(state, "agent_a").get_duty() == Wait()


def test_stragglers_can_be_given_up_on_and_still_answer_later() -> None:
    state = begin()
    for agent in ("agent_a", "agent_b"):
        state = answer(show(state, agent), agent, f"by {agent}")
    state = state.after(FirstAnswersClosed(awaited=("agent_c",)))
    assert isinstance(AgentView(state, "agent_a").get_duty(), Work)
    state = answer(show(state, "agent_c"), "agent_c", "late but welcome")
    assert state.answered == TRIO


def test_two_agents_may_find_the_same_first_answer() -> None:
    state = answer(show(begin(), "agent_a"), "agent_a", "42")
    assert answer(show(state, "agent_b"), "agent_b", "42").answered == ("agent_a", "agent_b")


# -- ballots ------------------------------------------------------------------------------------------------------


def test_the_own_answer_has_no_place_of_its_own_on_a_ballot() -> None:
    agents = tuple(f"agent_{letter}" for letter in "abcdefgh")
    state = all_answered(agents)
    places = {[state.author(entry.label) for entry in state.ballot(viewer).entries].index(viewer) for viewer in agents}
    assert len(places) > 3


def test_a_ballot_with_nothing_but_the_own_answer_is_not_voted_on() -> None:
    state = answer(show(begin(("agent_a", "agent_b")), "agent_a"), "agent_a", "alone so far")
    assert AgentView(state.after(FirstAnswersClosed(awaited=("agent_b",))), "agent_a").get_duty() == Wait()


def test_neutral_names_stay_the_same_for_a_viewer_when_answers_change() -> None:
    before = all_answered()
    names = {before.author(entry.label): entry.name for entry in before.ballot("agent_a").entries}
    after = answer(show(before, "agent_b"), "agent_b", "a better one")
    assert {after.author(entry.label): entry.name for entry in after.ballot("agent_a").entries} == names


def test_neutral_names_do_not_follow_the_order_of_the_config() -> None:
    agents = tuple(f"agent_{letter}" for letter in "abcdefgh")
    state = all_answered(agents)
    orders = {tuple(state.author(entry.label) for entry in state.ballot(viewer).entries) for viewer in agents}
    assert len(orders) == len(agents)
    assert agents not in orders


def test_labels_count_by_place_in_the_config_not_by_alphabet() -> None:
    agents = tuple(f"agent_{number}" for number in range(1, 12))
    state = all_answered(agents)
    assert state.label("agent_2") == "agent2.1"
    assert state.label("agent_10") == "agent10.1"
    assert list(state.count.votes)[:3] == ["agent1.1", "agent2.1", "agent3.1"]


# -- votes --------------------------------------------------------------------------------------------------------


def test_a_vote_counts_for_the_answer_that_the_voter_saw() -> None:
    state = vote(all_answered(), "agent_a", "agent_c")
    assert state.count.votes == {"agent1.1": 0, "agent2.1": 0, "agent3.1": 1}


def test_a_vote_on_an_outdated_ballot_is_refused_and_the_voter_is_not_blamed() -> None:
    state = show(all_answered(), "agent_a")
    name = name_for(state, "agent_a", "agent_b")
    state = answer(show(state, "agent_b"), "agent_b", "an update")
    verdict = AgentView(state, "agent_a").vote(name, "a reason")
    assert refusal(verdict) == "stale_ballot"
    assert isinstance(verdict, Violation)
    assert not verdict.counts


def test_after_seeing_the_new_ballot_the_same_vote_counts_for_the_new_answer() -> None:
    state = show(all_answered(), "agent_a")
    state = answer(show(state, "agent_b"), "agent_b", "an update")
    assert AgentView(state, "agent_a").is_outdated()
    ballot = state.ballot("agent_a")
    state = state.after(BallotChanged(agent="agent_a", revision=ballot.revision, ballot=ballot.entries))
    event = AgentView(state, "agent_a").vote(name_for(state, "agent_a", "agent_b"), "a reason")
    assert isinstance(event, VoteCast)
    assert event.label == "agent2.2"


def test_a_new_answer_voids_every_standing_vote_and_puts_the_voters_back_to_work() -> None:
    state = vote(vote(all_answered(), "agent_a", "agent_b"), "agent_c", "agent_b")
    event = AgentView(show(state, "agent_b"), "agent_b").answer("an update")
    assert isinstance(event, AnswerSubmitted)
    assert event.voided_votes == ("agent_a", "agent_c")
    state = state.after(event)
    assert sum(state.count.votes.values()) == 0
    assert isinstance(AgentView(state, "agent_a").get_duty(), Work)


def test_a_vote_for_nobody_on_the_ballot_is_refused_with_the_choices() -> None:
    state = show(all_answered(), "agent_a")
    verdict = AgentView(state, "agent_a").vote("agent9", "a reason")
    assert refusal(verdict) == "unknown_answer"
    assert isinstance(verdict, Violation)
    assert verdict.facts["choices"] == "agent1, agent2, agent3"


def test_nobody_can_vote_before_there_are_answers() -> None:
    assert refusal(AgentView(show(begin(), "agent_a"), "agent_a").vote("agent1", "why not")) == "nothing_to_vote_for"


def test_a_vote_needs_a_reason() -> None:
    state = show(all_answered(), "agent_a")
    assert refusal(AgentView(state, "agent_a").vote("agent1", "  ")) == "empty_reason"


def test_whoever_has_voted_rests_until_the_answers_change() -> None:
    assert AgentView(vote(all_answered(), "agent_a", "agent_b"), "agent_a").get_duty() == Wait()


# -- answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["", "   \n "])
def test_an_empty_answer_is_refused(content: str) -> None:
    assert refusal(AgentView(show(begin(), "agent_a"), "agent_a").answer(content)) == "empty_answer"


def test_an_answer_stands_however_long_it_is() -> None:
    answer = AgentView(show(begin(), "agent_a"), "agent_a").answer("x" * 500_000)
    assert isinstance(answer, AnswerSubmitted)
    assert len(answer.content) == 500_000


def test_a_copy_of_an_answer_on_the_ballot_is_refused_and_changes_nothing() -> None:
    state = show(all_answered(), "agent_a")
    assert refusal(AgentView(state, "agent_a").answer(" the answer of agent_b\n")) == "duplicate_answer"


def test_repeating_an_own_earlier_answer_is_refused() -> None:
    state = answer(show(all_answered(), "agent_a"), "agent_a", "second thoughts")
    assert refusal(AgentView(show(state, "agent_a"), "agent_a").answer("the answer of agent_a")) == "repeated_answer"


def test_white_space_around_it_makes_no_new_answer_of_an_own_earlier_one() -> None:
    state = answer(show(begin(("agent_a", "agent_b")), "agent_a"), "agent_a", "  the first thought\n")
    state = answer(show(state, "agent_b"), "agent_b", "another")
    state = answer(show(state, "agent_a"), "agent_a", "second thoughts")
    assert refusal(AgentView(show(state, "agent_a"), "agent_a").answer("the first thought")) == "repeated_answer"


def test_at_its_limit_an_agent_may_only_vote() -> None:
    state = all_answered(max_answers=1)
    assert isinstance(AgentView(state, "agent_a").get_duty(), Work)
    assert not AgentView(state, "agent_a").may_answer()
    assert refusal(AgentView(show(state, "agent_a"), "agent_a").answer("one more")) == "answer_limit"


def test_a_reached_budget_closes_answering_and_a_raised_one_opens_it_again() -> None:
    state = all_answered().after(BudgetReached(agent="agent_a", message="it is spent"))
    assert isinstance(AgentView(state, "agent_a").get_duty(), Work)
    assert not AgentView(state, "agent_a").may_answer()
    state = state.after(BudgetRaised(control=1, max_usd=50))
    assert isinstance(AgentView(state, "agent_a").get_duty(), Work)
    assert AgentView(state, "agent_a").may_answer()


# -- the end ------------------------------------------------------------------------------------------------------


def test_coordination_ends_when_every_live_agent_has_a_standing_vote() -> None:
    state = vote(vote(all_answered(), "agent_a", "agent_b"), "agent_b", "agent_b")
    assert next_step(state) is None
    winner = decided(vote(state, "agent_c", "agent_b"))
    assert (winner.agent, winner.label, winner.outcome) == ("agent_b", "agent2.1", "consensus")


def test_the_most_votes_win() -> None:
    state = vote(vote(vote(all_answered(), "agent_a", "agent_c"), "agent_b", "agent_c"), "agent_c", "agent_a")
    assert (decided(state).agent, decided(state).outcome) == ("agent_c", "majority")


def test_a_vote_cannot_be_split_by_answers_that_say_the_same() -> None:
    quartet = (*TRIO, "agent_d", "agent_e")
    state = vote(all_answered(quartet), "agent_a", "agent_a", "agent_b")
    state = vote(state, "agent_b", "agent_b", "agent_a")
    state = vote(state, "agent_c", "agent_a", "agent_b")
    for voter in ("agent_d", "agent_e"):
        state = vote(state, voter, "agent_d")
    winner = decided(state)
    assert (winner.label, winner.outcome) == ("agent1.1", "majority")
    assert winner.votes == {"agent1.1": 2, "agent2.1": 1, "agent3.1": 0, "agent4.1": 2, "agent5.1": 0}
    assert winner.camps[0] == Camp(answers=("agent1.1", "agent2.1"), votes=3)
    assert winner.drawn == ()


def test_a_vote_cannot_be_split_by_answers_with_the_same_text_though_nobody_says_so() -> None:
    state = begin()
    for agent, text in zip(TRIO, ("It is 42.", "It is 43.", "It is 42.\n"), strict=True):
        state = answer(show(state, agent), agent, text)
    for voter, author in zip(TRIO, TRIO, strict=True):
        seen = show(state, voter)
        event = AgentView(seen, voter).vote(name_for(seen, voter, author), "a reason")
        assert isinstance(event, VoteCast)
        state = seen.after(event)
    chosen = next_step(state)
    assert isinstance(chosen, WinnerChosen)
    assert (chosen.outcome, chosen.run_off) == ("majority", None)
    assert [camp.votes for camp in chosen.camps] == [2, 1]


def test_answers_with_the_same_words_about_different_files_are_not_the_same() -> None:
    state = all_answered()
    for agent, tree in zip(TRIO, ("1", "2", "1"), strict=True):
        event = AgentView(state, agent).answer("Done.")
        assert isinstance(event, AnswerSubmitted)
        state = state.after(event.model_copy(update={"changes": Changes(tree=tree)}))
    assert [camp.answers for camp in state.count.camps] == [("agent1.2", "agent3.2"), ("agent2.2",)]


def test_one_voter_alone_cannot_make_a_camp() -> None:
    state = vote(all_answered(), "agent_a", "agent_a", "agent_b")
    state = vote(vote(state, "agent_b", "agent_b"), "agent_c", "agent_c")
    assert [camp.answers for camp in tied(state).count.camps] == [("agent1.1",), ("agent2.1",), ("agent3.1",)]


def test_all_votes_for_one_camp_are_a_consensus() -> None:
    state = all_answered()
    for voter, others in (("agent_a", ("agent_b",)), ("agent_b", ("agent_a",)), ("agent_c", ())):
        state = vote(state, voter, "agent_a" if voter == "agent_c" else voter, *others)
    assert (decided(state).label, decided(state).outcome) == ("agent1.1", "consensus")


def test_equally_voted_answers_of_the_winning_camp_are_drawn_without_a_run_off() -> None:
    pair = ("agent_a", "agent_b")
    state = vote(vote(all_answered(pair), "agent_a", "agent_a", "agent_b"), "agent_b", "agent_b", "agent_a")
    winner = decided(state)
    assert (winner.outcome, winner.drawn, winner.run_off) == ("consensus", ("agent1.1", "agent2.1"), None)
    assert winner.label == min(winner.drawn, key=lambda label: sha256(f"test/{label}".encode()).hexdigest())


def test_what_a_voter_calls_the_same_without_naming_an_answer_is_left_out() -> None:
    state = show(all_answered(), "agent_a")
    own, other = name_for(state, "agent_a", "agent_a"), name_for(state, "agent_a", "agent_b")
    cast = AgentView(state, "agent_a").vote(own, "why", [own, other, other, "agent77"])
    assert isinstance(cast, VoteCast)
    assert cast.same_as == ("agent2.1",)


def test_in_a_tie_those_who_wrote_no_tied_answer_vote_once_more() -> None:
    agents = (*TRIO, "agent_d", "agent_e")
    state = all_answered(agents)
    for voter, author in zip(agents, ("agent_a", "agent_b", "agent_a", "agent_b", "agent_c"), strict=True):
        state = vote(state, voter, author)
    state = tied(state)
    assert state.run_off is not None
    assert (state.run_off.subjects, state.run_off.agents) == (("agent1.1", "agent2.1"), agents[2:])
    assert AgentView(state, "agent_a").get_duty() == Wait()
    duty = AgentView(state, "agent_c").get_duty()
    assert isinstance(duty, Work)
    assert {entry.label for entry in duty.ballot.entries} == {"agent1.1", "agent2.1"}
    assert not AgentView(state, "agent_c").may_answer()
    for voter in ("agent_c", "agent_d"):
        state = vote(state, voter, "agent_b")
        assert next_step(state) is None
    winner = decided(vote(state, "agent_e", "agent_a"))
    assert (winner.label, winner.outcome, winner.drawn) == ("agent2.1", "majority", ())
    assert winner.run_off == {"agent1.1": 1, "agent2.1": 2}
    assert winner.votes == {"agent1.1": 2, "agent2.1": 2, "agent3.1": 1, "agent4.1": 0, "agent5.1": 0}


def test_where_everybody_wrote_a_tied_answer_everybody_votes_once_more_and_then_nothing_decides() -> None:
    state = all_answered()
    for agent in TRIO:
        state = vote(state, agent, agent)
    state = tied(state)
    assert state.run_off is not None
    assert state.run_off.agents == TRIO
    for agent in TRIO:
        state = vote(state, agent, agent)
    winner = decided(state)
    assert (winner.outcome, winner.drawn) == ("tie_broken", ("agent1.1", "agent2.1", "agent3.1"))
    assert winner.label == min(winner.drawn, key=lambda label: sha256(f"test/{label}".encode()).hexdigest())


def test_in_a_run_off_no_new_answer_is_taken() -> None:
    state = all_answered()
    for agent in TRIO:
        state = vote(state, agent, agent)
    state = show(tied(state), "agent_a")
    assert not AgentView(state, "agent_a").may_answer()
    assert refusal(AgentView(state, "agent_a").answer("quite another one")) == "only_votes"


def test_who_falls_out_of_a_run_off_is_not_waited_for() -> None:
    state = all_answered()
    for agent in TRIO:
        state = vote(state, agent, agent)
    state = vote(vote(tied(state), "agent_a", "agent_b"), "agent_b", "agent_b")
    assert next_step(state) is None
    winner = decided(state.after(AgentView(state, "agent_c").drop("timeout", "too slow")))
    assert (winner.label, winner.run_off) == ("agent2.1", {"agent1.1": 0, "agent2.1": 2, "agent3.1": 0})


def test_when_the_budget_is_reached_a_tie_stays_one_without_a_run_off() -> None:
    state = all_answered().after(BudgetReached(agent="agent_a", message="it is spent"))
    for agent in TRIO:
        state = vote(state, agent, agent)
    assert (decided(state).outcome, decided(state).run_off) == ("tie_broken", None)


def test_the_lot_falls_on_each_answer_equally_often() -> None:
    labels = ["agent1.1", "agent2.1", "agent3.1"]
    drawn_labels = [drawn(f"run-{number}", labels) for number in range(3000)]
    assert all(900 < drawn_labels.count(label) < 1100 for label in labels)


def test_a_team_of_one_need_not_vote_for_itself() -> None:
    state = answer(show(begin(("agent_a",)), "agent_a"), "agent_a", "mine")
    assert (decided(state).agent, decided(state).outcome) == ("agent_a", "single")


def test_the_only_survivor_need_not_vote_for_itself() -> None:
    state = begin(("agent_a", "agent_b"))
    state = state.after(AgentView(state, "agent_b").drop("auth", "no key"))
    state = answer(show(state, "agent_a"), "agent_a", "mine")
    assert decided(state).outcome == "single_survivor"


def test_a_dropped_agents_answer_stays_on_the_ballot_and_can_win() -> None:
    state = all_answered()
    state = state.after(AgentView(state, "agent_c").drop("timeout", "too slow"))
    state = vote(vote(state, "agent_a", "agent_c"), "agent_b", "agent_c")
    assert (decided(state).agent, decided(state).outcome) == ("agent_c", "majority"), "2 of the 3 that were asked"


def test_a_dropped_agent_is_not_waited_for() -> None:
    state = begin()
    for agent in ("agent_a", "agent_b"):
        state = answer(show(state, agent), agent, f"by {agent}")
    state = state.after(AgentView(state, "agent_c").drop("auth", "no key"))
    assert isinstance(AgentView(state, "agent_a").get_duty(), Work)
    assert AgentView(state, "agent_c").get_duty() == Rest()


def fallen_out(state: Coordination) -> Coordination:
    for agent in state.live:
        state = state.after(AgentView(state, agent).drop("provider_error", "500"))
    return state


def test_when_everybody_fell_out_no_answer_has_won() -> None:
    state = fallen_out(all_answered(("agent_a", "agent_b")))
    assert next_step(state) is None
    best = best_so_far(state)
    assert best is not None
    assert best.agent == "agent_a"


def repeat_own(state: Coordination, voter: str) -> Coordination:
    """The voter only wrote its own answer once more."""
    state = show(state, voter)
    event = AgentView(state, voter).vote(name_for(state, voter, voter), "no reason was given")
    assert isinstance(event, VoteCast)
    return state.after(event.model_copy(update={"repeated": True}))


def test_agents_that_only_repeat_their_own_answers_are_no_voters_and_answers_that_agree_decide() -> None:
    state = begin()
    for agent, text in zip(TRIO, ("It is 42.", "42", "It is warm there."), strict=True):
        state = answer(show(state, agent), agent, text)
    for agent in TRIO:
        assert next_step(state) is None, "another one may still choose"
        state = repeat_own(state, agent)
    for agent in TRIO:
        due = next_step(state)
        assert isinstance(due, AgentDropped)
        assert (due.agent, due.reason) == (agent, "no_action")
        state = state.after(due)
    winner = decided(state)
    assert (winner.label, winner.outcome, winner.agreeing) == ("agent1.1", "best_so_far", ("agent1.1", "agent2.1"))


@pytest.mark.parametrize(
    ("texts", "constrained", "outcome"),
    [
        (("It is 42.", "42", "The answer is 42."), True, "consensus"),
        (("It is cold.", "Cold, I think.", "It is cool, not cold."), True, "majority"),
        (("It is cold.", "Cold, I think.", "It is cool, not cold."), False, "consensus"),
    ],
)
def test_votes_of_models_without_tools_are_a_consensus_only_on_answers_that_need_no_vote_to_agree(
    texts: tuple[str, ...], constrained: bool, outcome: str
) -> None:
    state = begin()
    for agent, text in zip(TRIO, texts, strict=True):
        state = answer(show(state, agent), agent, text)
    for voter in TRIO:
        state = show(state, voter)
        names = [name_for(state, voter, author) for author in TRIO]
        event = AgentView(state, voter).vote(names[0], "a reason", names[1:])
        assert isinstance(event, VoteCast)
        state = state.after(event.model_copy(update={"constrained": constrained}))
    assert decided(state).outcome == outcome


def test_an_agent_that_repeats_its_own_answer_has_voted_for_it_beside_one_that_chooses() -> None:
    state = repeat_own(repeat_own(all_answered(), "agent_a"), "agent_b")
    winner = decided(vote(state, "agent_c", "agent_b"))
    assert (winner.label, winner.outcome) == ("agent2.1", "majority")


def test_where_the_budget_is_reached_the_best_answer_wins_though_nobody_can_vote() -> None:
    state = fallen_out(all_answered(("agent_a", "agent_b")).after(BudgetReached(agent="agent_a", message="")))
    assert (decided(state).agent, decided(state).outcome) == ("agent_a", "best_so_far")


def test_without_any_answer_there_is_no_winner() -> None:
    state = begin(("agent_a",))
    assert next_step(state.after(AgentView(state, "agent_a").drop("auth", "no key"))) is None


def test_finishing_now_takes_the_standing_votes() -> None:
    state = vote(all_answered(), "agent_a", "agent_c").after(FinishRequested())
    assert (decided(state).agent, decided(state).outcome) == ("agent_c", "best_so_far")


def test_finishing_now_without_answers_ends_at_the_first_one() -> None:
    state = begin().after(FinishRequested())
    assert next_step(state) is None
    assert decided(answer(show(state, "agent_b"), "agent_b", "quick")).agent == "agent_b"


# -- early decision -----------------------------------------------------------------------------------------------


def test_a_proven_lead_ends_it_when_nobody_can_change_it_any_more() -> None:
    state = vote(vote(all_answered(max_answers=1), "agent_a", "agent_b"), "agent_c", "agent_b")
    winner = decided(state)
    assert (winner.agent, winner.outcome, winner.early) == ("agent_b", "majority", True)


def test_no_lead_is_proven_while_somebody_may_still_answer() -> None:
    state = vote(vote(all_answered(max_answers=2), "agent_a", "agent_b"), "agent_c", "agent_b")
    assert next_step(state) is None


def test_one_of_those_who_have_not_voted_may_still_answer_and_no_lead_is_proven() -> None:
    agents = (*TRIO, "agent_d", "agent_e")
    state = all_answered(agents, max_answers=2)
    one_at_its_limit = answer(show(state, "agent_d"), "agent_d", "a second answer")
    both_at_it = answer(show(one_at_its_limit, "agent_e"), "agent_e", "another second answer")
    for voter in TRIO:
        one_at_its_limit = vote(one_at_its_limit, voter, "agent_a")
        both_at_it = vote(both_at_it, voter, "agent_a")
    assert next_step(one_at_its_limit) is None
    assert decided(both_at_it).early


def test_a_lead_that_a_tie_break_could_turn_is_not_proven() -> None:
    agents = ("agent_a", "agent_b")
    for voter, author in (agents, agents[::-1]):
        assert next_step(vote(all_answered(agents, max_answers=1), voter, author)) is None


def test_a_lead_over_answers_that_may_yet_be_put_together_is_not_proven() -> None:
    agents = tuple(f"agent_{letter}" for letter in "abcdefgh")
    state = vote(all_answered(agents, max_answers=1), "agent_h", "agent_h")
    for voter in ("agent_a", "agent_b", "agent_c"):
        state = vote(state, voter, "agent_a")
    apart = vote(vote(vote(state, "agent_d", "agent_d"), "agent_e", "agent_e"), "agent_f", "agent_f")
    assert decided(apart).label == "agent1.1"
    hinted = vote(vote(state, "agent_d", "agent_d", "agent_e", "agent_f"), "agent_e", "agent_e", "agent_d", "agent_f")
    hinted = vote(hinted, "agent_f", "agent_f")
    assert next_step(hinted) is None  # agent_g may join the three, and vote for one of them


def test_a_vote_that_could_still_make_a_majority_is_waited_for() -> None:
    agents = tuple(f"agent_{letter}" for letter in "abcdefg")
    state = all_answered(agents, max_answers=1)
    for voter in ("agent_a", "agent_b", "agent_c"):
        state = vote(state, voter, "agent_a")
    for voter in ("agent_d", "agent_e", "agent_f"):
        state = vote(state, voter, voter)
    assert next_step(state) is None, "3 of 7 lead safely, and agent_g could make them 4"
    assert decided(vote(state, "agent_g", "agent_a")).outcome == "majority"
    assert decided(vote(state, "agent_g", "agent_g")).outcome == "plurality"


def test_half_of_those_that_were_asked_are_no_majority() -> None:
    quartet = (*TRIO, "agent_d")
    state = all_answered(quartet)
    for voter, author in zip(quartet, ("agent_a", "agent_a", "agent_b", "agent_c"), strict=True):
        state = vote(state, voter, author)
    assert decided(state).outcome == "plurality"


def still_tied(*verdicts: str) -> Coordination:
    """Two agents vote for each of two answers, two others for one each in the run-off; agent_e judges so far so."""
    agents = (*TRIO, "agent_d", "agent_e", "agent_f")
    state = all_answered(agents)
    for voter, author in zip(agents, ("agent_a", "agent_b", "agent_a", "agent_b", "agent_e", "agent_f"), strict=True):
        state = vote(state, voter, author)
    state = tied(state)
    for voter, author in zip(agents[2:], ("agent_a", "agent_a", "agent_b", "agent_b"), strict=True):
        state = vote(state, voter, author)
    for author in verdicts:
        state = vote(tied(state), "agent_c", author)
    return state


def test_what_is_tied_after_the_run_off_is_judged_in_both_orders_by_an_agent_outside_the_tie() -> None:
    orders = [tied(still_tied()).stage, tied(still_tied("agent_b")).stage]
    found = [(stage.kind, stage.because, stage.agents, stage.subjects) for stage in orders if stage is not None]
    assert found == [
        ("compare", "still_tied", ("agent_c",), ("agent1.1", "agent2.1")),
        ("compare", "still_tied", ("agent_c",), ("agent2.1", "agent1.1")),
    ]
    winner = decided(still_tied("agent_b", "agent_b"))
    assert (winner.label, winner.outcome, winner.judge, winner.drawn) == ("agent2.1", "tie_broken", "agent_c", ())


def test_where_the_judge_of_a_tie_goes_by_the_order_nothing_decides() -> None:
    winner = decided(still_tied("agent_a", "agent_b"))
    assert (winner.outcome, winner.judge, winner.drawn) == ("tie_broken", None, ("agent1.1", "agent2.1"))


@pytest.mark.parametrize(
    ("vendors", "fallbacks", "judge"),
    [
        ("xx", ".x", ("agent_b", True)),
        ("xx", "y.", ("agent_a", True)),
        ("xy", "xy", None),
        ("xy", ".z", ("agent_b", True)),
        ("xx", "..", None),
        ("..", "..", None),
    ],
    ids=[
        "of the vendor of both",
        "of another vendor than both",
        "each of one's vendor",
        "of a third vendor",
        "no fallback",
        "vendors unknown",
    ],
)
def test_a_fallback_judges_a_tie_of_all_agents_unless_it_is_of_the_vendor_of_one_side(
    vendors: str, fallbacks: str, judge: tuple[str, bool] | None
) -> None:
    agents, known = TRIO[:2], [{".": ""}.get(one, one) for one in vendors]
    state = all_answered(agents)
    spare = {agent: one for agent, one in zip(agents, fallbacks, strict=True) if one != "."}
    rules = replace(state.rules, vendors=dict(zip(agents, known, strict=True)), fallback_vendors=spare)
    state = replace(state, rules=rules)
    for _ in range(2):
        for agent in agents:
            state = vote(state, agent, agent)
        due = next_step(state)
        state = state.after(due) if isinstance(due, StageOpened) else state
    stage = state.stage
    assert stage is not None
    found = (stage.agents[0], stage.by_fallback) if stage.because == "still_tied" else None
    assert found == judge


def test_early_decision_can_be_switched_off() -> None:
    state = all_answered(max_answers=1, early="off")
    assert next_step(vote(vote(state, "agent_a", "agent_b"), "agent_c", "agent_b")) is None


def test_the_eager_variant_ends_at_a_majority_although_somebody_may_still_answer() -> None:
    state = all_answered(max_answers=5, early="majority")
    assert decided(vote(vote(state, "agent_a", "agent_b"), "agent_c", "agent_b")).early


def test_the_eager_variant_waits_for_more_than_half_of_the_votes() -> None:
    agents = (*TRIO, "agent_d")
    state = vote(vote(all_answered(agents, early="majority"), "agent_a", "agent_b"), "agent_c", "agent_b")
    assert next_step(state) is None
    winner = decided(vote(state, "agent_d", "agent_b"))
    assert (winner.agent, winner.early) == ("agent_b", True)


def test_what_was_said_before_the_first_attempt_holds_in_it_and_in_later_ones() -> None:
    state = begin().after(FinishRequested()).after(BudgetReached(agent="agent_a", message="no"))
    for attempt in (1, 2):
        state = state.after(AttemptStarted(attempt=attempt))
        assert (state.finish_requested, state.closing) == (True, True)


def test_a_dropped_agent_leaves_unfinished_only_what_it_has_not_answered_with() -> None:
    answered = Changes(tree="answered", added=1, files=(ChangedFile(path="a.py", kind="modified"),))
    event = AgentView(show(begin(), "agent_a"), "agent_a").answer("mine")
    assert isinstance(event, AnswerSubmitted)
    state = begin().after(event.model_copy(update={"changes": answered}))
    assert AgentView(state, "agent_a").drop("auth", "no", answered).changes is None
    later = answered.model_copy(update={"tree": "later"})
    assert AgentView(state, "agent_a").drop("auth", "no", later).changes == later
    assert AgentView(state, "agent_b").drop("auth", "no", answered).changes == answered
