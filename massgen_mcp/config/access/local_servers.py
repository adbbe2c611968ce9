"""Finds the model servers of this machine, and asks each what it has, in its own words.

Only when a team has to be made or shown: nobody else pays for it. Must not know what is made of what it finds.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import anyio

from massgen_mcp.config.access.connections import open_client
from massgen_mcp.config.access.model_lists import (
    ListedModel,
    compatible_models,
    context_of_llama_cpp,
    fields_in,
    lm_studio_models,
    loaded_by_ollama,
    ollama_models,
    shown_by_ollama,
)
from massgen_mcp.config.providers.addresses import is_loopback
from massgen_mcp.config.providers.catalog import PROVIDERS, operators_address
from massgen_mcp.errors import BadVariable

if TYPE_CHECKING:
    import httpx2

SECONDS_HERE = 0.3
"""For which a server of this machine is waited for ..."""
SECONDS_ELSEWHERE = 2.0
"""... and one of another machine, which the operator named."""
MAX_BYTES = 1024 * 1024
"""Of one reply."""
SHOWN = 8
"""As many models are asked for what they can, where the list does not tell."""

_OWNERS = {"vllm": ("vllm",), "sglang": ("sglang",), "llamacpp": ("llamacpp",)}
"""What these say of themselves. Their usual ports are everybody's, and a gateway there would ask for money."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A place where people run models of their own, and what it has."""

    type: str
    base_url: str
    named: bool = False
    """Whether the operator said that it is there; else it is one of the usual places."""
    models: tuple[ListedModel, ...] = ()
    """Those that can chat."""

    @property
    def place(self) -> str:
        """Host and port."""
        return urlsplit(self.base_url).netloc


def local_places(environ: Mapping[str, str]) -> list[LocalServer]:
    """Where servers may be: at the addresses of the operator, else at their usual ports of this machine."""
    rows = [row for row in PROVIDERS if row.is_local]
    moved = [(row, operators_address(row, environ)) for row in rows]
    return [LocalServer(row.type, named or row.base_url, named=bool(named)) for row, named in moved]


async def find_local_servers(
    environ: Mapping[str, str], places: Sequence[LocalServer] | None = None, *, seconds: float | None = None
) -> list[LocalServer]:
    """Those that answer in time and have a model that can chat, in the order of the table. All are asked at once."""
    found = list(local_places(environ) if places is None else places)

    async def ask(place: int, server: LocalServer) -> None:
        limit = seconds or (SECONDS_HERE if is_loopback(server.base_url) else SECONDS_ELSEWHERE)
        with anyio.move_on_after(limit), suppress(BadVariable):
            async with open_client(server.base_url, own_server=True, timeout=limit) as client:
                models = await listed_models(client, server.type, server.base_url)
                found[place] = replace(server, models=tuple(_of_that_server(server, models)))

    async with anyio.create_task_group() as tasks:
        for place, server in enumerate(list(found)):
            tasks.start_soon(ask, place, server)
    return [server for server in found if server.models]


async def listed_models(client: "httpx2.AsyncClient", server_type: str, base_url: str) -> list[ListedModel]:
    """All models of a server, those that cannot chat included; none where no list is to be had."""
    ask = _ASK.get(server_type, _ask_compatible)
    return await ask(client, api_root(base_url))


async def states_no_tools(client: "httpx2.AsyncClient", server_type: str, base_url: str) -> bool:
    """Whether the server says that tools would not reach its model. llama.cpp does not refuse them: where the model's
    template has no place for tools, it drops them.
    """
    if server_type != "llamacpp":
        return False
    caps = fields_in(await _get(client, f"{api_root(base_url)}/props")).get("chat_template_caps")
    return isinstance(caps, dict) and cast("dict[str, object]", caps).get("supports_tools") is False


async def loaded_context(client: "httpx2.AsyncClient", server_type: str, base_url: str) -> int | None:
    """Tokens that the only model of a llama.cpp reads in one call; None where it, or another server, says nothing."""
    if server_type != "llamacpp":
        return None
    return context_of_llama_cpp(await _get(client, f"{api_root(base_url)}/props"))


def api_root(base_url: str) -> str:
    """The address without the path of the OpenAI-compatible API, which people write for every server."""
    return base_url.rstrip("/").removesuffix("/v1").rstrip("/")


def described(server: LocalServer, *, most: int = 6) -> str:
    """In words, for a person: where it is and what it has."""
    more = f" and {len(server.models) - most} more" if len(server.models) > most else ""
    return f"{server.type} at {server.place} has {', '.join(map(str, server.models[:most]))}{more}"


def _of_that_server(server: LocalServer, models: Sequence[ListedModel]) -> list[ListedModel]:
    owners = _OWNERS.get(server.type)
    return [model for model in models if model.chats and (server.named or owners is None or model.owner in owners)]


async def _ask_compatible(client: "httpx2.AsyncClient", root: str) -> list[ListedModel]:
    return compatible_models(await _get(client, f"{root}/v1/models"))


async def _ask_lm_studio(client: "httpx2.AsyncClient", root: str) -> list[ListedModel]:
    for path in ("/api/v1/models", "/api/v0/models"):
        if models := lm_studio_models(await _get(client, f"{root}{path}")):
            return models
    return await _ask_compatible(client, root)


async def _ask_ollama(client: "httpx2.AsyncClient", root: str) -> list[ListedModel]:
    models = ollama_models(await _get(client, f"{root}/api/tags"))
    if not models:
        return []
    loaded = loaded_by_ollama(await _get(client, f"{root}/api/ps"))
    models = [replace(model, loaded=model.name in loaded) for model in models]

    async def show(place: int) -> None:
        body = await read_reply(client, "POST", f"{root}/api/show", {"model": models[place].name})
        models[place] = shown_by_ollama(models[place], body)

    by_size = sorted(range(len(models)), key=lambda place: -(models[place].size_bytes or 0))
    unknown = [place for place in by_size if models[place].chats and models[place].tools is None]
    async with anyio.create_task_group() as tasks:
        for place in unknown[:SHOWN]:
            tasks.start_soon(show, place)
    return models


_ASK: dict[str, Callable[["httpx2.AsyncClient", str], Awaitable[list[ListedModel]]]] = {
    "ollama": _ask_ollama,
    "lmstudio": _ask_lm_studio,
}


async def _get(client: "httpx2.AsyncClient", url: str) -> bytes:
    return await read_reply(client, "GET", url)


async def read_reply(client: "httpx2.AsyncClient", method: str, url: str, body: dict[str, Any] | None = None) -> bytes:
    """What a server answers; nothing where it fails, refuses, or does not come to an end."""
    import httpx2  # here: a process that makes no team starts without it

    answer = b""
    try:
        async with client.stream(method, url, json=body) as reply:
            if not reply.is_success:
                return b""
            async for piece in reply.aiter_bytes():
                answer += piece
                if len(answer) > MAX_BYTES:
                    return b""
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return b""
    return answer
