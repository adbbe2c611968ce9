"""What a run is estimated to take: how many calls, as the team coordinates."""

from typing import Any

import pytest

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.money.estimate import estimate


@pytest.mark.parametrize(
    ("team", "orchestrator", "fewest"),
    [
        (3, {}, 7),
        (5, {}, 11),
        (5, {"max_agents": 3}, 7),
        (5, {"effort": "auto"}, 5),  # three answer, one compares, the winner presents
        (3, {"effort": "auto"}, 7),
        (3, {"effort": "low"}, 4),
        (5, {"effort": "auto", "checks": ["true"]}, 1),
        (1, {"effort": "auto"}, 1),
        (3, {"decide": "checks"}, 6),  # all write tests, and what passed them stands
        (2, {"decide": "checks"}, 5),  # two vote
        (3, {"decide": "synthesise"}, 4),
        (3, {"answer_format": "findings"}, 4),
        (4, {"decide": "judge", "judge": "agent4"}, 8),  # two pairs in both orders, and the final answer
        (3, {"write_check": True}, 4),  # one writes, two confirm, and the first answer passes
    ],
)
def test_the_fewest_calls_are_those_of_the_agents_that_have_to_be_asked(
    team: int, orchestrator: dict[str, Any], fewest: int
) -> None:
    agents: list[Any] = [{"backend": {"type": "scripted", "script": []}}] * team
    config = config_from_data({"agents": agents, "orchestrator": orchestrator}, "test", environ={})
    told = estimate(config, "What is six times seven?", {})
    assert told.calls[0] == fewest
    assert told.calls[1] >= fewest


@pytest.mark.parametrize(
    ("backend", "environ"),
    [
        ({"type": "claude_code", "model": "haiku"}, {"CLAUDE_CODE_OAUTH_TOKEN": "t"}),
        ({"type": "acp", "preset": "codex", "login": "own"}, {}),
        ({"type": "acp", "command": ["agent"]}, {}),
    ],
)
def test_the_plan_names_the_caps_of_agents_that_a_subscription_pays_for(
    backend: dict[str, Any], environ: dict[str, str]
) -> None:
    config = config_from_data({"agents": [{"backend": backend}] * 3, "budget": {"max_calls": 40}}, "test", environ={})
    told = str(estimate(config, "What is six times seven?", environ))
    assert "so its calls are limited by `max_calls` (40) and `max_tokens` (10,000,000), not by `max_usd`." in told
