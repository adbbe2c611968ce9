"""Models of providers, by our own wires. The one place that puts a config, a provider's defaults and the environment
together for a model.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never
from urllib.parse import quote

from massgen_mcp.config.access.agent_types import AgentType, Environ
from massgen_mcp.config.access.key_hosts import find_key, key_variables, missing_variables, provider_for
from massgen_mcp.config.access.prices import UnknownPrice, bound_unknown_price, price_as_of
from massgen_mcp.config.environment import is_set
from massgen_mcp.config.installed import OF_MODELS, wrong_versions
from massgen_mcp.config.models.http_backends import AnyHttpBackend, AzureBackendConfig, OllamaBackendConfig
from massgen_mcp.config.providers.catalog import named_provider
from massgen_mcp.errors import BackendError
from massgen_mcp.name_lists import join_names

if TYPE_CHECKING:
    from massgen_mcp.backends.adapter import Making
    from massgen_mcp.backends.base import Backend
    from massgen_mcp.backends.http import Endpoint

NO_KEY = "not-needed"
"""The key for servers that need none: the SDKs insist on one."""


class ProviderModels(AgentType[AnyHttpBackend]):
    def list_models(self, config: AnyHttpBackend) -> Iterable[AnyHttpBackend]:
        return (config,)

    def find_lack(self, config: AnyHttpBackend, environ: Environ) -> str | None:
        del config, environ
        return "; ".join(map(str, wrong_versions(*OF_MODELS))) or None

    def get_vendor(self, config: AnyHttpBackend) -> str:
        return provider_for(config).type

    def bound_unknown_price(self, config: AnyHttpBackend, environ: Environ) -> UnknownPrice | None:
        asked = provider_for(config, environ)
        return bound_unknown_price(config, asked, price_as_of(config, asked, environ))

    def make_agent(self, config: AnyHttpBackend, making: "Making") -> "Backend":
        from massgen_mcp.backends.late import LateBackend

        check_variables(config, making.environ)
        now = replace(making, environ=dict(making.environ))  # whenever the first call is
        return LateBackend(config.model, lambda: self.open(config, now))

    def open(self, config: AnyHttpBackend, making: "Making") -> "Backend":
        """Open the wire to the model."""
        return open_wire(config, describe_endpoint(config, making), making.environ)


def open_wire(config: AnyHttpBackend, endpoint: "Endpoint", environ: Environ) -> "Backend":
    """Return the backend that speaks the API of this endpoint."""
    wire = provider_for(config, environ).wire
    match wire:
        case "responses":
            from massgen_mcp.backends.openai_responses import ResponsesBackend

            return ResponsesBackend(endpoint)
        case "chat":
            from massgen_mcp.backends.chatcompletion import ChatCompletionBackend

            return ChatCompletionBackend(endpoint)
        case "messages":
            from massgen_mcp.backends.claude import ClaudeBackend

            return ClaudeBackend(endpoint)
        case "ollama":
            from massgen_mcp.backends.ollama import OllamaBackend, OllamaSettings

            settings = OllamaSettings()
            if isinstance(config, OllamaBackendConfig):
                settings = OllamaSettings(config.context_length, config.keep_alive)
            return OllamaBackend(endpoint, settings)
        case "gemini":
            from massgen_mcp.backends.gemini import GeminiBackend

            return GeminiBackend(endpoint)
        case _:
            assert_never(wire)


def check_variables(config: AnyHttpBackend, environ: Environ) -> None:
    """Raise `BackendError` for a key or an address that is missing, and `MassgenError` for a key that cannot be one."""
    find_key(config, environ)
    for names in missing_variables(config, environ):
        message = f"no key or address for the model {config.model!r}: set {join_names(names, 'or')} in the environment"
        raise BackendError("auth", message)
    row = named_provider(config.type)
    if row.wire == "gemini" and config.asked_tools and provider_for(config, environ).wire != row.wire:
        flags = ", ".join(f"enable_{tool}" for tool in config.asked_tools)
        raise BackendError(
            "bad_request", f"{flags}: the OpenAI-compatible endpoint at {row.base_url_variable} doesn't support this"
        )


def describe_endpoint(config: AnyHttpBackend, making: "Making") -> "Endpoint":
    """Return the address of a model, its key, and the settings of its requests."""
    from massgen_mcp.backends.http import Endpoint

    environ = making.environ
    provider, key = provider_for(config, environ), find_key(config, environ)
    endpoint = Endpoint(
        model=config.model,
        api_key=key or NO_KEY,
        key_variable=next(name for name in key_variables(config, environ) if is_set(environ, name)) if key else None,
        base_url=provider.base_url,
        temperature=config.temperature,
        top_p=config.top_p,
        max_output_tokens=config.max_output_tokens,
        reasoning_effort=config.reasoning_effort,
        verbosity=config.verbosity,
        effort_field="reasoning" if provider.type == "openrouter" else "reasoning_effort",
        native_tools=config.asked_tools,
        cost_field=provider.cost_field,
        of_xai=provider.type == "grok",
        extra_body=config.extra_body,
        start=provider.start,
        redactor=making.redactor,
    )
    return _locate_deployment(config, endpoint) if isinstance(config, AzureBackendConfig) else endpoint


def _locate_deployment(config: AzureBackendConfig, endpoint: "Endpoint") -> "Endpoint":
    """Name the deployment in the request at the `v1` API, and in the path with a version of the older one."""
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


TYPE = ProviderModels()
