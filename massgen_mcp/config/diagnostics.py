"""What is wrong with a config, in the user's terms: place, what was expected, the nearest valid key. Never a value.

Must not know where a config came from; lines are added by `loader`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from massgen_mcp.config.adapters import is_foreign, list_adapters
from massgen_mcp.config.models.config import Config
from massgen_mcp.config.yaml_reader import Place, show_key
from massgen_mcp.nearest import nearest

_BY_KEY = {
    "api_key_env": "expected the name of an environment variable, in capitals, not the key itself",
    "api_version": "expected v1, or a version such as 2024-10-21",
    "base_url": "expected an http:// or https:// address without spaces, credentials, ? or #, such as "
    "http://localhost:8000/v1",
    "deployment": "expected at most 64 letters, digits, '_', '.' or '-'",
    "endpoint": "expected an http:// or https:// address without spaces, credentials, ? or #",
    "id": "expected at most 64 letters, digits, '_', '.' or '-', starting with a letter or digit; if you "
    "put it in quotation marks, use ' or \"",
}
_BY_TYPE = {
    "missing": "a required key is missing",
    "string_type": "expected text",
    "bool_type": "expected true or false",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "tuple_type": "expected a list",
    "dict_type": "expected a mapping",
    "model_type": "expected a mapping",
    "model_attributes_type": "expected a mapping",
    "finite_number": "expected a finite number",
}
_FORMS = {
    "agents": "[{id: ada, backend: {type: openai, model: NAME}}]",
    "backend": "{type: openai, model: NAME}",
    "budget": "{max_usd: 5}",
    "checks": "[make test]",
    "context_paths": "[{path: src, permission: read}]",
    "notify": "[PROGRAM, ARGUMENT]",
    "timeout_settings": "{orchestrator_timeout_seconds: 600}",
}
"""How the value of a key looks."""
_OTHER_WORDS = {
    "key": "api_key_env",
    "prompt": "system_message",
    "provider": "type",
    "timeout": "orchestrator_timeout_seconds",
    "url": "base_url",
}
"""What other programs call a key of ours."""
ADAPTER = "installed"
"""The type that stands for an adapter, which a file names itself."""
_SECTIONS: Mapping[str, Place] = {
    "orchestrator": ("orchestrator",),
    "orchestrator.coordination": ("orchestrator", "coordination"),
    "timeout_settings": ("timeout_settings",),
    "budget": ("budget",),
    "an entry of agents": ("agents", 0),
    "an agent's backend": ("agents", 0, "backend", "openai"),
}
"""Where keys stand that people write elsewhere: words, and a location as of pydantic."""
_ALSO_AT_THE_TOP = ("agent",)
_ALIKE = 0.7
"""How much a key must be like one that is meant: many begin with the same word, such as `enable_`."""
_THE_SAME = 0.85
"""How much it must be like one that stands elsewhere."""


@dataclass(frozen=True, slots=True)
class Problem:
    place: Place
    message: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """A location of pydantic's, read along the models."""

    place: Place
    owner: type[BaseModel] | None
    """The model that holds (or would hold) the last key."""
    kinds: Mapping[str, type[BaseModel]]
    """When the location is a value whose `type` chooses its model: the types there are."""


def problems_of(error: ValidationError) -> list[Problem]:
    """Every error pydantic found in a `Config`, in its order."""
    found: list[Problem] = []
    details = error.errors(include_url=False)
    wrong_items = {detail["loc"][:depth] for detail in details for depth in range(1, len(detail["loc"]))}
    for detail in details:
        if detail["type"] == "too_short" and detail["loc"] in wrong_items:
            continue  # only because its wrong items were not counted
        seen = _follow(detail["loc"])
        context = cast("Mapping[str, object]", detail.get("ctx", {}))
        match detail["type"]:
            case "extra_forbidden":
                found.append(Problem(seen.place, _unknown_key(seen)))
            case "union_tag_not_found":
                missing = f"a required key is missing; add one of: {', '.join(_list_types(seen.kinds)[0])}"
                found.append(Problem((*seen.place, "type"), missing))
            case "union_tag_invalid":
                found.append(Problem((*seen.place, "type"), _unknown_type(str(context.get("tag", "")), seen.kinds)))
            case kind:
                expected = _expectation(kind, detail["msg"], context, seen.place)
                if is_variable(detail["input"]):
                    expected = f"massgen doesn't replace variables here; {expected}"
                found.append(Problem(seen.place, expected))
    return found


def is_variable(value: object) -> bool:
    """Check whether a value holds `${NAME}` or is `$NAME`, as a shell or another program would replace it."""
    return isinstance(value, str) and ("${" in value or value.startswith("$"))


def likely_types(error: ValidationError) -> dict[Place, str]:
    """For every value whose `type` is unknown the nearest type there is: what its other keys may be judged by."""
    likely: dict[Place, str] = {}
    for detail in error.errors(include_url=False, include_input=False):
        if detail["type"] == "union_tag_invalid":
            seen = _follow(detail["loc"])
            tag = str(detail.get("ctx", {}).get("tag", ""))
            if near := nearest(tag, sorted(seen.kinds)):
                likely[seen.place] = near
    return likely


def show_place(place: Place) -> str:
    """`agents[0].backend.model`, as a user would write it."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{show_key(part)}" if text else show_key(part)
    return text or "config"


def show_name(name: str) -> str:
    """The name of a config or file as it may stand in a message: on one line, not endless."""
    short = name if len(name) <= 300 else f"{name[:300]}..."
    return short if short.isprintable() else ascii(short)


def on_one_line(text: str | Path) -> str:
    """As a person is shown it; nothing that a stranger named can look like a line of ours."""
    return str(text) if str(text).isprintable() else ascii(str(text))


def nearest_or_all(word: str, known: Sequence[str], *, cutoff: float = 0.6) -> str:
    """A clause that helps on: the nearest known word, as `nearest` finds it, or all of them."""
    near = nearest(word, known, cutoff=cutoff)
    return f"did you mean '{near}'?" if near else f"known here: {', '.join(known)}"


def _unknown_key(seen: _Seen) -> str:
    if seen.owner is None:
        return "unknown key"
    key, known = str(seen.place[-1]), sorted(seen.owner.model_fields)
    if seen.owner is Config:
        known = sorted([*known, *_ALSO_AT_THE_TOP])
    elif key in Config.model_fields:
        return "this key is not valid here; move it to the top level of the config"
    if "backend" not in seen.place and nearest(key, known, cutoff=_ALIKE) is None:
        for words, place in _SECTIONS.items():
            there = _follow((*place, key)).owner
            if there and (same := nearest(_OTHER_WORDS.get(key, key), there.model_fields, cutoff=_THE_SAME)):
                return f"unknown key; write {same} under {words}"
    return f"unknown key; {nearest_or_all(key, known, cutoff=_ALIKE)}"


def _list_types(kinds: Mapping[str, object]) -> tuple[list[str], list[str]]:
    """Return the types that massgen has itself, and those of installed adapters."""
    if ADAPTER not in kinds:
        return sorted(kinds), []
    adapters = list_adapters()
    installed = [*filter(is_foreign, adapters)]
    own = {*kinds, *adapters} - {ADAPTER, *installed}
    return sorted(own), installed


def _unknown_type(tag: str, kinds: Mapping[str, object]) -> str:
    types, installed = _list_types(kinds)
    near = nearest(tag, [*types, *installed])
    hint = f"did you mean '{near}'? " if near else ""
    more = f"; installed adapters: {', '.join(installed)}" if installed else ""
    return f"unknown type; {hint}valid types: {', '.join(types)}{more}"


def _expectation(kind: str, message: str, context: Mapping[str, object], place: Place) -> str:
    if kind == "value_error":
        return str(context.get("error", "not valid"))
    if kind == "literal_error":
        return f"expected {context.get('expected')}"
    if kind == "string_pattern_mismatch":
        return _BY_KEY.get(str(place[-1]), "unexpected format")
    if kind in ("too_short", "too_long"):
        bound = (
            f"at least {context.get('min_length')}" if kind == "too_short" else f"at most {context.get('max_length')}"
        )
        return f"expected {bound}, found {context.get('actual_length')}"
    expected = _BY_TYPE.get(kind) or message.replace("Input should be", "expected").replace("String should", "should")
    form = _FORMS.get(next((part for part in reversed(place) if isinstance(part, str)), ""))
    return f"{expected}, such as {form if isinstance(place[-1], str) else form.strip('[]')}" if form else expected


def _follow(location: Sequence[str | int]) -> _Seen:
    """Read pydantic's location along the models: it names the chosen `type` in between, which is no key of the file."""
    place: Place = ()
    annotation: object = Config
    owner: type[BaseModel] | None = None
    kinds: Mapping[str, type[BaseModel]] = {}
    for part in location:
        if kinds and part in kinds:
            annotation, kinds = kinds[str(part)], {}
            continue
        place, owner, kinds = (*place, part), None, {}
        annotation = _given(annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            owner = annotation
            known = owner.model_fields.get(str(part))
            annotation, kinds = (known.annotation, _kinds(known)) if known else (None, {})
        else:
            annotation = _item(cast("object", annotation))
            kinds = _kinds_of_item(annotation)
    return _Seen(place, owner, kinds)


def _kinds(known: FieldInfo) -> Mapping[str, type[BaseModel]]:
    return {} if known.discriminator is None else _kinds_of(known.annotation)


def _kinds_of_item(annotation: object) -> Mapping[str, type[BaseModel]]:
    """Of what a list or a mapping holds, where that is one of several models."""
    union, *about = get_args(annotation) if get_origin(annotation) is Annotated else (None,)
    discriminated = any(isinstance(each, FieldInfo) and each.discriminator is not None for each in about)
    return _kinds_of(union) if discriminated else {}


def _kinds_of(union: object) -> Mapping[str, type[BaseModel]]:
    kinds: dict[str, type[BaseModel]] = {}
    for model in cast("tuple[type[BaseModel], ...]", get_args(union)):
        for tag in get_args(model.model_fields["type"].annotation):
            kinds[tag] = model
    return kinds


def _given(annotation: object) -> object:
    """Of what may be left out, what it is where it is there."""
    if get_origin(annotation) in (Union, UnionType):
        return next((option for option in get_args(annotation) if option is not type(None)), None)
    return annotation


def _item(annotation: object) -> object:
    """What a list, or a mapping, of this type holds."""
    if get_origin(annotation) is Literal:
        return None
    held = get_args(annotation)
    return held[get_origin(annotation) is dict] if held else None
