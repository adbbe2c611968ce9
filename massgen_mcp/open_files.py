"""How many files and connections a process may have open: as many as the operating system lets it, within reason."""

import resource
from contextlib import suppress

MOST = 65_536


def allow_open_files() -> int:
    """Raise the soft limit of this process to its hard limit, at most to `MOST`; returns the limit that holds then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
