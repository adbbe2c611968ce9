"""An AG2 agent as a model: real AG2 on doubles of Chat Completions."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from massgen_mcp.backends.base import (
    AssistantMessage,
    Backend,
    ModelRequest,
    ReasoningPart,
    StopPart,
    TextPart,
    ToolCall,
    ToolResultMessage,
    UsagePart,
    UserMessage,
)
from massgen_mcp.backends.registry import destination_of, make_backend
from massgen_mcp.config.access.limits import limits_of
from massgen_mcp.config.build_config import build_config
from massgen_mcp.config.default_team import config_from_models
from massgen_mcp.config.loader import config_from_data, missing_keys, require_keys
from massgen_mcp.config.models.ag2 import Ag2BackendConfig
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.http_backends import ProviderBackendConfig
from massgen_mcp.errors import BackendError, DropReason, MassgenError
from massgen_mcp.events.parts import Usage
from massgen_mcp.markers import materials
from massgen_mcp.money.tariff import tariff_of
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import FrozenRequest, RunFiles
from massgen_mcp.runs.host.execute import RunContext, execute_run
from massgen_mcp.runs.store.credentials import fingerprint, variables_of
from tests.backends.ag2 import ENVIRON, KEY, call, chunk, refused, said, section, used
from tests.backends.wires import LOOK, VOTE, ask, calls_in, parts_of, reply_of, stop_of, text_in
from tests.raw_double import Flow, Seen, answering, raw_server, reply, sse
from tests.wire_double import Aimock, aimock, aimock_server

__all__ = ["aimock", "aimock_server"]


def team_of(backend: dict[str, Any], *others: dict[str, Any]) -> Config:
    return config_from_data({"agents": [{"id": "coder", "backend": backend}, *others]}, "team.yaml")


def backend_of(config: Config) -> Ag2BackendConfig:
    backend = config.agents[0].backend
    assert isinstance(backend, Ag2BackendConfig)
    return backend


def asked_by(backend: Ag2BackendConfig) -> ProviderBackendConfig:
    (asked,) = backend.asked
    return asked


def backend_at(url: str, **settings: Any) -> Backend:
    return make_backend(backend_of(team_of(section(url, **settings))), ENVIRON)


# -- one step ---------------------------------------------------------------------------------------------------------


async def test_what_the_agent_is_told_and_what_it_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody-else")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    deltas = ({"reasoning_content": "Hm."}, {"content": "Pa"}, {"content": "ris\ud800"})
    async with raw_server(said(*deltas)) as double:
        parts = await parts_of(backend_at(double.url, temperature=0.5, max_tokens=70), ask("Capital?", VOTE))
        (seen,) = double.requests
    assert parts == [
        ReasoningPart("Hm."),
        TextPart("Pa"),
        TextPart("ris\ufffd"),
        UsagePart(100, cached_input_tokens=60, output_tokens=20, reasoning_tokens=5, model="m-2"),
        StopPart("end", provider_word="stop"),
    ]
    assert seen.body["messages"] == [
        {"role": "system", "content": "You are a coder.\nYou are terse."},
        {"role": "user", "content": "Capital?"},
    ]
    assert (seen.body["model"], seen.body["stream"], seen.body["tool_choice"]) == ("gpt-5", True, "auto")
    assert (seen.body["temperature"], seen.body["max_tokens"]) == (0.5, 70)
    assert seen.body["tools"][0]["function"]["name"] == "vote"
    assert seen.body["tools"][0]["function"]["parameters"]["required"] == ["agent_id"]
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert "somebody-else" not in seen.head


async def test_parallel_calls_are_handed_over_and_none_is_executed_or_answered() -> None:
    """Also one that nobody offers, whose arguments are broken, and whose id was there before."""
    calls = [call("look", '{"where": "up"}', 0), call("nonesuch", "{bro", 1), call("vote", '{"agent_id": "a"}', 2)]
    async with raw_server(said({"content": "First "}, {"tool_calls": calls}, finish="tool_calls")) as double:
        history = (
            UserMessage("?"),
            AssistantMessage("", (ToolCall("call_0", "look", "{}"),)),
            ToolResultMessage("call_0", "look", "a wall"),
        )
        asked = ModelRequest("s", history, (LOOK, VOTE), must_call_tool=True)
        parts = await parts_of(backend_at(double.url), asked)
        assert len(double.requests) == 1, "AG2 asked again by itself"
        assert double.requests[0].body["tool_choice"] == "required"
    made = calls_in(parts)
    assert [(one.name, one.arguments) for one in made] == [
        ("look", '{"where": "up"}'),
        ("nonesuch", "{bro"),
        ("vote", '{"agent_id": "a"}'),
    ]
    assert len({"call_0", *(one.id for one in made)}) == 4
    assert stop_of(parts).reason == "tool_calls"


async def test_the_whole_conversation_goes_along_as_it_was() -> None:
    history = (
        UserMessage("Look around."),
        AssistantMessage("I look.", (ToolCall("c1", "look", '{"where": "up"}'), ToolCall("c2", "no such!", "{bro"))),
        ToolResultMessage("c1", "look", "a roof"),
        ToolResultMessage("c2", "no such!", "there is no such tool", is_error=True),
        AssistantMessage("A roof."),
        UserMessage("And now?"),
        AssistantMessage("", (ToolCall("c3", "look", ""),)),
        ToolResultMessage("c3", "look", ""),
    )
    async with raw_server(said({"content": "Still."})) as double:
        await parts_of(backend_at(double.url), ModelRequest("s", history, (LOOK,)))
        ((_, *messages),) = [seen.body["messages"] for seen in double.requests]

    def made(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}

    assert messages == [
        {"role": "user", "content": "Look around."},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                made("c1", "look", {"where": "up"}),
                made("c2", "no_such_", {"malformed_arguments": "{bro"}),
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a roof"},
        {"role": "tool", "tool_call_id": "c2", "content": "there is no such tool"},
        {"role": "assistant", "content": "A roof."},
        {"role": "user", "content": "And now?"},
        {"role": "assistant", "content": None, "tool_calls": [made("c3", "look", {})]},
        {"role": "tool", "tool_call_id": "c3", "content": ""},
    ]


async def test_the_budgets_limit_of_a_reply_goes_before_the_configs() -> None:
    async with raw_server(said({"content": "x"}, finish="length")) as double:
        asked = ModelRequest("s", (UserMessage("?"),), max_output_tokens=9)
        parts = await parts_of(backend_at(double.url, max_tokens=70), asked)
        (seen,) = double.requests
    assert seen.body["max_tokens"] == 9
    assert "tools" not in seen.body
    assert "tool_choice" not in seen.body
    assert stop_of(parts).reason == "length"


@pytest.mark.parametrize(
    ("answer", "reason", "retryable"),
    [
        (refused("401 Unauthorized"), "auth", False),
        (refused("404 Not Found"), "model_not_found", False),
        (refused("429 Too Many Requests"), "rate_limited", True),
        (refused("429 Too Many Requests", code="insufficient_quota"), "quota_exhausted", False),
        (refused("500 Internal Server Error"), "provider_error", True),
        (reply(sse(chunk({"content": "half a"}))), "provider_error", True),
        (reply(sse(chunk({"content": "half a"}), chunk({}, "error"))), "provider_error", True),
        (reply(sse({"error": {"message": KEY, "code": "rate_limit_exceeded"}})), "rate_limited", True),
        (reply(b"data: {broken\n\n"), "bad_reply", False),
        (reply(b"<html>", media_type="text/html"), "bad_reply", True),
    ],
    ids=("401", "404", "429", "quota", "500", "cut off", "broken off", "told inside", "no JSON", "a page"),
)  # fmt: skip
async def test_every_failure_is_typed_told_once_and_without_the_key(
    answer: bytes, reason: DropReason, retryable: bool
) -> None:
    async with raw_server(answer) as double:
        with pytest.raises(BackendError) as caught:
            await parts_of(backend_at(double.url), ask("?"))
        assert len(double.requests) == 1, "retries are ours, not AG2's"
    assert (caught.value.reason, caught.value.retryable) == (reason, retryable)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_server_that_is_not_there_is_an_error_that_may_pass() -> None:
    async with raw_server(b"") as gone:
        url = gone.url
    with pytest.raises(BackendError) as caught:
        await parts_of(backend_at(url), ask("?"))
    assert (caught.value.reason, caught.value.retryable) == ("unreachable", True)


async def test_a_failure_is_tried_again_by_our_policy_alone() -> None:
    failures: list[BackendError] = []
    async with raw_server(refused("500 Oops"), refused("500 Oops"), said({"content": "Paris"})) as double:
        answer = await reply_of(backend_at(double.url), ask("?"), retries=failures)
    assert (answer.text, len(failures), len(double.requests)) == ("Paris", 2, 3)


def turns() -> int:
    """How many turns of AG2 are under way."""
    return sum("_Work._run" in repr(task) for task in asyncio.all_tasks())


@pytest.mark.parametrize("leave", ["cancel", "close"])
async def test_a_turn_that_is_left_ends_at_once_with_everything_it_began(leave: str) -> None:
    sent: list[bytes] = []

    def pieces() -> Iterator[bytes]:
        head, _, body = said({"content": "x"}).partition(b"\r\n\r\n")
        first, *rest = (piece + b"\n\n" for piece in body.split(b"\n\n"))
        for piece in (head + b"\r\n\r\n" + first, *rest):
            sent.append(piece)
            yield piece

    def respond(*_: object) -> Flow:
        return Flow(pieces, pause_seconds=3600)

    async with answering(respond) as double:
        backend = backend_at(double.url)
        parts = backend.stream(ask("?"))
        assert await anext(parts) == TextPart("x")
        assert turns() == 1
        if leave == "cancel":
            with anyio.move_on_after(0.05):
                await anext(parts)
        else:
            await parts.aclose()
        assert turns() == 0
        assert len(sent) == 1, "the rest of the reply was not waited for"
        await backend.aclose()


# -- in a run ---------------------------------------------------------------------------------------------------------


async def run_it(path: Path, config: Config, environ: dict[str, str] = ENVIRON) -> tuple[RunState, RunFiles]:
    directory = RunFiles.create(path / "run", FrozenRequest("What is six times seven?", config))
    return await execute_run(directory, "run-1", RunContext(environ)), directory


def written(directory: RunFiles) -> str:
    files = (file for file in directory.path.rglob("*") if file.is_file())
    return "\n".join(file.read_text(errors="replace") for file in files)


async def test_it_answers_votes_and_presents_in_a_team(tmp_path: Path) -> None:
    def respond(seen: Seen, number: int) -> bytes:
        del number
        offered = {tool["function"]["name"]: tool["function"] for tool in seen.body.get("tools", [])}
        if "new_answer" not in offered:
            return said({"content": "Forty"}, {"content": "-two."})
        if "multiplication" not in json.dumps(seen.body["messages"]):
            return used("new_answer", content="It is 42, by multiplication.")
        (own,) = [shown.name for shown in materials(seen.body["messages"][-1]["content"]) if shown.yours]
        return used("vote", agent_id=own, reason="Mine shows why.")

    script = [{"answer": "41"}, {"vote": "multiplication"}]
    other = {"id": "other", "backend": {"type": "scripted", "script": script}}
    async with answering(respond) as double:
        run, directory = await run_it(tmp_path, team_of(section(double.url), other))
        asked = double.requests
    assert (run.state, run.degraded) == ("completed", [])
    assert run.final_answer == "Forty-two."
    assert {answer.content for answer in run.answers} == {"It is 42, by multiplication.", "41"}
    assert len(run.votes) == 2
    assert (run.budget.spending.by_agent["agent_a"].tokens, len(asked)) == (3 * 120, 3)
    assert all(seen.body["messages"][0]["content"].startswith("You are a coder.\n") for seen in asked)
    assert "Forty-two." in written(directory)
    assert KEY not in written(directory)


async def test_a_provider_that_refuses_it_costs_the_team_this_agent_and_no_more(tmp_path: Path) -> None:
    other = {"id": "other", "backend": {"type": "scripted"}}
    async with raw_server(refused("401 Unauthorized")) as double:
        run, directory = await run_it(tmp_path, team_of(section(double.url), other))
        assert len(double.requests) == 1
    assert run.state == "completed"
    assert [(agent, reason) for agent, reason, _ in run.degraded] == [("agent_a", "auth")]
    assert KEY not in written(directory)


async def test_it_works_with_a_double_that_nobody_here_wrote(aimock: Aimock) -> None:
    calls = [
        {"name": name, "arguments": arguments} for name, arguments in (("look", "{}"), ("vote", '{"agent_id":"a"}'))
    ]
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    answer = {"content": "I see.", "toolCalls": calls, "usage": usage}
    aimock.load({"match": {"toolName": "vote", "userMessage": "Who?"}, "response": answer})
    parts = await parts_of(backend_at(aimock.url), ask("Who?", LOOK, VOTE, must_call_tool=True))
    assert text_in(parts) == "I see."
    assert [one.name for one in calls_in(parts)] == ["look", "vote"]
    assert [part.input_tokens for part in parts if isinstance(part, UsagePart)] == [7]


# -- configs ----------------------------------------------------------------------------------------------------------


OUTSIDE = {"executor": {"type": "LocalCommandLineCodeExecutor", "work_dir": "../code"}}
DOCKER = {"executor": {"type": "DockerCommandLineCodeExecutor"}}
AGENT = "agents[0].backend.agent_config"
MODEL = f"{AGENT}.llm_config"
ONE_MODEL = {"api_type": "openai", "model": "gpt-5"}


def with_agent(**settings: Any) -> dict[str, Any]:
    backend = section()
    return {**backend, "agent_config": {**backend["agent_config"], **settings}}


@pytest.mark.parametrize(
    ("backend", "told"),
    [
        (
            with_agent(code_execution_config=DOCKER),
            f"{AGENT}.code_execution_config.executor.type: code runs in the same sandbox as the team's commands",
        ),
        (
            with_agent(code_execution_config={"use_docker": True}),
            f"{AGENT}.code_execution_config.use_docker: code ru",
        ),
        (with_agent(code_execution_config=OUTSIDE), f"{AGENT}.code_execution_config.executor.work_dir: expected a rel"),
        (with_agent(code_execution_config={"executr": {}}), f"{AGENT}.code_execution_config.executr: unknown key; did"),
        (with_agent(code_execution_config=True), f"{AGENT}.code_execution_config: expected a mapping"),
        (with_agent(type="groupchat"), f"{AGENT}.type: expected 'assistant' or 'conversable'"),
        (with_agent(human_input_mode="ALWAYS"), f"{AGENT}.human_input_mode: expected 'NEVER'"),
        (with_agent(llm_config=[ONE_MODEL, ONE_MODEL]), f"{MODEL}: expected one model"),
        (with_agent(llm_config=[]), f"{MODEL}: expected one model"),
        ({"type": "ag2", "agent_config": {}}, f"{MODEL}: a required key is missing"),
        (with_agent(sytem_message="x"), f"{AGENT}.sytem_message: unknown key; did you mean 'system_message'?"),
        (section(api_type="bedrock"), f"{MODEL}.api_type: expected 'openai', 'google' or 'anthropic'"),
        (section(temprature=1), f"{MODEL}.temprature: unknown key; did you mean 'temperature'?"),
        (section(api_key=KEY), f"{MODEL}.api_key: write api_key_env: NAME; never put a key in a file"),
        (section(base_url=f"http://me:{KEY}@host/v1"), f"{MODEL}.base_url: expected an http"),
        ({"type": "ag2"}, "agents[0].backend: expected agent_config or group_config"),
        ({"type": "ag2", "agent_config": "x"}, f"{AGENT}: expected a mapping"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name_and_place(backend: dict[str, Any], told: str) -> None:
    with pytest.raises(MassgenError) as caught:
        team_of(backend)
    assert caught.value.code == "config_invalid"
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"team.yaml: {told}")
    assert KEY not in line


def test_the_spellings_of_ag2_are_taken() -> None:
    written = with_agent(
        type="conversable",
        code_execution_config=False,
        human_input_mode="NEVER",
        llm_config=[{**ONE_MODEL, "api_key": "${MY_KEY}"}],
    )
    config = backend_of(team_of(written))
    assert (config.model, asked_by(config).api_key_env) == ("gpt-5", "MY_KEY")
    assert Config.model_validate_json(team_of(written).model_dump_json()) == team_of(written)


def test_it_may_be_named_like_any_model() -> None:
    config = config_from_models(["ag2/gpt-5"], num_agents=2)
    assert [(agent.backend.type, agent.backend.model) for agent in config.agents] == [("ag2", "gpt-5")] * 2
    at = config_from_models(["ag2/m"], num_agents=1, base_url="http://127.0.0.1:1/v1")
    assert asked_by(backend_of(at)).base_url == "http://127.0.0.1:1/v1"
    short = team_of({"type": "ag2", "model": "gpt-5", "api_key": "${MY_KEY}"})
    assert (backend_of(short).model, asked_by(backend_of(short)).api_key_env) == ("gpt-5", "MY_KEY")
    built = config_from_data(build_config(models=["ag2/gpt-5"], num_agents=1), "t", environ=ENVIRON)
    assert backend_of(built).model == "gpt-5"
    with pytest.raises(MassgenError, match="ag2 has no default model; name one as ag2/MODEL"):
        build_config(backend="ag2")
    with pytest.raises(MassgenError, match="not a valid address"):
        config_from_models(["ag2/m"], num_agents=1, base_url="ftp://x")


def test_keys_limits_and_prices_are_those_of_whom_it_asks() -> None:
    config = team_of(section())
    backend = backend_of(config)
    assert missing_keys(config, {}) == ["OPENAI_API_KEY"]
    with pytest.raises(MassgenError, match="agent 'coder' needs OPENAI_API_KEY"):
        require_keys(config, {})
    with pytest.raises(BackendError, match="set OPENAI_API_KEY"):
        make_backend(backend, {})
    require_keys(config, {"OPENAI_API_KEY": "k"})
    same = ProviderBackendConfig(type="openai", model="gpt-5")
    environ = {"OPENAI_API_KEY": "k"}
    assert destination_of(backend, environ) == destination_of(same, environ)
    spent = Usage(input_tokens=1000, output_tokens=1000)
    assert tariff_of(backend, environ).cost(spent) == tariff_of(same, environ).cost(spent)
    assert (tariff_of(backend, environ).cost(spent).usd or 0) > 0
    limited = {"agents": [{"backend": section()}], "limits": {"ag2": {"concurrency": 1}}}
    assert limits_of(config_from_data(limited, "t"), backend, environ).concurrency == 1


def test_a_key_that_the_config_names_is_part_of_whose_run_it_is() -> None:
    names = variables_of(team_of(section("http://127.0.0.1:1")))
    assert "MY_KEY" in names
    assert fingerprint(names, {"MY_KEY": "a"}, b"s") != fingerprint(names, {"MY_KEY": "b"}, b"s")


async def test_a_key_goes_to_no_host_that_it_does_not_belong_to() -> None:
    async with raw_server(said({"content": "x"})) as double:
        config = backend_of(team_of(section(base_url=f"{double.url}/v1")))
        await parts_of(make_backend(config, ENVIRON), ask("?"))
        (seen,) = double.requests
    assert "somebody-else" not in seen.head


def test_without_the_extra_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ag2", None)
    config = team_of(section())
    with pytest.raises(BackendError, match=r'pip install "massgen-mcp\[ag2\]"') as told:
        make_backend(backend_of(config), {"OPENAI_API_KEY": "k"})
    assert told.value.reason == "bad_request"
    with pytest.raises(MassgenError, match=r'pip install "massgen-mcp\[ag2\]"') as caught:
        require_keys(config, {"OPENAI_API_KEY": "k"})
    assert caught.value.code == "config_invalid"
