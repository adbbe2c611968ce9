"""Schemas that tests hold data against, compiled once: `jsonschema.validate` checks the schema itself each time."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import jsonschema


def checker(schema: Mapping[str, Any]) -> Callable[[object], None]:
    """What raises `jsonschema.ValidationError` for data that the schema does not take."""
    jsonschema.Draft202012Validator.check_schema(schema)
    validator: Any = jsonschema.Draft202012Validator(schema)
    return cast("Callable[[object], None]", validator.validate)
