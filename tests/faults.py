"""Faults of the machine that a test can provoke for real, without being root."""

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


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


ROOT = Path(__file__).parent.parent


def can_mount() -> bool:
    """Whether this user may mount file systems in a namespace of its own."""
    namespace = ["--mount"] if os.geteuid() == 0 else ["--mount", "--user", "--map-root-user"]
    command = ["unshare", *namespace, "mount", "-t", "tmpfs", "none", "/mnt"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )
