"""What holds for every reply of a tool: two forms that say the same, none of them cut by any client."""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from mcp.types import CallToolResult

from tests.harness import text_of

MOST_BYTES = 10_000
NAMES_ARE_FACTS = {"team", "vote_counts", "paths", "configs"}
"""Members that are maps by names which nobody knows beforehand."""
FLAGS = {
    ("truncated", True): "truncated",
    ("truncated", False): "whole",
    ("changed", True): "changed",
    ("changed", False): "unchanged",
    ("reused", True): "reused",
    ("reused", False): "new run",
    ("expired", True): "expired",
}


def check_reply(reply: CallToolResult) -> dict[str, Any]:
    """The data of a reply, which its text holds in full and in fewer characters."""
    data, text = cast("dict[str, Any]", reply.structured_content), text_of(reply)
    lacking = [fact for fact in _facts(data, "") if not re.search(rf"(?<![\w.]){re.escape(fact)}(?![\w])", text)]
    assert not lacking, f"the text lacks {lacking}:\n{text}"
    assert len(text.encode()) < len(as_sent(data)), text
    assert len(as_sent(data)) <= MOST_BYTES
    assert len(as_sent(text)) <= MOST_BYTES
    return data


def as_sent(value: object) -> bytes:
    """As it stands in a message."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _facts(value: object, name: str) -> Iterator[str]:
    match value:
        case dict():
            for member, item in cast("dict[str, object]", value).items():
                if name in NAMES_ARE_FACTS:
                    yield member
                yield from _facts(item, member)
        case list():
            for item in cast("list[object]", value):
                yield from _facts(item, name)
        case bool():
            yield FLAGS[name, value]
        case str():
            yield value.strip()
        case _:
            assert value is not None, f"{name} is null"
            yield json.dumps(value)
