"""`build_config`: which team it makes of what was named. The whole of it stands in the tests of the Python API."""

from typing import Any

import pytest

from massgen_mcp.config.build_config import build_config
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.providers.catalog import WITHOUT_PROVIDER
from massgen_mcp.errors import MassgenError


def agents(**arguments: Any) -> list[tuple[str, str, str]]:
    made = build_config(**arguments)["agents"]
    return [(agent["id"], agent["backend"]["type"], agent["backend"]["model"]) for agent in made]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [("openai-gpt5-1", "openai", "gpt-5"), ("openai-gpt5-2", "openai", "gpt-5")]),
        ({"num_agents": 1}, [("openai-gpt5-1", "openai", "gpt-5")]),
        ({"models": ["groq/llama-3.3-70b"]}, [("groq-70b1", "groq", "llama-3.3-70b")]),
        (
            {"models": ["openrouter/x-ai/grok-4.1-fast"], "num_agents": 2},
            [
                ("openrouter-fast1", "openrouter", "x-ai/grok-4.1-fast"),
                ("openrouter-fast2", "openrouter", "x-ai/grok-4.1-fast"),
            ],
        ),
        (
            {"backends": ["openai", "anthropic"], "models": ["gpt-5", "claude-x"]},
            [("openai-gpt5-1", "openai", "gpt-5"), ("claude-x2", "claude", "claude-x")],
        ),
        ({"backend": "groq", "model": "groq/m", "num_agents": 1}, [("groq-m1", "groq", "m")]),
        (
            {"backend": "openrouter", "model": "openai/gpt", "num_agents": 1},
            [("openrouter-gpt1", "openrouter", "openai/gpt")],
        ),
        ({"backends": ["openai"]}, [("openai-gpt5-1", "openai", "gpt-5")]),
    ],
)
def test_a_team_of_what_was_named(arguments: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    assert agents(**arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_agents": 0}, "a team needs 1 to 10 agents, not 0"),
        ({"num_agents": 11}, "not 11"),
        ({"models": ["gpt-5"] * 11}, "not 11"),
        ({"models": ["gpt-5", "gpt-6"], "num_agents": 1}, "than agents"),
        ({"models": ["gpt-5", "gpt-6"], "backends": ["openai", "groq", "zai"]}, "one of each per agent"),
        ({"model": "gpt-5", "models": ["gpt-6"]}, "pass model or models, not both"),
        ({"models": "gpt-5"}, "models must be a list; write model='gpt-5'"),
        ({"backends": "openai"}, "backends must be a list"),
        ({"backend": "groq"}, "also name a model"),
        ({"backend": "grok5"}, "did you mean 'grok'?"),
        ({"model": "mystery"}, "write provider/model"),
        ({"context_paths": "here"}, "context_paths must be a list of paths"),
    ],
)
def test_what_makes_no_team_is_told(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(MassgenError, match=message.replace("?", r"\?")) as refused:
        build_config(**arguments)
    assert refused.value.code == "config_invalid"


@pytest.mark.parametrize("models", [["gpt-5"], ["groq/m", "claude-x", "lmstudio/m", "scripted/s"], None])
def test_what_it_makes_is_a_valid_config(models: list[str] | None) -> None:
    config = config_from_data(build_config(models=models), "config_dict")
    assert isinstance(config, Config)
    assert config.orchestrator.coordination.max_orchestration_restarts == 2


def test_context_paths_that_are_only_text_may_be_written_to() -> None:
    paths = build_config(context_paths=["/a", {"path": "/b", "permission": "read"}])["orchestrator"]["context_paths"]
    assert paths == [{"path": "/a", "permission": "write"}, {"path": "/b", "permission": "read"}]


@pytest.mark.parametrize("kind", WITHOUT_PROVIDER)
def test_a_type_that_is_no_provider_has_no_address_to_fill_in(kind: str) -> None:
    named = {"acp": "acp/codex/m"}.get(kind, f"{kind}/m")
    (agent,) = config_from_data(build_config(models=[named], num_agents=1), "test").agents
    assert (agent.backend.type, agent.backend.model) == (kind, "m")
