"""What a call costs: the config's price first, then the provider's word, then a public list, behind a gateway by
estimate; else nobody knows.
"""

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import TypeAdapter

from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import Cost, Usage
from massgen_mcp.money.tariff import Tariff, tariff_of

CALL = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
PRICE = {"input_usd_per_million": 1.25, "output_usd_per_million": 10}


GATEWAY = "https://gateway.example.com/v1"
HERE = "http://127.0.0.1:8080/v1"


def tariff(
    backend: str = "openai", model: str = "gpt-5", environ: Mapping[str, str] | None = None, **settings: Any
) -> Tariff:
    config: BackendConfig = TypeAdapter[BackendConfig](BackendConfig).validate_python(
        {"type": backend, "model": model, **settings}
    )
    return tariff_of(config, environ or {})


def test_the_configs_price_goes_before_the_providers_and_the_lists() -> None:
    assert tariff(price=PRICE).cost(CALL, reported_usd=99) == Cost(usd=11.25, source="config")


def test_what_the_provider_reports_goes_before_the_list() -> None:
    assert tariff().cost(CALL, reported_usd=0.75) == Cost(usd=0.75, source="provider")


def test_without_both_the_public_list_knows_the_model_at_its_providers_own_address() -> None:
    cost = tariff().cost(CALL)
    assert cost.source == "genai-prices"
    assert cost.usd is not None
    assert cost.usd > 1


@pytest.mark.parametrize(
    "free",
    [
        tariff("chatcompletion", "qwen3:8b", base_url=HERE),
        tariff("chatcompletion", "openai/gpt-oss-20b", base_url=HERE),
        tariff("chatcompletion", "meta-llama/Llama-3.3-70B-Instruct", base_url=HERE),
        tariff("openai", "gpt-oss-20b", {"OPENAI_BASE_URL": HERE}),
        tariff("lmstudio", "auto"),
        tariff("vllm", "qwen3-8b", {"MASSGEN_PRICE_AS": "openai"}),
    ],
    ids=lambda free: f"{free.model} at {free.listed_at}",
)
def test_a_model_in_a_private_network_is_free(free: Tariff) -> None:
    assert free.cost(CALL) == Cost(usd=0.0, source="free")


@pytest.mark.parametrize("unknown", [tariff("scripted", price=None), Tariff()])
def test_an_unknown_price_is_never_nothing(unknown: Tariff) -> None:
    assert unknown.cost(CALL) == Cost(usd=None, source=None)


@pytest.mark.parametrize(
    ("model", "gateway"),
    [
        ("gpt-5", tariff(base_url=GATEWAY)),
        ("gpt-5", tariff(environ={"OPENAI_BASE_URL": HERE})),
        ("gpt-5", tariff("chatcompletion", base_url=HERE)),
        ("gpt-5", tariff("chatcompletion", "openai/gpt-5", base_url=GATEWAY)),
        ("gpt-5", tariff("chatcompletion", "openai/gpt-5", base_url=HERE)),
        ("gpt-5", tariff("chatcompletion", "our-alias", base_url=GATEWAY)),
        ("claude-sonnet-4-5", tariff("chatcompletion", "claude-sonnet-4-5", base_url=HERE)),
        ("claude-sonnet-4-5", tariff("claude", "claude-sonnet-4-5", {"ANTHROPIC_BASE_URL": GATEWAY})),
        ("gemini-2.5-pro", tariff("chatcompletion", "google/gemini-2.5-pro", base_url=GATEWAY)),
    ],
    ids=lambda one: f"{one.model} {one.guess}" if isinstance(one, Tariff) else one,
)
def test_behind_a_gateway_the_price_of_the_models_own_provider_is_an_estimate(model: str, gateway: Tariff) -> None:
    own = {"gpt-5": tariff(), "claude-sonnet-4-5": tariff("claude", model), "gemini-2.5-pro": tariff("gemini", model)}
    replied = "gpt-5" if gateway.model == "our-alias" else ""
    cost = gateway.cost(CALL, model=replied)
    assert cost == Cost(usd=own[model].cost(CALL).usd, source="estimate")
    assert (cost.usd or 0) > 1


def test_an_open_model_behind_a_gateway_costs_about_what_a_router_takes() -> None:
    cost = tariff("chatcompletion", "meta-llama/llama-3.3-70b-instruct", base_url=GATEWAY).cost(CALL)
    assert cost.source == "estimate"
    assert 0 < (cost.usd or 0) < 10


def test_a_reported_cost_of_nothing_makes_no_listed_model_free() -> None:
    assert tariff().cost(CALL, reported_usd=0) == tariff().cost(CALL)
    assert tariff("openrouter", "qwen/qwen3-8b:free").cost(CALL, reported_usd=0) == Cost(usd=0, source="provider")


@pytest.mark.parametrize(
    "said",
    [
        tariff("chatcompletion", "openai/gpt-5", base_url=GATEWAY, price_as="openai"),
        tariff("chatcompletion", "our-alias", base_url=GATEWAY, price_as="openai/gpt-5"),
        tariff("vllm", "our-alias", price_as="openai/gpt-5"),
        tariff("chatcompletion", "our-alias", {"MASSGEN_PRICE_AS": "openai/gpt-5"}, base_url=GATEWAY),
        tariff("chatcompletion", "gpt-5", {"MASSGEN_PRICE_AS": " openai "}, base_url=HERE),
    ],
    ids=lambda said: f"{said.model} {said.price_as}",
)
def test_price_as_says_whose_prices_hold_and_then_it_is_no_estimate(said: Tariff) -> None:
    assert said.cost(CALL) == tariff().cost(CALL)


def test_price_as_of_the_environment_leaves_known_providers_and_what_the_config_says_alone() -> None:
    environ = {"MASSGEN_PRICE_AS": "openai/gpt-5"}
    assert tariff("claude", "claude-opus-5-5", environ).cost(CALL) == tariff("claude", "claude-opus-5-5").cost(CALL)
    assert tariff("chatcompletion", "x", environ, base_url=GATEWAY, price=PRICE).cost(CALL).source == "config"
    named = tariff("chatcompletion", "x", environ, base_url=GATEWAY, price_as="claude/claude-opus-5-5")
    assert named.cost(CALL) == tariff("claude", "claude-opus-5-5").cost(CALL)


def test_a_price_as_of_nobody_is_refused_with_the_nearest_provider() -> None:
    with pytest.raises(ValueError, match="did you mean 'openai'"):
        tariff(price_as="opnai")
    with pytest.raises(MassgenError, match=r"MASSGEN_PRICE_AS: .*did you mean 'openai'"):
        tariff("chatcompletion", base_url=GATEWAY, environ={"MASSGEN_PRICE_AS": "opnai/gpt-5"})


def test_the_scripted_team_costs_nothing() -> None:
    assert tariff("scripted").cost(CALL) == Cost(usd=0, source="config")


def test_a_price_of_nothing_in_the_config_is_known_to_be_nothing() -> None:
    free = {"input_usd_per_million": 0, "output_usd_per_million": 0}
    assert tariff("vllm", price=free).cost(CALL) == Cost(usd=0, source="config")


def test_the_model_that_replied_counts_and_not_the_one_that_was_asked_for() -> None:
    deployed = tariff("azure_openai", "our-deployment", endpoint="https://us.openai.azure.com")
    assert deployed.cost(CALL).source == "bound"
    assert deployed.cost(CALL, model="gpt-5-2025-08-07").source == "genai-prices"


def test_cached_and_cache_written_input_and_searches_have_prices_of_their_own() -> None:
    price = {
        **PRICE,
        "cached_input_usd_per_million": 0.125,
        "cache_write_usd_per_million": 2,
        "web_search_usd_per_thousand": 10,
    }
    usage = Usage(
        input_tokens=1_000_000,
        cached_input_tokens=400_000,
        cache_write_tokens=100_000,
        output_tokens=10,
        web_searches=3,
    )
    expected = 0.5 * 1.25 + 0.4 * 0.125 + 0.1 * 2 + 10 * 10e-6 + 0.03
    assert tariff(price=price).cost(usage).usd == pytest.approx(expected, abs=1e-12)
    assert tariff(price=PRICE).cost(usage).usd == pytest.approx(1.25 + 10 * 10e-6, abs=1e-12)


def test_the_lists_cache_prices_are_used() -> None:
    plain = tariff("claude", "claude-opus-5-5").cost(Usage(input_tokens=1_000_000)).usd
    read = tariff("claude", "claude-opus-5-5").cost(Usage(input_tokens=1_000_000, cached_input_tokens=1_000_000)).usd
    written = tariff("claude", "claude-opus-5-5").cost(Usage(input_tokens=1_000_000, cache_write_tokens=1_000_000)).usd
    assert read is not None
    assert plain is not None
    assert written is not None
    assert 0 < read < plain < written


def test_more_cached_tokens_than_there_were_make_no_call_cheaper_than_cached() -> None:
    price = {**PRICE, "cached_input_usd_per_million": 0.125}
    lying = Usage(input_tokens=1_000, cached_input_tokens=10**12)
    assert tariff(price=price).cost(lying).usd == pytest.approx(1_000 * 0.125e-6)
    assert (tariff().cost(lying).usd or 0) > 0


SCRIPT = """
import sys
from massgen_mcp.config.models.common import Price
from massgen_mcp.events.parts import Usage
from massgen_mcp.money.tariff import Tariff
Tariff("m", Price(input_usd_per_million=1, output_usd_per_million=1), "https://api.openai.com/v1").cost(Usage())
Tariff("m").cost(Usage())
print("genai_prices" in sys.modules)
"""


def test_the_price_list_is_not_loaded_before_a_call_needs_it() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
