"""Makes the backend that an agent's config asks for, and imports no other.

The one place that puts a config, a provider's defaults and the environment together for a model.
"""

from collections.abc import Mapping

from massgen_mcp.backends.base import Backend
from massgen_mcp.config.models import BackendConfig, HttpBackendConfig, ScriptedBackendConfig
from massgen_mcp.config.providers import find_key, key_required, key_variables, provider_for
from massgen_mcp.errors import BackendError

NO_KEY = "not-needed"
"""What servers are sent that need no key: the SDKs insist on one."""


def make_backend(config: BackendConfig, environ: Mapping[str, str]) -> Backend:
    """The backend for `config`, with its key out of `environ`. Raises `BackendError` if a required key is missing."""
    if isinstance(config, ScriptedBackendConfig):
        from massgen_mcp.backends.scripted import ScriptedBackend

        return ScriptedBackend(config)
    return _http_backend(config, environ)


def _http_backend(config: HttpBackendConfig, environ: Mapping[str, str]) -> Backend:
    from massgen_mcp.backends.http import Endpoint

    key = find_key(config, environ)
    if key is None and key_required(config, environ):
        names = " or ".join(key_variables(config, environ))
        raise BackendError("auth", f"no key for model {config.model!r}: set {names} in the environment")
    endpoint = Endpoint(
        model=config.model,
        api_key=key or NO_KEY,
        base_url=provider_for(config, environ).base_url,
        temperature=config.temperature,
        top_p=config.top_p,
        max_output_tokens=config.max_output_tokens,
        reasoning_effort=config.reasoning_effort,
        extra_body=config.extra_body,
    )
    match config.type:
        case "openai":
            from massgen_mcp.backends.openai_responses import ResponsesBackend

            return ResponsesBackend(endpoint)
        case "chatcompletion":
            from massgen_mcp.backends.chatcompletion import ChatCompletionBackend

            return ChatCompletionBackend(endpoint)
        case "claude":
            from massgen_mcp.backends.claude import ClaudeBackend

            return ClaudeBackend(endpoint)
