"""A config with what one call adds to it. Whatever adds something has the whole checked again, before it is stored or
executed: what a runner reads later holds to the limits of a config.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from massgen_mcp.config.diagnostics import problems_of, show_place
from massgen_mcp.config.models import Config
from massgen_mcp.errors import MassgenError


def with_limits(
    config: Config,
    *,
    context_paths: Sequence[str] = (),
    max_usd: float | None = None,
    max_seconds: float | None = None,
    max_answers: int | None = None,
) -> Config:
    """The config with further paths that agents may read, and with a call's own limits; None leaves the config's.

    Raises `MassgenError("config_invalid")` naming everything that a config does not allow.
    """
    document = config.model_dump(mode="json")
    document["orchestrator"]["context_paths"] += [{"path": path} for path in context_paths]
    if max_usd is not None:
        document["budget"]["max_usd"] = max_usd
    if max_seconds is not None:
        document["timeout_settings"]["orchestrator_timeout_seconds"] = max_seconds
    if max_answers is not None:
        document["orchestrator"]["max_new_answers_per_agent"] = max_answers
    return _validated(document)


def rechecked(config: Config) -> Config:
    """The same config, if it still holds to its limits after `model_copy`, which checks nothing.

    Raises `MassgenError("config_invalid")` naming everything that a config does not allow.
    """
    return _validated(config.model_dump(mode="json"))


def _validated(document: dict[str, Any]) -> Config:
    try:
        return Config.model_validate(document)
    except ValidationError as error:
        told = "; ".join(f"{show_place(problem.place)}: {problem.message}" for problem in problems_of(error))
        raise MassgenError("config_invalid", told) from None
