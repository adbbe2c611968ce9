"""A model server of one's own that is asked for "whatever you serve".

Must not know wire formats beyond the list of models; the calls themselves are Chat Completions.
"""

from collections.abc import AsyncGenerator
from dataclasses import replace

import anyio

from massgen_mcp.backends.base import ModelRequest, Part
from massgen_mcp.backends.chatcompletion import ChatCompletionBackend
from massgen_mcp.backends.failures import failure, translated
from massgen_mcp.backends.http import Endpoint, listing_client
from massgen_mcp.config.builder import MAX_PROBE_BYTES, chat_models


class LocalServerBackend:
    """Asks the first chat model that the server at `endpoint.base_url` lists, looked up at the first call."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._base_url = endpoint.base_url or ""
        self._lock = anyio.Lock()
        self._found: ChatCompletionBackend | None = None

    @property
    def model(self) -> str:
        return self._endpoint.model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        async with self._lock:
            if self._found is None:
                with translated(self._endpoint, self._base_url):
                    model = await self._first_model()
                self._found = ChatCompletionBackend(replace(self._endpoint, model=model))
        parts = self._found.stream(request)
        try:
            async for part in parts:
                yield part
        finally:
            await parts.aclose()

    async def aclose(self) -> None:
        if self._found is not None:
            await self._found.aclose()

    async def _first_model(self) -> str:
        url = f"{self._base_url.rstrip('/')}/models"
        body = b""
        async with listing_client(self._endpoint.api_key) as client, client.stream("GET", url) as reply:
            if not reply.is_success:
                message = f"{url} answered {reply.status_code} instead of its models; name one with 'model'"
                raise failure("provider_error", message, self._endpoint, retryable=reply.status_code >= 500)
            async for piece in reply.aiter_bytes():
                body += piece
                if len(body) > MAX_PROBE_BYTES:
                    raise failure("bad_reply", f"{url} sent more than {MAX_PROBE_BYTES} bytes", self._endpoint)
        models = chat_models(body)
        if not models:
            message = f"{url} lists no chat model; load one, or name one with 'model'"
            raise failure("model_not_found", message, self._endpoint)
        return models[0]
