"""Every wire does what it has to, and stands every fault; and the checks that say so catch clients that do not."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from massgen_mcp.backends.base import Backend
from massgen_mcp.backends.calling import RetryPolicy
from tests.wire_double import Aimock
from tests.wires.checks import CHECKS, Check, retry_after
from tests.wires.ends import ENDS, fewer_cells, play_ends
from tests.wires.faults import FAULTS, MAX_GROWTH_MIB, Fault, bomb, play
from tests.wires.rows import ROWS, Row
from tests.wires.twins import HoardingBackend, NaiveBackend

every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
CHAT, AZURE, GEMINI = (
    next(row for row in ROWS if row.title == title) for title in ("Chat Completions", "Azure", "Gemini, compatible")
)


@every_row
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.title)
async def test_a_wire_does_what_it_has_to(check: Check, row: Row, aimock: Aimock) -> None:
    async with row.provider(aimock) as provider:
        assert await check.play(row, provider)


@every_row
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.title)
async def test_a_fault_ends_in_a_good_answer_or_a_reason(fault: Fault, row: Row) -> None:
    await play(fault, row)


def fault_named(title: str) -> Fault:
    return next(fault for fault in FAULTS if fault.title.startswith(title))


NAIVE: list[tuple[str, Row, Callable[[str], Backend], str]] = [
    ("half a tool call, then the end", CHAT, NaiveBackend, "`no_action` 4"),
    ("no stop reason", CHAT, NaiveBackend, "took 'FALSE"),
    ("stopped by a content filter", CHAT, NaiveBackend, "took 'FALSE"),
    (
        "redirect to another host",
        AZURE,
        lambda url: NaiveBackend(url, key_header="api-key", follow_redirects=True),
        "asked another host, with .*sk-secret",
    ),
    ("the same id for two calls", GEMINI, NaiveBackend, "`no_action` 5"),
]


@pytest.mark.parametrize(("title", "row", "make", "caught"), NAIVE, ids=[title for title, *_ in NAIVE])
async def test_the_matrix_catches_a_naive_client(
    title: str, row: Row, make: Callable[[str], Backend], caught: str
) -> None:
    with pytest.raises(AssertionError, match=caught):
        await play(fault_named(title), row, make=make)


async def test_the_matrix_catches_a_client_that_inflates_what_it_is_sent() -> None:
    small = replace(fault_named("gzip bomb"), make=bomb(2 * MAX_GROWTH_MIB * 2**20))
    with pytest.raises(AssertionError, match=r"took \d+ MiB"):
        await play(small, CHAT, make=HoardingBackend)


async def test_the_checks_catch_a_policy_that_waits_as_long_as_it_is_told(aimock: Aimock) -> None:
    patient = RetryPolicy(longest_retry_after=float("inf"))
    with pytest.raises(AssertionError, match=r"1642.*waits"):
        await retry_after(CHAT, aimock, patient)


@pytest.mark.parametrize("row", [row for row in ROWS if row.title in ENDS], ids=lambda row: row.title)
async def test_only_a_known_good_end_of_a_text_that_shows_something_makes_an_answer_whatever_the_usage(
    row: Row,
) -> None:
    tally = await play_ends(row, fewer_cells(row))
    assert tally.sound, [*tally.false, *tally.lost, *tally.miscounted][:5]
