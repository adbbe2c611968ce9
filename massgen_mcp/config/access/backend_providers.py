"""Which provider is asked for a backend, where, and with which key.

A key goes to the company it belongs to, or where the operator points it, and nowhere else: the choice of key is a
function of the host, never of what a config claims to be.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.models.claude_code import ClaudeCodeBackendConfig
from massgen_mcp.config.models.http_backends import AzureBackendConfig, HttpBackend, HttpBackendConfig
from massgen_mcp.config.models.scripted import ScriptedBackendConfig
from massgen_mcp.config.providers.addresses import is_loopback, port_in, same_address
from massgen_mcp.config.providers.catalog import (
    GEMINI_COMPATIBLE,
    PROVIDERS,
    Provider,
    named_provider,
    operators_address,
    owner_of,
    wire_at,
)
from massgen_mcp.config.providers.native_tools import BY_HOST

_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


def provider_for(backend: HttpBackend, environ: Mapping[str, str] = _NO_VARIABLES) -> Provider:
    """The row that holds for this backend: wire by its type, everything about keys by the host that will be asked.

    `base_url` of the result is the address to use. An address that the operator set in the environment
    (`OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL`, `MASSGEN_GROQ_BASE_URL`, …) takes the place of the type's default and gets
    that type's own key; any other unknown host gets no key at all. An empty `base_url` means that nobody has said where
    the model is.
    """
    row = named_provider(backend.type)
    operators = operators_address(row, environ)
    given = backend.endpoint if isinstance(backend, AzureBackendConfig) else backend.base_url
    moves_default = row.is_local or (row.base_url_variable or "").startswith("MASSGEN_")
    if given and moves_default and same_address(given, row.base_url):
        given = None  # `build_config` fills the default in; who sets such a variable means that default
    url = given or operators or row.base_url
    if not url:
        return row
    owner, wire = owner_of(url), wire_at(row, url)
    asked = owner_of(given or row.base_url) if row.type == BY_HOST and backend.asked_tools else None
    if asked is not None:
        # Its tools are asked for in the way of whoever has them.
        wire, url = asked.wire, url.rstrip("/").removesuffix(GEMINI_COMPATIBLE) if asked.wire == "gemini" else url
    if operators and same_address(url, operators):
        return replace(row, base_url=url, wire=wire, key_required=row.key_required and not is_loopback(url))
    if owner is None:
        return replace(row, base_url=url, wire=wire, key_variables=(), key_required=False, strong_model=None)
    return replace(owner, base_url=url, wire=wire)


def vendor_of(backend: BackendConfig) -> str:
    """Who makes its model, as far as the provider tells; a scripted agent's is the name of its model."""
    if isinstance(backend, ScriptedBackendConfig):
        return backend.model
    if isinstance(backend, ClaudeCodeBackendConfig):
        return named_provider("claude").type
    return provider_for(backend).type if isinstance(backend, HttpBackendConfig) else backend.type


def key_variables(backend: HttpBackend, environ: Mapping[str, str] = _NO_VARIABLES) -> tuple[str, ...]:
    """Names of the variables that may hold this backend's key, best first; empty when no key is ever sent."""
    if backend.api_key_env is not None:
        return (backend.api_key_env,)
    return provider_for(backend, environ).key_variables


def key_required(backend: HttpBackend, environ: Mapping[str, str] = _NO_VARIABLES) -> bool:
    """Whether a run cannot start without a key for this backend."""
    return backend.api_key_env is not None or provider_for(backend, environ).key_required


def serves_here(backend: HttpBackend, environ: Mapping[str, str] = _NO_VARIABLES) -> bool:
    """Whether a model server of this machine is asked: by its type, or at the port where one usually is."""
    url = provider_for(backend, environ).base_url
    usual = {port_in(row.base_url) for row in PROVIDERS if row.is_local}
    return is_loopback(url) and (named_provider(backend.type).is_local or port_in(url) in usual)


def lists_all_models(backend: HttpBackend, environ: Mapping[str, str] = _NO_VARIABLES) -> bool:
    """Whether what this backend's address does not list cannot be had there: so at a provider's own address, and of a
    model server by its type. A gateway may serve more than it lists.
    """
    owner = owner_of(provider_for(backend, environ).base_url)
    return owner.lists_all if owner else named_provider(backend.type).is_local
