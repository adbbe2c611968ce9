"""Model servers of this machine are found where they usually are, and asked in their own words what they have."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from massgen_mcp.config.access.local_servers import LocalServer, described, find_local_servers, local_places
from tests.model_servers import (
    LM_STUDIO_EMBEDDING,
    PATIENT,
    UNKNOWN_TO_LM_STUDIO,
    all_servers,
    closed_port,
    llama_cpp,
    llama_cpp_router,
    lm_studio_model,
    lm_studio_of_2025,
    serving,
    sglang,
    vllm,
)
from tests.ollama_double import GB, OllamaModel, json_reply, serving_ollama

KINDS = ("ollama", "lmstudio", "vllm", "sglang", "llamacpp")


async def found(*servers: LocalServer, seconds: float | None = PATIENT) -> list[LocalServer]:
    return await find_local_servers({}, servers, seconds=seconds)


async def models_of(kind: str, lists: dict[str, Any], *, told: bool = False) -> list[str]:
    """The models that are found at a server with these lists, with what is known of them."""
    async with serving(kind, lists) as server:
        return [str(model) for one in await found(LocalServer(kind, server.url, named=told)) for model in one.models]


@asynccontextmanager
async def listening(reply: bytes | None, *, then_drips: bool = False) -> AsyncGenerator[str]:
    """A server that answers every request with `reply`, byte by byte without end when it `then_drips`. None: it never
    answers.
    """

    async def serve(stream: SocketStream) -> None:
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
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"  # noqa: S610 - not Django's
        tasks.cancel_scope.cancel()


def test_servers_are_looked_for_at_their_usual_ports_and_where_the_operator_says() -> None:
    usual = local_places({})
    assert [(one.type, one.place) for one in usual] == [
        ("ollama", "127.0.0.1:11434"),
        ("lmstudio", "127.0.0.1:1234"),
        ("vllm", "127.0.0.1:8000"),
        ("sglang", "127.0.0.1:30000"),
        ("llamacpp", "127.0.0.1:8080"),
    ]
    assert not any(one.named for one in usual)
    moved = local_places({"OLLAMA_HOST": "gpu-box", "MASSGEN_VLLM_BASE_URL": "http://gpu-box:9000/v1"})
    assert [(one.type, one.base_url) for one in moved if one.named] == [
        ("ollama", "http://gpu-box:11434"),
        ("vllm", "http://gpu-box:9000/v1"),
    ]


@pytest.mark.parametrize(
    ("told", "address"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434"),  # noqa: S104 - what is read, nothing listens
        ("0.0.0.0:9999", "http://127.0.0.1:9999"),
        (":9999", "http://127.0.0.1:9999"),
        ("gpu-box:9999", "http://gpu-box:9999"),
        ("http://gpu-box", "http://gpu-box:80"),
        ("https://gpu-box/ollama/", "https://gpu-box:443/ollama"),
        ("::1", "http://[::1]:11434"),
        ("[::]:9999", "http://[::1]:9999"),
        ("  ", "http://127.0.0.1:11434"),
    ],
)
def test_ollamas_own_variable_is_read_as_ollama_reads_it(told: str, address: str) -> None:
    assert local_places({"OLLAMA_HOST": told})[0].base_url == address


async def test_every_server_is_asked_at_once_in_its_own_words() -> None:
    async with all_servers(*KINDS) as places:
        servers = await find_local_servers({}, places, seconds=PATIENT)
    told = [described(server, most=3).replace(server.place, "HERE") for server in servers]
    assert told == [
        "ollama at HERE has llama3.2:1b (1.2B), qwen3:8b (8.2B), gemma3:12b (12.2B, no tools) and 2 more",
        "lmstudio at HERE has openai/gpt-oss-20b (20B), qwen/qwen3-14b (14B)",
        "vllm at HERE has Qwen/Qwen3-32B-AWQ (32B)",
        "sglang at HERE has meta-llama/Llama-3.3-70B-Instruct (70B)",
        "llamacpp at HERE has /models/Qwen3-8B-Q4_K_M.gguf (8.19B)",
    ]
    contexts = {server.type: server.models[0].context for server in servers}
    assert contexts == {"ollama": 40_960, "lmstudio": 131_072, "vllm": 32_768, "sglang": 40_960, "llamacpp": 8192}


async def test_models_that_ollama_only_passes_on_and_second_names_of_one_are_left_out() -> None:
    cloud = OllamaModel("gpt-oss:120b-cloud", "116.8B", 384, remote="https://ollama.com:443")
    alias = OllamaModel("qwen3:latest", digest="ab" * 32)
    async with serving_ollama(cloud, OllamaModel("qwen3:8b", digest="ab" * 32), alias) as server:
        (ollama,) = await found(LocalServer("ollama", server.url))
    assert [model.name for model in ollama.models] == ["qwen3:8b"]


async def test_lm_studio_is_asked_by_its_newest_list_then_the_older_one_then_the_compatible_one() -> None:
    newest = {"/api/v1/models": {"models": [lm_studio_model("a/m-7b", None, 4 * GB, tools=False), LM_STUDIO_EMBEDDING]}}
    older = {"/api/v1/models": UNKNOWN_TO_LM_STUDIO, "/api/v0/models": lm_studio_of_2025(**{"m-8b": "loaded"})}
    oldest = {"/v1/models": {"object": "list", "data": [{"id": "m-3b", "owned_by": "organization_owner"}]}}
    assert await models_of("lmstudio", {**newest, **oldest}) == ["a/m-7b (7B, no tools)"]
    assert await models_of("lmstudio", {**older, **oldest}) == ["m-8b (8B)"]
    assert await models_of("lmstudio", oldest) == ["m-3b (3B)"]


async def test_a_router_of_llama_cpp_tells_what_it_would_load() -> None:
    router = llama_cpp_router(**{"qwen3-8b": "loaded", "gemma-27b": "unloaded"})
    assert await models_of("llamacpp", {"/v1/models": router}) == ["qwen3-8b (8B)", "gemma-27b (27B)"]


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llamacpp"])
async def test_a_gateway_at_a_usual_port_is_none_of_these_servers_unless_the_operator_says_so(kind: str) -> None:
    gateway = {"/v1/models": vllm("gpt-5", owner="openai")}
    assert await models_of(kind, gateway) == []
    assert await models_of(kind, gateway, told=True) == ["gpt-5"]
    own = {"vllm": vllm("m"), "sglang": sglang("m"), "llamacpp": llama_cpp("m", parameters=0)}[kind]
    assert await models_of(kind, {"/v1/models": own}) == ["m"]


async def test_silent_servers_are_given_up() -> None:
    async with listening(None) as silent, serving("vllm") as vllm_server:
        places = [LocalServer("ollama", silent), LocalServer("vllm", vllm_server.url)]
        with anyio.fail_after(PATIENT):
            servers = await find_local_servers({}, places, seconds=2)
    assert [server.type for server in servers] == ["vllm"]


async def test_a_server_that_never_comes_to_an_end_is_given_up() -> None:
    endless = b"HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n"
    with anyio.fail_after(PATIENT):
        async with listening(endless, then_drips=True) as url:
            assert await found(LocalServer("vllm", url), seconds=None) == []


def answer(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (status.encode(), len(body), body)


ODD = [
    answer(b"<html>"),
    answer(b"[]"),
    answer(b'{"data": 5, "models": 5}'),
    answer(b'{"data": [5, {"id": 5}, {"id": ""}, {"name": "x"}], "models": [5, {"name": 5}, {"key": null}]}'),
    answer(b"[" * 200_000),
    answer(b'{"data": [{"id": "a"}], "models": [{"name": "a"}], "x": "%b"}' % (b"x" * 2_000_000)),
    answer(b'{"data": [{"id": "a"}], "models": [{"name": "a"}]}', "404 Not Found"),
    answer(b'{"data": [{"id": "a"}], "models": [{"name": "a"}]}', "307 Temporary Redirect"),
    json_reply({"data": [{"id": "nomic-embed-text"}], "models": [{"name": "nomic-embed-text"}]}),
    json_reply({"data": [{"id": "a\nb"}, {"id": "x" * 300}], "models": [{"name": "a\nb"}]}),
    b"SSH-2.0-x\r\n",
    b"",
]


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_no_model_server_is_passed_over(kind: str) -> None:
    for place, odd in enumerate(ODD):
        async with listening(odd) as url:
            assert await found(LocalServer(kind, url, named=True)) == [], place


async def test_nobody_is_found_where_nobody_is() -> None:
    assert await found(LocalServer("vllm", f"http://127.0.0.1:{await closed_port()}")) == []
