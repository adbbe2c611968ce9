"""File locks that the kernel drops with the process that holds them: who is alive, and who may write."""

import fcntl
import os
import time
from pathlib import Path

POLL_SECONDS = 0.02


def acquire(path: Path, *, shared: bool = False, patience: float = 0.0) -> int | None:
    """A descriptor that holds the lock until it is closed; None if another process still holds it after `patience`
    seconds. Raises `OSError` where the file cannot be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(POLL_SECONDS)
        except BaseException:
            os.close(descriptor)
            raise
        else:
            return descriptor


def is_held(path: Path) -> bool:
    """Whether some process holds the lock for itself. Raises `OSError` where that cannot be found out."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
