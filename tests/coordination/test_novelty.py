"""The measure behind `answer_novelty_requirement`, by examples that a person can check."""

import pytest

from massgen_mcp.coordination.answer_text import overlap


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("the answer is 42", "The answer is: 42!", 1.0),
        ("the answer is 42", "the answer is 43", 2 / 4),
        ("42", "42.", 1.0),
        ("42", "43", 0.0),
        ("dog bites man", "man bites dog", 0.0),
        ("nothing shared here", "completely different words there", 0.0),
        ("!!!", "!!!", 1.0),
        ("!!!", "???", 0.0),
        ("größe zählt hier", "GRÖSSE zählt hier", 1.0),
    ],
)
def test_the_overlap_is_the_share_of_common_word_pairs(one: str, other: str, expected: float) -> None:
    # pytest's approx is typed in part only.
    assert overlap(one, other) == pytest.approx(expected)  # pyright: ignore[reportUnknownMemberType]


def test_the_overlap_does_not_depend_on_the_order_of_the_texts() -> None:
    one, other = "a b c d e", "b c d x"
    assert overlap(one, other) == overlap(other, one)
