"""Faults of the machine that a test can provoke for real, without being root."""

import resource
import signal
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_larger_files_than(size: int) -> Generator[None]:
    """No file of this process can grow beyond `size` bytes: the kernel writes what fits, then refuses (EFBIG)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    quiet = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, quiet)
