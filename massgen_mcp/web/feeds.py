"""Runs as they go on, for browsers: each is followed, drawn and put into bytes once, however many look at it."""

import json
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from massgen_mcp.page.data import RunPage
from massgen_mcp.redaction import Redactor
from massgen_mcp.runs.service import RunService

logger = logging.getLogger(__name__)

LEAST_SECONDS = 0.25
"""Between two updates of a run ..."""
TIMES_AS_LONG = 8
"""... and so many times as long as the last one took to draw and to put into bytes: a long run takes no more than a
part of a core."""
BREATH_SECONDS = 15.0
"""After so long without news a viewer is sent an empty line, so that nobody takes the stream for dead."""


class Feeds:
    """The runs that somebody looks at. Feeds run in `tasks`, and end when their last viewer leaves."""

    def __init__(self, service: RunService, tasks: TaskGroup, redactor: Redactor) -> None:
        self._service, self._tasks, self._redactor = service, tasks, redactor
        self._feeds: dict[str, _Feed] = {}

    async def watch(self, run_id: str) -> AsyncGenerator[bytes]:
        """Server-sent events: `page` is the whole `RunPage`, `change` those of its fields that are different since the
        event before, `fault` what went wrong, which may pass, `end` says that nothing more comes until somebody does
        something. A viewer who is slow is sent fewer of them.
        """
        feed = self._feeds.get(run_id)
        if feed is None:
            feed = self._feeds[run_id] = _Feed(self._redactor)
            self._tasks.start_soon(self._follow, run_id, feed)
        feed.viewers += 1
        seen = 0
        try:
            while True:
                changed = feed.changed
                if feed.version != seen:
                    piece = feed.change if seen and feed.version == seen + 1 else feed.page()
                    seen = feed.version
                    yield piece
                elif feed.over is not None:
                    yield feed.over
                    return
                else:
                    with anyio.move_on_after(BREATH_SECONDS) as waiting:
                        await changed.wait()
                    if waiting.cancelled_caught:
                        yield b":\n\n"
        finally:
            feed.viewers -= 1
            if not feed.viewers:
                feed.scope.cancel()
                self._forget(run_id, feed)

    async def _follow(self, run_id: str, feed: "_Feed") -> None:
        over = _event("end", {})
        with feed.scope:
            try:
                async with aclosing(self._service.pages(run_id)) as pages:
                    async for page, drawing in pages:
                        changed, telling = await anyio.to_thread.run_sync(feed.different, page)
                        feed.take(page, changed)
                        await anyio.sleep(max(LEAST_SECONDS, TIMES_AS_LONG * (drawing + telling)))
            except Exception as error:  # one run that cannot be followed must not end all the others
                logger.warning("run %s cannot be followed: %s", run_id, error, exc_info=error)
                over = _event("fault", {"error": _json(self._redactor.text(str(error)))})
        self._forget(run_id, feed)
        feed.over = over
        feed.tell()

    def _forget(self, run_id: str, feed: "_Feed") -> None:
        if self._feeds.get(run_id) is feed:
            del self._feeds[run_id]


class _Feed:
    """One run: how it stands, in bytes."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.viewers = 0
        self.scope = anyio.CancelScope()
        self.changed = anyio.Event()
        self.version = 0
        """0: nothing is known so far."""
        self.change = b""
        """From the version before to this one."""
        self.over: bytes | None = None
        self._drawn: RunPage | None = None
        self._fields: dict[str, bytes] = {}
        self._page: bytes | None = None

    def different(self, page: RunPage) -> tuple[dict[str, bytes], float]:
        """The fields that are not as before, and the seconds of work. In a thread: viewers see nothing of it."""
        began = time.thread_time()
        before = self._drawn
        new = {
            name for name in RunPage.model_fields if before is None or getattr(page, name) is not getattr(before, name)
        }
        made = {name: _json(value) for name, value in self._redactor.value(page.model_dump(include=new)).items()}
        changed = {name: value for name, value in made.items() if self._fields.get(name) != value}
        return changed, time.thread_time() - began

    def take(self, page: RunPage, changed: Mapping[str, bytes]) -> None:
        """What did not change is neither made nor sent again."""
        self._drawn = page
        if changed:
            self._fields.update(changed)
            self.change, self._page = _event("change", changed), None
            self.version += 1
            self.tell()

    def page(self) -> bytes:
        if self._page is None:
            self._page = _event("page", self._fields)
        return self._page

    def tell(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _event(kind: str, fields: Mapping[str, bytes]) -> bytes:
    """Fields are JSON, in which there is no end of a line."""
    members = b",".join(b'"%s":%s' % (name.encode(), value) for name, value in fields.items())
    return b"event: %s\ndata: {%s}\n\n" % (kind.encode(), members)
