"""Whether what a Python caller passed is of the types that `run` takes."""

from collections.abc import Mapping, Sequence
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from massgen_mcp.api.options import RunArguments
from massgen_mcp.config.decide import GivenDecide
from massgen_mcp.errors import MassgenError

_TYPES: dict[str, Any] = {
    **{name: kind for name, kind in get_type_hints(RunArguments).items() if kind is not bool},
    "question": str,
    "models": str | Sequence[str] | None,
    "config_dict": Mapping[Any, Any] | None,
    "context_paths": str | Sequence[str | Mapping[str, Any]] | None,
    "conversation_history": Sequence[Mapping[Any, Any]] | None,
    "decide": GivenDecide | None,
}
"""Those of `RunArguments`, wider where a fault is told better later on."""


def check_types(arguments: Mapping[str, object]) -> None:
    """Raises `MassgenError` invalid_arguments that names every argument of a wrong type, without its value."""
    problems: list[str] = []
    for name, value in arguments.items():
        try:
            TypeAdapter[Any](_TYPES.get(name, object)).validate_python(value, strict=True)
        except ValidationError as error:
            not_unicode = error.errors(include_input=False)[0]["type"] == "string_unicode"
            fault = "not valid Unicode text; give it in UTF-8" if not_unicode else "of a type that is not taken there"
            problems.append(f"{name} is {fault}")
    if problems:
        raise MassgenError("invalid_arguments", "; ".join(problems))
