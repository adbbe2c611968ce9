"""Prices of what a provider's cache serves and keeps, what that saves, and what of it a limit of tokens counts."""

import pytest

from massgen_mcp.backends.base import ModelRequest, UserMessage
from massgen_mcp.backends.metering import count_long_tokens, request_tokens
from massgen_mcp.backends.wire_values import MessagesUsage
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.common import Price
from massgen_mcp.events.agent_work import ModelReplied
from massgen_mcp.events.parts import Cost, Usage
from massgen_mcp.events.run import RunStarted
from massgen_mcp.money.budget import Budget
from massgen_mcp.money.reservations import CallEstimate
from massgen_mcp.money.tariff import Tariff, tariff_of
from massgen_mcp.views.spent import spent_json, spent_text

CLAUDE = Tariff("claude-opus-5-5", listed_at="https://api.anthropic.com")
GPT = Tariff("gpt-6.1-sol", listed_at="https://api.openai.com/v1")
CONFIGURED = Tariff(price=Price(input_usd_per_million=10, output_usd_per_million=1, cached_input_usd_per_million=1))


@pytest.mark.parametrize(("tariff", "price", "cached"), [(CLAUDE, 4.0, 0.2), (GPT, 2.0, 0.1), (CONFIGURED, 10.0, 1.0)])
def test_a_call_tells_what_the_cache_saved_of_it(tariff: Tariff, price: float, cached: float) -> None:
    cost = tariff.cost(Usage(input_tokens=100_000, cached_input_tokens=80_000))
    assert cost.usd == pytest.approx((20_000 * price + 80_000 * cached) / 1e6)
    assert cost.saved_usd == pytest.approx(80_000 * (price - cached) / 1e6)
    assert cost.discounted_tokens == pytest.approx(80_000 * (1 - cached / price), abs=1)


def test_a_cache_that_was_only_written_has_saved_less_than_nothing() -> None:
    cost = CLAUDE.cost(Usage(input_tokens=100_000, cache_write_tokens=100_000))
    assert cost.saved_usd == pytest.approx(-0.1)
    assert cost.discounted_tokens == 0


def test_where_no_price_is_known_everything_counts_in_full() -> None:
    cost = Tariff("nobody-knows").cost(Usage(input_tokens=100_000, cached_input_tokens=80_000))
    assert cost == Cost()


def test_what_is_kept_for_an_hour_costs_more_to_write() -> None:
    usage = MessagesUsage()
    written = {"ephemeral_5m_input_tokens": 2_000, "ephemeral_1h_input_tokens": 8_000}
    usage.hear({"input_tokens": 0, "cache_creation_input_tokens": 10_000, "cache_creation": written})
    told = usage.total()
    assert (told.cache_write_tokens, told.cache_write_long_tokens) == (10_000, 8_000)
    mixed = Usage(input_tokens=10_000, cache_write_tokens=10_000, cache_write_long_tokens=8_000)
    assert CLAUDE.cost(mixed).usd == pytest.approx((2_000 * 5 + 8_000 * 8) / 1e6)


def test_a_reservation_holds_also_if_a_beginning_is_kept_for_an_hour() -> None:
    plain, kept = (CallEstimate(CLAUDE, 10_000, long).reservation(0, sent=True).usd for long in (0, 6_000))
    assert (plain, kept) == (pytest.approx(10_000 * 5 / 1e6), pytest.approx((4_000 * 5 + 6_000 * 8) / 1e6))
    request = ModelRequest(
        "s" * 900, (UserMessage("q" * 900), UserMessage("t" * 900)), shared_ends=(0,), long_waits=True
    )
    assert 0 < count_long_tokens(request) < request_tokens(request)


def test_a_long_request_is_paid_by_its_tier_cached_or_not() -> None:
    below, above = (GPT.cost(Usage(input_tokens=size, cached_input_tokens=size)).usd for size in (100_000, 300_000))
    assert below is not None
    assert above == pytest.approx(3 * 2 * below)


@pytest.mark.parametrize(
    ("provider", "model", "field"),
    [("openai", "gpt-6.1-sol", "service_tier"), ("gemini", "gemini-2.5-pro", "serviceTier")],
)
@pytest.mark.parametrize(
    ("tier", "factor"), [(None, 1.0), ("default", 1.0), ("flex", 0.5), ("priority", 2.0), ("fast", 2.0), ("FLEX", 0.5)]
)
def test_service_tiers_have_their_prices_in_calls_and_reservations(
    provider: str, model: str, field: str, tier: str | None, factor: float
) -> None:
    usage = Usage(input_tokens=100_000, cached_input_tokens=50_000, output_tokens=1_000)
    usual, tariff = (_tariff(provider, model, extra) for extra in ({}, {field: tier} if tier else {}))
    price = usual.cost(usage).usd
    assert price is not None
    assert tariff.cost(usage).usd == pytest.approx(price * factor)
    assert tariff.worst_usd(100_000, 1_000) == pytest.approx((usual.worst_usd(100_000, 1_000) or 0) * factor)


def test_a_tier_of_another_server_is_priced_as_listed() -> None:
    usage = Usage(input_tokens=100_000, output_tokens=1_000)
    plain, tier = (_tariff("claude", "claude-opus-4-5", extra) for extra in ({}, {"service_tier": "priority"}))
    assert tier.cost(usage) == plain.cost(usage)


def _tariff(provider: str, model: str, extra_body: dict[str, str]) -> Tariff:
    backend = {"type": provider, "model": model, "extra_body": extra_body}
    config = config_from_data({"agents": [{"id": "a", "backend": backend}]}, "test")
    return tariff_of(config.agents[0].backend, {})


def _budget(max_tokens: int, *, weighs_cache: bool) -> Budget:
    budget = Budget()
    started = RunStarted(run_id="r", question="q", agents=(), max_tokens=max_tokens, weighs_cache=weighs_cache)
    budget.apply(started)
    usage = Usage(input_tokens=100_000, cached_input_tokens=80_000, output_tokens=1_000)
    reply = {
        "agent": "a",
        "call_id": "c",
        "purpose": "coordinate",
        "model": "m",
        "text": "",
        "stop": "end",
        "seconds": 1,
    }
    budget.spending.add_reply(ModelReplied.model_validate({**reply, "usage": usage, "cost": CLAUDE.cost(usage)}))
    return budget


def test_the_default_limit_of_tokens_counts_cached_input_by_its_price_and_one_of_the_users_counts_all() -> None:
    usual = _budget(10_000_000, weighs_cache=True)
    assert usual.used_tokens == pytest.approx(101_000 - 76_000, abs=1)
    assert usual.share == pytest.approx(25_000 / 10_000_000, rel=1e-4)
    own = _budget(200_000, weighs_cache=False)
    assert (own.used_tokens, own.share) == (101_000, pytest.approx(0.505))
    agent = {"id": "a", "backend": {"type": "scripted", "script": [{"answer": "x"}]}}
    configs = [
        config_from_data({"agents": [agent], "budget": given}, "test") for given in ({}, {"max_tokens": 200_000})
    ]
    assert [config.budget.weighs_cache for config in configs] == [True, False]


def test_the_record_shows_what_caching_saved() -> None:
    spent = _budget(10_000_000, weighs_cache=True).spent
    assert spent_json(spent)["saved_by_cache"] == pytest.approx(80_000 * 3.8 / 1e6)
    assert spent_text(spent).endswith("; prompt caches saved $0.3040")
