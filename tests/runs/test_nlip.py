"""What agents say and are told, as messages of NLIP in `nlip.jsonl`, read with the standard's own package."""

from typing import Any, cast

from nlip_sdk.nlip import NLIP_Message  # pyright: ignore[reportMissingTypeStubs] - it has none

from massgen_mcp.agents.config import AgentConfig
from massgen_mcp.agents.team import team_config
from tests.harness import TempHome, agent, call, home

__all__ = ["home"]

NOTE = {"call": "write_file", "arguments": {"path": "note", "content": "n"}}
MISSING = {"call": "read_file", "arguments": {"path": "nowhere"}}


def content(message: NLIP_Message) -> Any:
    return cast("Any", message).content


async def said(home: TempHome, config: str) -> list[tuple[str, str, NLIP_Message]]:
    """Who said it, to whom, and what, of a run that has ended."""
    async with home.client() as client:
        started = await call(client, "start_run", question="What is it?", config=config, wait_seconds=50)
    file = home.run_directory(started["run_id"]) / "nlip.jsonl"
    if not file.exists():
        return []
    messages = [NLIP_Message.model_validate_json(line) for line in file.read_text().splitlines()]
    assert {message.extract_conversation_token() for message in messages} == {started["run_id"]}
    routes = [cast("Any", message).find_labeled_submessage("route").content for message in messages]
    return [(route["from"], route["to"], message) for route, message in zip(routes, messages, strict=True)]


async def test_what_agents_tools_and_caller_say_to_each_other_is_written_as_nlip(home: TempHome) -> None:
    one = agent("one", NOTE, MISSING, {"answer": "It is one."})
    config = home.config("both", one, agent("two"), orchestrator={"enable_nlip": True})
    messages = await said(home, config)
    assert messages[0][:2] == ("caller", "team")
    assert messages[0][2].extract_text() == "What is it?"
    of_one = [(a, b, message) for a, b, message in messages if "one" in (a, b)]
    (_, _, asked), (_, _, done), _, (_, _, failed), (_, _, answer), (_, _, vote), *_ = of_one
    assert [(a, b) for a, b, _ in of_one[:5]] == [
        ("one", "tool:write_file"),
        ("tool:write_file", "one"),
        ("one", "tool:read_file"),
        ("tool:read_file", "one"),
        ("one", "team"),
    ]
    assert content(asked) == {"tool": "write_file", "arguments": {"path": "note", "content": "n"}}
    assert (done.format, failed.format) == ("text", "error")
    assert done.label == asked.label
    assert (answer.extract_text(), answer.label) == ("It is one.", "agent1.1")
    assert set(content(vote)) == {"vote", "reason"}
    assert messages[-1][1] == "caller"
    assert any(a == "two" for a, _, _ in messages)


async def test_what_agents_say_that_were_not_asked_for_it_is_not_written(home: TempHome) -> None:
    config = home.config("one", {**agent("one", NOTE, {"answer": "a"}), "enable_nlip": True}, agent("two", NOTE))
    messages = await said(home, config)
    assert any(a == "one" for a, _, _ in messages)
    assert not any("two" in (a, b) for a, b, _ in messages)


async def test_nothing_is_written_where_nobody_asks_for_it(home: TempHome) -> None:
    assert await said(home, home.config("off", agent("one"), agent("two"))) == []


def test_an_agent_config_brings_it_into_the_config_of_a_run() -> None:
    on = AgentConfig({"type": "scripted"}, enable_nlip=True, nlip_config={"router": {}})
    off = AgentConfig({"type": "scripted"})
    on.init_nlip_router()
    assert on.to_config().agents[0].enable_nlip
    assert [one.get("enable_nlip") for one in team_config(on, off)["agents"]] == [True, None]
    assert [one.get("enable_nlip") for one in team_config(off, off, orchestrator=on)["agents"]] == [True, True]
