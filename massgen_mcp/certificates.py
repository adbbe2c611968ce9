"""Which certificates does a client of ours trust?"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


@cache
def trusted(*, trust_env: bool = True) -> "ssl.SSLContext":
    """One for all clients of the process: loading the system's certificates takes 20 ms of CPU and 0.8 MiB.

    `trust_env`: also those that the variables of the process name.
    """
    import httpx2  # here: a process that asks nobody starts without it

    return httpx2.create_ssl_context(trust_env=trust_env)
