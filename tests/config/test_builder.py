"""Teams that nobody wrote down: from models."""

import pytest

from massgen_mcp.config.default_team import config_from_models
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.providers.catalog import named_provider
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import Usage
from massgen_mcp.money.tariff import tariff_of


def told(config: Config) -> list[tuple[str, str, str, str | None]]:
    return [
        (agent.id, agent.backend.type, agent.backend.model, getattr(agent.backend, "base_url", None))
        for agent in config.agents
    ]


def test_models_become_agents_with_telling_ids() -> None:
    config = config_from_models(
        ["gpt-5", "anthropic/claude-opus-5", "openrouter/meta/llama-4", "scripted/Ada", "groq/llama-3.3-70b",
         "gemini-4-argon", "vllm/auto", "azure_openai/gpt-5"],
        num_agents=None,
    )  # fmt: skip
    assert told(config) == [
        ("gpt-5", "openai", "gpt-5", None),
        ("claude-opus-5", "claude", "claude-opus-5", None),
        ("llama-4", "openrouter", "meta/llama-4", None),
        ("Ada", "scripted", "Ada", None),
        ("llama-3.3-70b", "groq", "llama-3.3-70b", None),
        ("gemini-4-argon", "gemini", "gemini-4-argon", None),
        ("auto", "vllm", "auto", None),
        ("gpt-5-2", "azure_openai", "gpt-5", None),
    ]


def test_models_are_dealt_out_until_there_are_enough_agents() -> None:
    config = config_from_models(["gpt-5", "o3"], num_agents=3)
    assert [agent.id for agent in config.agents] == ["gpt-5", "o3", "gpt-5-2"]


@pytest.mark.parametrize(
    ("models", "num_agents", "message"),
    [
        ([], None, "at least one model"),
        (["gpt-5"], 0, "1 to 10 agents, not 0"),
        (["gpt-5"], 11, "1 to 10 agents, not 11"),
        (["gpt-5"] * 11, None, "1 to 10 agents, not 11"),
        (["gpt-5", "o3"], 1, "than agents"),
        (["llama-4"], None, "write provider/model"),
        (["openai/" + "x" * 300], None, "1 to 200 characters"),
    ],
)
def test_impossible_teams_are_refused(models: list[str], num_agents: int | None, message: str) -> None:
    with pytest.raises(MassgenError, match=message) as caught:
        config_from_models(models, num_agents=num_agents)
    assert caught.value.code == "config_invalid"


def test_an_id_is_valid_however_odd_the_model_is() -> None:
    config = config_from_models(["openai/ü" + "x" * 190, "openai/---"], num_agents=None)
    assert [agent.id for agent in config.agents] == ["x" * 60, "model"]


@pytest.mark.parametrize("provider", ["openai", "claude", "gemini", "grok"])
def test_a_strong_model_is_one_whose_price_is_known_or_that_of_its_family(provider: str) -> None:
    backend = config_from_models([f"{provider}/{named_provider(provider).strong_model}"], num_agents=None)
    tariff = tariff_of(backend.agents[0].backend, {})
    tariff.load()
    cost = tariff.cost(Usage(input_tokens=1000, output_tokens=1000))
    assert cost.usd
    assert cost.bound is None or cost.bound.scope == "family"
