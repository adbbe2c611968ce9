"""Teams that nobody wrote down: from models, from keys, from servers on this machine."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import genai_prices
import pytest

from massgen_mcp.config.builder import LocalServer, config_from_models, default_team, find_local_servers
from massgen_mcp.config.models import Config
from massgen_mcp.config.providers import named_provider
from massgen_mcp.errors import MassgenError

PATIENT = 20.0


def told(config: Config) -> list[tuple[str, str, str, str | None]]:
    return [
        (agent.id, agent.backend.type, agent.backend.model, getattr(agent.backend, "base_url", None))
        for agent in config.agents
    ]


def offer(*names: str) -> bytes:
    body = json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode()
    return answer(body)


def answer(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (status.encode(), len(body), body)


def port_of(listener: anyio.abc.Listener[anyio.abc.SocketStream]) -> int:
    return listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  # anyio's, not Django's


@asynccontextmanager
async def listening(reply: bytes | None, *, then_drips: bool = False) -> AsyncGenerator[int]:
    """A server on a free port that answers every request with `reply`, byte by byte without end when it `then_drips`.

    None: it never answers.
    """

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            if reply is None:
                await anyio.sleep_forever()
            else:
                await stream.send(reply)
            while then_drips:
                await stream.send(b" ")
                await anyio.sleep(0.02)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield port_of(listener)
        tasks.cancel_scope.cancel()


async def closed_port() -> int:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        return port_of(listener)


def test_models_become_agents_with_telling_ids() -> None:
    config = config_from_models(
        ["gpt-5", "anthropic/claude-opus-5", "openrouter/meta/llama-4", "scripted/Ada", "groq/llama-3.3-70b",
         "gemini-4-argon", "vllm/auto", "azure_openai/gpt-5"],
        num_agents=None,
    )  # fmt: skip
    assert told(config) == [
        ("openai-gpt5-1", "openai", "gpt-5", None),
        ("claude-claudeopus5-2", "claude", "claude-opus-5", None),
        ("openrouter-llama4-3", "openrouter", "meta/llama-4", None),
        ("scripted-ada-4", "scripted", "Ada", None),
        ("groq-llama3370b-5", "groq", "llama-3.3-70b", None),
        ("gemini-gemini4argon-6", "gemini", "gemini-4-argon", None),
        ("vllm-auto-7", "vllm", "auto", None),
        ("azure_openai-gpt5-8", "azure_openai", "gpt-5", None),
    ]


def test_models_are_dealt_out_until_there_are_enough_agents() -> None:
    config = config_from_models(["gpt-5", "o3"], num_agents=3)
    assert [agent.id for agent in config.agents] == ["openai-gpt5-1", "openai-o3-2", "openai-gpt5-3"]


@pytest.mark.parametrize(
    ("models", "num_agents", "message"),
    [
        ([], None, "at least one model"),
        (["gpt-5"], 0, "1 to 10 agents, not 0"),
        (["gpt-5"], 11, "1 to 10 agents, not 11"),
        (["gpt-5"] * 11, None, "1 to 10 agents, not 11"),
        (["gpt-5", "o3"], 1, "are too many"),
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
    assert [agent.id for agent in config.agents] == ["openai-" + "x" * 40 + "-1", "openai-model-2"]


async def test_the_default_team_has_one_strong_model_of_each_provider_with_a_key() -> None:
    both = await default_team({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, local_servers=())
    assert [agent.backend.type for agent in both.agents] == ["openai", "claude"]
    one = await default_team({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": ""}, local_servers=())
    assert [agent.backend.type for agent in one.agents] == ["claude"]
    four = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "XAI_API_KEY", "GROQ_API_KEY")
    all_four = await default_team(dict.fromkeys(four, "k"), local_servers=())
    assert [agent.backend.type for agent in all_four.agents] == ["openai", "claude", "gemini", "grok"]
    assert [agent.backend.model for agent in all_four.agents[2:]] == ["gemini-4-argon", "grok-4.7"]


@pytest.mark.parametrize("provider", ["openai", "claude", "gemini", "grok"])
def test_a_strong_model_is_one_whose_price_is_known(provider: str) -> None:
    model = named_provider(provider).strong_model
    assert model is not None
    usage = genai_prices.Usage(input_tokens=1000, output_tokens=1000)
    assert genai_prices.calc_price(usage, model_ref=model).total_price > 0


async def test_without_keys_the_default_team_is_the_first_local_server_that_answers() -> None:
    async with listening(offer("text-embedding-3", "qwen-4")) as port:
        servers = [LocalServer("lmstudio", await closed_port()), LocalServer("vllm", port)]
        config = await default_team({}, local_servers=servers)
    assert told(config) == [("vllm-qwen4-1", "chatcompletion", "qwen-4", f"http://127.0.0.1:{port}/v1")]


async def test_without_keys_and_servers_the_ways_out_are_named() -> None:
    with pytest.raises(MassgenError) as caught:
        await default_team({}, local_servers=[LocalServer("vllm", await closed_port())])
    assert caught.value.code == "no_default_team"
    for way_out in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "config", "@examples/scripted"):
        assert way_out in str(caught.value)


async def test_all_servers_are_asked_and_silent_ones_are_given_up() -> None:
    async with listening(offer("a")) as first, listening(None) as silent, listening(offer("b", "c")) as last:
        servers = [LocalServer("one", first), LocalServer("silent", silent), LocalServer("two", last)]
        found = await find_local_servers(servers)
    assert [(server.name, server.models) for server in found] == [("one", ("a",)), ("two", ("b", "c"))]


async def test_a_server_that_never_comes_to_an_end_is_given_up() -> None:
    endless = b"HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n"
    with anyio.fail_after(PATIENT):
        async with listening(endless, then_drips=True) as port:
            assert await find_local_servers([LocalServer("slow", port)]) == []


@pytest.mark.parametrize(
    "reply",
    [
        answer(b"<html>"),
        answer(b"[]"),
        answer(b'{"data": 5}'),
        answer(b'{"data": [5, {"id": 5}, {"id": ""}, {"name": "x"}]}'),
        answer(b"[" * 200_000),
        answer(b'{"data": [{"id": "a"}], "x": "%b"}' % (b"x" * 2_000_000)),
        answer(b'{"data": [{"id": "a"}]}', "404 Not Found"),
        answer(b'{"data": [{"id": "a"}]}', "307 Temporary Redirect"),
        offer("nomic-embed-text"),
        b"SSH-2.0-x\r\n",
        b"",
    ],
    ids=range(11),
)
async def test_what_is_no_model_server_is_passed_over(reply: bytes) -> None:
    async with listening(reply) as port:
        assert await find_local_servers([LocalServer("other", port)], timeout_seconds=PATIENT) == []
