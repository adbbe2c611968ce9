"""What a line of `events.jsonl` may be, as it was written down for each version of the journal, and what would make
lines of it unreadable.

`python -m tests.golden.schema` writes down what was added. What no longer reads the lines of this version it refuses.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from massgen_mcp.events.record import JOURNAL_VERSION, LogRecord

Json = dict[str, Any]
RECORDED = Path(__file__).parent / f"schema_{JOURNAL_VERSION}.json"
BOUNDS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"),
    *("minItems", "maxItems", "pattern", "format", "propertyNames"),
)
WORDS = ("title", "description", "default", "discriminator", "examples")


def present() -> Json:
    """The schema of a line, without words and defaults."""
    schema: Json = bare(LogRecord.model_json_schema())
    schema["properties"]["event"] = schema["properties"]["event"]["anyOf"][0]  # no line is written as unknown
    return schema


def recorded() -> Json:
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def bare(node: Any, *, names: bool = False) -> Any:
    """`names`: its keys are names of fields or models."""
    if isinstance(node, list):
        return [bare(one) for one in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    kept = {key: one for key, one in cast("Json", node).items() if names or key not in WORDS}
    return {key: bare(one, names=not names and key in ("properties", "$defs")) for key, one in kept.items()}


def unreadable(old: Json, new: Json) -> list[str]:
    """Why a program with the schema `new` does not read every line that was written by `old`; empty if it does."""
    return list(_unreadable(old, new, "line", old["$defs"], new["$defs"]))


def _unreadable(old: Json, new: Json, place: str, before: Json, now: Json) -> Iterator[str]:
    for was in _choices(old, before):
        where = f"{place}.{was['name']}" if was["name"] else place
        least: list[str] | None = None
        for choice in _choices(new, now):
            if choice["name"] == was["name"]:
                found = list(_differences(was, choice, where, before, now))
                least = found if least is None or len(found) < len(least) else least
        yield from [f"{where}: {_kind(was)} is not read"] if least is None else least


def _choices(node: Json, defined: Json) -> Iterator[Json]:
    """What a value may be, one by one; with the `name` of the event that it is."""
    if "$ref" in node:
        node = defined[node["$ref"].rpartition("/")[2]]
    several = node.get("anyOf") or node.get("oneOf")
    if several:
        for one in several:
            yield from _choices(one, defined)
    elif "enum" in node:
        yield from ({"const": value, "name": ""} for value in node["enum"])
    else:
        yield {**node, "name": node.get("properties", {}).get("type", {}).get("const", "")}


def _differences(was: Json, new: Json, place: str, before: Json, now: Json) -> Iterator[str]:
    if not _takes(new, was):
        yield f"{place}: {_kind(was)} is not read"
    else:
        yield from (f"{place}: {name} is another" for name in BOUNDS if name in new and was.get(name) != new[name])
        yield from _members(was, new, place, before, now)


def _members(was: Json, new: Json, place: str, before: Json, now: Json) -> Iterator[str]:
    fields, known = was.get("properties", {}), new.get("properties", {})
    for name, one in fields.items():
        if name in known:
            yield from _unreadable(one, known[name], f"{place}.{name}", before, now)
        else:
            yield f"{place}.{name}: is not known any more"
    for name in sorted({*new.get("required", ())} - {*was.get("required", ())}):
        yield f"{place}.{name}: is required, and lines are without it"
    for inside in ("items", "additionalProperties"):
        if isinstance(was.get(inside), dict) and isinstance(new.get(inside), dict):
            yield from _unreadable(was[inside], new[inside], place, before, now)
    parts, places = was.get("prefixItems", ()), new.get("prefixItems", ())
    if len(parts) == len(places):
        for part, new_part in zip(parts, places, strict=True):
            yield from _unreadable(part, new_part, place, before, now)
    else:
        yield f"{place}: has {len(places)} parts, not {len(parts)}"


def _takes(new: Json, was: Json) -> bool:
    """Whether it is of the same kind, or of a wider one."""
    if "const" in new:
        return was.get("const") == new["const"]
    written = was.get("type", "string" if isinstance(was.get("const"), str) else None)
    return "type" not in new or new["type"] == written or (written, new["type"]) == ("integer", "number")


def _kind(node: Json) -> str:
    return repr(node["const"]) if "const" in node else str(node.get("type", "anything"))


def main() -> None:
    problems = unreadable(recorded(), present()) if RECORDED.exists() else []
    if problems:
        sys.exit("\n".join([*problems, f"Raise JOURNAL_VERSION, which is {JOURNAL_VERSION}."]))
    RECORDED.write_text(json.dumps(present(), indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
