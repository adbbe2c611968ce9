"""Word of news between the processes of several machines, by LISTEN and NOTIFY: not what it is, which is in the store.

A notification holds run ids, each with a mark: `-` something has happened, `+` its state or phase may have changed, `!`
somebody else has changed what the store says of it.
"""

import asyncio
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

import anyio
import psycopg

from massgen_mcp.runs.store.postgres.database import PostgresConnection, connect, pause_before_retry

CHANNEL = "massgen_news"
MOST_BYTES = 7900
"""Of one notification."""
LISTEN_SECONDS = 5.0


def notify(connection: PostgresConnection, news: Iterable[str]) -> None:
    """As few notifications as possible."""
    text = ""
    for one in (*news, ""):
        if text and (not one or len(text) + len(one) >= MOST_BYTES):
            connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, text))
            text = ""
        text = f"{text} {one}".strip()


class Subscription:
    """A subscription to some news, in the event loop in which it was made. As a follower (`engine.Follower`) it never
    ends: a store of several machines always has a source of news.
    """

    def __init__(self, wants: Callable[[str, str], bool]) -> None:
        """`wants`: whether it is to hear of a run id with a mark; called from any thread."""
        self.wants = wants
        self._loop = asyncio.get_running_loop()
        self._news = anyio.Event()
        self._news.set()

    def hear(self) -> None:
        """From any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(
                lambda: self._news.set()  # noqa: PLW0108 - the one that is there then
            )

    async def changed(self) -> bool:
        """Return True as soon as there is news since the last call; the first call returns at once."""
        await self._news.wait()
        self._news = anyio.Event()
        return True


class NewsListener:
    """Listens in a thread, from the first subscription on. After each new connection all subscriptions hear that
    there may be news.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._subscriptions: set[Subscription] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    @contextmanager
    def subscribed(self, subscription: Subscription) -> Generator[None]:
        with self._lock:
            self._subscriptions.add(subscription)
            if self._thread is None:
                self._thread = threading.Thread(target=self._listen, name="news", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._subscriptions.discard(subscription)

    def close(self) -> None:
        self._closed = True

    def _listen(self) -> None:
        while not self._closed:
            try:
                with connect(self._url) as connection:
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    self._wake(lambda _: True)
                    while not self._closed:
                        for notification in connection.notifies(timeout=LISTEN_SECONDS):
                            self._heard(notification.payload)
            except psycopg.Error:
                pause_before_retry()

    def _heard(self, payload: str) -> None:
        news = [(one[:-1], one[-1]) for one in payload.split()]
        self._wake(lambda subscription: any(subscription.wants(run_id, mark) for run_id, mark in news))

    def _wake(self, chosen: Callable[[Subscription], bool]) -> None:
        with self._lock:
            for subscription in filter(chosen, self._subscriptions):
                subscription.hear()
