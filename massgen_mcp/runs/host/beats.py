"""One clock for all runs of a process: what is done every few seconds is done for all of them at the same moment."""

import anyio


def next_beat(interval: float) -> float:
    """The next moment, on the event loop's clock, that is a multiple of `interval` seconds; never for an endless one.
    However many runs wait for it, they wake the process once.
    """
    return (anyio.current_time() // interval + 1) * interval
