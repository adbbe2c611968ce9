"""Whether what a Python caller passed is of the types that `run` takes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from massgen_mcp.config.decide import GivenDecide
from massgen_mcp.errors import MassgenError


class _Types(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", hide_input_in_errors=True)

    question: str
    config: str | Path | None = None
    model: str | None = None
    models: str | Sequence[str] | None = None
    num_agents: int | None = None
    output_file: str | Path | None = None
    config_dict: Mapping[Any, Any] | None = None
    context_paths: str | Sequence[str | Mapping[str, Any]] | None = None
    checks: Sequence[str] | None = None
    decide: GivenDecide | None = None
    session_id: str | None = None
    changes_of: str | None = None
    conversation_history: Sequence[Mapping[Any, Any]] | None = None
    system_message: str | None = None
    base_url: str | None = None


def check_types(arguments: Mapping[str, object]) -> None:
    """Raises `MassgenError` invalid_arguments that names every argument of a wrong type, without its value."""
    try:
        _Types.model_validate(arguments)
    except ValidationError as error:
        faults = {str(detail["loc"][0]): detail["type"] for detail in error.errors(include_input=False)}
        raise MassgenError("invalid_arguments", "; ".join(map(_problem, faults, faults.values()))) from None


def _problem(name: str, kind: str) -> str:
    if kind == "string_unicode":
        return f"{name} is not valid Unicode text; give it in UTF-8"
    return f"{name} is of a type that is not taken there"
