"""Two that answered the same items: figures that are known, and what chance alone may do."""

from random import Random

import pytest

from massgen_mcp.statistics.paired import Paired


def paired(both: int, first: int, second: int, neither: int) -> Paired:
    pairs = [(True, True)] * both + [(True, False)] * first + [(False, True)] * second + [(False, False)] * neither
    names = [str(number) for number in range(len(pairs))]
    one, other = zip(*pairs, strict=True) if pairs else ((), ())
    return Paired.of(dict(zip(names, one, strict=True)), dict(zip(names, other, strict=True)))


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [(0, 0, 1.0), (5, 5, 1.0), (3, 1, 0.625), (10, 2, 0.03857), (1, 9, 0.02148), (6, 0, 0.03125)],
)
def test_p_is_that_of_mcnemars_exact_test(first: int, second: int, p: float) -> None:
    assert paired(10, first, second, 4).p == pytest.approx(p, abs=1e-5)


@pytest.mark.parametrize(("difference", "needed"), [(0.10, 112), (0.05, 453), (0.03, 1263)])
def test_so_many_items_are_needed_where_145_of_1000_tell_the_two_apart(difference: float, needed: int) -> None:
    assert paired(500, 100, 45, 355).needed(difference) == needed


def test_nothing_tells_how_many_are_needed_where_both_have_the_same_items_right() -> None:
    assert paired(8, 0, 0, 2).needed(0.05) is None


def test_the_interval_holds_the_difference_and_grows_smaller_with_more_items() -> None:
    few, many = paired(20, 12, 4, 14), paired(200, 120, 40, 140)
    for one in (few, many):
        assert one.difference == pytest.approx(0.16)
        assert one.low < one.difference < one.high
    assert many.high - many.low < (few.high - few.low) / 2
    assert (few.low, few.high) == pytest.approx((0.02, 0.32), abs=0.03), "by the normal distribution: 0.160 ± 0.152"


def test_chance_alone_settles_hardly_anything_however_often_one_looks() -> None:
    random = Random(1)
    settled = 0
    for _ in range(300):
        first = 0
        for seen in range(1, 200):
            first += random.random() < 0.5
            if Paired(0, first, seen - first, 0).is_settled():
                settled += 1
                break
    assert settled <= 15, "5 %"


def test_a_difference_that_is_there_is_settled() -> None:
    assert Paired(0, 10, 0, 0).is_settled()
    assert not Paired(0, 4, 0, 0).is_settled()
    assert Paired(0, 60, 25, 0).is_settled()
    assert not Paired(0, 10, 0, 0).is_settled(comparisons=100)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (paired(5, 3, 1, 1), "10 items are too few to compare a and b."),
        (paired(60, 20, 4, 16), "On 100 items of this kind, a is better than b by 16.0 points"),
        (paired(60, 4, 20, 16), "On 100 items of this kind, a is worse than b by 16.0 points"),
        (
            paired(60, 9, 7, 24),
            "100 items are too few to show whether a or b is better (p = 0.804): the difference could be",
        ),
    ],
)
def test_one_sentence_says_what_may_be_claimed(found: Paired, words: str) -> None:
    assert found.claim("a", "b", settled=False).startswith(words)


def test_items_that_never_tell_the_two_apart_do_not_show_that_they_are_equal() -> None:
    """So rare that none of a hundred is seen in 2.5 %: 3.6 % of them, on either side."""
    never = Paired(0, 0, 0, 100)
    assert (never.low, never.high) == (pytest.approx(-0.0362, abs=1e-4), pytest.approx(0.0362, abs=1e-4))
    assert "between -3.6 and +3.6" in never.claim("a", "b", settled=False)
    assert Paired(0, 0, 12, 8).p_text == "p < 0.001"
