"""How much may be asked of a provider at once: what the config sets, else what its kind stands."""

from collections.abc import Mapping
from dataclasses import dataclass

from massgen_mcp.config.access import members
from massgen_mcp.config.access.agent_types import CONCURRENCY
from massgen_mcp.config.models.backends import BackendConfig
from massgen_mcp.config.models.config import Config


@dataclass(frozen=True, slots=True)
class RateLimits:
    """In force for one provider."""

    concurrency: int = CONCURRENCY
    """Calls under way at once."""
    requests_per_minute: int | None = None
    """Calls begun in any 60 s, retries included. None: no limit of ours."""
    is_set: bool = True
    """Whether the config says `concurrency`: then all workers keep it together, else each of them does."""


def limits_of(config: Config, backend: BackendConfig, environ: Mapping[str, str]) -> RateLimits:
    """What holds for this backend's provider."""
    limit = config.limits.get(backend.type)
    concurrency = limit and limit.concurrency
    return RateLimits(
        concurrency or members.concurrency(backend, environ),
        limit and limit.requests_per_minute,
        is_set=concurrency is not None,
    )
