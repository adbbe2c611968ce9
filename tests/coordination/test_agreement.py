"""Texts say the same where the sentence of one that answers the question stands in the other."""

import pytest

from massgen_mcp.coordination.agreement import find_agreeing

FRANCE, SUM, PLANET, LEGS = "capital of France?", "What is 2 + 2?", "Which planet is the red planet?", "How many legs?"
DAY = "A day has 24 hours, wherever on this planet you may look for one."
FIRST, WEEK = "Who was the first president?", "How many days are in a week?"


@pytest.mark.parametrize(
    ("question", "texts", "agreeing"),
    [
        (FRANCE, ("The capital of France is Paris.", "It is Paris.", "The capital of France is London."), {1}),
        (FRANCE, ("It is Paris.", "Paris.", "The capital of France is Paris, a large city."), {1, 2}),
        (FRANCE, ("The answer is:\nParis", "Paris is the capital of France.", "I can't say."), {1}),
        (FRANCE, ("It is Paris.", "France is a country.", "You must name the capital of France."), set[int]()),
        (SUM, ("2 + 2 = 4", "The answer is four.", "2 + 2 is 5."), {1}),
        (SUM, ("4", "5", "22"), set[int]()),
        (PLANET, ("Mars. It is red for its iron.", "The red planet is Mars.", "Venus is hot. Mars is not."), {1}),
        (LEGS, ("There are 4 legs.", "There are 8 legs.", "Nothing is known of the legs."), set[int]()),
        (LEGS, ("Eight legs.", "A spider has 8 legs, an insect 6.", "It has eight."), {1, 2}),
        (LEGS, ("", "8", "8"), set[int]()),
        (WEEK, ("A week has 7 days.", "A day is 24 hours. So a week is 7 days, in all.", "A week has 5hmm."), {1}),
        (WEEK, (f"{DAY} A week has 7 days.", f"{DAY} A week has 5 days.", "Seven."), {2}),
        (
            FRANCE,
            ("Paris.", "Les Comoires: a nation with the capital of Paris.", "The capital of France is Nice."),
            {1},
        ),
        (FRANCE, ("It is cold.", "It is cool, or cold.", "It is cool."), {1}),
        (FIRST, ("The first was John F. Kennedy.", "John Tyler was.", "It was John Adams, a founder."), set[int]()),
    ],
)
def test_texts_agree_by_the_sentence_that_answers_the_question(
    question: str, texts: tuple[str, ...], agreeing: set[int]
) -> None:
    named = {f"agent{place}": text for place, text in enumerate(texts)}
    found = find_agreeing(named, "agent0", question)
    assert {int(name.removeprefix("agent")) for name in found} == agreeing
    for other in named:
        assert ("agent0" in find_agreeing(named, other, question)) == (other in found), "either way"


def test_of_two_texts_none_is_a_majority() -> None:
    assert find_agreeing({"agent1": "Paris.", "agent2": "Paris."}, "agent1", FRANCE) == ()
