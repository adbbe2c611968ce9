"""One policy for all calls that a process sends to one provider, whichever run and agent they come from.

A limiter stands before one provider address with one key. It lets calls through in the order in which they came: never
more at once, and never more in a minute, than the limits allow; nobody while the provider asked for a pause; and while
it is down nobody but one probe at a time.

Our own, because the libraries at hand do one of these things each, and only one queue in front of all of them keeps the
order of arrival and leaves nothing behind when a caller is cancelled.
"""

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio

from massgen_mcp.backends.abilities import Abilities
from massgen_mcp.backends.leases import (
    LEASE_SECONDS,
    NO_LEASE,
    Asked,
    GrantedShares,
    Lease,
    LimitName,
    Need,
    lease_clock,
)
from massgen_mcp.config.access.limits import RateLimits
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.events.agent_work import OWN_QUEUE, WaitReason


@dataclass(frozen=True, slots=True)
class LimiterPolicy:
    """When a provider counts as down, and how it is tried again. Seconds throughout."""

    failures: int = 5
    """That many in a row, whoever's calls they were, and the circuit opens."""
    first_break: float = 1.0
    """How long nobody asks a provider that is down; it doubles with every probe that fails ..."""
    longest_break: float = 60.0
    """... up to this. No wish of a provider for a pause is heeded for longer either."""
    patience: float = 10.0
    """Calls wait for the next probe if it comes within this time of the beginning of the outage, and fail otherwise."""
    minute: float = 60.0
    """The window of `requests_per_minute`."""
    memory: float = 300.0
    """For how long a provider that nobody uses is remembered."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Whom a backend asks. `address` may stand in messages and holds no secret; `key` never leaves the process."""

    address: str
    key: str = field(default="", repr=False)


AbilitiesOfModels: TypeAlias = dict[tuple[str, str, tuple[str, ...]], Abilities]
"""By address, model, and the tools of its provider that it is asked with."""
AllGrants: TypeAlias = Mapping[Destination, GrantedShares]


class ProviderLimiters:
    """The limiters of a process. One object per event loop; runs that share it share the limits."""

    def __init__(self, policy: LimiterPolicy | None = None, *, shared: bool = False) -> None:
        """`shared`: other processes keep the same limits with this one, so that no call begins without a share of them,
        and somebody has to `renew_shares` all the time.
        """
        self._policy = policy or LimiterPolicy()
        self._lease = NO_LEASE if shared else None
        self._wanted = anyio.Event()
        self._had_shares = False
        self._limiters: dict[Destination, ProviderLimiter] = {}
        self._abilities: AbilitiesOfModels = {}
        """By address and model; never forgotten."""

    @contextmanager
    def limiter(self, destination: Destination, limits: RateLimits) -> Generator["ProviderLimiter"]:
        """The limiter of `destination`, with `limits` in force in it until the end of the block."""
        self._limiters = {place: limiter for place, limiter in self._limiters.items() if not limiter.forgettable}
        limiter = self._limiters.setdefault(
            destination,
            ProviderLimiter(destination.address, self._policy, self._abilities, self._lease, self._want_shares),
        )
        with limiter.limited(limits):
            yield limiter

    def _want_shares(self) -> None:
        self._wanted.set()

    async def shares_wanted(self) -> None:
        """Return as soon as it is worth while to `renew_shares` before the usual time."""
        await self._wanted.wait()
        self._wanted = anyio.Event()

    async def renew_shares(self, ask: Callable[[Mapping[Destination, Asked]], Awaitable[AllGrants]]) -> None:
        """Tell what this process needs, of those whom it asks or has lately asked, and go by what is granted. When
        `ask` fails, what was granted before holds until its leases end.
        """
        asked = {place: (limiter, need) for place, limiter in self._limiters.items() if (need := limiter.asked())}
        if not asked and not self._had_shares:
            return
        ends = lease_clock() + LEASE_SECONDS
        granted = await ask({place: need for place, (_, need) in asked.items()})
        self._had_shares = bool(asked)
        for place, (limiter, need) in asked.items():
            limiter.grant(granted[place], need, ends)


class ProviderLimiter:
    """Lets calls to one provider through; made by `ProviderLimiters`."""

    def __init__(
        self,
        address: str,
        policy: LimiterPolicy,
        abilities: AbilitiesOfModels,
        lease: Lease | None,
        want: Callable[[], None],
    ) -> None:
        """`lease`: of shares of limits that are kept together with other processes, None where none are; `want` has it
        renewed soon.
        """
        self._address = address
        self._policy = policy
        self._abilities = abilities
        self._limits: list[RateLimits] = []
        self._line: deque[_Place] = deque()
        """Those who wait, and whoever is just being let through; the first one looks for a gap."""
        self._in_the_way: tuple[WaitReason, float | None] | None = None
        """What those who wait were told last, and when time removes it; None while it is a limit of our own."""
        self._under_way = 0
        self._sent: deque[float] = deque()
        self._last_sent = 0.0
        self._paused_until = 0.0
        self._circuit = _Circuit(policy)
        self._lease = lease
        self._want = want

    @contextmanager
    def limited(self, limits: RateLimits) -> Generator[None]:
        """`limits` hold until the end of the block; where several blocks disagree the smaller number holds."""
        self._limits.append(limits)
        if self._lease and self._lease.limits != self._set_limits():  # what was granted is no part of these
            self._lease = NO_LEASE
            self._want()
        try:
            yield
        finally:
            self._limits.remove(limits)
            self._wake_first()

    def abilities(self, model: str, own_tools: tuple[str, ...] = ()) -> Abilities:
        """What this model was found not to take here, with these tools of its provider, whichever run found it."""
        asked = (self._address, model, own_tools)
        if asked not in self._abilities:
            self._abilities[asked] = Abilities()
        return self._abilities[asked]

    @property
    def forgettable(self) -> bool:
        """Whether it is as good as a new one: nobody uses it, and all that it remembers is long ago."""
        return not self._limits and anyio.current_time() > self._last_sent + self._policy.memory

    @asynccontextmanager
    async def slot(self, on_wait: Callable[[WaitReason | None], None]) -> AsyncGenerator[Callable[[], None]]:
        """Let one call through as soon as nothing is in its way; whoever is cancelled while waiting leaves no trace.

        `on_wait` hears what the call waits for, again when that changes, and None when it goes on; nothing if it need
        not wait. Raises `BackendError` instead of waiting when the provider has been down for long, or when a pause of
        the provider would outlast the caller's own deadline. Inside the block call what it yields as soon as the
        provider sends anything; a `BackendError` there is the outcome of the call.
        """
        with self._place() as place:
            while (obstacle := self._obstacle()) or self._line[0] is not place:
                if obstacle is not None:
                    self._show(obstacle)
                    if self._lease and self._lease.is_enough and obstacle in OWN_QUEUE:
                        self._want()
                    place.tell(obstacle, on_wait)
                    self._refuse_in_vain(obstacle)
                await place.wait(self._until(obstacle) if obstacle and self._line[0] is place else None)
            entered = self._circuit.enter()
            self._under_way += 1
            self._last_sent = anyio.current_time()
            self._sent.append(self._last_sent)
        if place.announced:
            on_wait(None)
        try:
            yield self._after_answer
        except BackendError as error:
            self._failed(error, entered)
            raise
        finally:
            self._under_way -= 1
            self._circuit.leave(entered)
            if (share := self._share("concurrency")) is not None and self._under_way >= share:
                self._want()  # somebody else may have its place
            self._wake_first()

    def _after_answer(self) -> None:
        if self._circuit.troubled:
            self._circuit.close()
            self._wake_first()

    # -- what is in the way -----------------------------------------------------------------------------------------

    def _obstacle(self) -> WaitReason | None:
        now = anyio.current_time()
        self._forget_sent(now)
        if self._circuit.blocks(now):
            return "circuit"
        if self._pause_ends > now:
            return "retry_after"
        concurrency = _least([*(limits.concurrency for limits in self._limits), self._share("concurrency")])
        if concurrency is not None and self._under_way >= concurrency:
            return "concurrency"
        if self._per_minute is not None and len(self._sent) >= self._per_minute:
            return "requests_per_minute"
        return None

    def _forget_sent(self, now: float) -> None:
        while self._sent and self._sent[0] + self._policy.minute <= now:
            self._sent.popleft()

    @property
    def _per_minute(self) -> int | None:
        own = (limits.requests_per_minute for limits in self._limits)
        return _least([*own, self._share("requests_per_minute")])

    @property
    def _pause_ends(self) -> float:
        return max(self._paused_until, self._lease.paused_until) if self._lease else self._paused_until

    def _until(self, obstacle: WaitReason) -> float | None:
        """When time alone removes the obstacle; None when something has to happen first."""
        match obstacle:
            case "circuit":
                return self._circuit.next_probe
            case "retry_after":
                return self._pause_ends
            case "requests_per_minute":
                over = len(self._sent) - (self._per_minute or 0)
                return self._sent[over] + self._policy.minute if over < len(self._sent) else None
            case "concurrency":
                return None

    def _refuse_in_vain(self, obstacle: WaitReason) -> None:
        now, until = anyio.current_time(), self._until(obstacle)
        if obstacle == "circuit" and self._circuit.outlasts_patience:
            raise self._circuit.refusal(self._address, now)
        if obstacle in OWN_QUEUE or until is None or until < anyio.current_effective_deadline():
            return
        if obstacle == "circuit":
            raise self._circuit.refusal(self._address, now)
        raise BackendError(
            "rate_limited",
            f"{self._address} asked all callers to wait another {until - now:.0f} s, which is longer than this "
            "call's time limit",
        )

    # -- shares of limits ---------------------------------------------------------------------------------------------

    def _share(self, name: LimitName) -> int | None:
        """None: any number."""
        return self._lease.share(name) if self._lease else None

    def asked(self) -> Asked | None:
        """None if nothing of it is in use, or counts still: then its share is given back."""
        now, waiting = anyio.current_time(), len(self._line)
        self._forget_sent(now)
        pause = max(0.0, self._paused_until - now)
        if not (self._limits or self._under_way or self._sent or pause):
            self._lease = NO_LEASE
            return None
        in_use: dict[LimitName, int] = {"concurrency": self._under_way, "requests_per_minute": len(self._sent)}
        limits = self._set_limits()
        return Asked({name: Need(limits[name], in_use[name], waiting, self._share(name)) for name in in_use}, pause)

    def _set_limits(self) -> dict[LimitName, int | None]:
        """As configs set them; None: they do not."""
        return {
            "concurrency": _least(limits.concurrency for limits in self._limits if limits.is_set),
            "requests_per_minute": _least(limits.requests_per_minute for limits in self._limits),
        }

    def grant(self, granted: GrantedShares, asked: Asked, ends: float) -> None:
        limits: dict[LimitName, int | None] = {name: need.limit for name, need in asked.needs.items()}
        if limits != self._set_limits():
            self._want()
            return
        shares = [(need, granted.shares[name]) for name, need in asked.needs.items()]
        is_enough = all(share is None or need.in_use + need.waiting <= share for need, share in shares)
        self._lease = Lease(limits, granted.shares, ends, anyio.current_time() + granted.pause, is_enough=is_enough)
        if any(share is not None and (need.share is None or share < need.share) for need, share in shares):
            self._want()  # others wait to hear that it has been given back
        self._wake_first()

    # -- the line -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _place(self) -> Generator["_Place"]:
        """A place at the end of the line, until the end of the block."""
        place = _Place()
        self._line.append(place)
        try:
            yield place
        finally:
            self._line.remove(place)
            self._wake_first()

    def _wake_first(self) -> None:
        """Something may have changed for the first one in the line."""
        if self._line:
            self._line[0].wake()

    def _show(self, obstacle: WaitReason) -> None:
        """What is in the way of the first one is in the way of all behind it: they are woken when that is new. Which
        limit of our own it is changes with every call that is let through, and concerns the first one only.
        """
        now = None if obstacle in OWN_QUEUE else (obstacle, self._until(obstacle))
        if now != self._in_the_way:
            self._in_the_way = now
            for place in self._line:
                place.wake()

    # -- what came of a call ------------------------------------------------------------------------------------------

    def _failed(self, error: BackendError, entered: object) -> None:
        now = anyio.current_time()
        if error.retryable and error.retry_after is not None:
            wish = min(error.retry_after, self._policy.longest_break)
            self._paused_until = max(self._paused_until, now + wish)
            self._want()
        if error.retryable and error.reason in ("unreachable", "provider_error", "timeout"):
            self._circuit.failed(error, now, entered)
        else:
            self._circuit.close()  # whatever was wrong, somebody was there to say so


def _least(numbers: Iterable[int | None]) -> int | None:
    return min((number for number in numbers if number is not None), default=None)


class _Place:
    """One call's place in the line."""

    def __init__(self) -> None:
        self.announced: WaitReason | None = None
        self._woken = anyio.Event()

    def tell(self, obstacle: WaitReason, on_wait: Callable[[WaitReason | None], None]) -> None:
        if obstacle != self.announced:
            self.announced = obstacle
            on_wait(obstacle)

    def wake(self) -> None:
        self._woken.set()

    async def wait(self, until: float | None) -> None:
        """Return when it is woken, or at `until`."""
        with anyio.CancelScope(deadline=float("inf") if until is None else until):
            await self._woken.wait()
        self._woken = anyio.Event()


class _Circuit:
    """Closed: all may pass. Open: nobody, until `next_probe`; then one at a time, whose outcome decides."""

    def __init__(self, policy: LimiterPolicy) -> None:
        self._policy = policy
        self._failures = 0
        self._last: BackendError | None = None
        self._down_since: float | None = None
        self._break = policy.first_break
        self._opens_at = 0.0
        self._probe: object | None = None

    @property
    def troubled(self) -> bool:
        """Whether the last call failed."""
        return self._failures > 0

    @property
    def next_probe(self) -> float | None:
        """None while a probe is under way."""
        return None if self._probe else self._opens_at

    @property
    def outlasts_patience(self) -> bool:
        return self._down_since is not None and self._opens_at - self._down_since > self._policy.patience

    def blocks(self, now: float) -> bool:
        return self._down_since is not None and (self._probe is not None or now < self._opens_at)

    def enter(self) -> object:
        """A mark of the call that passes now; while the circuit is open that call is the probe."""
        mark = object()
        self._probe = None if self._down_since is None else mark
        return mark

    def leave(self, mark: object) -> None:
        if self._probe is mark:
            self._probe = None

    def close(self) -> None:
        self._failures, self._last, self._down_since = 0, None, None
        self._break, self._probe = self._policy.first_break, None

    def failed(self, error: BackendError, now: float, mark: object) -> None:
        self._failures += 1
        self._last = error
        if self._down_since is None and self._failures >= self._policy.failures:
            self._down_since, self._opens_at = now, now + self._break
        elif self._probe is mark:
            self._break = min(2 * self._break, self._policy.longest_break)
            self._opens_at = now + self._break

    def refusal(self, address: str, now: float) -> BackendError:
        again = f"will retry it in {max(0.0, self._opens_at - now):.0f} s"
        if self._probe is not None:
            again = "is already retrying it with another call"
        reason: DropReason = "unreachable" if self._last and self._last.reason == "unreachable" else "provider_error"
        return BackendError(
            reason,
            f"circuit open: {address} failed {self._failures} times in a row; massgen {again}; "
            f"last failure: {self._last}",
        )
