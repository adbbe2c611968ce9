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
    ("8", "8, 6"),
    ("8", "8 or 6"),
    ("8", "6, 8"),
    ("8 and 6", "8"),
    ("Ann has 3 apples, Bob has 5.", "Ann has 3 apples, Bob has 7."),
    ("Ann has 3 apples, Bob has 5.", "Ann has 3 apples."),
    ("12 months", "12 months and 3 days"),
    ("Use port 80.", "Use ports 80 and 443."),
    ("Postgres", "Postgres 16"),
    ("It was 1969.", "It was 1970."),
    ("July 20, 1969", "July 1969"),
    ("3 to 4", "3"),
    ("5 km", "5.5 km"),
    ("about 100", "about 1000"),
    ("Ann", "Ann and Bob"),
    ("Ann and Bob", "Ann and Carl"),
    ("Ann & Bob", "Bob"),
    ("Isaac Newton and Gottfried Leibniz", "Isaac Newton"),
    ("No, it is not.", "Yes, it is."),
    ("Correct.", "Incorrect."),
    ("It does.", "It doesn't."),
    ("Yes", "No, never."),
    ("True.", "It is false."),
    ("Rome", "Milan, the capital of Lombardy"),
    ("Mars", "Venus"),
    ("Berlin, Germany", "Bonn, Germany"),
    ("The red planet is Mars.", "The red planet is Venus."),
    ("10 %", "15 %"),
    ("-3", "3"),
    ("x = 3", "x = 4"),
    ("x = 3, y = 2", "x = 3"),
    ("1,000", "10,000"),
    ("twelve", "thirteen"),
    ("Zero", "One hundred and 5"),
    ("17", "71"),
    ("It takes 3 hours.", "It takes 4 hours."),
    ("Ten", "Eleven"),
    ("Chapter 3", "Chapter 4"),
    ("v1.2.3", "v1.2.4"),
    ("Monday", "Tuesday"),
    ("Alice", "Alice and Carol"),
    ("HTTP 404", "HTTP 500"),
    ("Yes, always.", "No, not always."),
    ("Kyoto", "Tokyo"),
    ("2 and 3", "2, 3 and 5"),
    ("3 out of 5", "4 out of 5"),
    ("At 9:30", "At 9:45"),
    ("Plan A", "Plan B"),
    ("$10", "$10.50"),
    ("It costs 5 dollars.", "It costs nothing."),
    ("No.", "Yes, since 2 is prime."),
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
    ("8", "8, since it is 2 times 4"),
    ("8", "8 (2 times 4)"),
    ("8", "8 = 2^3"),
    ("2^3 = 8", "8"),
    ("8", "The cube of 2 is 8."),
    ("Two and two is 4", "4"),
    ("Paris", "Paris, the capital of France"),
    ("Paris", "Paris, a city of 2 million people"),
    ("Paris", "Paris (population: 2 million)"),
    ("The answer to question 3 is 12.", "12"),
    ("5 pm", "5:00 pm"),
    ("$5", "$5.00"),
    ("12", "12 months"),
    ("Twelve months.", "12"),
    ("It is 42, because 6 times 7 is 42.", "42"),
    ("42", "6 times 7 is 42"),
    ("Mars", "Mars, the red planet"),
    ("Mars", "It is Mars."),
    ("Anna", "Anna Schmidt"),
    ("Ann and Bob", "Bob and Ann"),
    ("Ann and Bob", "It was Ann and Bob."),
    ("Yes", "Yes, it is."),
    ("Yes.", "It is true."),
    ("No", "No, it isn't."),
    ("No", "It is not so."),
    ("100", "100.0"),
    ("8", "8, which is 2 cubed"),
    ("7 days", "7, as there are 7 days in a week"),
    ("Mount Everest", "Everest"),
    ("Berlin", "Berlin, Germany"),
    ("x = 3", "3"),
    ("The result is 3.", "x = 3"),
    ("Use port 80.", "Port 80"),
    ("3.14", "3.14, the first 3 digits of pi"),
    ("1969", "It was in 1969."),
    ("July 20, 1969", "On July 20, 1969."),
    ("17", "Seventeen."),
    ("It takes 3 hours.", "3 hours"),
    ("Ten", "10"),
    ("Chapter 3", "It is in chapter 3."),
    ("v1.2.3", "Version v1.2.3"),
    ("Monday", "On Monday."),
    ("404", "It is 404, which means not found."),
    ("404", "The status code is 404 (Not Found)."),
    ("Yes, always.", "Yes"),
    ("Au", "Gold (Au)"),
    ("H2O", "Water, H2O"),
    ("Tokyo", "Tokyo, Japan"),
    ("Tokyo", "The answer is Tokyo."),
    ("5", "5 (five)"),
    ("The sum of 2 and 3 is 5.", "5"),
    ("2 + 3 = 5", "5"),
    ("3 out of 5", "3 of 5"),
    ("9:00", "9 o'clock"),
    ("Use SQLite.", "SQLite, since it needs no server."),
    ("Romeo and Juliet", "It is Romeo and Juliet."),
    ("Romeo and Juliet", "Romeo and Juliet, by Shakespeare"),
    ("William Shakespeare", "Shakespeare"),
    ("Trinidad and Tobago", "Trinidad and Tobago."),
    ("1/2", "1/2 of it"),
    ("100 °C", "100 degrees Celsius"),
    ("21%", "21 %"),
    ("Dr. Smith", "Smith"),
    ("O(n)", "O(n), with 2 passes"),
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
