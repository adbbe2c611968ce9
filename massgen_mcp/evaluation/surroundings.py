"""What a result was measured with, so that it can be measured again: versions, prompts and teams."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import metadata, resources
from typing import Any

from massgen_mcp import __version__
from massgen_mcp.config.models.config import Config

PROMPTS = ("orchestration/prompts.py", "orchestration/round_request.py")
"""Where everything stands that agents are told."""
MEASURED_WITH = ("openai", "anthropic", "inspect_ai")


@cache
def surroundings() -> Mapping[str, Any]:
    """`{versions, prompts}`: of this package and of what asks the models, as far as it is installed; and a digest."""
    versions = {"massgen-mcp": __version__}
    for name in MEASURED_WITH:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    files = resources.files("massgen_mcp")
    return {"versions": versions, "prompts": _digest(b"\0".join((files / name).read_bytes() for name in PROMPTS))}


def team_as_measured(config: Config) -> dict[str, Any]:
    """`{agents, config}`: who is asked, and a digest of all that the config says. No value of it is told."""
    agents = [{"id": one.id, "backend": one.backend.type, "model": one.backend.model} for one in config.agents]
    return {"agents": agents, "config": _digest(json.dumps(config.model_dump(mode="json"), sort_keys=True).encode())}


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
