"""A model server of one's own: which of its models is meant by `auto`, by a family's name, or by none that it has.

Must not know wire formats; the calls themselves are another backend's.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace

import anyio

from massgen_mcp.backends.base import Backend, ModelRequest, Part, Sized, prepare
from massgen_mcp.backends.failures import failure, translated
from massgen_mcp.backends.http import Endpoint, listing_client
from massgen_mcp.config.access.local_servers import (
    MAX_BYTES,
    LocalServer,
    api_root,
    listed_models,
    loaded_context,
    states_no_tools,
)
from massgen_mcp.config.access.model_lists import ListedModel
from massgen_mcp.config.default_team import chosen_models
from massgen_mcp.config.models.http_backends import AUTO_MODEL
from massgen_mcp.errors import BackendError
from massgen_mcp.nearest import nearest

MOST_NAMED = 8
WINDOW_SECONDS = 5.0
"""So long a server may take to say how much its model reads."""


class LocalServerBackend:
    """Asks with the name as it was given, and looks into the server's list where there is no such model."""

    def __init__(self, server_type: str, endpoint: Endpoint, wire: Callable[[Endpoint], Backend]) -> None:
        self.model = endpoint.model
        self._type = server_type
        self._endpoint = endpoint
        self._base_url = endpoint.base_url or ""
        self._wire = wire
        self._lock = anyio.Lock()
        self._asked: Backend | None = None
        self._drops_tools: bool | None = None
        """None: nobody has asked yet."""

    async def prepare(self) -> None:
        """Whichever model it will be: the wire is the same."""
        async with self._lock:
            if self._asked is not None:
                return
            wire = self._wire(self._endpoint)
            try:
                await prepare(wire)
            finally:
                if self._endpoint.model == AUTO_MODEL:
                    await wire.aclose()
                else:
                    self._asked = wire

    async def window(self) -> int | None:
        """As it is loaded where the server tells that, else what the model can read at most."""
        with anyio.move_on_after(WINDOW_SECONDS), suppress(BackendError):
            async with self._lock:
                asked = await self._chosen()
            if isinstance(asked, Sized):
                return await asked.window()
            async with listing_client(self._endpoint) as client:
                if (loaded := await loaded_context(client, self._type, self._base_url)) is not None:
                    return loaded
            models = await self._listed_models()
            named = next((model for model in models if model.name == asked.model), None)
            found = named or meant_model(asked.model, models)
            return found and found.context
        return None

    async def _chosen(self) -> Backend:
        """Who is asked; the largest model that fits, where the config leaves it open."""
        if self._asked is None:
            auto = self._endpoint.model == AUTO_MODEL
            self._asked = self._wire(await self._auto() if auto else self._endpoint)
        return self._asked

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        async with self._lock:
            asked = await self._chosen()
            if self._drops_tools is None and request.tools:
                async with listing_client(self._endpoint) as client:
                    self._drops_tools = await states_no_tools(client, self._type, self._base_url)
        if self._drops_tools and request.tools:
            message = f"{self._base_url}: this model's chat template doesn't support tools"
            raise BackendError("tools_unsupported", message, refused="tools")
        missing = None
        try:
            async with aclosing(asked.stream(request)) as parts:
                async for part in parts:
                    yield part
        except BackendError as error:
            if error.reason != "model_not_found":
                raise
            missing = error
        if missing is not None:
            async with aclosing((await self._meant(asked, missing)).stream(request)) as parts:
                async for part in parts:
                    yield part

    async def aclose(self) -> None:
        if self._asked is not None:
            await self._asked.aclose()

    async def _auto(self) -> Endpoint:
        """The largest chat model that fits, else the first one. Raises `BackendError` if there is none."""
        models = [model for model in await self._listed_models() if model.chats]
        if not models:
            with translated(self._endpoint):
                raise await self._why_nothing()
        best = chosen_models(LocalServer(self._type, self._base_url, named=True, models=tuple(models)))
        return replace(self._endpoint, model=(best or models)[0].name)

    async def _meant(self, asked: Backend, error: BackendError) -> Backend:
        """Who is asked from now on, in place of a model that the server does not have. Raises `BackendError`."""
        async with self._lock:
            if self._asked is not asked and self._asked is not None:
                return self._asked
            models = await self._listed_models()
            found = meant_model(asked.model, models)
            if found is None or found.name == asked.model:
                raise _unknown(error, asked.model, models)
            await asked.aclose()
            self._asked = self._wire(replace(self._endpoint, model=found.name))
            return self._asked

    async def _listed_models(self) -> list[ListedModel]:
        async with listing_client(self._endpoint) as client:
            return await listed_models(client, self._type, self._base_url)

    async def _why_nothing(self) -> BackendError:
        path = "/api/tags" if self._type == "ollama" else "/v1/models"
        url, size = f"{api_root(self._base_url)}{path}", 0
        async with listing_client(self._endpoint) as client, client.stream("GET", url) as reply:
            if not reply.is_success:
                message = f"{url} answered {reply.status_code} instead of listing its models; name one with `model`"
                return failure("provider_error", message, self._endpoint, retryable=reply.status_code >= 500)
            async for piece in reply.aiter_bytes():
                size += len(piece)
                if size > MAX_BYTES:
                    return failure("bad_reply", f"{url} sent more than {MAX_BYTES} bytes", self._endpoint)
        message = f"{url} lists no chat models; load one, or name one with `model`"
        return failure("model_not_found", message, self._endpoint)


def meant_model(name: str, models: Sequence[ListedModel]) -> ListedModel | None:
    """The listed model that somebody means by a shorter name: without its tag (`qwen3` for `qwen3:8b`), its publisher
    (`qwen3-8b` for `Qwen/Qwen3-8B`) or its ending. Of several the largest.
    """
    wanted = name.lower()
    alike = [model for model in models if wanted in _short_names(model.name)]
    return max(alike, key=lambda model: model.billions or 0, default=None)


def _short_names(name: str) -> set[str]:
    whole = name.lower().removesuffix(".gguf")
    last = whole.rpartition("/")[2]
    return {whole, last, whole.partition(":")[0], last.partition(":")[0]}


def _unknown(error: BackendError, name: str, models: Sequence[ListedModel]) -> BackendError:
    """`error` with the nearest of what the server has."""
    names = [model.name for model in models if model.chats]
    if not names:
        return error
    near = nearest(name, names, cutoff=0.4)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    hint = f"did you mean {near!r}? " if near else ""
    has = f"{hint}the server has {', '.join(names[:MOST_NAMED])}{more}"
    return BackendError("model_not_found", f"{error}; {has}")
