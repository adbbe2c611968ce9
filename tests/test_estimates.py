"""Estimates hold for runs of scripted teams: the benchmark in a short form, and the range that earlier runs give."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from benchmarks.estimates import ENVIRON, QUESTIONS, Outcome, Row, digest_run, make_teams, run_team, summarise
from massgen_mcp.events.parts import Spent
from massgen_mcp.money.estimate import estimate
from massgen_mcp.statistics.sums import CountedRun, usual_runs
from tests.virtual_time import VIRTUAL_TIME

TRIALS = 300


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return VIRTUAL_TIME


async def test_runs_of_different_kinds_are_within_the_estimate_that_comes_before_them() -> None:
    rows: list[Row] = []
    for number, team in enumerate(make_teams("test")):
        told = estimate(team.config, QUESTIONS[team.kind], ENVIRON)
        rows.append(Row(team, told, await run_team(team, f"test/{number}")))
    assert {len(row.team.config.agents) for row in rows} == {1, 2, 3, 4, 5}
    assert {row.team.kind for row in rows} == {"question", "code"}
    assert any(row.run.retries for row in rows)
    assert sum(row.money_fits for row in rows) >= 0.8 * len(rows), "\n".join(map(str, rows))
    assert sum(row.time_fits for row in rows) >= 0.8 * len(rows), "\n".join(map(str, rows))
    widest = max(row.usd[1] / row.usd[0] for row in rows)
    assert widest < 30, "a range of everything says nothing"


def test_eight_of_ten_next_runs_are_within_the_range_of_ten_earlier_ones() -> None:
    team = make_teams("test")[0]
    models = [agent.backend.model for agent in team.config.agents]
    random, within = Random("next"), 0
    for _ in range(TRIALS):
        costs = [random.lognormvariate(0, 1) for _ in range(11)]
        earlier = [
            CountedRun("r", "completed", "t", 0.0, digest_run(team, Spent(calls=1, usd=usd), usd), {})
            for usd in costs[:10]
        ]
        usual = usual_runs(earlier, models, team.kind)
        assert usual is not None
        assert usual.usd is not None
        within += usual.usd[0] <= costs[10] <= usual.usd[1]
    assert 0.75 < within / TRIALS < 0.85


def test_the_summary_counts_the_runs_within_their_estimates() -> None:
    team = make_teams("test")[0]
    told = replace(estimate(team.config, "?", ENVIRON), usd=(1.0, 4.0), seconds=(60.0, 120.0))
    counted = CountedRun("r", "completed", "t", 0.0, digest_run(team, Spent(), 60.0), {})

    def rows(*runs: tuple[float, float]) -> Sequence[Row]:
        return [Row(team, told, Outcome(usd, seconds, 1, 0, counted)) for usd, seconds in runs]

    found = rows((2.0, 90.0), (4.5, 90.0), (0.9, 130.0))
    assert summarise(found) == (
        "within the estimate: 1 of 3 in money, 2 of 3 in time; "
        "the upper bound of money is 4.0 times the lower one (median)"
    )
    assert str(found[1]).endswith("outside: money")
    assert str(found[2]).endswith("outside: money, time")
