"""The real orchestrator with simulated agents meets the exact probabilities; with a defect it would not."""

from random import Random
from statistics import fmean

import pytest

from examples.simulation import exact, substance
from examples.simulation.agents import Judging, Loyal, Majority, Voting
from examples.simulation.decide import SETTINGS, Result, Setting, Way, run_one
from examples.simulation.report import BAND, Figure, figures
from examples.simulation.trial import Cell, run_cell
from examples.simulation.world import World
from massgen_mcp.coordination.guidance import Ballot
from massgen_mcp.coordination.state import Rules

SEED = "test"

pytestmark = pytest.mark.uncounted


def jury(agents: int, p: float, choices: int = 2, c: float = 0.0, rho: float = 0.0) -> Cell:
    return Cell(World(p, choices, c, rho), agents, Majority())


def bench_of_judges(voting: Voting) -> Cell:
    return Cell(World(0.7), 4, voting)


async def accuracy(cell: Cell, trials: int) -> Figure:
    return figures(cell, await run_cell(cell, trials, SEED))[0]


# -- the exact side ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "probability"),
    [
        (jury(1, 0.7), 0.7),
        (jury(3, 0.6), 0.6**3 + 3 * 0.6**2 * 0.4),
        (jury(2, 0.7), 0.7**2 + 2 * 0.7 * 0.3 / 2),  # a tie is decided for either side equally often
        (jury(3, 0.6, rho=1), 0.6),
        (jury(3, 0.7, choices=4), 0.7**3 + 3 * 0.7**2 * 0.3 + 3 * 0.7 * 0.3**2 * (2 / 3) / 3),
        (jury(3, 0.7, choices=4, c=1), 0.7**3 + 3 * 0.7**2 * 0.3),  # all wrong agents agree: as with two options
    ],
)
def test_the_exact_majority_is_the_sum_one_writes_by_hand(cell: Cell, probability: float) -> None:
    assert exact.majority(cell.world, cell.agents) == pytest.approx(probability)


def test_a_judge_without_skill_among_two_is_right_as_often_as_one_agent() -> None:
    verdict = exact.judges(World(0.7), Judging(skill=0), (0, 1))
    assert (verdict.right, verdict.tie, verdict.self_votes, verdict.unanimous) == pytest.approx((0.7, 0.5, 0.5, 0.5))


# -- the orchestrator meets it ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [
        jury(1, 0.7),
        jury(3, 0.6),
        jury(3, 0.7, choices=4, c=0.6),
        jury(4, 0.6, choices=4),  # many ties
        jury(5, 0.7, rho=0.3),
        jury(7, 0.8, choices=4, c=0.6, rho=0.6),
    ],
    ids=str,
)
async def test_the_majority_is_right_as_often_as_the_jury_theorem_says(cell: Cell) -> None:
    assert abs((await accuracy(cell, 100)).deviation) < BAND


@pytest.mark.parametrize("authors", [False, True])
@pytest.mark.parametrize("votes", [False, True])
async def test_judges_decide_as_often_right_and_tied_and_at_one_as_they_should(*, authors: bool, votes: bool) -> None:
    cell = bench_of_judges(Judging(0.75, authors, votes))
    for figure in figures(cell, await run_cell(cell, 100, SEED)):
        assert abs(figure.deviation) < BAND


async def test_every_agent_is_asked_for_an_answer_and_a_vote_and_the_winner_for_the_presentation() -> None:
    for agents in (2, 3, 5):
        trials = await run_cell(jury(agents, 0.6, choices=4), 10, SEED)
        assert {trial.model_calls for trial in trials if not trial.tied} == {2 * agents + 1}
        assert all(2 * agents + 1 < trial.model_calls <= 3 * agents + 1 for trial in trials if trial.tied)
    assert {trial.model_calls for trial in await run_cell(jury(1, 0.6), 5, SEED)} == {1}


async def test_a_seed_decides_everything() -> None:
    cell = bench_of_judges(Judging(0.6, authors_shown=True, votes_visible=True))
    once = await run_cell(cell, 10, SEED)
    assert once == await run_cell(cell, 10, SEED)
    assert once != await run_cell(cell, 10, "another")


# -- what voting cannot do, and what openness costs the simulated voters -----------------------------------------------


async def test_errors_with_a_common_cause_take_the_teams_advantage_away() -> None:
    independent, correlated = await accuracy(jury(5, 0.7), 100), await accuracy(jury(5, 0.7, rho=0.9), 100)
    assert independent.simulated > correlated.simulated + 0.05


async def test_shown_authors_raise_the_votes_for_oneself_and_shown_votes_unanimity() -> None:
    hidden = await run_cell(bench_of_judges(Judging(0.75)), 75, SEED)
    authors = await run_cell(bench_of_judges(Judging(0.75, authors_shown=True)), 75, SEED)
    votes = await run_cell(bench_of_judges(Judging(0.75, votes_visible=True, herding=0.8)), 75, SEED)
    assert fmean(trial.self_share for trial in authors) > fmean(trial.self_share for trial in hidden) + 0.15
    assert fmean(trial.unanimous for trial in votes) > fmean(trial.unanimous for trial in hidden) + 0.2


# -- votes by substance, early decisions, lots ------------------------------------------------------------------------


async def test_what_is_said_of_sameness_spares_run_offs_and_costs_no_call() -> None:
    plain = await run_cell(substance.judges(5, None), 30, SEED, questions="the same")
    pooled = await run_cell(substance.judges(5, 0.0), 30, SEED, questions="the same")
    assert [trial.right_by_wording for trial in plain] == [trial.right_by_wording for trial in pooled]
    assert sum(trial.tied for trial in pooled) < sum(trial.tied for trial in plain) / 2
    assert fmean(trial.model_calls for trial in pooled) < fmean(trial.model_calls for trial in plain)
    assert substance.gain(pooled).mean > -0.02


async def test_by_default_no_decision_is_early_because_everybody_may_still_answer() -> None:
    default = await run_cell(substance.judges(5, 0.05), 10, SEED, rules=Rules())
    assert not any(trial.winner.early for trial in default)
    limited = await run_cell(substance.judges(5, 0.05), 20, SEED, rules=Rules(max_answers=1))
    assert any(trial.winner.early for trial in limited)


async def test_two_agents_that_vote_for_themselves_are_decided_by_a_lot_that_is_recorded() -> None:
    trials = await run_cell(Cell(World(0.5), 2, Loyal()), 100, SEED)
    assert {(trial.winner.outcome, trial.winner.drawn) for trial in trials} == {
        ("tie_broken", ("agent1.1", "agent2.1"))
    }
    assert 30 < sum(trial.winner.agent == "agent_a" for trial in trials) < 70


# -- tests that agents write ------------------------------------------------------------------------------------------


async def by(setting: Setting, way: Way) -> list[Result]:
    return [await run_one(setting, 3, way, f"{SEED}/{number}") for number in range(20)]


async def test_tests_that_are_right_find_more_right_answers_than_votes_and_misread_ones_do_not() -> None:
    sound = Setting("sound", misread=0, false=0)
    votes, tests, misread = await by(sound, "vote"), await by(sound, "checks"), await by(SETTINGS[3], "checks")
    assert [one.lot for one in votes] == [one.lot for one in tests] == [one.lot for one in misread]
    assert fmean(one.right for one in tests) > fmean(one.right for one in votes)
    assert fmean(one.right for one in tests) > fmean(one.right for one in misread)
    assert {one.calls for one in tests} <= {3, 6, 9, 11, 12}  # answers; tests; a vote; a run-off
    assert tests == await by(sound, "checks")


# -- the band bites: defects that it must notice -----------------------------------------------------------------------


async def test_votes_credited_to_a_random_answer_fall_out_of_the_band(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(SEED)

    def at_random(ballot: Ballot, _name: str) -> str:
        return random.choice(ballot.entries).label

    monkeypatch.setattr(Ballot, "label_of", at_random)
    assert (await accuracy(jury(7, 0.7), 150)).deviation < -BAND


async def test_names_read_as_places_in_the_config_fall_out_of_the_band(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neutral names mean something on their own ballot only."""

    def by_place(_ballot: Ballot, name: str) -> str:
        return f"{name}.1"

    monkeypatch.setattr(Ballot, "label_of", by_place)
    assert (await accuracy(jury(7, 0.7), 80)).deviation < -BAND
