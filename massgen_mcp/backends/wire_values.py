"""What crosses a wire, made usable: valid text, names and arguments that every provider takes back, members of JSON,
which may be anything, and counts.

Knows no provider and does no I/O.
"""

import json
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from pydantic_core import PydanticSerializationError, to_json

from massgen_mcp.backends.base import AssistantMessage, Citation, JsonObject, JsonValue, Message, UsagePart
from massgen_mcp.config.providers.catalog import CostField

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def clean(text: str) -> str:
    """`text` with every lone surrogate replaced by U+FFFD, so that it can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_json(value: JsonValue) -> JsonValue:
    """`value` with every string in it cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): clean_json(item) for key, item in value.items()}
    return value


def clean_object(value: JsonObject) -> JsonObject:
    """`value` with every string in it cleaned; the same object where there is nothing to clean, as nearly always."""
    try:
        to_json(value, fallback=str)  # several times as fast as a look at every string
    except PydanticSerializationError:
        return {clean(key): clean_json(item) for key, item in value.items()}
    return value


def citation(url: object, title: object) -> Citation | None:
    """What a provider says that its search found, if it names a page; whatever else it says costs no reply."""
    if not isinstance(url, str) or not url:
        return None
    return Citation(clean(url), clean(title) if isinstance(title, str) else "")


def tool_name(name: str) -> str:
    """A name as providers accept it in a history: a model may invent one that they would refuse to read again."""
    return _NOT_IN_NAMES.sub("_", name)[:64] or "_"


def arguments_object(arguments: str) -> JsonObject:
    """Arguments as an object. Broken ones are wrapped: providers refuse a history with arguments they cannot parse."""
    try:
        value: JsonValue = json.loads(arguments or "{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return clean_object(value)
    return {"malformed_arguments": clean(arguments)}


def is_object(text: str) -> bool:
    """Whether `text` is the whole JSON of an object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def arguments_text(arguments: str) -> str:
    """Arguments as JSON text of an object; what the model wrote where that is one."""
    parsed = arguments_object(arguments)
    return json.dumps(parsed) if not arguments or "malformed_arguments" in parsed else clean(arguments)


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON")


class CallIds:
    """Ids of one reply's tool calls: those of the provider, generated where one is missing or was used before.

    `history` is the conversation so far: there are servers that begin again with the same id in every reply.
    """

    def __init__(self, history: Sequence[Message]) -> None:
        earlier = [message for message in history if isinstance(message, AssistantMessage)]
        self._seen = {call.id for message in earlier for call in message.tool_calls}

    def take(self, given: str | None) -> str:
        chosen = clean(given or "")
        if not chosen or chosen in self._seen:
            chosen = f"call_{uuid.uuid4().hex}"
        self._seen.add(chosen)
        return chosen


# -- checked access to the few members that we use of an event's JSON -------------------------------------------------
# A server may send anything. What is missing, or null, is nothing; what is of another type than its API says is an
# error, which becomes a "bad_reply".


Fields = Mapping[str, object]


def parsed(data: str) -> object:
    """The JSON of an event. Raises `ValueError` or `RecursionError` for what is none."""
    return json.loads(data)


def fields_of(value: object, what: str) -> Fields:
    """`value` as an object. Raises `TypeError`, with the name of `what`, if it is none."""
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    raise _other_type(what, value, "an object")


def fields_or_none(value: object) -> Fields:
    """`value` as an object; one with nothing in it for anything else."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def objects_in(fields: Fields, name: str) -> Sequence[Fields]:
    """The objects of a list; none where there is no list. Raises `TypeError` for anything else."""
    value = fields.get(name)
    if not value:
        return ()
    if isinstance(value, list):
        return [fields_of(item, name) for item in cast("list[object]", value)]
    raise _other_type(name, value, "a list")


def as_list(value: object) -> list[object]:
    """`value` as a list; an empty one for anything else."""
    return cast("list[object]", value) if isinstance(value, list) else []


def text_in(fields: Fields, name: str) -> str:
    """A text, which may be missing: then it is empty. Raises `TypeError` for what is no text."""
    value = fields.get(name)
    if isinstance(value, str):
        return value
    if not value:
        return ""
    raise _other_type(name, value, "text")


def split_content(content: object) -> tuple[str, str]:
    """Return the thoughts and the text of a message's content: a text, or a list of parts. Raises `TypeError` for
    anything else.
    """
    if isinstance(content, str):
        return "", content
    if not content:
        return "", ""
    if not isinstance(content, list):
        raise _other_type("content", content, "text")
    thoughts, texts = list[str](), list[str]()
    for part in cast("list[object]", content):
        if isinstance(part, str):
            texts.append(part)
            continue
        fields = fields_of(part, "part of the content")
        if thinking := fields.get("thinking") or fields.get("reasoning"):
            thoughts.append("".join(split_content(thinking)))
        elif fields.get("type") not in ("image_url", "audio", "reference"):
            texts.append(text_in(fields, "text"))
    return "".join(thoughts), "".join(texts)


def read_call_arguments(function: Fields) -> str:
    """Return a call's arguments as JSON text; some servers send the object itself."""
    value = function.get("arguments")
    if isinstance(value, dict):
        return json.dumps(value)
    return text_in(function, "arguments")


def is_cut_json(data: str, error: json.JSONDecodeError) -> bool:
    """Check that a text with this error is the beginning of a JSON object whose rest is missing."""
    ends_early = error.pos >= len(data.rstrip()) or error.msg.startswith("Unterminated string")
    return data.lstrip().startswith("{") and ends_early


def parse_leniently(data: str) -> object:
    """Return what the text is as JSON, else the text itself."""
    try:
        return parsed(data)
    except (ValueError, RecursionError):
        return data


def needed_text(fields: Fields, name: str) -> str:
    """A text that must be there. Raises `TypeError` if it is not, or no text."""
    value = fields.get(name)
    if isinstance(value, str):
        return value
    raise _other_type(name, value, "text")


def needed_int(fields: Fields, name: str) -> int:
    """A whole number that must be there. Raises `TypeError` if it is not, or something else."""
    value = fields.get(name)
    if isinstance(value, int):
        return value
    raise _other_type(name, value, "a number")


def json_object(fields: Fields) -> JsonObject:
    """The same object as data to be sent back."""
    return cast("JsonObject", fields)


def _other_type(name: str, value: object, wanted: str) -> TypeError:
    return TypeError(f"{name} is {type(value).__name__}, not {wanted}")


# ---------------------------------------------------------------------------------------------------------------------
# What a provider counted, made usable: integers within bounds, or nothing. Every wire reads its usage through here.
# A server may send anything in place of a number. What is no number of tokens, or no sum of money, is as good as not
# sent: it is never an error, because the reply was paid for, and never 0, because 0 would be a price.


MAX_TOKENS = 100_000_000
"""No model reads or writes more in one call."""
MAX_USD = 100_000.0
"""No call costs more."""
_DIGITS = re.compile(r"[0-9]{1,12}")
TICKS = 10_000_000_000
"""So many of xAI's units are a dollar."""


def count(value: object) -> int | None:
    """A number of tokens, a broken one rounded up; None for everything else."""
    number = _number_up_to(value, MAX_TOKENS)
    return None if number is None else math.ceil(number)


def money(value: object, *, unit: float = 1.0) -> float | None:
    """A sum in US dollars, told in units of so many to the dollar; None for what can be no such sum."""
    number = _number_up_to(value, MAX_USD * unit)
    return None if number is None else number / unit


def _number_up_to(value: object, most: float) -> float | None:
    """A number between 0 and `most`. Compared before it is converted: an integer may be too large for a float."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)  # some servers quote their numbers
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= most else None


def member(value: object, *path: str) -> object:
    """What stands in `value` at this path of nested mappings; None where nothing does."""
    for name in path:
        value = cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None
    return value


def complete_usage(model: object, counted: UsagePart) -> UsagePart:
    """Return the counts of one call with the model that replied. A part is never more than its whole, where that is
    known.
    """
    wholes = (counted.input_tokens, counted.output_tokens)
    most_read, most_written = (MAX_TOKENS if whole is None else whole for whole in wholes)
    cached = min(counted.cached_input_tokens, most_read)
    cache_written = min(counted.cache_write_tokens, most_read - cached)
    return replace(
        counted,
        model=clean(model) if isinstance(model, str) else "",
        cached_input_tokens=cached,
        cache_write_tokens=cache_written,
        cache_write_long_tokens=min(counted.cache_write_long_tokens, cache_written),
        reasoning_tokens=min(counted.reasoning_tokens, most_written),
    )


class MessagesUsage:
    """What the Messages API counts in a reply that comes piece by piece, in one request or more."""

    def __init__(self) -> None:
        self.model: object = None
        self._before: UsagePart | None = None
        """Of the requests before this one."""
        self._counts: dict[str, int] = {}
        """By the API's own names, as they were told last."""

    def hear(self, usage: object) -> None:
        """Counts are running totals; some servers set back to 0 what they have told."""
        for path in _MESSAGES_COUNTS:
            if number := count(member(usage, *path)):
                self._counts[path[-1]] = number
            elif number == 0:
                self._counts.setdefault(path[-1], 0)

    def next_request(self) -> None:
        self._before, self._counts = self.total(), {}

    def total(self) -> UsagePart:
        """Everything since the first of the reply's requests."""
        counts, before = self._counts, self._before or UsagePart(0, 0, 0, 0)
        uncached, cached = counts.get("input_tokens"), counts.get("cache_read_input_tokens", 0)
        cache_written = counts.get("cache_creation_input_tokens", 0)
        # The API counts cached input apart, we do not.
        read = None if uncached is None else uncached + cached + cache_written
        counted = UsagePart(
            input_tokens=_sum(before.input_tokens, read),
            output_tokens=_sum(before.output_tokens, counts.get("output_tokens")),
            cached_input_tokens=before.cached_input_tokens + cached,
            cache_write_tokens=before.cache_write_tokens + cache_written,
            cache_write_long_tokens=before.cache_write_long_tokens + counts.get("ephemeral_1h_input_tokens", 0),
            reasoning_tokens=before.reasoning_tokens + counts.get("thinking_tokens", 0),
            web_searches=before.web_searches + counts.get("web_search_requests", 0),
        )
        return complete_usage(self.model or before.model, counted)


_MESSAGES_COUNTS = (
    ("input_tokens",),
    ("cache_read_input_tokens",),
    ("cache_creation_input_tokens",),
    ("cache_creation", "ephemeral_1h_input_tokens"),
    ("output_tokens",),
    ("output_tokens_details", "thinking_tokens"),
    ("server_tool_use", "web_search_requests"),
)


def _sum(one: int | None, other: int | None) -> int | None:
    """Unknown where a part is."""
    return None if one is None or other is None else one + other


def chat_usage(usage: object, model: object, cost_field: CostField | None) -> UsagePart:
    """The usage of Chat Completions."""
    read = count(member(usage, "prompt_tokens"))
    reasoning = count(member(usage, "completion_tokens_details", "reasoning_tokens"))
    written = count(member(usage, "completion_tokens"))
    counted = UsagePart(
        input_tokens=read,
        output_tokens=written_tokens(read, written, count(member(usage, "total_tokens")), reasoning),
        cached_input_tokens=count(member(usage, "prompt_tokens_details", "cached_tokens")) or 0,
        cache_write_tokens=count(member(usage, "prompt_tokens_details", "cache_write_tokens")) or 0,
        reasoning_tokens=reasoning or 0,
        cost_usd=reported_usd(usage, cost_field),
    )
    return complete_usage(model, counted)


def written_tokens(read: int | None, written: int | None, total: int | None, reasoning: int | None) -> int | None:
    """All tokens that the model wrote. OpenAI counts reasoning among them; xAI and Gemini only in the total."""
    if total and read is not None:
        return max(written or 0, total - read)
    if total and written is None:
        return total  # which part was read is not said; written tokens cost more
    if written is None or reasoning is None:
        return written
    return written + reasoning if reasoning > written else written


def reported_usd(usage: object, cost_field: CostField | None) -> float | None:
    """What a provider says in its usage that the call cost; None where it says nothing that can be a sum of money."""
    cost = member(usage, cost_field) if cost_field else None
    if cost_field == "cost_in_usd_ticks":
        return money(cost, unit=TICKS)
    charged = money(cost)
    if charged is None:
        return None
    if not member(usage, "is_byok"):
        return charged
    # With a key of the user's own OpenRouter charges a fee, and the model's provider bills the rest.
    upstream = money(member(usage, "cost_details", "upstream_inference_cost"))
    return None if upstream is None else charged + upstream
