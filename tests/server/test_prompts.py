"""Prompts that a person can choose, and what is offered while an argument is filled in."""

from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, PromptReference, ResourceTemplateReference, TextContent

from tests.harness import MODES, Mode, TempHome, call

PROMPTS = {
    "analyze_runs": {"run_id": False, "agent": False},
    "delegate": {"question": True, "team": False},
    "fix_failing_test": {"check": True, "team": False},
    "review_changes": {"base": False, "team": False},
    "root_cause": {"symptom": True, "team": False},
    "second_opinion": {"subject": True, "team": False},
}
RESULT = "massgen://runs/{run_id}/result{?view,agent,offset}"


async def written(client: Client, name: str, **arguments: str) -> str:
    (message,) = (await client.get_prompt(name, arguments)).messages
    assert message.role == "user"
    assert isinstance(message.content, TextContent)
    return message.content.text


@pytest.mark.parametrize("mode", MODES)
async def test_every_prompt_is_offered_and_says_which_tools_to_use(home: TempHome, mode: Mode) -> None:
    async with home.client(mode) as client:
        offered = (await client.list_prompts()).prompts
        assert {one.name: {a.name: a.required for a in one.arguments or ()} for one in offered} == PROMPTS
        tools = {tool.name for tool in (await client.list_tools()).tools}
        for one in offered:
            assert one.title
            assert one.description
            assert all(argument.description for argument in one.arguments or ())
            given = {argument: f"my {argument}" for argument in PROMPTS[one.name]}
            text = await written(client, one.name, **given)
            assert all(value in text for value in given.values())
            assert any(tool in text for tool in tools)
            required = {argument: "x" for argument, needed in PROMPTS[one.name].items() if needed}
            assert "{" not in await written(client, one.name, **required)


async def test_what_a_person_writes_stands_in_the_prompt_as_it_is(home: TempHome) -> None:
    async with home.client() as client:
        odd = "Is {config} in {value} a \\1 problem?"
        assert odd in await written(client, "delegate", question=odd, team="scripted")


async def test_a_prompt_or_an_argument_that_is_not_there_is_refused_by_name(home: TempHome) -> None:
    wrong: list[tuple[str, dict[str, str], str]] = [
        ("delgate", {}, "did you mean 'delegate'"),
        ("delegate", {}, "needs question"),
        ("delegate", {"question": ""}, "needs question"),
        ("delegate", {"question": "q", "teem": "c"}, "did you mean 'team'"),
    ]
    async with home.client() as client:
        for name, arguments, told in wrong:
            with pytest.raises(MCPError, match=told) as refusal:
                await client.get_prompt(name, arguments)
            assert refusal.value.code == INVALID_PARAMS


@pytest.mark.parametrize("mode", MODES)
async def test_names_of_configs_runs_and_agents_are_completed(home: TempHome, mode: Mode) -> None:
    async with home.client(mode) as client:

        async def offered(ref: Any, name: str, begun: str, **known: str) -> list[str]:
            return (await client.complete(ref, {"name": name, "value": begun}, known)).completion.values

        run_id = (await call(client, "start_run", question="q", team="scripted", wait_seconds=45))["run_id"]
        prompt = PromptReference(type="ref/prompt", name="delegate")
        result = ResourceTemplateReference(type="ref/resource", uri=RESULT)
        configs = ResourceTemplateReference(type="ref/resource", uri="massgen://configs/{+name}")
        assert "scripted" in await offered(prompt, "team", "scr")
        assert await offered(configs, "name", "scripted") == ["scripted"]
        assert await offered(prompt, "team", "zzz") == []
        assert await offered(result, "run_id", run_id[:8]) == [run_id]
        agents = await offered(result, "agent", "", run_id=run_id)
        assert len(agents) == 3
        shown = await call(client, "get_result", run_id=run_id, view="agent", agent=agents[0])
        assert shown["answer"], "what is offered is what the tool takes"
        assert await offered(result, "agent", "", run_id="run-nope") == []
        assert await offered(result, "view", "v") == ["votes"]
        assert await offered(prompt, "question", "anything") == []
