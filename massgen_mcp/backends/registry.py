"""Makes the backend that an agent's config asks for, and imports no other.

The one place that puts a config, a provider's defaults and the environment together for a model.
"""

from collections.abc import Mapping
from dataclasses import replace
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

    provider = provider_for(config, environ)
    endpoint = Endpoint(
        model=config.model,
        api_key=find_key(config, environ) or NO_KEY,
        base_url=provider.base_url,
        temperature=config.temperature,
        top_p=config.top_p,
        max_output_tokens=config.max_output_tokens,
        reasoning_effort=config.reasoning_effort,
        effort_field="reasoning" if provider.type == "openrouter" else "reasoning_effort",
        native_tools=tuple(tool for tool in native_tools_of(config.type) if getattr(config, f"enable_{tool}")),
        extra_body=config.extra_body,
    )
    return _at_azure(config, endpoint) if isinstance(config, AzureBackendConfig) else endpoint


def _at_azure(config: AzureBackendConfig, endpoint: "Endpoint") -> "Endpoint":
    """Where a deployment is: named in the request at the `v1` API, in the path with a version of the older one."""
    root = (endpoint.base_url or "").rstrip("/").removesuffix("/openai/v1")
    deployment = config.deployment or config.model
    if config.api_version == "v1":
        return replace(endpoint, base_url=f"{root}/openai/v1", deployment=deployment, key_header="api-key")
    return replace(
        endpoint,
        base_url=f"{root}/openai/deployments/{quote(deployment, safe='')}",
        query={"api-version": config.api_version},
        key_header="api-key",
    )
