"""Which answers say the same: the rule of `coordination.count`, held for whatever voters say."""

from itertools import combinations
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from massgen_mcp.coordination.count import StandingVote, camps, possible_camps

LABELS = tuple(f"agent{place}.1" for place in range(1, 7))
AUTHORS = {label: f"author of {label}" for label in LABELS}

labels = st.sampled_from(LABELS)
statements = st.none() | st.lists(labels, max_size=5, unique=True).map(tuple)


texts = st.lists(st.integers(0, 8), min_size=6, max_size=6)


def alike_in(says: list[int]) -> dict[str, str]:
    """Answers with the same text, each with the first that has it."""
    found = {label: LABELS[says.index(text)] for label, text in zip(LABELS, says, strict=True)}
    return {label: first for label, first in found.items() if label != first}


def voters(size: int) -> st.SearchStrategy[list[StandingVote]]:
    """The authors, who vote first, and others."""
    names = [*AUTHORS.values(), "another", "one more"][:size]
    votes = st.lists(st.tuples(labels, statements), max_size=size)
    return votes.map(
        lambda cast: [StandingVote(name, label, same) for name, (label, same) in zip(names, cast, strict=False)]
    )


def named_by(choice: StandingVote) -> set[str]:
    return set() if choice.same_as is None else {choice.label, *choice.same_as}


def together(one: str, other: str, choices: list[StandingVote]) -> bool:
    return camps({one: AUTHORS[one], other: AUTHORS[other]}, choices, {}) == ((one, other),)


@given(voters(8))
def test_every_answer_is_in_exactly_one_camp_in_the_order_given(choices: list[StandingVote]) -> None:
    found = camps(AUTHORS, choices, {})
    assert sorted(label for camp in found for label in camp) == sorted(LABELS)
    assert all(list(camp) == [label for label in LABELS if label in camp] for camp in found)
    assert [camp[0] for camp in found] == sorted((camp[0] for camp in found), key=LABELS.index)


@given(voters(8))
def test_who_is_in_a_camp_is_called_the_same_as_another_in_it_by_two_voters(choices: list[StandingVote]) -> None:
    for camp in camps(AUTHORS, choices, {}):
        for label in camp if len(camp) > 1 else ():
            others = [other for other in camp if other != label]
            assert any(sum({label, other} <= named_by(choice) for choice in choices) >= 2 for other in others)


@given(voters(8))
def test_two_joined_pairs_with_an_answer_in_common_are_called_one_by_somebody(choices: list[StandingVote]) -> None:
    pairs = [{one, other} for one, other in combinations(LABELS, 2) if together(one, other, choices)]
    for one, other in combinations(pairs, 2):
        if one & other:
            assert any(one | other <= named_by(choice) for choice in choices)


@given(voters(8), texts)
def test_answers_that_are_the_same_are_one_camp_whatever_voters_say(
    choices: list[StandingVote], says: list[int]
) -> None:
    alike = alike_in(says)
    firsts = tuple(label for label in LABELS if label not in alike)
    as_first = [
        StandingVote(
            choice.voter,
            alike.get(choice.label, choice.label),
            choice.same_as and tuple(alike.get(label, label) for label in choice.same_as),
        )
        for choice in choices
    ]
    assert camps(AUTHORS, choices, alike) == camps(AUTHORS, as_first, alike)
    for camp in camps(AUTHORS, choices, alike):
        assert all((label in camp) == (first in camp) for label, first in alike.items())
    of_texts = camps({label: f"author of all like {label}" for label in firsts}, as_first, {})
    wide = {tuple(label for label in camp if label in firsts) for camp in camps(AUTHORS, choices, alike)}
    assert all(any(set(camp) <= set(other) for other in wide) for camp in of_texts)


@given(voters(8), st.randoms())
def test_neither_the_order_of_voters_nor_that_of_answers_matters(choices: list[StandingVote], random: Random) -> None:
    mixed, order = [*choices], [*LABELS]
    random.shuffle(mixed)
    random.shuffle(order)
    other = camps({label: AUTHORS[label] for label in order}, mixed, {})
    assert {frozenset(camp) for camp in camps(AUTHORS, choices, {})} == {frozenset(camp) for camp in other}


@given(voters(8))
def test_voters_who_say_nothing_of_sameness_change_no_camp(choices: list[StandingVote]) -> None:
    spoken = [choice for choice in choices if choice.same_as is not None]
    assert camps(AUTHORS, choices, {}) == camps(AUTHORS, spoken, {})
    silent = [StandingVote(choice.voter, choice.label) for choice in choices]
    assert camps(AUTHORS, silent, {}) == tuple((label,) for label in LABELS)


@given(st.lists(st.integers(0, 2), min_size=6, max_size=6), st.lists(labels, min_size=8, max_size=8))
def test_where_every_voter_is_right_camps_are_what_the_answers_say(says: list[int], votes: list[str]) -> None:
    meaning = dict(zip(LABELS, says, strict=True))
    choices = [
        StandingVote(f"voter {place}", label, tuple(other for other in LABELS if meaning[other] == meaning[label]))
        for place, label in enumerate(votes)
    ]
    for camp in camps(AUTHORS, choices, {}):
        assert len({meaning[label] for label in camp}) == 1
        spoken_of = sum(meaning[choice.label] == meaning[camp[0]] for choice in choices)
        assert len(camp) == (says.count(meaning[camp[0]]) if spoken_of >= 2 else 1)


@given(voters(6), st.lists(st.tuples(labels, statements), max_size=2), texts)
def test_no_further_vote_brings_together_what_is_held_apart_as_impossible(
    choices: list[StandingVote], more: list[tuple[str, tuple[str, ...] | None]], says: list[int]
) -> None:
    alike = alike_in(says)
    possible = possible_camps(LABELS, choices, len(more), alike)
    names = [name for name in AUTHORS.values() if name not in {choice.voter for choice in choices}]
    names = [*names, "another", "one more"]
    further = [StandingVote(name, label, same) for name, (label, same) in zip(names, more, strict=False)]
    for camp in camps(AUTHORS, [*choices, *further], alike):
        assert any(set(camp) <= set(wide) for wide in possible)


def said(voter: str, label: str, *same: str) -> StandingVote:
    return StandingVote(voter, label, same)


def test_where_as_many_tell_two_answers_apart_the_word_of_both_authors_counts() -> None:
    one, two, _three, *_ = LABELS
    apart = [said("x", one), said("y", two)]
    assert together(one, two, [said(AUTHORS[one], one, two), said(AUTHORS[two], two, one), *apart])
    assert not together(one, two, [said("v", one, two), said("w", two, one), *apart])
    assert not together(one, two, [said(AUTHORS[one], one, two), said("w", two, one), *apart])


def test_more_who_tell_two_answers_apart_outvote_even_their_authors() -> None:
    one, two, *_ = LABELS
    apart = [said("x", one), said("y", two), said("z", two)]
    assert not together(one, two, [said(AUTHORS[one], one, two), said(AUTHORS[two], two, one), *apart])
