"""A process's share of the limits of a provider that it has together with others, for as long as its lease lasts."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

LimitName: TypeAlias = Literal["concurrency", "requests_per_minute"]
LEASE_SECONDS = 5.0
"""From before a share was asked for. Afterwards no call begins with it, whatever has become of whoever divides."""


def lease_clock() -> float:
    """In seconds; it goes on while the process is frozen or its machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class Need:
    """What a process says of one limit when it asks for its share."""

    limit: int | None
    """The smallest number in the configs of its runs; None: they set none."""
    in_use: int
    """It cannot give these back now."""
    waiting: int
    share: int | None
    """Until it has a reply; None: any number."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a process says of one provider."""

    needs: Mapping[LimitName, Need]
    pause: float
    """Seconds for which the provider asked this process to wait."""


@dataclass(frozen=True, slots=True)
class GrantedShares:
    """What it is told. `pause`: what the provider asked of others, in seconds."""

    shares: Mapping[LimitName, int | None]
    pause: float


@dataclass(frozen=True, slots=True)
class Lease:
    """Shares of `limits`, what else holds with them, and until when, on the `lease_clock`."""

    limits: Mapping[LimitName, int | None]
    shares: Mapping[LimitName, int | None]
    ends: float
    paused_until: float
    """On the clock of the event loop."""
    is_enough: bool
    """Whether nothing was waiting in vain when it was granted, so that it may help to ask for more."""

    @property
    def is_over(self) -> bool:
        return lease_clock() >= self.ends

    def share(self, name: LimitName) -> int | None:
        """None: any number."""
        return 0 if self.is_over else self.shares[name]


NO_LEASE = Lease({}, {"concurrency": 0, "requests_per_minute": 0}, 0.0, 0.0, is_enough=True)
