"""How large a message of a client may be, and how the process leaves. Both transports share this."""

import logging
import os
from typing import NoReturn

import anyio

MAX_BODY_BYTES = 4 * 1024 * 1024
"""A request's body over HTTP."""
MAX_LINE_BYTES = 12 * 1024 * 1024
"""A line on standard input. More than the longest question, so that one that is too long is refused as such."""
PARENT_CHECK_SECONDS = 2.0


def leave() -> NoReturn:
    """End without unwinding: a thread that reads, or waits for the store, cannot be cancelled and would hold us up."""
    logging.shutdown()
    os._exit(0)


async def leave_with_parent(parent: int) -> None:
    """A client that was killed may leave our input open in one of its other children."""
    while os.getppid() == parent:  # noqa: ASYNC110 - nobody tells us
        await anyio.sleep(PARENT_CHECK_SECONDS)
    leave()
