"""What every reply is: data for programs, and a text that says the same in fewer tokens; what is too long for one comes
in pages.

Some clients show their model the data alone, some the text alone, and at least one cuts whatever is longer than about
12,000 characters in its middle. So each of the two holds every fact, and neither is larger than `MAX_BYTES`.
"""

import json
import math
from abc import abstractmethod
from bisect import bisect_right
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from mcp.types import CallToolResult


MAX_BYTES = 10_000
"""Of each form of a reply as it stands in the message: JSON in UTF-8, a text with its quotes and escapes."""

Json = dict[str, object]


class ResultPart(BaseModel):
    """A part of a reply. What is not known or not there is left out of it, never null."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class ToolReply(ResultPart):
    def structured(self) -> Json:
        """The data, in the order in which a model should read it."""
        return cast("Json", _short(self.model_dump(mode="json", exclude_none=True)))

    @abstractmethod
    def text(self) -> str:
        """Every fact of the data, for a model to read."""

    def as_json(self) -> str:
        return as_json(self.structured())

    @classmethod
    def schema_sources(cls) -> tuple[type[BaseModel], ...]:
        """The models whose fields the data has: all those of the first, and some of the others."""
        return (cls,)

    @property
    def size(self) -> int:
        """Bytes of the larger form."""
        return max(json_bytes(self.structured()), json_bytes(self.text()))

    def sent(self) -> "CallToolResult":
        from mcp.types import CallToolResult, TextContent

        content = [TextContent(type="text", text=self.text())]
        return CallToolResult(content=[*content], structured_content=self.structured())


def json_bytes(value: object) -> int:
    """Size of a value as it stands in a message."""
    return len(as_json(value).encode("utf-8", "surrogatepass"))


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def number(value: float) -> str:
    """As it stands in the data."""
    return as_json(_short(value))


def name_value(name: str, value: object) -> str | None:
    """Return a value behind its name, as it stands in the data; None where it is not known."""
    if value is None:
        return None
    if isinstance(value, float):
        value = number(value)
    return f"{name} {value}"


def _short(value: object) -> object:
    """Whole numbers without a fraction."""
    match value:
        case float():
            return int(value) if value.is_integer() else value
        case dict():
            return {name: _short(item) for name, item in cast("dict[str, object]", value).items()}
        case list():
            return [_short(item) for item in cast("list[object]", value)]
        case _:
            return value


def format_moment(moment: float) -> str:
    """Return a time as ISO 8601 in UTC: in milliseconds, rounded down, so that `since` of it includes that run."""
    whole = math.floor(moment * 1000) / 1000
    return datetime.fromtimestamp(whole, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lines(*parts: str | None) -> str:
    """The parts that are there, each on a line of its own."""
    return "\n".join(part for part in parts if part)


def listed(*parts: str | None) -> str:
    """The parts that are there, on one line."""
    return ", ".join(part for part in parts if part)


ROOM_FOR_AN_END = 5
"""A page may lose one part in so many to end with a line, or at least with a word."""


def page_of(text: str, offset: int, characters: int, size: int) -> tuple[str, int | None]:
    """The page from `offset`, a place in `text`: at most so many characters, and at most `size` bytes in JSON; and
    where the next one begins, None after the last. It is never empty where something is left, ends with a line or a
    word where one ends near, and never within what a reader takes for one character.
    """
    rest = text[offset : offset + max(1, min(characters, size))]
    fitting = max(1, bisect_right(range(1, len(rest) + 1), size, key=lambda end: json_bytes(rest[:end]) - len('""')))
    if offset + fitting >= len(text):
        return text[offset:], None
    end = offset + _good_end(text[offset:], fitting)
    return text[offset:end], end


def _good_end(text: str, most: int) -> int:
    """At most `most`, which is inside of the text."""
    least = most - most // ROOM_FOR_AN_END
    for mark in ("\n", " "):
        if (place := text.rfind(mark, least, most)) != -1:
            return place + 1
    from wcwidth import grapheme_boundary_before

    return grapheme_boundary_before(text[: most + 1], most + 1) or most
