"""What nested runs may spend: however they come and go, never more than their share, nor than there is."""

import random

import pytest

from massgen_mcp.config.models.orchestrator import NestedConfig
from massgen_mcp.events.parts import Spent
from massgen_mcp.events.run import NestedRunEnded, NestedRunStarted
from massgen_mcp.money.budget import LEAST_TOKENS, Amounts, Budget, add_amounts, caps_of_next, left_for_nested

NESTED = NestedConfig(max_runs=4, share_of_budget=0.5)


def started(run_id: str, usd: float, tokens: int, calls: int = 0) -> NestedRunStarted:
    return NestedRunStarted(
        key=run_id, run_id=run_id, question="q", source="s", max_usd=usd, max_tokens=tokens, max_calls=calls
    )


def ended(run_id: str, usd: float, tokens: int, calls: int = 0) -> NestedRunEnded:
    spent = Spent(usd=usd, input_tokens=tokens, calls=calls, unpriced_calls=calls)
    return NestedRunEnded(run_id=run_id, state="completed", spent=spent)


def test_the_run_above_hears_of_every_sum_of_a_nested_run() -> None:
    spent = Spent(**dict(zip(Spent.model_fields, range(1, 100), strict=False)))
    budget = Budget()
    budget.apply(NestedRunEnded(run_id="run-0", state="completed", spent=spent))
    assert (budget.spent, budget.spending.nested) == (spent, spent)
    budget.apply(NestedRunEnded(run_id="run-1", state="completed", spent=spent))
    assert budget.spent == Spent(**{name: 2 * value for name, value in spent})


def test_what_is_left_is_divided_evenly_among_the_runs_that_may_still_be_started() -> None:
    budget = Budget(10, 1_000_000, 80)
    for place in range(4):
        caps = caps_of_next(budget, NESTED, place, budget.free, None)
        assert caps is not None
        assert caps.amounts == (pytest.approx(1.25), 125_000, 10)
        budget.apply(started(f"run-{place}", caps.usd, caps.tokens, caps.calls))
    assert left_for_nested(budget, NESTED).usd == pytest.approx(0)
    assert budget.free == (pytest.approx(5), 500_000, 40)
    budget.apply(ended("run-0", 0.25, 25_000, 3))
    assert left_for_nested(budget, NESTED).usd == pytest.approx(1)
    assert left_for_nested(budget, NESTED).calls == 7
    assert (budget.spent.usd, budget.spending.nested.tokens) == (0.25, 25_000)


def test_a_run_of_which_little_money_is_wanted_has_its_tokens_all_the_same() -> None:
    budget = Budget(10, 1_000_000)
    caps = caps_of_next(budget, NESTED, 0, budget.free, 0.01)
    assert caps is not None
    assert (caps.usd, caps.tokens) == (pytest.approx(0.01), 125_000)


@pytest.mark.parametrize("free", [Amounts(0.0, 1e6, 9), Amounts(5.0, LEAST_TOKENS - 1, 9)])
def test_where_too_little_is_left_there_is_no_run(free: Amounts) -> None:
    assert caps_of_next(Budget(10, 1_000_000), NESTED, 0, free, None) is None


@pytest.mark.parametrize("seed", range(50))
def test_runs_never_have_more_than_their_share_together(seed: int) -> None:
    chance = random.Random(seed)
    nested = NestedConfig(max_runs=100, share_of_budget=chance.uniform(0.1, 0.9))
    budget = Budget(chance.uniform(0.1, 10), chance.randint(10_000, 1_000_000), chance.randint(0, 100))
    going, spent = dict[str, Amounts](), Amounts()
    for place in range(60):
        if going and chance.random() < 0.4:
            run_id = chance.choice([*going])
            one = going.pop(run_id)
            tokens, calls = int(one.tokens * chance.random()), int(one.calls * chance.random())
            usd = one.usd * chance.random()
            budget.apply(ended(run_id, usd, tokens, calls))
            spent = spent.plus(Amounts(usd, tokens, calls))
        elif caps := caps_of_next(budget, nested, place, budget.free, chance.choice([None, chance.uniform(0, 20)])):
            going[f"run-{place}"] = caps.amounts
            budget.apply(started(f"run-{place}", caps.usd, caps.tokens, caps.calls))
        most = budget.caps.scale(nested.share_of_budget)
        assert add_amounts((spent, *going.values())).is_within(most.plus(Amounts(usd=budget.max_usd * 1e-9)))
