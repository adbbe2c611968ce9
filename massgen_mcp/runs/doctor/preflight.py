"""What is looked at before a run begins and a cent is spent: whether servers have the models, and room on the disk.

A server that says nothing, or too late, is no reason not to begin: the run itself will tell.
"""

import json
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import anyio

from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.config.access.key_hosts import find_key, lists_all_models, provider_for
from massgen_mcp.config.access.local_servers import listed_models, read_reply
from massgen_mcp.config.access.members import asked_by
from massgen_mcp.config.access.model_lists import ListedModel, compatible_models, gemini_models
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.models.http_backends import (
    AUTO_MODEL,
    AnyHttpBackend,
    AzureBackendConfig,
    LocalServerConfig,
    OllamaBackendConfig,
)
from massgen_mcp.config.providers.catalog import named_provider
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import write_durably
from massgen_mcp.nearest import nearest
from massgen_mcp.runs.doctor.connections import (
    ASKING,
    find_connection_fault,
    is_behind_proxy,
    is_certain,
    require_connections,
)
from massgen_mcp.threads import imported

if TYPE_CHECKING:
    import httpx2

    from massgen_mcp.backends.http import Endpoint

LEAST_FREE_BYTES = 50 << 20
"""Of the disk, for a run."""
MODEL_LISTS = "model_lists.json"
"""In the state directory: the lists that were read before."""
SECONDS = 2.0
"""So long a server may take to list its models, before a person is kept waiting."""
TOOL_SECONDS = 0.7
"""The same for a tool, which is to return at once."""
KEPT_SECONDS = 24 * 3600
SILENT_SECONDS = 600.0
"""So long a tool does not ask again whoever gave no list."""

Whom: TypeAlias = tuple[str, str | None]
"""A server's address, and the key that it is asked with."""

_MOST_NAMED = 6
_VARIANTS = ("-", ":", "@")
"""What stands between a model's name and a date, a size or an option."""
_NEWEST = re.compile(r"-(latest|0)$")
"""A name that ends so means the newest model of a series; lists have that under its date."""


def require_room(place: Path) -> None:
    """Raises `MassgenError` invalid_arguments if the disk that holds `place` is as good as full."""
    there = next(path for path in (place, *place.parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < LEAST_FREE_BYTES:
        message = f"only {free >> 20} MB is free in {there}, but a run needs {LEAST_FREE_BYTES >> 20} MB"
        raise MassgenError("invalid_arguments", f"{message}; free some space (`massgen prune` removes old runs)")


async def require_models(
    config: Config,
    environ: Mapping[str, str],
    kept: Path | None,
    *,
    seconds: float = SECONDS,
    silent: dict[Whom, float] | None = None,
) -> str | None:
    """Raises `MassgenError` config_invalid for models that their servers do not have. Returns what a caller should know
    of models that a server does not list, but may have. `kept`: the file with the lists that were read before; None:
    nothing is to be left. `silent`: for a process that asks again and again, who gave it no list, and until when they
    are left alone.
    """
    notes, blocked = require_connections(config, environ), list[str]()
    wanted = [
        (agent.id, backend, address)
        for agent in config.agents
        for backend in asked_by([agent.backend])
        if not isinstance(backend, AzureBackendConfig)  # it has no list
        and backend.model != AUTO_MODEL
        and (address := provider_for(backend, environ).base_url)
    ]
    if not wanted:
        return " ".join(notes) or None
    await imported(*ASKING)
    lists = _read_kept(kept) if kept else {}
    now = time.monotonic()
    silent_until = {} if silent is None else silent
    unknown: dict[Whom, list[tuple[str, AnyHttpBackend]]] = {}
    for agent_id, backend, address in wanted:
        whom = address, find_key(backend, environ)
        is_known = _has(lists.get(address, _NONE).names, backend.model) and not is_behind_proxy(backend, environ)
        if not is_known and silent_until.get(whom, 0.0) <= now:
            unknown.setdefault(whom, []).append((agent_id, backend))
    read: dict[Whom, list[str]] = {}

    async def ask(whom: Whom, backend: AnyHttpBackend) -> None:
        with anyio.move_on_after(seconds):
            read[whom] = await _models_at(backend, whom[0], environ)
            if (
                not read[whom]
                and (fault := await find_connection_fault(_describe_endpoint(backend, environ))) is not None
            ):
                (blocked if is_certain(fault) else notes).append(str(fault))

    silent_until.update(dict.fromkeys(unknown, now + SILENT_SECONDS))  # even if the caller stops waiting
    async with anyio.create_task_group() as tasks:
        for whom, asking in unknown.items():
            tasks.start_soon(ask, whom, asking[0][1])
    found = {whom: names for whom, names in read.items() if names}
    if blocked:
        silent_until.update(dict.fromkeys(unknown, 0.0))
        raise MassgenError("config_invalid", "\n".join(blocked))
    silent_until.update(dict.fromkeys(found, 0.0))
    if found and kept:
        _keep(kept, {**lists, **{address: _Kept(time.time(), names) for (address, _), names in found.items()}})
    unlisted = _judged(
        [
            (agent, whom[0], backend, names)
            for whom, names in found.items()
            for agent, backend in unknown[whom]
            if not _has(names, backend.model)
        ],
        environ,
    )
    return " ".join([*notes, unlisted or ""]).strip() or None


def _judged(unlisted: Sequence[tuple[str, str, AnyHttpBackend, list[str]]], environ: Mapping[str, str]) -> str | None:
    """Of models that their servers do not list. Raises where such a list is whole, returns a note on the others."""
    if missing := [one for one in unlisted if lists_all_models(one[2], environ)]:
        raise MassgenError("config_invalid", "\n".join(_missing(*one) for one in missing))
    return " ".join(_unlisted(*one) for one in unlisted) or None


async def _models_at(backend: AnyHttpBackend, address: str, environ: Mapping[str, str]) -> list[str]:
    from massgen_mcp.backends.agent_types.provider_models import NO_KEY  # see ASKING
    from massgen_mcp.backends.http import listing_client

    root, key = address.rstrip("/"), find_key(backend, environ) or NO_KEY
    async with listing_client(_describe_endpoint(backend, environ)) as client:
        if isinstance(backend, LocalServerConfig | OllamaBackendConfig):
            return [model.name for model in await listed_models(client, backend.type, address)]
        match provider_for(backend, environ).wire:
            case "messages":
                client.headers.update({"x-api-key": key, "anthropic-version": "2023-06-01"})
                return await _compatible(client, f"{root.removesuffix('/v1')}/v1/models?limit=1000")
            case "gemini":
                client.headers["x-goog-api-key"] = key
                body = await read_reply(client, "GET", f"{root}/models?pageSize=1000")
                return [model.name for model in gemini_models(body)]
            case _:
                return await _compatible(client, f"{root}/models")


def _describe_endpoint(backend: AnyHttpBackend, environ: Mapping[str, str]) -> "Endpoint":
    from massgen_mcp.backends.adapter import Making  # see ASKING
    from massgen_mcp.backends.agent_types.provider_models import describe_endpoint

    return describe_endpoint(backend, Making(environ, redactor_for(environ, [backend])))


async def _compatible(client: "httpx2.AsyncClient", url: str) -> list[str]:
    return [model.name for model in compatible_models(await read_reply(client, "GET", url))]


def _has(names: Sequence[str], wanted: str) -> bool:
    """Also under a name with a date, a size or an option behind it, or with its publisher before it."""
    from massgen_mcp.backends.local_server import meant_model  # see ASKING

    if meant_model(wanted, [ListedModel(name) for name in names]) is not None:
        return True
    model = _NEWEST.sub("", wanted.removeprefix("models/"))
    return any(
        name == model
        or name.startswith(tuple(model + one for one in _VARIANTS))
        or model.startswith(tuple(name + one for one in _VARIANTS))
        for name in names
    )


def _missing(agent: str, address: str, backend: AnyHttpBackend, names: Sequence[str]) -> str:
    message = f"agent '{agent}': {address} has no model '{backend.model}'; {_instead(backend.model, names, 'has')}"
    if named_provider(backend.type).is_local:
        return f"{message}. If this is a gateway that serves more models than it lists, set `type: chatcompletion`"
    return message


def _unlisted(agent: str, address: str, backend: AnyHttpBackend, names: Sequence[str]) -> str:
    message = f"agent '{agent}': {address} doesn't list the model '{backend.model}'; massgen requests it anyway"
    return f"{message}; {_instead(backend.model, names, 'lists')}."


def _instead(model: str, names: Sequence[str], has: str) -> str:
    near = nearest(model, names, cutoff=0.4)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{f'did you mean {near}? It' if near else 'it'} {has} {', '.join(names[:_MOST_NAMED])}{more}"


# -- the lists that were read before ----------------------------------------------------------------------------------


class _Kept(NamedTuple):
    """The models of one server, and when they were read: seconds since the epoch."""

    time: float
    names: list[str]


_NONE = _Kept(0, [])


def _read_kept(kept: Path) -> dict[str, _Kept]:
    """By address, without old ones; none where the file is not there, or is no such file."""
    oldest = time.time() - KEPT_SECONDS
    with suppress(OSError, ValueError, TypeError, AttributeError):
        lists = cast("dict[str, tuple[float, list[str]]]", json.loads(kept.read_bytes()))
        return {
            address: _Kept(read, list(map(str, names))) for address, (read, names) in lists.items() if read > oldest
        }
    return {}


def _keep(kept: Path, lists: Mapping[str, _Kept]) -> None:
    with suppress(OSError):  # the next run reads them again
        write_durably(kept, json.dumps(lists).encode())
