"""The provider that LiteLLM calls: complete and streamed, with and without `await`. Imports LiteLLM.

A call is told to LiteLLM in its own types, errors too.
"""

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from typing import Any, cast

import httpx
import litellm
from anyio.from_thread import start_blocking_portal
from litellm import exceptions
from litellm.llms.custom_llm import CustomLLM
from litellm.types.utils import (  # pyright: ignore[reportMissingTypeStubs] - typed, but not said to be
    GenericStreamingChunk,
    ModelResponse,
    Usage,
)
from litellm.utils import custom_llm_setup

from massgen_mcp.api.performing import perform
from massgen_mcp.api.request import PreparedRequest
from massgen_mcp.errors import FAULTS_OF_THE_MACHINE, BackendError, MassgenError, RunNotCompleted
from massgen_mcp.integrations.called_model import UnsupportedParameters, request_of
from massgen_mcp.integrations.litellm_run import in_thread, pieces

METADATA = (
    *("config_used", "session_id", "log_directory", "final_answer_path"),
    *("selected_agent", "vote_results", "answers", "agent_mapping", "outcome", "voted", "degraded"),
    *("decided_by", "weak", "failure"),
    *("cost", "applied"),
)
"""What is in `_hidden_params` of every response, under `massgen_…`; None where a run of one agent has no such thing."""


def register(provider: str) -> None:
    """Add the provider to LiteLLM's list, once."""
    if any(entry["provider"] == provider for entry in litellm.custom_provider_map):
        return
    litellm.custom_provider_map.append({"provider": provider, "custom_handler": MassgenProvider(provider)})
    custom_llm_setup()


class MassgenProvider(CustomLLM):
    """One run per call. `timeout` limits the run; retries are the engine's, so LiteLLM should not add any."""

    def __init__(self, provider: str) -> None:
        super().__init__()
        self._provider = provider

    def completion(self, *_: Any, **call: Any) -> ModelResponse:  # noqa: ANN401 - LiteLLM's signature
        # In a thread of its own: the caller's may have an event loop that runs (Jupyter), and must wait here anyway.
        with start_blocking_portal() as portal:
            return portal.call(self._complete, call)

    async def acompletion(self, *_: Any, **call: Any) -> ModelResponse:  # noqa: ANN401 - LiteLLM's signature
        return await self._complete(call)

    def streaming(self, *_: Any, **call: Any) -> Generator[GenericStreamingChunk]:  # noqa: ANN401 - LiteLLM's signature
        for piece in in_thread(self._pieces(call)):
            yield _chunk(piece)

    # LiteLLM declares a coroutine and iterates what it gets.
    async def astreaming(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        *_: Any,  # noqa: ANN401 - LiteLLM's signature
        **call: Any,  # noqa: ANN401 - LiteLLM's signature
    ) -> AsyncGenerator[GenericStreamingChunk]:
        async with aclosing(self._pieces(call)) as source:
            async for piece in source:
                yield _chunk(piece)

    async def _complete(self, call: dict[str, Any]) -> ModelResponse:
        try:
            result = await perform(await _request(call))
        except (MassgenError, BackendError) as error:
            raise self._litellm_error(error, call) from error
        response: ModelResponse = call["model_response"]
        # LiteLLM types a choice as one that may be a stream's, which has no message.
        response.choices[0].message.content = result["final_answer"]  # pyright: ignore[reportAttributeAccessIssue]
        response.choices[0].finish_reason = "stop"
        response.model = f"{self._provider}/{call['model']}"
        # LiteLLM's own places for these, though its class declares neither.
        hidden = cast("dict[str, Any]", vars(response).get("_hidden_params") or {})
        for name, value in (("usage", Usage(**result["usage"])), ("_hidden_params", hidden | _metadata(result))):
            setattr(response, name, value)
        return response

    async def _pieces(self, call: dict[str, Any]) -> AsyncGenerator[str | dict[str, Any]]:
        try:
            async with aclosing(pieces(await _request(call))) as source:
                async for piece in source:
                    yield piece
        except (MassgenError, BackendError) as error:
            raise self._litellm_error(error, call) from error

    def _litellm_error(self, error: MassgenError | BackendError, call: dict[str, Any]) -> Exception:
        kind = _kind(error)
        return kind(message=str(error), llm_provider=self._provider, model=str(call["model"]))


async def _request(call: dict[str, Any]) -> PreparedRequest:
    settings = cast("dict[str, Any]", call.get("litellm_params") or {})
    if call.get("api_key"):
        raise MassgenError("invalid_arguments", "api_key: massgen reads keys only from the environment; leave it out")
    timeout: float | httpx.Timeout | None = call.get("timeout")
    return await request_of(
        str(call["model"]),
        call["messages"],
        call["optional_params"],
        api_base=call.get("api_base"),
        timeout=timeout.read if isinstance(timeout, httpx.Timeout) else timeout,
        drop_unsupported=bool(settings.get("drop_params") or litellm.drop_params),
    )


def _metadata(result: dict[str, Any]) -> dict[str, Any]:
    return {f"massgen_{name}": result.get(name) for name in METADATA}


def _chunk(piece: str | dict[str, Any]) -> GenericStreamingChunk:
    """A piece of text, or the end with everything about the run in `provider_specific_fields`."""
    if isinstance(piece, str):
        return GenericStreamingChunk(
            text=piece, tool_use=None, is_finished=False, finish_reason="", usage=None, index=0
        )
    return GenericStreamingChunk(
        text="",
        tool_use=None,
        is_finished=True,
        finish_reason="stop",
        usage=piece["usage"],
        index=0,
        provider_specific_fields=_metadata(piece),
    )


def _kind(error: MassgenError | BackendError) -> Any:  # noqa: ANN401 - one of LiteLLM's classes; their constructors differ
    """Which of LiteLLM's exceptions says the same, so that its callers handle it as from any provider."""
    match error:
        case UnsupportedParameters():
            return exceptions.UnsupportedParamsError
        case RunNotCompleted(state="timed_out") | RunNotCompleted(reason="timeout"):
            return exceptions.Timeout
        case RunNotCompleted(reason=reason) | BackendError(reason=reason):
            return _BY_REASON.get(str(reason), exceptions.InternalServerError)
        case MassgenError(code=code) if code in FAULTS_OF_THE_MACHINE:
            return exceptions.InternalServerError
        case MassgenError(code=code):
            return _BY_CODE.get(code, exceptions.BadRequestError)


_BY_REASON: dict[str, Any] = {
    "auth": exceptions.AuthenticationError,
    "quota_exhausted": exceptions.RateLimitError,
    "rate_limited": exceptions.RateLimitError,
    "model_not_found": exceptions.NotFoundError,
    "context_too_small": exceptions.ContextWindowExceededError,
    "content_filter": exceptions.ContentPolicyViolationError,
    "tools_unsupported": exceptions.BadRequestError,
    "config_invalid": exceptions.BadRequestError,
}
_BY_CODE: dict[str, Any] = {
    "missing_key": exceptions.AuthenticationError,
    "no_default_team": exceptions.AuthenticationError,
    "config_not_found": exceptions.NotFoundError,
}
