"""Short answers that cannot say the same are never counted together, whatever voters say of them."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from massgen_mcp.coordination.count import Count, StandingVote, camps
from massgen_mcp.coordination.substance import find_contradictions

DIFFERENT = (
    ("4", "22"),
    ("I am an AI assistant", "4"),
    ("The capital of France is Paris.", "7"),
    ("2 + 2 is 4.", "2 + 2 is 2."),
    ("2 + 2 is 4", "2"),
    ("Twenty-one", "It is 22."),
    ("-5", "5"),
    ("0.5", "0.05"),
    ("2026-11-28", "2026-11-29"),
    ("10:30", "10:45"),
    ("Paris", "Lyon"),
    ("paris", "Lyon"),
    ("**Paris**", "It is Lyon."),
    ("Paris is the capital.", "The capital is Lyon."),
    ("Isaac Newton did.", "It was Albert Einstein."),
    ("GPT-4", "GPT-5"),
    ("It is H2O.", "It is H3O."),
    ("Yes", "No"),
    ("Yes, it is prime.", "No."),
    ("The answer is yes.", "The answer is no."),
    ("True", "False"),
    ("It is prime.", "It is not prime."),
    ("It can.", "It cannot."),
    ("It isn't prime", "It is prime"),
    ("5km", "6km"),
)
PERHAPS_THE_SAME = (
    ("4", "It is four."),
    ("2 + 2 is 4.", "4"),
    ("Two and two is 4", "Two and two is four."),
    ("Forty-two.", "It is 42."),
    ("1,000", "1000"),
    ("3.10", "3.1"),
    ("7 days", "There are seven days in a week."),
    ("Paris", "**Paris**"),
    ("The capital of France is Paris.", "It is Paris."),
    ("IT IS PARIS", "It is Paris"),
    ("Isaac Newton", "Newton"),
    ("The opposite is cold.", "Cold."),
    ("Yes, it is prime", "It is prime"),
    ("Use a lock.", "Take a lock."),
    ("2, 3 and 5", "2, 3, 5"),
    ("It is 4. " + "This is why it is so. " * 6, "22"),
    ("", "22"),
)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_short_answers_that_differ_in_a_number_a_name_or_a_yes_are_never_joined(one: str, other: str) -> None:
    votes = [StandingVote(name, label, ("x", "y")) for name, label in zip("xyz", "xyx", strict=True)]
    apart = find_contradictions({"x": one, "y": other})
    assert camps({"x": "x", "y": "y"}, votes, {}, apart) == (("x",), ("y",))


@pytest.mark.parametrize(("one", "other"), PERHAPS_THE_SAME)
def test_other_answers_are_joined_where_voters_say_so(one: str, other: str) -> None:
    votes = [StandingVote(name, label, ("x", "y")) for name, label in zip("xyz", "xyx", strict=True)]
    apart = find_contradictions({"x": one, "y": other})
    assert camps({"x": "x", "y": "y"}, votes, {}, apart) == (("x", "y"),)


def test_answers_that_contradict_each_other_are_not_joined_through_a_third_one() -> None:
    texts = {"x": "4", "y": "It depends on what is asked here.", "z": "22"}
    texts["y"] += " One may read it in both ways, and I see no reason for one of them." * 2
    votes = [StandingVote(name, label, tuple(texts)) for name, label in zip("xyz", texts, strict=True)]
    found = Count.of("seed", {label: label for label in texts}, votes, {}, find_contradictions(texts))
    assert [(camp.answers, camp.votes) for camp in found.camps] == [(("x",), 1), (("y",), 1), (("z",), 1)]


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_contradicts_itself_and_two_contradict_each_other_both_ways(one: str, other: str) -> None:
    assert not find_contradictions({"x": one, "y": one})
    assert find_contradictions({"x": one, "y": other}) == find_contradictions({"x": other, "y": one})


def test_a_very_long_number_is_read_without_delay() -> None:
    long = "1" * 1_000_000
    assert all(
        not find_contradictions({"x": one, "y": other}) for one, other in product((long, long + " + 1"), repeat=2)
    )
