"""Small rules for text that crosses a wire: valid Unicode, tool names and arguments that every provider takes back.

Knows no provider and does no I/O.
"""

import json
import re
import uuid
from collections.abc import Sequence

from massgen_mcp.backends.base import AssistantMessage, Citation, JsonObject, JsonValue, Message

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
    return {clean(key): clean_json(item) for key, item in value.items()}


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
