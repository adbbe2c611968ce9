"""Python functions as tools: which file has them, and what their signatures say. The code is read and never run here.

In a config they stand as MassGen writes them, several functions of a file in one entry, or as `FILE.py:FUNCTION`.
"""

import ast
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Union

from massgen_mcp.config.adapters import TOOLS, installed
from massgen_mcp.config.diagnostics import Problem
from massgen_mcp.config.yaml_reader import Place, Plain

MAX_SOURCE = 200_000
EXAMPLE = str(Path(__file__).parent / "massgen" / "example_tools.py")
MASSGEN_MEDIA = "_multimodal_tools"
"""The directory of MassGen's functions for pictures, sound, video and documents."""
NO_MEDIA = (
    "path: MassGen's media functions call a model, but functions run in the sandbox, without keys or network access; "
    "remove these functions"
)
_PLAIN: Mapping[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "None": None,
    "Path": str,
    "list": list[Any],
    "List": list[Any],
    "dict": dict[str, Any],
    "Dict": dict[str, Any],
}
_LISTS = ("list", "List", "Sequence", "Iterable", "tuple", "Tuple", "set", "Set")


@dataclass(frozen=True, slots=True)
class Parameter:
    type: Any
    """A type that pydantic knows; `Any` for one that only the file has."""
    about: str
    required: bool


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a file, as its signature and its docstring say."""

    source: str
    about: str
    parameters: Mapping[str, Parameter]


def described(path: str, name: str) -> Function:
    """Raises `ValueError` in one line if there is no such function."""
    try:
        with Path(path).open("rb") as file:
            source = file.read(MAX_SOURCE + 1).decode()
        tree = ast.parse(source)
    except (OSError, ValueError, SyntaxError, RecursionError) as error:
        raise ValueError(f"{path} isn't valid Python: {error}"[:500]) from error
    if len(source) > MAX_SOURCE:
        raise ValueError(f"{path} is longer than {MAX_SOURCE:,} characters")
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    if (found := functions.get(name)) is None:
        raise ValueError(f"{path} has no function {name!a}; its functions: {', '.join(functions) or 'none'}"[:500])
    about, _, rest = (ast.get_docstring(found) or name).partition("\n\n")
    meanings = dict(_meanings_of_arguments(rest))
    given = found.args
    plain = [*given.posonlyargs, *given.args]
    with_default = {one.arg for one in plain[len(plain) - len(given.defaults) :]}
    with_default |= {one.arg for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default}
    parameters = {
        one.arg: Parameter(_type_of(one.annotation), meanings.get(one.arg, ""), one.arg not in with_default)
        for one in (*plain, *given.kwonlyargs)
        if not one.arg.startswith("_")
    }
    return Function(source, " ".join(about.split()), parameters)


def _meanings_of_arguments(text: str) -> list[tuple[str, str]]:
    """`NAME: MEANING` and `NAME (TYPE): MEANING`, as docstrings have it."""
    lines = [line.strip().partition(":") for line in text.splitlines()]
    return [(head.partition("(")[0].strip(), meaning.strip()) for head, colon, meaning in lines if colon and meaning]


def _type_of(node: ast.expr | None) -> Any:  # noqa: ANN401 - a type that is only known now
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _PLAIN.get(name, Any)
        case ast.Constant(value=None):
            return None
        case ast.Constant(value=str(text)):
            try:
                return _type_of(ast.parse(text, mode="eval").body)
            except (SyntaxError, ValueError):
                return Any
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return Union[_type_of(left), _type_of(right)]  # noqa: UP007 - as above
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            return _subscripted(name, inner.elts if isinstance(inner, ast.Tuple) else [inner])
        case _:
            return Any


def _subscripted(name: str, parts: list[ast.expr]) -> Any:  # noqa: ANN401 - as above
    if name == "Literal":
        values = tuple(part.value for part in parts if isinstance(part, ast.Constant))
        plain = len(values) == len(parts) and all(isinstance(one, str | int | None) for one in values)
        return Literal[values] if plain else Any
    types = tuple(map(_type_of, parts)) or (Any,)
    if name in ("Optional", "Union"):
        return Union[(*types, None)] if name == "Optional" else Union[types]  # noqa: UP007 - as above
    if name in _LISTS:
        return list[types[0]]
    return types[0] if name == "Annotated" else _PLAIN.get(name, Any)


# -- as files have them -----------------------------------------------------------------------------------------------


def shape(given: Plain, place: Place, existing: Callable[[str], str | None], problems: list[Problem]) -> Plain:
    """One entry for each function, with an absolute path. `existing` finds a path. `category` means nothing here."""
    if not given:
        return []
    if not isinstance(given, list):
        return given
    shaped: list[Plain] = []
    for number, entry in enumerate(given):
        if not isinstance(entry, dict | str):
            problems.append(Problem((*place, number), "expected a mapping, or FILE.py:FUNCTION"))
            continue
        try:
            shaped += _entries(_written_out(entry), existing)
        except ValueError as error:
            problems.append(Problem((*place, number), str(error)))
    return shaped


def _written_out(entry: dict[str, Plain] | str) -> dict[str, Plain]:
    if isinstance(entry, dict):
        return {key: value for key, value in entry.items() if key != "category"}
    path, _, function = entry.rpartition(":")
    return {"path": path, "function": function}


def _entries(entry: dict[str, Plain], existing: Callable[[str], str | None]) -> list[Plain]:
    functions = _listed(entry.pop("function", entry.get("name")))
    names, abouts = _listed(entry.pop("name", None)), _listed(entry.pop("description", None))
    presets = _listed(entry.pop("preset_args", None) or entry.pop("default_params", None))
    path, found = entry.pop("path", None), list[Plain]()
    if MASSGEN_MEDIA in Path(str(path)).parts:
        raise ValueError(NO_MEDIA)
    for at, named in enumerate(functions):
        name = str(names[at] if at < len(names) else named)
        file, function = (existing(str(path)), str(named)) if path is not None else _installed(str(named))
        if file is None:
            raise ValueError(f"path: {str(path)[:200]!a}: file not found or not readable")
        described(file, function)
        about: dict[str, Plain] = {"description": abouts[at]} if at < len(abouts) and abouts[at] else {}
        preset: dict[str, Plain] = {"preset_args": presets[at]} if at < len(presets) and presets[at] else {}
        found.append({"name": name, "path": file, "function": function, **about, **preset, **entry})
    return found


def _listed(value: Plain) -> list[Plain]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _installed(name: str) -> tuple[str, str]:
    """File and function of an entry point, whose module is not imported for it; else MassGen's example."""
    if (entry := installed(TOOLS).get(name)) is not None:
        spec = find_spec(entry.module)
        return (spec.origin if spec else None) or entry.module, entry.attr
    with suppress(ValueError):
        described(EXAMPLE, name)
        return EXAMPLE, name
    others = ", ".join(installed(TOOLS)) or "none"
    raise ValueError(f"the tool {name[:80]!a} isn't installed (installed: {others}); name its file under path: FILE.py")
