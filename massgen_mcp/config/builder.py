"""Configs that nobody wrote: from a list of models, or from what this machine and environment offer.

It asks only local model servers, and only when a default team is wanted.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import anyio
from pydantic import TypeAdapter, ValidationError

from massgen_mcp.config import agent_clis
from massgen_mcp.config.diagnostics import show_name
from massgen_mcp.config.key_hosts import find_key
from massgen_mcp.config.models import (
    MAX_MODEL_NAME,
    AgentConfig,
    BackendConfig,
    ClaudeCodeBackendConfig,
    Config,
    ProviderBackendConfig,
)
from massgen_mcp.config.providers import PROVIDERS, detect_backend, named_provider
from massgen_mcp.errors import MassgenError

if TYPE_CHECKING:
    import httpx2

_BACKEND: TypeAdapter[BackendConfig] = TypeAdapter(BackendConfig)

MAX_AGENTS = 10
PROBE_SECONDS = 0.3
MAX_PROBE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A place where people run models on their own machine, and what it offered when asked."""

    name: str
    port: int
    models: tuple[str, ...] = ()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


LOCAL_SERVERS = (
    LocalServer("lmstudio", 1234),
    LocalServer("vllm", 8000),
    LocalServer("ollama", 11434),
    LocalServer("sglang", 30000),
)
"""Where LM Studio, vLLM, Ollama and SGLang listen unless told otherwise."""


def config_from_models(models: Sequence[str], *, num_agents: int | None, base_url: str | None = None) -> Config:
    """A team with one agent per model (`provider/model`, or a plain name such as `gpt-5`).

    With `num_agents` the models are dealt out in turn until there are that many agents. `base_url` is where all of them
    are asked, instead of at their providers'. Ids are `provider-model-place`. Raises `MassgenError("config_invalid")`.
    """
    if not models:
        raise MassgenError("config_invalid", "name at least one model, such as openai/MODEL")
    count = len(models) if num_agents is None else num_agents
    if not 1 <= count <= MAX_AGENTS:
        raise MassgenError("config_invalid", f"a team has 1 to {MAX_AGENTS} agents, not {count}")
    if count < len(models):
        raise MassgenError("config_invalid", f"{len(models)} models are too many for {count} agents; name fewer models")
    dealt = [detect_backend(models[place % len(models)]) for place in range(count)]
    return Config(
        agents=tuple(_agent(name, model, place, base_url) for place, (name, model) in enumerate(dealt, start=1))
    )


def backend_of(provider: str, model: str, *, base_url: str | None = None) -> BackendConfig:
    """The backend that asks `model` at `provider` (a name of the provider table, or `scripted`)."""
    if not 1 <= len(model) <= MAX_MODEL_NAME or not model.isprintable():
        told = f"a model's name has 1 to {MAX_MODEL_NAME} characters, and no line breaks or control characters"
        raise MassgenError("config_invalid", f"{show_name(model[:MAX_MODEL_NAME])}: {told}")
    asked: dict[str, str] = {"model": model} if base_url is None else {"model": model, "base_url": base_url}
    wrong = f"{provider} at {base_url!a}: not a usable address"
    match provider:
        case "scripted":
            data = {"type": provider, "model": model}
        case "claude_code":
            data = {"type": provider, "model": model}
            wrong = f"{show_name(model)}: a model of Claude Code begins with a letter or digit and has no spaces"
        case "ag2":
            data = {"type": provider, "agent_config": {"llm_config": asked}}
        case _:
            data = {"type": named_provider(provider).type, **asked}
    try:
        return _BACKEND.validate_python(data)
    except ValidationError as error:
        raise MassgenError("config_invalid", wrong) from error


async def default_team(environ: Mapping[str, str], *, local_servers: Sequence[LocalServer] = LOCAL_SERVERS) -> Config:
    """The team for a caller who names none: a strong model of each provider whose key is set, else a local server's,
    else Claude Code where it is installed and logged in.

    Never the scripted backend. Raises `MassgenError("no_default_team")` that names the ways out.
    """
    strong = [f"{row.type}/{row.strong_model}" for row in PROVIDERS if row.strong_model is not None]
    reachable = [model for model in strong if _has_key(model, environ)]
    if reachable:
        return config_from_models(reachable, num_agents=None)
    for server in await find_local_servers(local_servers):
        backend = backend_of("chatcompletion", server.models[0], base_url=server.base_url)
        return Config(agents=(AgentConfig(id=_agent_id(server.name, server.models[0], 1), backend=backend),))
    claude_code = ClaudeCodeBackendConfig(type="claude_code")
    if agent_clis.lack(environ) is None and agent_clis.find_login(claude_code, environ) is not None:
        return Config(agents=(AgentConfig(id="claude_code-1", backend=claude_code),))
    keys = " or ".join(row.key_variables[0] for row in PROVIDERS if row.strong_model)
    ports = ", ".join(str(server.port) for server in local_servers)
    raise MassgenError(
        "no_default_team",
        f"no team to start with: no key of a provider is set, no model server answers on ports {ports} of this "
        f"machine, and Claude Code is not installed here with a login ({agent_clis.EXTRA}). "
        f"Set {keys}, name a config or models, make a config with `massgen --init`, or "
        "try @examples/scripted, which calls no model.",
    )


def describe_default(team: Config) -> str:
    """In words, what a default team was made of."""
    match team.agents[0].backend:
        case ClaudeCodeBackendConfig():
            return "default team: Claude Code as installed here; no key of a provider is set, no model server answers"
        case ProviderBackendConfig(type="chatcompletion", base_url=address):
            return f"default team: the model server at {address}; no key of a provider is set"
        case _:
            return "default team of the keys that are set"


async def find_local_servers(
    servers: Sequence[LocalServer] = LOCAL_SERVERS, *, timeout_seconds: float = PROBE_SECONDS
) -> list[LocalServer]:
    """Those of `servers` that answer in time and offer a model that can chat, with their models, in the given order."""
    import httpx2  # here: a process that builds no default team starts without it

    offers: list[tuple[str, ...]] = [()] * len(servers)
    async with httpx2.AsyncClient(trust_env=False, timeout=timeout_seconds) as client:

        async def probe(place: int) -> None:
            with anyio.move_on_after(timeout_seconds):
                offers[place] = await _models_at(client, servers[place].base_url)

        async with anyio.create_task_group() as tasks:
            for place in range(len(servers)):
                tasks.start_soon(probe, place)
    return [
        LocalServer(server.name, server.port, models) for server, models in zip(servers, offers, strict=True) if models
    ]


async def _models_at(client: "httpx2.AsyncClient", base_url: str) -> tuple[str, ...]:
    """Names of the models a server offers, embedding models left out; empty when it is no model server."""
    import httpx2  # see find_local_servers

    body = b""
    try:
        async with client.stream("GET", f"{base_url}/models") as reply:
            if not reply.is_success:
                return ()
            async for piece in reply.aiter_bytes():
                body += piece
                if len(body) > MAX_PROBE_BYTES:
                    return ()
    except httpx2.HTTPError:
        return ()
    return chat_models(body)


def chat_models(body: bytes) -> tuple[str, ...]:
    """Names of the models in a server's reply to `GET /models`, embedding models left out; empty if it is none."""
    try:
        listed: object = json.loads(body)
    except (ValueError, RecursionError):
        return ()
    return tuple(name for name in _ids(listed) if _can_chat(name))


def _can_chat(name: str) -> bool:
    """Whether a team may be made of this model, as far as its name tells."""
    return "embed" not in name.lower() and len(name) <= MAX_MODEL_NAME and name.isprintable()


def _ids(listed: object) -> list[str]:
    """The ids in `{"data": [{"id": ...}]}`, whatever else is there."""
    entries = cast("dict[str, object]", listed).get("data") if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        return []
    maps = [cast("dict[str, object]", entry) for entry in cast("list[object]", entries) if isinstance(entry, dict)]
    ids = [entry.get("id") for entry in maps]
    return [name for name in ids if isinstance(name, str) and name]


def _has_key(model: str, environ: Mapping[str, str]) -> bool:
    backend = backend_of(*detect_backend(model))
    return isinstance(backend, ProviderBackendConfig) and find_key(backend, environ) is not None


def _agent(provider: str, model: str, place: int, base_url: str | None) -> AgentConfig:
    return AgentConfig(id=_agent_id(provider, model, place), backend=backend_of(provider, model, base_url=base_url))


def _agent_id(provider: str, model: str, place: int) -> str:
    """`openai-gpt5-1`: provider, the model's last part without punctuation, place in the team."""
    return f"{provider}-{short_name(model)}-{place}"


def short_name(model: str) -> str:
    """The model's name after the last slash, without punctuation, as a part of an agent's id."""
    return re.sub(r"[^a-z0-9]", "", model.rpartition("/")[2].lower())[:40] or "model"
