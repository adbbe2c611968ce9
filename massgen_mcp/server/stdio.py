"""Serves MCP over standard input and output, and leaves at once: on end of input, on signals, and with its parent.

Nothing has to be put in order first: a server holds no run state, what it acknowledged is on disk, and runs are not its
to end.
"""

import logging
import os
import signal
from collections.abc import AsyncIterator

import anyio

from massgen_mcp.server.app import MassgenServer

PARENT_CHECK_SECONDS = 2.0


async def serve_stdio(server: MassgenServer) -> None:
    """Return when the client closed standard input. On a signal, or when the client is gone, the process ends here."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_leave_on_signal, signals)
            tasks.start_soon(_leave_with_parent)
            await server.run_stdio_async()
            tasks.cancel_scope.cancel()


async def _leave_on_signal(signals: AsyncIterator[signal.Signals]) -> None:
    async for _ in signals:
        _leave()


async def _leave_with_parent() -> None:
    """A client that was killed may leave our input open in one of its other children."""
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 - nobody tells us
        await anyio.sleep(PARENT_CHECK_SECONDS)
    _leave()


def _leave() -> None:
    """End without unwinding: the thread that reads standard input cannot be cancelled, and would keep us waiting."""
    logging.shutdown()
    os._exit(0)
