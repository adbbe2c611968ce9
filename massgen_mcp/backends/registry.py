"""Makes the backend that an agent's config asks for, and imports no other.

The one place that puts a config, a provider's defaults and the environment together for a model.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from massgen_mcp.backends.base import Backend
from massgen_mcp.config.models import (
    AUTO_MODEL,
    AzureBackendConfig,
    BackendConfig,
    HttpBackend,
    LocalBackendConfig,
    ScriptedBackendConfig,
)
from massgen_mcp.config.native_tools import native_tools_of
from massgen_mcp.config.providers import find_key, missing_variables, provider_for
from massgen_mcp.errors import BackendError

if TYPE_CHECKING:
    from massgen_mcp.backends.http import Endpoint

NO_KEY = "not-needed"
"""What servers are sent that need no key: the SDKs insist on one."""


def make_backend(config: BackendConfig, environ: Mapping[str, str]) -> Backend:
    """The backend for `config`, with its key out of `environ`. Raises `BackendError` if a required key is missing."""
    if isinstance(config, ScriptedBackendConfig):
        from massgen_mcp.backends.scripted import ScriptedBackend

        return ScriptedBackend(config)
    return _http_backend(config, environ)


def _http_backend(config: HttpBackend, environ: Mapping[str, str]) -> Backend:
    for names in missing_variables(config, environ):
        message = f"no key or address for model {config.model!r}: set {' or '.join(names)} in the environment"
        raise BackendError("auth", message)
    endpoint = _endpoint(config, environ)
    if isinstance(config, LocalBackendConfig) and config.model == AUTO_MODEL:
        from massgen_mcp.backends.local_server import LocalServerBackend

        return LocalServerBackend(endpoint)
    match provider_for(config, environ).wire:
        case "responses":
            from massgen_mcp.backends.openai_responses import ResponsesBackend

            return ResponsesBackend(endpoint)
        case "chat":
            from massgen_mcp.backends.chatcompletion import ChatCompletionBackend

            return ChatCompletionBackend(endpoint)
        case "messages":
            from massgen_mcp.backends.claude import ClaudeBackend

            return ClaudeBackend(endpoint)


def _endpoint(config: HttpBackend, environ: Mapping[str, str]) -> "Endpoint":
    from massgen_mcp.backends.http import Endpoint

    azure = isinstance(config, AzureBackendConfig)
    base_url = provider_for(config, environ).base_url
    if azure:
        base_url = f"{base_url.rstrip('/')}/openai/deployments/{quote(config.deployment or config.model, safe='')}"
    return Endpoint(
        model=config.model,
        api_key=find_key(config, environ) or NO_KEY,
        base_url=base_url,
        temperature=config.temperature,
        top_p=config.top_p,
        max_output_tokens=config.max_output_tokens,
        reasoning_effort=config.reasoning_effort,
        effort_field="reasoning" if provider_for(config, environ).type == "openrouter" else "reasoning_effort",
        native_tools=tuple(tool for tool in native_tools_of(config.type) if getattr(config, f"enable_{tool}")),
        key_header="api-key" if azure else "authorization",
        query={"api-version": config.api_version} if azure else {},
        extra_body=config.extra_body,
    )
