"""Which key may go to which host. Holds for every config, wherever it came from, and at every call of a model.

A key goes to the hosts of its own provider, to the address that the operator set in the environment, to this machine,
or where a person accepted that very pair of variable and host. What looks like no key of a model goes nowhere else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from urllib.parse import urlsplit

from massgen_mcp.config.access.acceptances import PAIRS_FILE, Pair, accepted_pairs
from massgen_mcp.config.environment import check_address, find_key_owners, is_model_key, is_set, read_key
from massgen_mcp.config.models.http_backends import AnyHttpBackend, AzureBackendConfig
from massgen_mcp.config.providers.addresses import is_loopback, port_in, repair_base_url, same_address
from massgen_mcp.config.providers.catalog import (
    BY_HOST,
    GEMINI_COMPATIBLE,
    PROVIDERS,
    Provider,
    named_provider,
    operators_address,
    operators_rows,
    owner_of,
    wire_at,
)

CLAUDE_URL = "https://api.anthropic.com"
"""Whom the Claude Code CLI asks."""
CLAUDE_URL_VARIABLE = "ANTHROPIC_BASE_URL"


def host_of(url: str) -> str:
    """The host of an address as people are shown it: with its port unless it is the usual one; what is not encrypted
    begins with http://."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    shown = f"[{host}]" if ":" in host else host
    encrypted = parts.scheme.lower() == "https"
    if parts.port is not None and parts.port != (443 if encrypted else 80):
        shown = f"{shown}:{parts.port}"
    return shown if encrypted else f"http://{shown}"


def is_own_key(variable: str, url: str, environ: Mapping[str, str]) -> bool:
    """Whether the variable is the one of the provider at this address, or of the row whose address the operator set."""
    return any(row.type in find_key_owners(variable) for row in _rows_at(url, environ))


def may_go(variable: str, url: str, environ: Mapping[str, str]) -> bool:
    """Whether the key in this variable may be sent to this address. Reads what was accepted only if it must."""
    if is_model_key(variable):
        if is_loopback(url) or is_own_key(variable, url, environ):
            return True
        if not find_key_owners(variable) and _rows_at(url, environ):
            return True  # a name of the user's own for the key of whoever is there
    return Pair(key=variable, host=host_of(url)) in accepted_pairs(environ)


def find_key(backend: AnyHttpBackend, environ: Mapping[str, str]) -> str | None:
    """The key to send with this backend's requests. None: there is none, or none may go to that host. Raises as
    `read_key` does.
    """
    if list_refused_keys(backend, environ):
        return None
    values = (read_key(environ, name) for name in key_variables(backend, environ))
    return next((value for value in values if value), None)


def check_credentials(backend: AnyHttpBackend, environ: Mapping[str, str]) -> None:
    """Raises `MassgenError` config_invalid if the key that would be sent is unusable, or if the operator's address
    holds credentials.
    """
    variable = named_provider(backend.type).base_url_variable
    if variable and provider_for(backend, environ).base_url == environ.get(variable, "").strip():
        check_address(environ, variable)
    find_key(backend, environ)


def missing_variables(backend: AnyHttpBackend, environ: Mapping[str, str]) -> list[tuple[str, ...]]:
    """What keeps a run with this backend from starting: groups of variables, of each of which one has to be set."""
    missing: list[tuple[str, ...]] = []
    provider = provider_for(backend, environ)
    if not provider.base_url and provider.base_url_variable:
        missing.append((provider.base_url_variable,))
    names = key_variables(backend, environ)
    if key_required(backend, environ) and not any(is_set(environ, name) for name in names):
        missing.append(names)
    return missing


def list_refused(variable: str | None, url: str, environ: Mapping[str, str]) -> list[Pair]:
    """Return the pair of a variable that a config names and of the host that is asked, where nobody accepted it."""
    if variable is None or not url or may_go(variable, url, environ):
        return []
    return [Pair(key=variable, host=host_of(url))]


def list_refused_keys(backend: AnyHttpBackend, environ: Mapping[str, str]) -> list[Pair]:
    """Return the pair that this backend wants and nobody accepted, if there is one."""
    return list_refused(backend.api_key_env, provider_for(backend, environ).base_url, environ)


def describe_refusal(pairs: Sequence[Pair]) -> str:
    """What is refused, and who can allow it."""
    listed = "; ".join(f"{pair.key} to {pair.host}" for pair in pairs)
    return (
        f"massgen doesn't send these keys to these hosts: {listed}. It sends a key only to the key's provider, to an "
        "address from the environment, or to this machine. To allow another host, run "
        f"`massgen validate --trust CONFIG`, or add a line to {PAIRS_FILE} in your config directory."
    )


def _rows_at(url: str, environ: Mapping[str, str]) -> list[Provider]:
    owner = owner_of(url)
    return [*([owner] if owner else ()), *operators_rows(url, environ)]


# -- which provider is asked for a backend, where, and with which key -------------------------------------------------
# A key goes to the company it belongs to, or where the operator points it, and nowhere else: the choice of key is a
# function of the host, never of what a config claims to be.


_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


def provider_for(backend: AnyHttpBackend, environ: Mapping[str, str] = _NO_VARIABLES) -> Provider:
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
    versioned = row.is_local and row.wire == "chat"
    moved = operators and repair_base_url(operators, versioned=versioned)
    url = repair_base_url(url, versioned=versioned)
    owner, wire = owner_of(url), wire_at(row, url)
    asked = owner_of(given or row.base_url) if row.type == BY_HOST and backend.asked_tools else None
    if asked is not None:
        # Its tools are asked for in the way of whoever has them.
        wire, url = asked.wire, url.rstrip("/").removesuffix(GEMINI_COMPATIBLE) if asked.wire == "gemini" else url
    if moved and same_address(url, moved):
        return replace(row, base_url=url, wire=wire, key_required=row.key_required and not is_loopback(url))
    if owner is None:
        return replace(row, base_url=url, wire=wire, key_variables=(), key_required=False, strong_model=None)
    return replace(owner, base_url=url, wire=wire)


def key_variables(backend: AnyHttpBackend, environ: Mapping[str, str] = _NO_VARIABLES) -> tuple[str, ...]:
    """Names of the variables that may hold this backend's key, best first; empty when no key is ever sent."""
    if backend.api_key_env is not None:
        return (backend.api_key_env,)
    return provider_for(backend, environ).key_variables


def key_required(backend: AnyHttpBackend, environ: Mapping[str, str] = _NO_VARIABLES) -> bool:
    """Whether a run cannot start without a key for this backend."""
    return backend.api_key_env is not None or provider_for(backend, environ).key_required


def serves_here(backend: AnyHttpBackend, environ: Mapping[str, str] = _NO_VARIABLES) -> bool:
    """Whether a model server of this machine is asked: by its type, or at the port where one usually is."""
    url = provider_for(backend, environ).base_url
    usual = {port_in(row.base_url) for row in PROVIDERS if row.is_local}
    return is_loopback(url) and (named_provider(backend.type).is_local or port_in(url) in usual)


def lists_all_models(backend: AnyHttpBackend, environ: Mapping[str, str] = _NO_VARIABLES) -> bool:
    """Whether what this backend's address does not list cannot be had there: so at a provider's own address, and of a
    model server by its type. A gateway may serve more than it lists.
    """
    owner = owner_of(provider_for(backend, environ).base_url)
    return owner.lists_all if owner else named_provider(backend.type).is_local
