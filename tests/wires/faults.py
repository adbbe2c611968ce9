"""What every wire has to stand: the rows of the fault matrix, each played through whole runs.

A fault is a reply that the provider gives once, or every time, or in place of the final answer. Whatever comes of it is
a good answer or one typed reason after a known number of requests; never the false answer that the reply seems to give.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple, Self

from massgen_mcp.backends.base import Backend
from massgen_mcp.backends.calling import RetryPolicy
from massgen_mcp.errors import DropReason
from tests.raw_double import Flow, answering, raw_server, reply
from tests.wires.calls import AT_ONCE, RunEnd, load_sdks, run_alone
from tests.wires.dialects import Dialect
from tests.wires.rows import KEY, Row

GOOD = "Paris is the capital."
FALSE = "FALSE: half of an"
MAX_GROWTH_MIB = 64


class Scene(NamedTuple):
    """What a faulty reply may depend on."""

    row: Row
    presenting: bool
    """The final answer is written, in text; otherwise an answer is given, by a tool call."""
    elsewhere: str
    """Address of another host."""

    @property
    def dialect(self) -> Dialect:
        return self.row.dialect()

    def said(self, text: str) -> Dialect:
        """`text` as a whole answer, without the end of the reply."""
        return self.dialect.text(text) if self.presenting else self.dialect.call("new_answer", _content(text))

    def whole(self, text: str) -> bytes:
        return reply(self.said(text).stop("end" if self.presenting else "calls").body())


class Ends(NamedTuple):
    """`reason` None: with the good answer."""

    reason: DropReason | None
    requests: int

    def __str__(self) -> str:
        return f"{f'`{self.reason}`' if self.reason else 'answered'} {self.requests}"


@dataclass(frozen=True)
class Fault:
    """`stays` is how a run ends when the fault stays, `final` when it stays in place of the final answer."""

    title: str
    make: Callable[[Scene], bytes | Flow]
    stays: Ends
    final: Ends
    call_seconds: float = 20.0
    otherwise: Mapping[str, Ends] = field(default_factory=dict[str, Ends])
    """`final` on wires on which it differs, by their title."""
    told_by_end: bool = False
    """Gemini sends no call that is malformed, but an end that says so: then the reply is void."""

    def expected(self, row: Row) -> tuple[Ends, Ends, Ends]:
        """How the runs end in which it stays, comes once, stays in place of the final answer. When the next reply is a
        good one, what is tried again recovers.
        """
        void = self.told_by_end and row.title == "Gemini"
        stays, final = (CUT, CUT) if void else (self.stays, self.otherwise.get(row.title, self.final))
        return stays, Ends(None, 2) if stays.requests > 1 else stays, final


def cell(ends: tuple[Ends, Ends, Ends]) -> str:
    """As docs/wires.md has it."""
    return str(ends[0]) if len(set(ends)) == 1 else ", ".join(map(str, ends))


MakeBackend = Callable[[str], Backend]


async def play(
    fault: Fault, row: Row, *, make: MakeBackend | None = None, policy: RetryPolicy = AT_ONCE
) -> tuple[Ends, Ends, Ends]:
    """Play the fault to whole runs: how they ended if it stayed, came once, stayed in place of the final answer.

    Raises AssertionError when a run ended in another way than it should, or with a false answer, or leaked the key, or
    took too much memory. `make` puts another client in the place of ours.
    """
    load_sdks()
    make = make or row.backend
    modes = ((False, False), (True, False), (False, True))
    seen: list[Ends] = []
    for (once, presenting), ends in zip(modes, fault.expected(row), strict=True):
        seen.append(await _play(fault, row, make, policy, once=once, presenting=presenting))
        assert seen[-1] == ends, f"{fault.title}, {row.title}, {once=}, {presenting=}: {seen[-1]} instead of {ends}"
    return seen[0], seen[1], seen[2]


async def _play(
    fault: Fault, row: Row, make: MakeBackend, policy: RetryPolicy, *, once: bool, presenting: bool
) -> Ends:
    async with raw_server(Scene(row, presenting, "").whole(FALSE)) as other:
        scene = Scene(row, presenting, other.url)
        bad, good = fault.make(scene), scene.whole(GOOD)
        async with answering(lambda _, number: good if once and number else bad, row.beside) as server:
            with _Memory() as memory:
                end = await run_alone(
                    make(server.url), presenting=presenting, call_seconds=fault.call_seconds, policy=policy
                )
    where = f"{fault.title}, {row.title}"
    for seen in server.requests:
        row.check(seen.body)
    assert not other.requests, f"{where}: asked another host, with {other.heads}"
    assert all(KEY in head for head in server.heads), f"{where}: asked without the key"
    assert memory.growth_mib < MAX_GROWTH_MIB, f"{where}: took {memory.growth_mib} MiB"
    assert sum(end.waits) <= fault.call_seconds, f"{where}: waited {end.waits}"
    _check_truth(end, where)
    return Ends(None if end.answer is not None else end.reason, len(server.requests))


def _check_truth(end: RunEnd, where: str) -> None:
    for text in (*end.submitted, end.answer or ""):
        assert FALSE[:5] not in text, f"{where}: took {text[:60]!r} for an answer"
        text.encode()  # what cannot be encoded is no text
    if end.answer is not None:
        assert end.answer.startswith(GOOD), f"{where}: answered {end.answer[:60]!r}"
    else:
        assert end.reason not in (None, "internal"), f"{where}: {end.message}"
        assert 0 < len(end.message) <= 1000
        assert KEY not in end.message


class _Memory:
    """The highest resident size of this process between entering and leaving, above what it was (needs `/proc`)."""

    growth_mib = 0

    def __enter__(self) -> Self:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self._before = _status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.growth_mib = (_status("VmHWM") - self._before) // 1024


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


# -- the faulty replies -----------------------------------------------------------------------------------------------


def _content(text: str) -> str:
    return json.dumps({"content": text})


def _half_call(scene: Scene) -> bytes:
    half = _content(FALSE)[:-4]
    said = scene.dialect.text(FALSE) if scene.presenting else scene.dialect.call("new_answer", half, done=False)
    return reply(said.body())


def _ended_half_call(scene: Scene) -> bytes:
    return reply(scene.dialect.call("new_answer", _content(FALSE)[:-4], done=False).stop("calls").body())


def _arguments(text: str) -> Callable[[Scene], bytes]:
    return lambda scene: reply(scene.dialect.call("new_answer", text).stop("calls").body())


def _unknown_tool(scene: Scene) -> bytes:
    return reply(scene.dialect.call("submit_final", _content(FALSE)).stop("calls").body())


def _invalid_utf8(scene: Scene) -> bytes:
    return scene.whole(FALSE).replace(FALSE[-2:].encode(), b"\xff\xfe")


def _duplicate_ids(scene: Scene) -> bytes:
    if scene.presenting:
        return scene.whole(GOOD)
    stray = scene.dialect.call("look", "{}", call_id="same")
    return reply(stray.call("new_answer", _content(GOOD), call_id="same", place=1).stop("calls").body())


def _wrong_twice(scene: Scene) -> bytes:
    calls = scene.dialect.call("look", "{}", call_id="same").call("look", "{}", call_id="same", place=1)
    return reply(calls.stop("calls").body())


def _index_gap(scene: Scene) -> bytes:
    if scene.presenting:
        return scene.whole(GOOD)
    return reply(scene.dialect.call("new_answer", *_content(GOOD), place=7).stop("calls").body())


def _tiny_deltas(scene: Scene) -> bytes:
    text = f"{GOOD} {'x' * 2000}"
    if scene.presenting:
        return reply(scene.dialect.text(*text).stop("end").body())
    return reply(scene.dialect.call("new_answer", *_content(text)).stop("calls").body())


def _zipped(whole: bytes, *, half: bool = False, broken: bool = False) -> bytes:
    packed = b"no gzip" if broken else gzip.compress(whole.partition(b"\r\n\r\n")[2])
    return reply(packed[: len(packed) // (1 + half)], headers={"Content-Encoding": "gzip"})


def bomb(size: int) -> Callable[[Scene], Flow]:
    """One long comment of an event stream, a thousand times smaller than its `size`."""
    head = _head("Content-Encoding: gzip\r\n")
    return lambda _: Flow(lambda: chain((head,), _inflating(size)))


def _inflating(size: int) -> Iterator[bytes]:
    """A gzip stream of `size` bytes, made without ever holding them: the same block again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = packer.compress(b":" * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    yield gzip.compress(b"")[:10]
    yield from repeat(block, size // 2**20)


def _retry_after(**headers: str) -> Callable[[Scene], bytes]:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: _failed("429 Too Many Requests", told)


def _redirect(scene: Scene) -> bytes:
    return _failed("307 Temporary Redirect", {"Location": f"{scene.elsewhere}{scene.row.path}"})


def _failed(status: str, headers: dict[str, str] | None = None) -> bytes:
    body = json.dumps({"error": {"message": FALSE, "type": "because"}}).encode()
    return reply(body, status=status, media_type="application/json", headers=headers)


def _comments(pause_seconds: float, size: int = 1, length: int = 1) -> Callable[[Scene], Flow]:
    """Comments for ever, about `size` bytes of them at once; one says `length` times what it usually says."""

    def flow(scene: Scene) -> Flow:
        comment = scene.row.comment.replace(b"keep-alive", b"keep-alive" * length)
        comments = comment * max(1, size // len(comment))
        return Flow(lambda: chain((_head(), scene.dialect.body()), repeat(comments)), pause_seconds)

    return flow


def _head(more: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n{more}\r\n".encode()


def _in_stream(kind: str) -> Callable[[Scene], bytes]:
    return lambda scene: reply(scene.said(FALSE).error("policy" if kind == "policy" else "overloaded").body())


CUT = Ends("provider_error", 4)
MISTAKE = Ends("no_action", 4)
"""A model's mistake goes back to the model, at most three times."""
UNKNOWN_TOOL = Ends("no_action", 5)
"""A name that is no tool's counts only once the model is asked for its calls as text."""
BAD = Ends("bad_reply", 1)
FILTERED = Ends("content_filter", 1)
FINE = Ends(None, 1)

FAULTS = (
    Fault("half a tool call, then the end of the stream", _half_call, CUT, CUT),
    Fault(
        "half a tool call, then the model's end",
        _ended_half_call,
        MISTAKE,
        MISTAKE,
        otherwise=dict.fromkeys(("Responses", "Grok", "Gemini"), BAD),
    ),
    Fault("malformed arguments", _arguments(f'{{"content": "{FALSE}'), MISTAKE, MISTAKE, told_by_end=True),
    Fault("arguments nested without end", _arguments("[" * 100_000), MISTAKE, MISTAKE, told_by_end=True),
    Fault("arguments that are no object", _arguments(f'["{FALSE}"]'), MISTAKE, MISTAKE),
    Fault("unknown tool", _unknown_tool, UNKNOWN_TOOL, MISTAKE),
    Fault("the same id for two calls", _duplicate_ids, FINE, FINE),
    Fault("two unknown tools with the same id", _wrong_twice, UNKNOWN_TOOL, MISTAKE),
    Fault("gap in the numbers of calls", _index_gap, FINE, FINE),
    Fault("empty reply", lambda scene: reply(scene.dialect.stop("end").body()), MISTAKE, BAD),
    Fault("no stop reason", lambda scene: reply(scene.said(FALSE).stop(None).body()), CUT, CUT),
    Fault("stopped at the output limit", lambda scene: reply(scene.said(FALSE).stop("length").body()), MISTAKE, BAD),
    Fault(
        "plain text, stopped at the output limit",
        lambda scene: reply(scene.dialect.text(FALSE).stop("length").body()),
        MISTAKE,
        BAD,
    ),
    Fault(
        "stopped by a content filter",
        lambda scene: reply(scene.said(FALSE).stop("refusal").body()),
        FILTERED,
        FILTERED,
    ),
    Fault("overload told inside the stream", _in_stream("overloaded"), CUT, CUT),
    Fault("policy error told inside the stream", _in_stream("policy"), FILTERED, FILTERED),
    Fault("invalid UTF-8", _invalid_utf8, BAD, BAD),
    Fault("lone surrogates", lambda scene: scene.whole(f"{GOOD} \ud800"), FINE, FINE),
    Fault("reply of 10 MB", lambda scene: scene.whole(FALSE + "x" * 10_000_000), BAD, BAD),
    Fault("gzip that was not asked for", lambda scene: _zipped(scene.whole(GOOD)), FINE, FINE),
    Fault("half of a gzip", lambda scene: _zipped(scene.whole(FALSE), half=True), CUT, CUT),
    Fault("gzip that is none", lambda scene: _zipped(scene.whole(FALSE), broken=True), CUT, CUT),
    Fault("gzip bomb of 1 GiB", bomb(1024**3), BAD, BAD),
    Fault("2,000 deltas of one character", _tiny_deltas, FINE, FINE),
    # Its size ends it, however slow the machine is; long ones are read sooner.
    Fault("endless comments", _comments(0, 65536, 100), BAD, BAD, call_seconds=600),
    Fault(
        "a comment now and then, for ever",
        _comments(0.02),
        Ends("timeout", 1),
        Ends("timeout", 1),
        call_seconds=0.5,
    ),
    Fault("nothing, then the end of the connection", lambda _: b"", CUT, CUT),
    Fault(
        "web page with status 200",
        lambda _: reply(b"<html>", media_type="text/html"),
        Ends("bad_reply", 4),
        Ends("bad_reply", 4),
    ),
    Fault("error as JSON with status 200", lambda _: _failed("200 OK"), CUT, CUT),
    Fault("JSON with status 200", lambda _: reply(b'{"choices": []}', media_type="application/json"), BAD, BAD),
    Fault("plain text with status 200", lambda _: reply(FALSE.encode(), media_type="text/plain"), CUT, CUT),
    Fault("status 503", lambda _: _failed("503 Service Unavailable"), CUT, CUT),
    Fault("redirect to another host", _redirect, Ends("provider_error", 1), Ends("provider_error", 1)),
    Fault(
        "429 with a Retry-After of 49 days",
        _retry_after(Retry_After="4233600"),
        Ends("rate_limited", 1),
        Ends("rate_limited", 1),
    ),
    Fault(
        "429 with a Retry-After that is none",
        _retry_after(Retry_After="NaN"),
        Ends("rate_limited", 4),
        Ends("rate_limited", 4),
    ),
)
