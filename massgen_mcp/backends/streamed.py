"""What every wire over HTTP does around one call: a client built at first use, the events of a reply read as they come,
what a model is writing into a tool's argument shown to people meanwhile, and failures that are `BackendError`.

Of a call that is being written a wire tells the name of the tool and the JSON text of its arguments as they arrive;
which argument people may read is said by the tool itself (`ToolSpec.shown`). What is broken there is only not shown:
the finished call is the record, and is checked elsewhere. Must not know any wire.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import Any, Generic, Literal, TypeVar

from massgen_mcp.backends.base import ModelRequest, Part, ToolSpec
from massgen_mcp.backends.failures import translated
from massgen_mcp.backends.http import ClientT, Endpoint, LazyClient
from massgen_mcp.backends.wire_values import CallIds, clean

_WHOLE = re.compile(r'(?:[^"\\]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
"""As much of a string's JSON text as can be decoded by itself."""
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
"""The beginning of an escape, at the end of what has come."""
ScanState = Literal["start", "before name", "name", "before value", "other", "wanted", "over"]
"""`name`: in a name, or after it; `wanted`: in the text that is looked for; `other`: in any other value."""


class Drafts:
    """Of one reply, with these tools on offer."""

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        self._shown = {tool.name: tool.shown for tool in tools if tool.shown}

    def begin(self, tool: str) -> "Draft | None":
        """For a new call of this tool; None if there is nothing in it to be shown."""
        shown = self._shown.get(tool)
        return None if shown is None else Draft(shown)


class Draft:
    """Finds the text at one name of a JSON object that comes in pieces, cut anywhere."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._state: ScanState = "start"
        self._held = ""
        """The beginning of what cannot be read yet: an escape that is cut, or a name."""
        self._half = ""
        """The first half of a character that JSON writes as two escapes."""
        self._depth = 0
        self._quoted = False
        self._escaped = False

    def add(self, piece: str) -> str:
        """The next piece of the JSON text. Returns what it adds to the text that is looked for; often nothing."""
        match self._state:
            case "wanted":
                return self._read(piece)
            case "over":
                return ""
            case _:
                return self._seek(piece)

    def _seek(self, piece: str) -> str:
        for place, character in enumerate(piece):
            self._state = self._step(character)
            if self._state == "wanted":
                return self._read(piece[place + 1 :])
        return ""

    def _read(self, piece: str) -> str:
        """Inside of the text that is looked for."""
        text, self._held = self._held + piece, ""
        if '"' in text or "\\" in text:
            whole = _WHOLE.match(text)
            end = whole.end() if whole else 0
            text, rest = text[:end], text[end:]
            if _CUT_ESCAPE.fullmatch(rest):
                self._held = rest
            elif rest:
                self._state = "over"  # the text has ended, or is none
            if "\\" in text:
                text = json.loads(f'"{text}"', strict=False)
        text, self._half = self._half + text, ""
        if self._state == "wanted" and "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return clean(text)

    def _step(self, character: str) -> ScanState:
        """Where one character outside of it leads."""
        if self._quoted:
            return self._in_string(character)
        if character in " \t\r\n":
            return self._state
        match self._state:
            case "start":
                return "before name" if character == "{" else "over"
            case "before name":
                self._held, self._quoted = character, character == '"'
                return "name" if self._quoted else "over"
            case "name":
                return "before value" if character == ":" else "over"
            case "before value":
                name, self._held = self._held, ""
                if _decoded(name) != self._name:
                    return self._in_value(character)
                return "wanted" if character == '"' else "over"
            case "other":
                return self._in_value(character)
            case "wanted" | "over":
                return self._state

    def _in_string(self, character: str) -> ScanState:
        """Of a name, or of a value that is not looked for."""
        if self._state == "name":
            self._held += character
        self._quoted = self._escaped or character != '"'
        self._escaped = character == "\\" and not self._escaped
        return self._state

    def _in_value(self, character: str) -> ScanState:
        """Of a value that is not looked for, of any kind."""
        self._quoted = character == '"'
        if character in "{[":
            self._depth += 1
        elif character in "}]":
            self._depth -= 1
        if self._depth < 0:
            return "over"
        return "before name" if character == "," and not self._depth else "other"


def _decoded(name: str) -> str | None:
    try:
        value: object = json.loads(name)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


class WireReply(ABC):
    """Puts the events of one reply together."""

    def __init__(self, endpoint: Endpoint, request: ModelRequest) -> None:
        self._endpoint = endpoint
        self.told_end = False
        """Whether the stream has said that nothing more comes."""
        self._called: list[str] = []
        """The arguments of the calls."""
        self._ids = CallIds(request.messages)
        self._drafts = Drafts(request.all_tools)

    @abstractmethod
    def read(self, event: Any, /) -> Iterator[Part]:  # noqa: ANN401 - each wire has events of its own
        """What one event comes to. Raises `BackendError` for an error that is told in its place."""

    @abstractmethod
    def finish(self) -> Iterator[Part]:
        """What is known only at the end. Raises `BackendError` if the model did not come to one."""


ReplyT = TypeVar("ReplyT", bound=WireReply)


class HttpBackend(ABC, Generic[ClientT, ReplyT]):
    """A `Backend` whose wire says only how a call is made, and how its events are read."""

    def __init__(
        self,
        endpoint: Endpoint,
        client: LazyClient[ClientT],
        reply: Callable[[Endpoint, ModelRequest], ReplyT],
    ) -> None:
        self.model = endpoint.model
        self._endpoint = endpoint
        self._client = client
        self._reply = reply

    async def prepare(self) -> None:
        with translated(self._endpoint):
            await self._client.get()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        with translated(self._endpoint):
            client = await self._client.get()
            reply = self._reply(self._endpoint, request)
            async with aclosing(self._events(client, request, reply)) as events:
                async for event in events:
                    for part in reply.read(event):
                        yield part
            for part in reply.finish():
                yield part

    @abstractmethod
    def _events(self, client: ClientT, request: ModelRequest, reply: ReplyT, /) -> AsyncGenerator[Any]:
        """Make the call; its events, of which `reply` has read all that were yielded. What it raises is translated."""

    async def aclose(self) -> None:
        await self._client.aclose()
