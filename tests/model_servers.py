"""Model servers of one's own: the lists of LM Studio, vLLM, SGLang and llama.cpp in their real shapes, and a team.

Ollama has a module of its own, `ollama_double`. llama.cpp's list is one that a real server sent; vLLM's is from
https://github.com/modal-labs/modal-examples/issues/843, SGLang's fields from its `ModelCard`, LM Studio's from its
documentation of `/api/v1/models` and `/api/v0/models`.
"""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
from anyio.abc import SocketAttribute

from massgen_mcp.config.access.local_servers import LocalServer
from massgen_mcp.config.providers.catalog import PROVIDERS
from tests.ollama_double import GB, OllamaModel, about_models, json_reply, not_found, serving_ollama
from tests.raw_double import RawDouble, Seen, answering, reply
from tests.wires.dialects import Chat, Dialect
from tests.wires.dialects import Ollama as OllamaChat

PATIENT = 20.0
"""Seconds for a server to answer in: the machine may be busy."""
MEMORY = 32 * GB
"""Of the machine in these tests."""


def vllm(*names: str, owner: str = "vllm", adapters: tuple[str, ...] = ()) -> dict[str, Any]:
    base = names[0]

    def card(name: str, parent: str | None) -> dict[str, Any]:
        permission = {"id": "modelperm-7c4c", "object": "model_permission", "allow_sampling": True}
        return {
            "id": name,
            "object": "model",
            "created": 1723770563,
            "owned_by": owner,
            "root": base,
            "parent": parent,
            "max_model_len": 32768,
            "permission": [permission],
        }

    return {"object": "list", "data": [*(card(name, None) for name in names), *(card(one, base) for one in adapters)]}


def sglang(name: str) -> dict[str, Any]:
    card = {"id": name, "object": "model", "created": 1755000000, "owned_by": "sglang", "root": name, "parent": None}
    return {"object": "list", "data": [{**card, "max_model_len": 40960}]}


def llama_cpp(path: str, *, parameters: int = 8_190_735_360, size: int = 5_021_000_000) -> dict[str, Any]:
    """Of a server with one model."""
    old = {"name": path, "model": path, "type": "model", "capabilities": ["completion"], "details": {"format": "gguf"}}
    meta = {
        "vocab_type": 2, "n_vocab": 151936, "n_ctx": 8192, "n_ctx_train": 40960, "n_embd": 4096,
        "n_params": parameters, "size": size, "ftype": "Q4_1",
    }  # fmt: skip
    entry = {"id": path, "aliases": [path], "object": "model", "created": 1795348431, "owned_by": "llamacpp"}
    return {"models": [old], "object": "list", "data": [{**entry, "meta": meta}]}


def llama_cpp_router(**states: str) -> dict[str, Any]:
    """Of a server that loads models when they are asked for."""
    entries = [
        {"id": name, "object": "model", "owned_by": "llamacpp", "created": 1, "status": {"value": state}, "path": "/m"}
        for name, state in states.items()
    ]
    return {"object": "list", "data": entries}


def lm_studio_model(key: str, params: str | None, size: int, *, tools: bool = True, loaded: bool = False) -> Any:
    instances = [{"id": key, "config": {"context_length": 8192}}] if loaded else []
    return {
        "type": "llm",
        "publisher": key.partition("/")[0],
        "key": key,
        "display_name": key,
        "architecture": "qwen3",
        "quantization": {"name": "Q4_K_M", "bits_per_weight": 4},
        "size_bytes": size,
        "params_string": params,
        "loaded_instances": instances,
        "max_context_length": 131072,
        "format": "gguf",
        "capabilities": {"vision": False, "trained_for_tool_use": tools},
    }


LM_STUDIO_EMBEDDING: dict[str, Any] = {
    "type": "embedding",
    "publisher": "nomic-ai",
    "key": "text-embedding-nomic-embed-text-v1.5",
    "display_name": "Nomic Embed Text v1.5",
    "quantization": {"name": "Q4_0", "bits_per_weight": 4},
    "size_bytes": 84_106_624,
    "params_string": None,
    "loaded_instances": [],
    "max_context_length": 2048,
    "format": "gguf",
}


def lm_studio_of_2025(**states: str) -> dict[str, Any]:
    """`/api/v0/models`."""
    models = [
        {"id": name, "object": "model", "type": "llm", "publisher": "x", "arch": "llama", "state": state,
         "compatibility_type": "gguf", "quantization": "Q4_K_M", "max_context_length": 131072}
        for name, state in states.items()
    ]  # fmt: skip
    embedding = {"id": "nomic-embed", "object": "model", "type": "embeddings", "state": "not-loaded"}
    return {"object": "list", "data": [*models, embedding]}


UNKNOWN_TO_LM_STUDIO = {"error": "Unexpected endpoint or method. (GET /api/v1/models). Returning 200 anyway"}

LISTS: dict[str, dict[str, Any]] = {
    "lmstudio": {
        "/api/v1/models": {
            "models": [
                lm_studio_model("openai/gpt-oss-20b", "20B", 12 * GB),
                lm_studio_model("qwen/qwen3-14b", "14B", 9 * GB),
                LM_STUDIO_EMBEDDING,
            ]
        }
    },
    "vllm": {"/v1/models": vllm("Qwen/Qwen3-32B-AWQ")},
    "sglang": {"/v1/models": sglang("meta-llama/Llama-3.3-70B-Instruct")},
    "llamacpp": {"/v1/models": llama_cpp("/models/Qwen3-8B-Q4_K_M.gguf")},
}
"""By type and path: what a server of each type has where a test says nothing else."""
OLLAMA = (
    OllamaModel("llama3.2:1b", "1.2B", 1 * GB),
    OllamaModel("nomic-embed-text:latest", "137M", GB // 4, ("embedding",)),
    OllamaModel("qwen3:8b", "8.2B", 5 * GB),
    OllamaModel("gemma3:12b", "12.2B", 8 * GB, ("completion", "vision")),
    OllamaModel("llama3.3:70b", "70.6B", 43 * GB),
    OllamaModel("mistral-nemo:latest", "12.2B", 7 * GB),
)


@asynccontextmanager
async def serving(kind: str, lists: dict[str, Any] | None = None) -> AsyncGenerator[RawDouble]:
    """A server of this type with its usual models, or with `lists` by path. It chats as `acting` says."""
    if kind == "ollama":
        async with serving_ollama(*OLLAMA) as server:
            yield server
        return
    told = LISTS[kind] if lists is None else lists

    def respond(seen: Seen, number: int) -> bytes:
        del number
        if seen.path in told:
            return json_reply(told[seen.path])
        return json_reply({"error": {"message": f"{seen.path} not found"}}, "404 Not Found")

    async with answering(respond) as server:
        yield server


@asynccontextmanager
async def all_servers(*kinds: str) -> AsyncGenerator[list[LocalServer]]:
    """The places where servers of these types answer, and where those of the other types do not."""
    async with AsyncExitStack() as stack:
        urls = {kind: (await stack.enter_async_context(serving(kind))).url for kind in kinds}
        closed = f"http://127.0.0.1:{await closed_port()}"
        yield [LocalServer(row.type, urls.get(row.type, closed), named=False) for row in PROVIDERS if row.is_local]


async def closed_port() -> int:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        return listener.extra(SocketAttribute.local_port)  # noqa: S610 - anyio's, not Django's


def acting(dialect: Callable[[], Dialect]) -> Callable[[Seen, int], bytes]:
    """A model that does what is asked: it answers, votes for the first answer of its ballot, and presents."""

    def respond(seen: Seen, number: int) -> bytes:
        tools = {tool["function"]["name"]: tool["function"] for tool in seen.body.get("tools", ())}
        if "vote" in tools:
            choice = tools["vote"]["parameters"]["properties"]["agent_id"]["enum"][0]
            called = dialect().call("vote", json.dumps({"reason": "It is right.", "agent_id": choice}))
        elif "new_answer" in tools:
            called = dialect().call("new_answer", json.dumps({"content": f"Paris, says {number}."}))
        else:
            return reply(dialect().text("Paris.").stop("end").body())
        return reply(called.stop("calls").body())

    return respond


@asynccontextmanager
async def acting_server(kind: str, *models: OllamaModel) -> AsyncGenerator[RawDouble]:
    """A server whose models take part in a team; `requests` are their calls."""
    if kind == "ollama":
        has = models or OLLAMA
        act = acting(OllamaChat)
        known = {name for model in has for name in (model.name, model.name.removesuffix(":latest"))}
        async with answering(
            lambda seen, number: act(seen, number) if seen.body["model"] in known else not_found(seen.body["model"]),
            lambda seen: about_models(seen, has),
        ) as server:
            yield server
        return
    listed = LISTS[kind]
    async with answering(
        acting(Chat), lambda seen: json_reply(listed[seen.path]) if seen.path in listed else None
    ) as server:
        yield server
