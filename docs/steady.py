"""Real replies and records made the same every time: what differs from run to run has a fixed value instead."""

import json
import re
from collections.abc import Mapping
from typing import TypeVar, cast

T = TypeVar("T")

RUN_ID = "run-7q3fk2m5xw4ztnbh6cvadr8yge"
STARTED = 1_790_000_000.0
FIXED: Mapping[str, object] = {
    "seconds": 74.2,
    "elapsed_seconds": 74.2,
    "latency": 31.6,
    "started": "2026-09-21T13:33:20.000Z",
    "age": "2 h",
    "start_time": STARTED,
    "last_updated": STARTED + 74.2,
    "last_activity": STARTED + 70.5,
    "timestamp": STARTED + 70.5,
    "time": STARTED + 12.3,
    "clock": 5_271.38,
    "cursor": 29,
    "seq": 12,
    "tokens": 12_480,
    "input_tokens": 11_900,
    "output_tokens": 580,
    "reserved_tokens": 20_000,
    "reserved_usd": 0.06,
    "crc": "5d41402a",
    "call_id": "agent_a-1",
    "nonce": "5f0c9a1be27d4368",
    "opening": "1d7e40c2b9a85f36",
    "tree": "9ae1f0c5d27b4e6380f1a2b3c4d5e6f708192a3b",
    "estimate": "usually $0 to $0 (max_usd 10), 1 to 5 minutes, 5 to 11 model calls",
    "wait_seconds": 2.0,
    "queued_seconds": 0.8,
}
"""By key; numbers that are 0 stay so, and what is null."""
LONGEST = 400
"""Characters of a text; longer ones are cut after their first line."""


def steady(value: T, places: Mapping[str, str]) -> T:
    """`places`: paths of this machine, and what stands for them."""
    return cast("T", _steady(value, places))


def _steady(value: object, places: Mapping[str, str]) -> object:
    match value:
        case dict():
            items = cast("dict[str, object]", value).items()
            return {_word(name, places): _of_key(name, item, places) for name, item in items}
        case list():
            return [_steady(item, places) for item in cast("list[object]", value)]
        case str():
            text = _word(value, places)
            return text if len(text) <= LONGEST else f"{text.splitlines()[0][:LONGEST]}\n..."
        case _:
            return value


def _of_key(name: str, value: object, places: Mapping[str, str]) -> object:
    return FIXED[name] if name in FIXED and isinstance(value, int | float | str) and value else _steady(value, places)


def _word(text: str, places: Mapping[str, str]) -> str:
    for place, shown in places.items():
        text = text.replace(place, shown)
    return re.sub(r"run-[a-z2-7]{26}", RUN_ID, text)


def as_json(value: object) -> str:
    """Indented; what is short stands on one line."""
    return _laid_out(value, "")


def _laid_out(value: object, indent: str) -> str:
    short = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(indent) + len(short) <= 100:
        return short
    deeper = f"{indent}  "
    if isinstance(value, dict):
        items = [
            f"{deeper}{json.dumps(name)}: {_laid_out(item, deeper)}"
            for name, item in cast("dict[str, object]", value).items()
        ]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    held = [f"{deeper}{_laid_out(item, deeper)}" for item in cast("list[object]", value)]
    return "[\n" + ",\n".join(held) + f"\n{indent}]"
