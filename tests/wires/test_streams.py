"""Every wire reads the same reply, in whatever form a server sends its events and wherever the network cuts them."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from massgen_mcp.backends import event_stream
from massgen_mcp.errors import BackendError
from tests.backends.wires import CHAT, WIRES, Wire, ask, parts_of, stop_of, text_in
from tests.raw_double import in_chunks, raw_server

every_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)

SPOKEN = "P\u00e2ris \U0001f5fc"


def told(wire: Wire, line_end: str = "\n", *, indent: int | None = None, before: tuple[str, ...] = ()) -> bytes:
    """The wire's whole reply, with `SPOKEN` for its text; `before` are further lines in every event."""
    events = json.loads(json.dumps(wire.whole).replace('"Pa"', '"P\u00e2"').replace('"ris"', '"ris \U0001f5fc"'))
    lines: list[str] = []
    for event in events:
        lines += [f"event: {event['type']}"] if "type" in event else []
        data = json.dumps(event, ensure_ascii=False, indent=indent)
        lines += [*before, *(f"data: {line}" for line in data.split("\n")), ""]
    lines += ["data: [DONE]", ""] if wire is CHAT else []
    return "".join(line + line_end for line in lines).encode()


async def parts_in(wire: Wire, answer: bytes) -> list[Any]:
    async with raw_server(answer) as server:
        return await parts_of(wire.backend(server.url), ask("capital?"))


async def failure_in(wire: Wire, answer: bytes) -> BackendError:
    async with raw_server(answer) as server:
        with pytest.raises(BackendError) as caught:
            await parts_of(wire.backend(server.url), ask("capital?"))
    return caught.value


FORMS: dict[str, Callable[[Wire], bytes]] = {
    "LF": told,
    "CRLF": lambda wire: told(wire, "\r\n"),
    "CR": lambda wire: told(wire, "\r"),
    "data in many lines": lambda wire: told(wire, indent=1),
    "comments and fields that nobody knows": lambda wire: told(wire, before=(": hi", ":", "retry: 7", "id: 1", "x")),
    "more empty lines, no space after the colon": lambda wire: (
        b"\n: hi\n\n\n" + told(wire).replace(b"\n\n", b"\n\n\n").replace(b"data: ", b"data:")
    ),
    "an event without data": lambda wire: b"event: hello\n\nid: 1\n\n" + told(wire),
}


@every_wire
@pytest.mark.parametrize("form", FORMS)
async def test_a_reply_is_the_same_in_every_form_and_in_chunks_of_any_size(wire: Wire, form: str) -> None:
    body = FORMS[form](wire)
    for size in (1, 2, 3, 64, len(body)):
        parts = await parts_in(wire, in_chunks(body, size))
        assert text_in(parts) == SPOKEN, size
        assert stop_of(parts).reason == "end"


@every_wire
async def test_an_event_that_the_end_of_the_stream_cuts_off_is_none(wire: Wire) -> None:
    body = told(wire).partition(b"data: [DONE]")[0]
    for missing in (1, 2, 9):
        error = await failure_in(wire, in_chunks(body[:-missing], 16))
        assert (error.reason, error.retryable) == ("provider_error", True), missing


@every_wire
async def test_an_event_without_end_is_given_up(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "MAX_EVENT_BYTES", 100_000)
    error = await failure_in(wire, in_chunks(b"data: " + b"x" * 200_000, 4096))
    assert error.reason == "bad_reply"


@every_wire
async def test_the_connection_of_a_whole_reply_is_used_again(wire: Wire) -> None:
    connections: list[SocketStream] = []

    async def serve(stream: SocketStream) -> None:
        connections.append(stream)
        requests = BufferedByteReceiveStream(stream)
        async with stream:
            with suppress(anyio.IncompleteRead):
                while True:
                    head = (await requests.receive_until(b"\r\n\r\n", 65536)).decode().lower()
                    await requests.receive_exactly(int(head.partition("content-length: ")[2].split("\r\n")[0]))
                    await stream.send(in_chunks(told(wire), 64))

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
        backend = wire.backend(f"http://127.0.0.1:{port}")
        for _ in range(3):
            assert text_in([part async for part in backend.stream(ask("capital?"))]) == SPOKEN
        await backend.aclose()
        tasks.cancel_scope.cancel()
    assert len(connections) == 1
