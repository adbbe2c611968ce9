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
    ("Twenty-one", "It is 22."),
    ("-5", "5"),
    ("0.5", "0.05"),
    ("2026-11-28", "2026-11-29"),
    ("10:30", "10:45"),
    ("Paris", "Lyon"),
    ("Paris.", "The capital of France is Lyon."),
    ("**Paris**", "It is Lyon."),
    ("Canberra", "Sydney"),
    ("Canberra is the capital of Australia.", "Sydney is the capital of Australia."),
    ("The capital of Australia is Canberra.", "The capital of Australia is Sydney."),
    ("Isaac Newton", "Albert Einstein"),
    ("Yes", "No"),
    ("Yes, it is prime.", "No."),
    ("The answer is yes.", "The answer is no."),
    ("True", "False"),
    ("It is prime.", "It is not prime."),
    ("It can.", "It cannot."),
    ("Use Postgres.", "Use MySQL."),
    ("Postgres", "Use MySQL"),
    ("4.\n\n" + "Because two and two of them make so many. " * 3, "22"),
    ("5km", "6km"),
    ("A", "B"),
    ("(B)", "(C)"),
    ("GPT-4", "GPT-5"),
    ("Canberra.\n\nIt was built for that purpose between two rival cities, which both wanted to be it.", "Sydney"),
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
    ("Paris", "The capital of France is Paris."),
    ("US", "United States"),
    ("USA", "United States of America"),
    ("Postgres", "PostgreSQL"),
    ("Use Postgres.", "Choose PostgreSQL."),
    ("Isaac Newton", "Newton"),
    ("JFK", "John F. Kennedy"),
    ("The opposite is cold.", "Cold."),
    ("Yes, it is prime", "It is prime"),
    ("Use a lock.", "Take a lock."),
    ("2, 3 and 5", "2, 3, 5"),
    (
        "Postgres. A jobs table with SELECT ... FOR UPDATE SKIP LOCKED carries 200 jobs a minute easily.",
        "Postgres, because a job then commits or rolls back together with the data that it belongs to.",
    ),
    ("Take Postgres, not Redis.", "Postgres with SKIP LOCKED."),
    ("Yes, no problem.", "Yes."),
    ("ada says so.", "bo says so."),
    ("São Paulo", "Sao Paulo"),
    ("Use a Mutex around the Cache.", "Use a Lock around the Cache."),
    ("Redis loses jobs; take Postgres.", "Postgres, since Kafka is too much."),
    ("The retry loop never backs off.", "Never backs off in the Retry loop"),
    ("Use a Mutex around the Cache.", "Use a Lock around the Cache."),
    (
        "# Recommendation\n\nTake the queue in the database, since its jobs are committed with the data.",
        "# Verdict\n\nTake the database, since nothing is lost there when one of them goes away.",
    ),
    ("1. Take a lock around the whole block of code that reads and writes the counter.", "2"),
    ("It is 4. " + "This is why it is so and in no other way. " * 6, "It is 4"),
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
