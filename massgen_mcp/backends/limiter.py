"""One policy for all calls that a process sends to one provider, whichever run and agent they come from.

A limiter stands before one provider address with one key. It lets calls through in the order in which they came: never
more at once, and never more in a minute, than the limits allow; nobody while the provider asked for a pause; and while
it is down nobody but one probe at a time.

Our own, because the libraries at hand do one of these things each, and only one queue in front of all of them keeps the
order of arrival and leaves nothing behind when a caller is cancelled.
"""

import hashlib
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio

from massgen_mcp.backends.abilities import Abilities
from massgen_mcp.config.access.limits import RateLimits
from massgen_mcp.errors import BackendError, DropReason
from massgen_mcp.events.agent_work import OWN_QUEUE, Obstacle


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


class ProviderLimiters:
    """The limiters of a process. One object per event loop; runs that share it share the limits."""

    def __init__(self, policy: LimiterPolicy | None = None) -> None:
        self._policy = policy or LimiterPolicy()
        self._salt = secrets.token_bytes(16)
        self._limiters: dict[tuple[str, bytes], ProviderLimiter] = {}
        self._abilities: AbilitiesOfModels = {}
        """By address and model; never forgotten."""

    @contextmanager
    def limiter(self, destination: Destination, limits: RateLimits) -> Generator["ProviderLimiter"]:
        """The limiter of `destination`, with `limits` in force in it until the end of the block."""
        self._limiters = {place: limiter for place, limiter in self._limiters.items() if not limiter.forgettable}
        fingerprint = hashlib.blake2b(destination.key.encode("utf-8", "surrogateescape"), key=self._salt).digest()
        limiter = self._limiters.setdefault(
            (destination.address, fingerprint), ProviderLimiter(destination.address, self._policy, self._abilities)
        )
        with limiter.limited(limits):
            yield limiter


class ProviderLimiter:
    """Lets calls to one provider through; made by `ProviderLimiters`."""

    def __init__(self, address: str, policy: LimiterPolicy, abilities: AbilitiesOfModels) -> None:
        self._address = address
        self._policy = policy
        self._abilities = abilities
        self._limits: list[RateLimits] = []
        self._line: deque[_Place] = deque()
        """Those who wait, and whoever is just being let through; the first one looks for a gap."""
        self._in_the_way: tuple[Obstacle, float | None] | None = None
        """What those who wait were told last, and when time removes it; None while it is a limit of our own."""
        self._under_way = 0
        self._sent: deque[float] = deque()
        self._last_sent = 0.0
        self._paused_until = 0.0
        self._circuit = _Circuit(policy)

    @contextmanager
    def limited(self, limits: RateLimits) -> Generator[None]:
        """`limits` hold until the end of the block; where several blocks disagree the smaller number holds."""
        self._limits.append(limits)
        try:
            yield
        finally:
            self._limits.remove(limits)
            self._tell()

    def abilities(self, model: str, own_tools: tuple[str, ...] = ()) -> Abilities:
        """What this model was found not to take here, with these tools of its provider, whichever run found it."""
        return self._abilities.setdefault((self._address, model, own_tools), Abilities())

    @property
    def forgettable(self) -> bool:
        """Whether it is as good as a new one: nobody uses it, and all that it remembers is long ago."""
        return not self._limits and anyio.current_time() > self._last_sent + self._policy.memory

    @asynccontextmanager
    async def slot(self, on_wait: Callable[[Obstacle | None], None]) -> AsyncGenerator[Callable[[], None]]:
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
            yield self._answered
        except BackendError as error:
            self._failed(error, entered)
            raise
        finally:
            self._under_way -= 1
            self._circuit.leave(entered)
            self._tell()

    def _answered(self) -> None:
        if self._circuit.troubled:
            self._circuit.close()
            self._tell()

    # -- what is in the way -----------------------------------------------------------------------------------------

    def _obstacle(self) -> Obstacle | None:
        now = anyio.current_time()
        while self._sent and self._sent[0] + self._policy.minute <= now:
            self._sent.popleft()
        if self._circuit.blocks(now):
            return "circuit"
        if self._paused_until > now:
            return "retry_after"
        if self._under_way >= self._concurrency:
            return "concurrency"
        if self._per_minute is not None and len(self._sent) >= self._per_minute:
            return "requests_per_minute"
        return None

    @property
    def _concurrency(self) -> int:
        return min(limits.concurrency for limits in self._limits)

    @property
    def _per_minute(self) -> int | None:
        return min((n for limits in self._limits if (n := limits.requests_per_minute) is not None), default=None)

    def _until(self, obstacle: Obstacle) -> float | None:
        """When time alone removes the obstacle; None when something has to happen first."""
        match obstacle:
            case "circuit":
                return self._circuit.next_probe
            case "retry_after":
                return self._paused_until
            case "requests_per_minute":
                over = len(self._sent) - (self._per_minute or 0)
                return self._sent[over] + self._policy.minute
            case "concurrency":
                return None

    def _refuse_in_vain(self, obstacle: Obstacle) -> None:
        now, until = anyio.current_time(), self._until(obstacle)
        if obstacle == "circuit" and self._circuit.outlasts_patience:
            raise self._circuit.refusal(self._address, now)
        if obstacle in OWN_QUEUE or until is None or until < anyio.current_effective_deadline():
            return
        if obstacle == "circuit":
            raise self._circuit.refusal(self._address, now)
        raise BackendError(
            "rate_limited",
            f"{self._address}: it asked all callers to wait for {until - now:.0f} s more, "
            "longer than this call has time for",
        )

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
            self._tell()

    def _tell(self) -> None:
        """Something may have changed for the first one in the line."""
        if self._line:
            self._line[0].wake()

    def _show(self, obstacle: Obstacle) -> None:
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
        if error.retryable and error.reason in ("unreachable", "provider_error", "timeout"):
            self._circuit.failed(error, now, entered)
        else:
            self._circuit.close()  # whatever was wrong, somebody was there to say so


class _Place:
    """One call's place in the line."""

    def __init__(self) -> None:
        self.announced: Obstacle | None = None
        self._woken = anyio.Event()

    def tell(self, obstacle: Obstacle, on_wait: Callable[[Obstacle | None], None]) -> None:
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
        again = f"in {max(0.0, self._opens_at - now):.0f} s" if self._probe is None else "just now, by another call"
        reason: DropReason = "unreachable" if self._last and self._last.reason == "unreachable" else "provider_error"
        return BackendError(
            reason,
            f"circuit open: {address} failed {self._failures} times in a row and is tried again {again}; "
            f"last failure: {self._last}",
        )
