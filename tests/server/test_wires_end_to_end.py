"""A team of three providers through the MCP server, with aimock as all three; every request is one that they allow."""

from typing import Any

from tests.harness import TempHome, call, events_of
from tests.wire_check import check_body
from tests.wire_double import Aimock

KEYS = {"OPENAI_API_KEY": "sk-openai-secret-1", "ANTHROPIC_API_KEY": "sk-ant-secret-2", "CHAT_KEY": "sk-chat-secret-3"}
TEAM = {"m-responses": "openai", "m-chat": "chatcompletion", "m-claude": "claude"}
FINAL = "The final answer, made of all three."
USAGE = {
    "prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59, "input_tokens": 50, "output_tokens": 9,
}  # fmt: skip


def team(home: TempHome, url: str) -> str:
    keys = {"openai": "OPENAI_API_KEY", "chatcompletion": "CHAT_KEY", "claude": "ANTHROPIC_API_KEY"}
    roots = {"openai": f"{url}/v1", "chatcompletion": f"{url}/v1", "claude": url}
    agents: list[dict[str, Any]] = [
        {
            "id": kind,
            "backend": {"type": kind, "model": model, "base_url": roots[kind], "api_key_env": keys[kind]},
        }
        for model, kind in TEAM.items()
    ]
    return home.config("team", *agents)


def say(**response: Any) -> dict[str, Any]:
    return {**response, "usage": USAGE}


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return say(toolCalls=[{"name": name, "arguments": arguments}])


def script(aimock: Aimock, *, nobody_lacks: bool = True) -> None:
    """Everybody writes a file, then answers, then votes; the winner presents. Where `nobody_lacks`, voters call all
    three answers the same, so that there is no tie.
    """
    vote = {"reason": "It is complete."}
    same = ["agent1", "agent2"]
    alike = {
        "match": {"userMessage": '<answer name="agent3"', "toolName": "vote"},
        "response": tool("vote", **vote, agent_id="agent3", same_as=same),
    }
    of_one = [
        {
            "match": {"userMessage": f'<answer name="{name}"', "toolName": "vote"},
            "response": tool("vote", **vote, agent_id=name),
        }
        for name in same
    ]
    aimock.load(
        {"match": {"userMessage": "Write the final answer now"}, "response": say(content=FINAL)},
        *(
            {
                "match": {"model": model, "hasToolResult": True},
                "response": tool("new_answer", content=f"The answer of {model}."),
            }
            for model in TEAM
        ),
        *([alike] if nobody_lacks else of_one),
        {
            "match": {"toolName": "write_file"},
            "response": tool("write_file", path="notes.md", content="42"),
        },
    )


async def test_three_wires_answer_vote_and_present_through_the_mcp_server(home: TempHome, aimock: Aimock) -> None:
    script(aimock)
    async with home.with_variables(**KEYS).client() as client:
        started = await call(
            client, "start_run", question="What is it?", config=team(home, aimock.url), wait_seconds=50
        )
        assert started["status"] == "completed"
        result = await call(client, "get_result", run_id=started["run_id"])

    assert result["answer"] == FINAL
    assert result["degraded"] == []
    assert sorted(vote["voter"] for vote in result["votes"]) == sorted(result["team"])
    assert {vote["reason"] for vote in result["votes"]} == {"It is complete."}
    assert sum(result["vote_counts"].values()) == 3
    place = [*result["team"]].index(result["winner"]) + 1
    assert result["vote_counts"][f"agent{place}.1"] == max(result["vote_counts"].values())
    written = [event for event in events_of(home.run_directory(started["run_id"])) if event["type"] == "tool_finished"]
    assert [(event["name"], event["is_error"]) for event in written] == [("write_file", False)] * 3

    requests = aimock.requests
    assert len(requests) == result["usage"]["model_calls"] == 10, "three calls each and the presentation"
    assert result["usage"].get("calls_without_usage", 0) == 0
    assert result["usage"]["output_tokens"] == 9 * len(requests)
    assert {request.path for request in requests} == {"/v1/responses", "/v1/chat/completions", "/v1/messages"}
    for request in requests:
        check_body(request.path, request.body)
    assert [entry["response"]["status"] for entry in aimock.journal()] == [200] * len(requests)


async def test_each_provider_gets_its_own_key_and_no_key_is_written_down(home: TempHome, aimock: Aimock) -> None:
    script(aimock)
    async with home.with_variables(**KEYS).client() as client:
        started = await call(client, "start_run", question="q", config=team(home, aimock.url), wait_seconds=50)
        assert started["status"] == "completed"
    keys = {"/v1/responses": "OPENAI_API_KEY", "/v1/chat/completions": "CHAT_KEY", "/v1/messages": "ANTHROPIC_API_KEY"}
    for request in aimock.requests:
        sent = str(request.headers)
        assert {name for name, value in KEYS.items() if value in sent} == {keys[request.path]}
    for path in home.path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(value.encode() in content for value in KEYS.values()), path


async def test_a_provider_that_refuses_the_key_falls_out_and_the_others_finish(home: TempHome, aimock: Aimock) -> None:
    refusal = {"error": {"message": "Incorrect API key provided", "type": "authentication_error"}, "status": 401}
    aimock.load({"match": {"model": "m-claude"}, "response": refusal})
    script(aimock, nobody_lacks=False)
    async with home.with_variables(**KEYS).client() as client:
        started = await call(client, "start_run", question="q", config=team(home, aimock.url), wait_seconds=50)
        result = await call(client, "get_result", run_id=started["run_id"])
    assert (result["status"], result["answer"]) == ("completed", FINAL)
    assert [(fallen["agent"], fallen["reason"]) for fallen in result["degraded"]] == [([*result["team"]][2], "auth")]
    assert result["degraded"][0]["message"].endswith("; set ANTHROPIC_API_KEY to a valid key")
    assert sum(request.body["model"] == "m-claude" for request in aimock.requests) == 1, "a refused key is not retried"
