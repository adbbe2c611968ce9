"""Server-sent events as every provider streams them: bytes in, events out, of any wire.

As https://html.spec.whatwg.org/multipage/server-sent-events.html has it: lines end in LF, CRLF or CR; an event ends
with an empty line, so one that the end of the stream cuts off is none. Knows no provider and does no I/O.
"""

from typing import NamedTuple

from massgen_mcp.errors import BackendError

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Of one event as it is sent. The last event of a Responses stream repeats the whole reply."""


class ServerEvent(NamedTuple):
    """`name` is empty where the event has none."""

    name: str
    data: str


class EventDecoder:
    """Puts events together from a stream's chunks, however they are cut."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._after_cr = False
        """The last chunk ended in CR: an LF at the beginning of the next one belongs to the same end of a line."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that end in this chunk; those without data are left out.

        Raises `UnicodeDecodeError` for what is no UTF-8, and `BackendError` for an event that is too large.
        """
        if self._after_cr or b"\r" in chunk:
            chunk = self._with_plain_line_ends(chunk)
        buffer = self._buffer
        start, searched = 0, max(0, len(buffer) - 1)
        buffer += chunk
        events: list[ServerEvent] = []
        while (end := buffer.find(b"\n\n", searched)) >= 0:
            if (event := _event(buffer[start:end])) is not None:
                events.append(event)
            start = searched = end + 2
        del buffer[:start]
        if len(buffer) > MAX_EVENT_BYTES:
            raise BackendError("bad_reply", f"an event in the stream is larger than {MAX_EVENT_BYTES} bytes")
        return events

    def _with_plain_line_ends(self, chunk: bytes) -> bytes:
        continued = self._after_cr and chunk.startswith(b"\n")
        self._after_cr = chunk.endswith(b"\r") if chunk else self._after_cr
        return chunk[continued:].replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _event(block: bytearray) -> ServerEvent | None:
    """The event that these lines make; None if there is no data in it."""
    if block.startswith(b"data: ") and b"\n" not in block:
        whole = block[6:].decode()
        return ServerEvent("", whole) if whole.strip() else None
    name, data = "", list[str]()
    for line in bytes(block).split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" ").decode())
        elif field == b"event":
            name = value.removeprefix(b" ").decode()
        elif field == b"error" or line.startswith(b'{"error"'):
            # Servers that fail in the middle of a stream may forget that it is one.
            name, data = "error", [line.removeprefix(b"error:").strip().decode()]
    whole = "\n".join(data)
    return ServerEvent(name, whole) if whole.strip() else None
