"""For processes with libfaketime, under which `time.sleep` fails where the monotonic clock is left alone."""

import threading
import time


def _sleep(seconds: float) -> None:
    threading.Event().wait(seconds)


time.sleep = _sleep
