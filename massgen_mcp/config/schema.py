"""What the models say of themselves, for people: the meaning of every field, and the JSON schema of a config file, with
which editors complete and explain keys.

A meaning is the text below a field in the source. It is read only when somebody asks: no start pays for it.
"""

import ast
import inspect
import re
import sys
from functools import cache
from typing import Any, cast

from pydantic import BaseModel

from massgen_mcp.config.models.common import PricedBackendConfig, Settings
from massgen_mcp.config.models.config import AgentSettings, Config, CustomTool
from massgen_mcp.config.normalize import OF_THE_AGENT
from massgen_mcp.config.providers.catalog import PROVIDERS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_KEY = {"type": "string", "pattern": r"^\$\{[A-Z_][A-Z0-9_]*\}$"}
"""`api_key: ${NAME}`, which means `api_key_env: NAME`."""

FILLED_IN = ("id", "llm_config", "user_agent", "group_manager_args")
"""What a file may leave out, because it is known from its place or from what is around it."""


def about(model: type[BaseModel]) -> str:
    """What the model itself is, in one paragraph."""
    return _in_files(model.__dict__.get("__doc__") or "")


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """What each field means, in one paragraph, as far as the source says it; those of base classes included."""
    texts: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, BaseModel) and kind is not BaseModel:
            texts |= _of_module(kind.__module__).get(kind.__name__, {})
    return {name: text for name, text in texts.items() if name in model.model_fields}


@cache
def _of_module(name: str) -> dict[str, dict[str, str]]:
    """Texts below fields, by class."""
    tree = ast.parse(inspect.getsource(sys.modules[name]))
    return {node.name: dict(_texts(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _texts(node: ast.ClassDef) -> "list[tuple[str, str]]":
    found: list[tuple[str, str]] = []
    for field, text in zip(node.body, node.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                found.append((name, _in_files(words)))
            case _:
                pass
    return found


def _in_files(text: str) -> str:
    """On one line, with the constants of YAML and JSON in place of Python's."""
    written = {"None": "`null`", "True": "`true`", "False": "`false`"}
    return re.sub(r"\b(None|True|False)\b(?!`)", lambda found: written[found[0]], " ".join(text.split()))


def config_schema() -> dict[str, Any]:
    """The JSON schema of a config file in the spelling of this program; what MassGen spells differently is not in it.

    It is no second judge: what it allows may still be refused, for reasons that no schema can say.
    """
    schema: dict[str, Any] = Config.model_json_schema()
    parts: dict[str, Any] = schema["$defs"]
    kinds = [Config, *(kind for kind in subclasses(Settings) if kind.__name__ in parts)]
    for kind in kinds:
        _describe(kind, schema if kind is Config else parts[kind.__name__])
    _as_in_files(schema, parts)
    return {"$schema": DIALECT, **schema, "title": "A massgen-mcp team"}


def subclasses(kind: type[BaseModel]) -> list[type[BaseModel]]:
    """Those of its subclasses, too."""
    return [each for below in kind.__subclasses__() for each in (below, *subclasses(below))]


def _describe(kind: type[BaseModel], schema: dict[str, Any]) -> None:
    schema["description"] = about(kind)
    for name, text in meanings(kind).items():
        schema["properties"][name]["description"] = text


def _as_in_files(schema: dict[str, Any], parts: dict[str, Any]) -> None:
    """What a file may write in another place or way than the models have it (see `normalize`)."""
    agent: dict[str, Any] = parts[AgentSettings.__name__]
    agent["properties"]["commands"]["anyOf"].append({"type": "boolean"})
    tools: dict[str, Any] = agent["properties"]["custom_tools"]
    tools["items"] = {"anyOf": [tools["items"], {"type": "string"}]}
    parts[CustomTool.__name__]["required"] = []
    moved = {name: agent["properties"][name] for name in OF_THE_AGENT}
    aliases = {row.type: list(row.aliases) for row in PROVIDERS if row.aliases}
    for kind in subclasses(PricedBackendConfig):
        if kind.__name__ in parts:
            backend: dict[str, Any] = parts[kind.__name__]
            backend["properties"] |= {name: part for name, part in moved.items() if name not in backend["properties"]}
            if "api_key_env" in backend["properties"]:
                backend["properties"]["api_key"] = {**_KEY, "description": "`${NAME}` means `api_key_env: NAME`."}
            _with_aliases(cast("dict[str, Any]", backend["properties"]["type"]), aliases)
    for part in parts.values():
        part["required"] = [name for name in part.get("required", ()) if name not in FILLED_IN]
    one = {"$ref": f"#/$defs/{AgentSettings.__name__}", "description": "A team of one agent, instead of `agents`."}
    schema["properties"]["agent"] = one
    schema["required"] = []
    schema["oneOf"] = [{"required": ["agents"]}, {"required": ["agent"]}]


def _with_aliases(kind: dict[str, Any], aliases: dict[str, list[str]]) -> None:
    """`type` with the further names of a provider."""
    if names := kind.get("enum"):
        kind["enum"] = [name for own in cast("list[str]", names) for name in (own, *aliases.get(own, ()))]
