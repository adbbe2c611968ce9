"""Calls that models make nearly right, mended: the tool's name, and arguments that are no plain JSON object. Pure.

What can be meant in one way only is taken as meant. What was cut off, or may mean several things, stays as it is: then
the model is told what is wrong.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import cast

from massgen_mcp.backends.base import JsonObject, ToolSpec
from massgen_mcp.events.parts import ToolCallRecord
from massgen_mcp.orchestration.tolerant_json import as_object, read_object
from massgen_mcp.tools.aliases import UNLISTED, resolve_call

_CHANNEL = re.compile(r"<[|\uff5c].*", re.DOTALL)
_COUNTED = re.compile(r":\d+$")
_WRAPPERS = ("arguments", "input", "parameters", "args", "params", "kwargs")


def find_name(name: str, names: Collection[str]) -> str | None:
    """Return the tool that a name means: without prefixes and channels, in any case, with any signs between its words.
    None if it means none of `names`, or several.
    """
    if name in names:
        return name
    plain = _COUNTED.sub("", _CHANNEL.sub("", name).strip().removesuffix(".call"))
    by_key: dict[str, list[str]] = {}
    for known in names:
        by_key.setdefault(_key(known), []).append(known)
    for candidate in (plain, re.split(r"[.:/]", plain)[-1]):
        found = by_key.get(_key(candidate), [])
        if candidate in names:
            return candidate
        if len(found) == 1:
            return found[0]
    return None


def resolve_choice(given: str, names: Iterable[str]) -> str:
    """Return the name on a ballot that is meant by `Agent 1`, `1` or `answer of agent1`; else `given` as it is."""
    by_key = {_key(name): name for name in names}
    key = _key(re.sub(r"\b(?:answer|of|the|by|number|no|name)\b", " ", given, flags=re.IGNORECASE))
    if key.isdigit():
        return next((name for known, name in by_key.items() if known == f"agent{int(key)}"), given)
    return by_key.get(key, given)


def repair_calls(calls: Sequence[ToolCallRecord], tools: Sequence[ToolSpec]) -> tuple[ToolCallRecord, ...]:
    """Return the calls as their tools are named and take them, as far as that is clear."""
    offered = {tool.name: tool for tool in tools}
    return tuple(_repair(call, offered) for call in calls)


def _repair(call: ToolCallRecord, offered: Mapping[str, ToolSpec]) -> ToolCallRecord:
    name = find_name(call.name, [*offered, *UNLISTED]) or call.name
    arguments = _read_arguments(call.arguments, offered.get(name))
    if arguments is not None:
        name, arguments = resolve_call(name, arguments, offered)
    text = call.arguments
    if arguments is not None and not _is_plain(text, arguments):
        text = json.dumps(arguments, ensure_ascii=False)
    return (
        call
        if (name, text) == (call.name, call.arguments)
        else call.model_copy(update={"name": name, "arguments": text})
    )


def _is_plain(text: str, arguments: JsonObject) -> bool:
    """Whether the text is JSON of exactly these arguments already."""
    try:
        return cast("object", json.loads(text)) == arguments
    except (ValueError, RecursionError):
        return False


def _read_arguments(text: str, tool: ToolSpec | None) -> JsonObject | None:
    """Return the arguments that a text is meant as; None if they cannot be read, or are cut off."""
    if not text.strip():
        return {}
    read = read_object(text)
    if read is None:
        return None
    properties = _properties(tool)
    for _ in range(2):
        inner = _unwrap(read, tool, properties)
        if inner is None:
            break
        read = inner
    return cast("JsonObject", read)


def _unwrap(read: Mapping[str, object], tool: ToolSpec | None, properties: Collection[str]) -> dict[str, object] | None:
    """Return what stands in `{"arguments": {…}}`, beside the tool's name or alone; None if nothing is wrapped so."""
    keys = set(read)
    if "name" not in properties:
        keys -= {"name", "tool", "type", "id"}
    wrapper = next((key for key in (*_WRAPPERS, tool and tool.name) if key in keys), None)
    if wrapper is None or len(keys) != 1 or wrapper in properties:
        return None
    return as_object(read[wrapper])


def _properties(tool: ToolSpec | None) -> Collection[str]:
    return () if tool is None else cast("JsonObject", tool.parameters.get("properties", {}))


def _key(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
