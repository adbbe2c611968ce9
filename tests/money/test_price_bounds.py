"""A model without a known price is bounded by the highest price of its family, else of its provider, else of the list;
free are models in private networks alone.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.config.access.prices import is_commercial
from massgen_mcp.config.providers.addresses import is_private
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import Cost, PriceBound, Usage
from massgen_mcp.money import price_list
from massgen_mcp.money.price_bounds import normalize_family
from massgen_mcp.money.tariff import Tariff
from tests.money.price_lists import SMALL_LIST
from tests.money.test_tariff import CALL, GATEWAY, HERE, tariff

KEY = {"ANTHROPIC_API_KEY": "k"}


def bound_of(one: Tariff) -> PriceBound | None:
    one.load()
    return one.cost(CALL).bound


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-6.2-sol", "gpt-sol"),
        ("openai/gpt-6.2-sol-2026-11-17", "gpt-sol"),
        ("claude-opus-4-5-20251101", "claude-opus"),
        ("claude-3-5-sonnet-latest", "claude-sonnet"),
        ("o9-mini", "o-mini"),
        ("gpt-7", "gpt"),
        ("qwen3.5-max", "qwen-max"),
        ("kimi-k3-preview", "kimi-k"),
        ("meta-llama/Llama-4.1-70B-Instruct:free", "llama"),
        ("2026", ""),
    ],
)
def test_a_family_is_the_name_without_version_date_and_size(model: str, family: str) -> None:
    assert normalize_family(model) == family


@pytest.mark.parametrize(
    ("unknown", "scope", "of"),
    [
        (tariff(model="gpt-6.2-sol"), "family", "gpt-sol"),
        (tariff(model="gpt-6.2-sol", environ={"OPENAI_BASE_URL": HERE}), "family", "gpt-sol"),
        (tariff("chatcompletion", "openai/gpt-6.2-sol", base_url=HERE), "family", "gpt-sol"),
        (tariff("chatcompletion", "gpt-6.2-sol", base_url="http://10.0.0.7:4000/v1"), "family", "gpt-sol"),
        (tariff("openrouter", "openai/gpt-6.2-sol"), "family", "gpt-sol"),
        (tariff("vllm", "claude-opus-9", base_url="http://127.0.0.1:4000/v1"), "family", "claude-opus"),
        (tariff("ollama", "grok-9"), "family", "grok"),
        (tariff("qwen", "qwen9-max"), "family", "qwen-max"),
        (tariff(model="no-such-model"), "provider", "OpenAI"),
        (tariff(model="whisper-1"), "provider", "OpenAI"),
        (tariff("claude", "claude-nova-9"), "provider", "Anthropic"),
        (tariff("claude_code", "haiku", KEY), "provider", "Anthropic"),
        (tariff("chatcompletion", "our-own-model", base_url=GATEWAY, price_as="openai"), "provider", "OpenAI"),
        (tariff("chatcompletion", "our-own-model", base_url=GATEWAY), "list", "the price list"),
        (tariff("vllm", "our-own-model", base_url=GATEWAY), "list", "the price list"),
        (tariff("nebius", "our-own-model"), "list", "the price list"),
    ],
    ids=lambda one: f"{one.model} at {one.listed_at}" if isinstance(one, Tariff) else str(one),
)
def test_an_unknown_price_is_the_highest_of_family_provider_or_list(unknown: Tariff, scope: str, of: str) -> None:
    bound = bound_of(unknown)
    assert bound is not None
    assert (bound.scope, bound.of) == (scope, of)
    assert unknown.cost(CALL).source == "bound"
    assert (unknown.worst_usd(10**6, 10**6) or 0) >= (unknown.cost(CALL).usd or 0) > 0


def test_no_listed_relative_is_dearer_than_the_bound() -> None:
    unknown = tariff(model="gpt-9-sol")
    for usage in (
        CALL,
        Usage(input_tokens=10_000, output_tokens=5_000),
        Usage(input_tokens=5_000, cache_write_tokens=5_000),
    ):
        for name in ("gpt-5.6-sol", "gpt-6-sol", "gpt-6.1-sol"):
            assert (unknown.cost(usage).usd or 0) >= (tariff(model=name).cost(usage).usd or 0) > 0


def test_what_a_provider_reports_and_the_keys_of_the_config_come_before_the_bound() -> None:
    own: dict[str, Any] = {"price": {"input_usd_per_million": 2, "output_usd_per_million": 10}}
    assert tariff(model="gpt-6.2-sol", **own).cost(CALL) == Cost(usd=12, source="config")
    assert tariff(model="gpt-6.2-sol", price_as="openai/gpt-6.1-sol").cost(CALL) == tariff(model="gpt-6.1-sol").cost(
        CALL
    )
    assert tariff("grok", "grok-9").cost(CALL, reported_usd=0.5) == Cost(usd=0.5, source="provider")


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:1/v1", "http://localhost/", "http://10.1.2.3", "http://192.168.0.9:4000", "http://[fd00::1]/",
     "http://100.64.1.1", "http://ollama:11434", "http://gpu.local/v1", "http://box.home.arpa", "http://x.internal"],
)  # fmt: skip
def test_an_open_model_in_a_private_network_is_free(address: str) -> None:
    assert is_private(address)
    assert tariff("chatcompletion", "qwen3:8b", base_url=address).cost(CALL) == Cost(usd=0.0, source="free")


@pytest.mark.parametrize(
    "address",
    ["http://8.8.8.8", "http://134744072/", "http://0x08080808/", "http://[::ffff:8.8.8.8]/", "https://localhost.evil.com",
     "http://10.0.0.1.evil.com", "http://local.evil.com", "https://gateway.example.com", "http://224.0.0.1"],
)  # fmt: skip
def test_an_address_that_others_may_have_is_not_private(address: str) -> None:
    assert not is_private(address)


@pytest.mark.parametrize(
    "model",
    ["gpt-6.2-sol", "openai/gpt-9", "o9", "claude-x", "anthropic/claude-opus-9", "bedrock/anthropic.claude-opus-9",
     "us.anthropic.claude-opus-9", "gemini-9", "x-ai/grok-9", "openrouter/meta-llama/llama-4", "azure/ours",
     "sonar-pro", "mistral-large-latest", "deepseek-chat", "qwen3.5-max", "command-r-plus"],
)  # fmt: skip
def test_a_commercial_name_is_never_free(model: str) -> None:
    assert is_commercial(model)
    assert (
        bound_of(tariff("chatcompletion", model, base_url=HERE))
        or tariff("chatcompletion", model, base_url=HERE).cost(CALL).usd
    )


@pytest.mark.parametrize(
    "model",
    ["gpt-oss-20b", "gpt-j-6b", "llama3.3:70b", "mistral-small:24b", "deepseek-r1", "qwen3:8b", "gemma3", "auto"],
)
def test_an_open_models_name_is_not_commercial(model: str) -> None:
    assert not is_commercial(model)


def test_agents_by_subscription_are_counted_in_calls_and_tokens() -> None:
    assert bound_of(tariff("claude_code", "haiku", {"CLAUDE_CODE_OAUTH_TOKEN": "t"})) is None
    assert bound_of(tariff("acp", "default", preset="codex", login="own")) is None
    assert bound_of(tariff("acp", "default", command=["agent"])) is None
    codex = tariff("acp", "default", preset="codex")
    assert bound_of(codex)
    assert (codex.worst_usd(1_000, 128_000) or 0) < 8, "an agent by key can be asked within the usual budget"
    assert (tariff("claude_code", "default", KEY).worst_usd(1_000, 64_000) or 0) < 8
    claude = tariff("acp", "default", KEY, preset="claude_code")
    assert claude.output_limit == 64_000
    assert (claude.worst_usd(1_000, claude.output_limit) or 0) < 8


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    price_list.load(None)


def test_a_list_that_was_taken_in_is_used_at_once_and_until_it_is_gone(home: Path) -> None:
    environ = {"MASSGEN_MCP_HOME": str(home)}
    assert bound_of(tariff(model="gpt-6.2-sol", environ=environ))
    assert price_list.save_list(SMALL_LIST, home, changed=1_700_000_000.0) >= price_list.LEAST_MODELS
    taken_in = tariff(model="gpt-6.2-sol", environ=environ)
    taken_in.load()
    assert taken_in.cost(CALL) == Cost(usd=12, source="genai-prices")
    found = price_list.find_price_list(home)
    assert found is not None
    assert (found.taken_in, found.is_old) == (True, True)
    price_list.locate_list(home).unlink()
    assert bound_of(taken_in)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"not json", b'[{"id": "openai"}]', SMALL_LIST[:-2]])
def test_what_is_no_price_list_is_refused_and_changes_nothing(home: Path, data: bytes) -> None:
    with pytest.raises(MassgenError, match="no price list"):
        price_list.save_list(data, home)
    assert not price_list.locate_list(home).exists()


def test_a_kept_list_that_became_unreadable_leaves_the_installed_one_in_use(home: Path) -> None:
    price_list.locate_list(home).write_bytes(b"half a")
    known = tariff(environ={"MASSGEN_MCP_HOME": str(home)})
    known.load()
    assert known.cost(CALL).usd == 11.25
