"""A run inside another one reaches, spends and takes no more than that one."""

from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.request.reach import NestedRunLimits, nested_config

ENVIRON = {"OPENAI_API_KEY": "k1", "ANTHROPIC_API_KEY": "k2"}
BOUNDS = NestedRunLimits(usd=1.5, tokens=20_000, calls=100, seconds=60)
OPENAI: dict[str, Any] = {"type": "openai", "model": "gpt-6.2-sol"}


def config(*backends: dict[str, Any], **settings: Any) -> Config:
    return config_from_data({"agents": [{"backend": backend} for backend in backends], **settings}, "test")


def refusal(outer: Config, own: Config, granted: tuple[Path, ...] = ()) -> str:
    with pytest.raises(MassgenError) as caught:
        nested_config(outer, own, BOUNDS, ENVIRON, granted)
    assert caught.value.code == "nesting_refused"
    return str(caught.value)


def test_another_model_of_the_same_provider_is_within_reach_and_another_provider_is_not() -> None:
    outer = config(OPENAI)
    assert nested_config(outer, config({**OPENAI, "model": "gpt-5.4-mini"}), BOUNDS, ENVIRON).agents[0].backend.model
    told = refusal(outer, config(OPENAI, {"type": "claude", "model": "claude-opus-5-5"}))
    assert told.endswith("host: api.anthropic.com; key: ANTHROPIC_API_KEY to api.anthropic.com")


def test_money_tokens_and_time_are_the_smaller_ones() -> None:
    own = config(
        OPENAI,
        budget={"max_usd": 1, "max_tokens": 1_000_000, "at_cap": "ask"},
        timeout_settings={"orchestrator_timeout_seconds": 600},
    )
    inner = nested_config(config(OPENAI), own, BOUNDS, ENVIRON)
    assert (inner.budget.max_usd, inner.budget.max_tokens, inner.budget.at_cap) == (1, 20_000, "finish")
    assert inner.timeout_settings.orchestrator_timeout_seconds == 60


def test_a_price_of_its_own_by_which_the_budget_would_count_is_refused_but_for_the_same_team() -> None:
    free = config({**OPENAI, "price": {"input_usd_per_million": 0, "output_usd_per_million": 0}})
    assert nested_config(free, None, BOUNDS, ENVIRON).agents == free.agents
    assert "its own price" in refusal(free, free)


def test_what_the_outer_run_may_write_is_only_read_and_nothing_beside_its_paths_is(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    outer = config(OPENAI, orchestrator={"context_paths": [{"path": ours, "permission": "write"}]})
    inner = nested_config(outer, None, BOUNDS, ENVIRON)
    assert [(path.path, path.permission) for path in inner.orchestrator.context_paths] == [(ours, "read")]
    own = config(OPENAI, orchestrator={"context_paths": [{"path": theirs}]})
    assert theirs in refusal(outer, own)
    allowed = nested_config(outer, own, BOUNDS, ENVIRON, (tmp_path / "theirs",))
    assert [path.path for path in allowed.orchestrator.context_paths] == [ours, theirs]


def test_agents_ask_nobody_and_the_limits_of_providers_are_those_of_the_outer_run() -> None:
    outer = config(OPENAI, limits={"openai": {"concurrency": 2}})
    own = config(OPENAI, orchestrator={"allow_questions": True}, limits={"openai": {"concurrency": 50}})
    inner = nested_config(outer, own, BOUNDS, ENVIRON)
    assert (inner.orchestrator.allow_questions, inner.limits["openai"].concurrency) == (False, 2)


def test_commands_and_servers_that_the_outer_run_has_not_are_refused() -> None:
    commands = config(OPENAI, orchestrator={"commands": {"enabled": True}})
    server = config({**OPENAI, "mcp_servers": {"files": {"command": "some-server"}}})
    assert "starts: agents' commands" in refusal(config(OPENAI), commands)
    assert "MCP server: files" in refusal(config(OPENAI), server)
    assert nested_config(commands, None, BOUNDS, ENVIRON).orchestrator.commands.enabled


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"command": "srv", "env": {"A": "1"}}, {"command": "srv", "env": {"LD_PRELOAD": "/workspace/evil.so"}}),
        ({"command": "srv", "sandbox": False}, {"command": "srv", "sandbox": False, "env": {"PATH": "/workspace"}}),
        ({"command": "srv", "args": ["a b"]}, {"command": "srv", "args": ["a", "b"]}),
        ({"url": "https://x.example/mcp"}, {"url": "https://x.example/mcp", "headers": {"X-Role": "admin"}}),
    ],
)
def test_a_server_of_the_same_name_and_program_with_another_environment_is_another_one(ours: Any, theirs: Any) -> None:
    outer, inner = ({**OPENAI, "mcp_servers": {"files": one}} for one in (ours, theirs))
    assert nested_config(config(outer), config(outer), BOUNDS, ENVIRON).agents
    assert "MCP server: files" in refusal(config(outer), config(inner))
