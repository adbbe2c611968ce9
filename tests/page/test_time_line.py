"""The time line shows every moment in its order, and makes a pause without work short."""

from hypothesis import given
from hypothesis import strategies as st

from massgen_mcp.page.parts import time_line

TIMES = st.floats(0, 10_000)
SPANS = st.lists(st.tuples(TIMES, st.floats(0, 500)).map(lambda span: (span[0], span[0] + span[1])), max_size=12)


@given(SPANS)
def test_places_rise_with_time_from_one_end_to_the_other(work: list[tuple[float, float]]) -> None:
    end = max((until for _, until in work), default=0.0)
    places = time_line(work, end).places
    assert [place.at for place in places] == sorted(place.at for place in places)
    assert [place.place for place in places] == sorted(place.place for place in places)
    assert places[0].place == 0
    assert places[-1].at == end
    assert places[-1].place <= 1 + 1e-9


@given(SPANS)
def test_nobody_works_in_what_is_drawn_shorter(work: list[tuple[float, float]]) -> None:
    end = max((until for _, until in work), default=0.0)
    for since, until in time_line(work, end).idle:
        assert not any(begun < until and ended > since for begun, ended in work)


def test_a_night_between_two_minutes_of_work_takes_a_twentieth_of_the_line() -> None:
    line = time_line([(0, 60), (30_060, 30_120)], 30_120)
    ((before, after),) = [
        (place.place, later.place) for place, later in zip(line.places, line.places[1:], strict=False) if place.at == 60
    ]
    assert line.idle == ((60, 30_060),)
    assert 0 < after - before < 0.05
