"""The model that takes an agent's place when a quota, a balance or an outage ends its own: `fallback`, as a backend."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from massgen_mcp.config.models.backends import BACKENDS, BackendConfig
from massgen_mcp.config.providers.catalog import named_provider


def get_fallback(backend: BackendConfig) -> BackendConfig | None:
    """Return the backend of `fallback`, with the defaults of its provider; None: there is none."""
    return None if backend.fallback is None else _make_backend_named(backend.fallback)


def iterate_with_fallbacks(backends: Iterable[BackendConfig]) -> Iterator[BackendConfig]:
    """Yield each backend, and after it the one that may take its place."""
    for backend in backends:
        yield backend
        if (fallback := get_fallback(backend)) is not None:
            yield fallback


@lru_cache(maxsize=256)
def _make_backend_named(name: str) -> BackendConfig:
    provider, _, model = name.partition("/")
    return BACKENDS.validate_python({"type": named_provider(provider).type, "model": model})
