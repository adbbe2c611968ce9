"""Which strategy and which team had the cheapest right answers, of runs that a person has marked."""

from collections.abc import Iterator

import pytest

from massgen_mcp.statistics.digest import AgentDigest, Mark, RunDigest, SpentDigest
from massgen_mcp.statistics.sums import CountedRun, statistics_of
from massgen_mcp.statistics.words import statistics_lines

RIGHT, WRONG = (Mark(verdict=verdict, note="", at=1.0) for verdict in ("right", "wrong"))


def runs(models: str, decide: str, right: int, of: int, usd: float | None) -> Iterator[CountedRun]:
    spent = SpentDigest(calls=1, tokens=1, usd=usd, unpriced_calls=int(usd is None), estimated_calls=0)
    agents = tuple(AgentDigest(model, model, 1, None, "a", "a", spent) for model in models.split())
    digest = RunDigest(1.0, 1, "consensus", agents, models.split()[0], "a", True, True, spent, decide)
    for number in range(of):
        mark = RIGHT if number < right else WRONG
        yield CountedRun(f"{models}-{decide}-{number}", "completed", "", 1.0, digest, {"": mark})


def told(*groups: Iterator[CountedRun]) -> list[str]:
    return [
        line
        for line in statistics_lines(statistics_of([*(run for of in groups for run in of)]))
        if " per right answer: " in line
    ]


def test_the_strategy_and_the_team_that_would_have_been_cheaper_are_told_with_what_may_be_claimed() -> None:
    by_strategy, by_team = told(
        runs("big small", "vote", 20, 25, 0.10),
        runs("small small", "checks", 16, 20, 0.02),
        runs("tiny", "vote", 1, 4, 0),
    )
    assert by_strategy == (
        "cheapest strategy per right answer: $0.0250 with checks (16 of 20 (58 to 92 %) right); most used: "
        "$0.1250 with vote (20 of 25 (61 to 91 %) right); they answered different questions; to ask both the "
        "same ones, run `massgen eval --from runs`"
    )
    assert by_team.startswith("cheapest team per right answer: $0.0250 with 2 x small (16 of 20")


def test_of_fewer_than_twenty_nothing_is_claimed() -> None:
    lines = told(runs("big small", "vote", 8, 10, 0.10), runs("small small", "vote", 5, 6, 0.02))
    assert [line.rpartition(" right); ")[2] for line in lines] == [
        "too few marked runs to compare them: each needs at least 20"
    ]


@pytest.mark.parametrize(
    "cheap",
    [
        pytest.param(("small", "vote", 4, 4, 0.01), id="of four"),
        pytest.param(("small", "vote", 5, 30, 0.01), id="where it is right less often"),
        pytest.param(("small", "vote", 20, 20, None), id="where a price is unknown"),
        pytest.param(("small", "vote", 20, 20, 0.5), id="where it is dearer"),
    ],
)
def test_nothing_is_told(cheap: tuple[str, str, int, int, float | None]) -> None:
    assert not told(runs("big small", "vote", 28, 31, 0.10), runs(*cheap))
