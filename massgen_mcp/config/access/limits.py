"""How much may be asked of a provider at once: what the config sets, else what its kind stands."""

from collections.abc import Mapping
from dataclasses import dataclass

from massgen_mcp.config.access.key_hosts import serves_here
from massgen_mcp.config.models.ag2 import Ag2BackendConfig
from massgen_mcp.config.models.backends import (
    AcpBackendConfig,
    BackendConfig,
    ClaudeCodeBackendConfig,
    ScriptedBackendConfig,
)
from massgen_mcp.config.models.config import Config

CONCURRENCY = 100
CLI_CONCURRENCY = 4
"""Each call of `claude_code` is a process, and each agent of `acp`."""
LOCAL_CONCURRENCY = 1
"""Two calls at once to a model server of this machine are each half as fast, or swap models."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """In force for one provider."""

    concurrency: int = CONCURRENCY
    """Calls under way at once."""
    requests_per_minute: int | None = None
    """Calls begun in any 60 s, retries included. None: no limit of ours."""


def limits_of(config: Config, backend: BackendConfig, environ: Mapping[str, str]) -> RateLimits:
    """What holds for this backend's provider."""
    limit = config.limits.get(backend.type)
    concurrency = (limit and limit.concurrency) or _stands(backend, environ)
    return RateLimits(concurrency, limit and limit.requests_per_minute)


def _stands(backend: BackendConfig, environ: Mapping[str, str]) -> int:
    if isinstance(backend, ScriptedBackendConfig):
        return CONCURRENCY
    if isinstance(backend, ClaudeCodeBackendConfig | AcpBackendConfig):
        return CLI_CONCURRENCY
    asked = backend.asked[0] if isinstance(backend, Ag2BackendConfig) else backend
    return LOCAL_CONCURRENCY if serves_here(asked, environ) else CONCURRENCY
