"""How a config names tools: every spelling takes effect, and a name that no tool has is reported."""

from pathlib import Path
from typing import Any

import pytest

from massgen_mcp.events.agent_work import ToolFinished
from massgen_mcp.events.run import ServerLost
from tests.mcp_servers.test_hostile import agent, call, config, server
from tests.teams import Ended, run_team

SPELLINGS = ["ping", "odd__ping", "mcp__odd__ping"]


async def played(path: Path, *, own: dict[str, Any] | None = None, **backend: Any) -> Ended:
    steps = (call("ping"), call("look"), call("delete_file", path="x"))
    servers = {"odd": server("server", **(own or {}))}
    return await run_team(path, config(agent(servers, *steps, **backend), enable_filesystem=True))


def absent(ended: Ended) -> list[str]:
    assert ended.snapshot.final_answer == "42"
    return [one.name for one in ended.of(ToolFinished) if "There is no tool named" in one.result]


@pytest.mark.parametrize("of_server", [False, True])
@pytest.mark.parametrize("name", SPELLINGS)
async def test_a_tool_is_withheld_by_each_of_its_names(tmp_path: Path, name: str, of_server: bool) -> None:
    lists: dict[str, Any] = {"exclude_tools": [name]}
    ended = await (played(tmp_path, own=lists) if of_server else played(tmp_path, **lists))
    assert absent(ended) == ["ping"]
    assert ended.of(ServerLost) == []


@pytest.mark.parametrize("of_server", [False, True])
@pytest.mark.parametrize("name", SPELLINGS)
async def test_only_what_is_allowed_by_one_of_its_names_is_offered(tmp_path: Path, name: str, of_server: bool) -> None:
    lists: dict[str, Any] = {"allowed_tools": [name]}
    ended = await (played(tmp_path, own=lists) if of_server else played(tmp_path, **lists))
    assert absent(ended) == ["look"]
    assert ended.of(ServerLost) == []


async def test_our_own_tools_are_withheld_too(tmp_path: Path) -> None:
    ended = await played(tmp_path, exclude_tools=["delete_file"])
    assert absent(ended) == ["delete_file"]
    assert ended.of(ServerLost) == []


@pytest.mark.parametrize(
    ("own", "backend", "names"),
    [
        ({"exclude_tools": ["mcp__odd__pong"]}, {}, ["mcp__odd__pong"]),
        ({"allowed_tools": ["ping", "pong"]}, {}, ["pong"]),
        ({}, {"exclude_tools": ["mcp__other__ping", "ping"]}, ["mcp__other__ping"]),
        ({}, {"allowed_tools": ["ping", "pong"], "exclude_tools": ["peng"]}, ["pong", "peng"]),
    ],
)
async def test_a_name_that_no_tool_has_is_reported_once(
    tmp_path: Path, own: dict[str, Any], backend: dict[str, Any], names: list[str]
) -> None:
    ended = await played(tmp_path, own=own, **backend)
    (lost,) = ended.of(ServerLost)
    assert all(name in lost.message for name in names)
    assert lost.agents == ("agent_a",)
    (told,) = ended.snapshot.server_losses
    assert lost.message in told
