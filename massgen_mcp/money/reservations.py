"""Reservations: no model is called before the most that the call can cost is set aside within the budget.

What has been spent is a part of the run's state (`money.budget`); what is set aside for calls in flight is here, and
lives only as long as this process. docs/budget.md states what this guarantees.
"""

import math
from dataclasses import dataclass, field

import anyio

from massgen_mcp.events.parts import Cost, Usage
from massgen_mcp.events.run import BudgetMark, ReservationExceeded
from massgen_mcp.money.budget import Amounts, Budget, Caps, add_amounts
from massgen_mcp.money.tariff import Tariff

UNBOUNDED_OUTPUT = 128_000
"""Tokens a reply may have where nobody set a limit: the largest that today's models write."""
THRIFTY_OUTPUT = 16_000
"""The limit that is sent with a request when the budget does not allow for `UNBOUNDED_OUTPUT`."""
LEAST_OUTPUT = 2_000
"""Below this limit no call is made: a reply that is cut off is money for nothing."""


@dataclass(frozen=True, slots=True)
class Reservation(Caps):
    """What is set aside for one call, which is without a price where that is unknown beforehand."""

    limit: int | None
    """Has to be sent with the request; None: it has no limit of ours."""


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """What a call may cost at the worst: its input, and as many tokens of output as it may write."""

    tariff: Tariff
    input_tokens: int
    long_tokens: int = 0
    """Those of the input that may be written to a cache for an hour."""

    @property
    def outputs(self) -> tuple[tuple[int, bool], ...]:
        """Bounds of the output to try, largest first, and whether each has to be sent."""
        own = self.tariff.output_limit
        usual = (own or UNBOUNDED_OUTPUT, False)
        if not self.tariff.limitable or usual[0] <= THRIFTY_OUTPUT:
            return (usual,)
        return (usual, (THRIFTY_OUTPUT, True))

    @property
    def smallest(self) -> Reservation:
        """The smallest one that is tried beside other calls."""
        output, sent = self.outputs[-1]
        return self.reservation(output, sent=sent)

    @property
    def least(self) -> Reservation:
        bound = self.outputs[-1][0]
        return self.reservation(min(bound, LEAST_OUTPUT) if self.tariff.limitable else bound, sent=True)

    def reservation(self, output: int, *, sent: bool) -> Reservation:
        usd = self._get_worst_usd(output)
        return Reservation(usd or 0.0, self.input_tokens + output, int(usd is None), output if sent else None)

    def affordable(self, room: Amounts) -> Reservation | None:
        """The most that can be had for this; None if that is too little for a reply."""
        bound = self.outputs[-1][0]
        if not self.tariff.limitable:
            return None
        fixed = self._get_worst_usd(0)
        each = (self._get_worst_usd(1_000_000) or 0.0) - (fixed or 0.0)
        by_money = (room.usd - (fixed or 0.0)) / each * 1_000_000 if each > 0 else math.inf
        # One token less, because adding floats rounds.
        output = min(bound, by_money - 1, room.tokens - self.input_tokens)
        if output < min(bound, LEAST_OUTPUT):
            return None
        return self.reservation(int(output), sent=True)

    def _get_worst_usd(self, output: int) -> float | None:
        return self.tariff.worst_usd(self.input_tokens, output, long_tokens=self.long_tokens)


@dataclass
class Reservations:
    """The budget of one run, and what is set aside for its calls in flight."""

    budget: Budget = field(default_factory=Budget)
    asks_first: bool = False
    """At the cap the caller decides, instead of the run coming to its end."""
    _reserved: dict[str, Caps] = field(default_factory=dict[str, Caps])
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def reserve(self, call_id: str, estimate: CallEstimate, share: float) -> Reservation | None:
        """Set aside what a call needs, out of that share of the budget; None if it does not fit now."""
        for output, sent in estimate.outputs:
            reservation = estimate.reservation(output, sent=sent)
            if self._fits(reservation, share):
                return self._take(call_id, reservation)
        if (
            not self._reserved
            and (reservation := estimate.affordable(self.free(share)))
            and self._fits(reservation, share)
        ):
            return self._take(call_id, reservation)
        return None

    def may_fit(self, estimate: CallEstimate, share: float) -> bool:
        """Whether it may fit later, when calls and nested runs turn out cheaper than what is set aside for them."""
        others = bool(self._reserved or self.budget.set_aside)
        return others and self._fits(estimate.least, share, alone=True)

    def has_room_for_retry(self, call_id: str, share: float) -> bool:
        """Return whether everything spent and set aside is still within that share: a failed try costs, too."""
        room = self.free(share)
        has_calls = not self._reserved[call_id].calls or room.calls >= 0
        return has_calls and min(room.usd, room.tokens) >= 0

    def release(self, call_id: str) -> None:
        self._reserved.pop(call_id, None)
        self.wake()

    def exceeded(self, agent: str, call_id: str, usage: Usage, cost: Cost) -> ReservationExceeded | None:
        """The fact, if a call has used more than was set aside for it."""
        reservation = self._reserved.get(call_id)
        if reservation is None or not math.isfinite(min(self.budget.max_usd, self.budget.max_tokens)):
            return None
        usd = 0.0 if reservation.calls else (cost.usd or 0.0)
        if usage.tokens <= reservation.tokens and usd <= reservation.usd * (1 + 1e-9):
            return None
        return ReservationExceeded(
            agent=agent,
            call_id=call_id,
            reserved_usd=reservation.usd,
            usd=cost.usd,
            reserved_tokens=reservation.tokens,
            tokens=usage.tokens,
        )

    def due(self) -> list[BudgetMark]:
        usd, tokens = self.budget.spent.usd, self.budget.used_tokens
        return [BudgetMark(percent=mark, usd=usd, tokens=tokens) for mark in self.budget.due_marks]

    async def change(self) -> None:
        """Return when something set aside came back, or the budget was raised."""
        await self._changed.wait()

    def hold(self, run_id: str, caps: Caps) -> None:
        """Set this aside for a nested run that is about to start. `release` it when that is in the journal."""
        self._reserved[run_id] = caps

    def _take(self, call_id: str, reservation: Reservation) -> Reservation:
        self._reserved[call_id] = reservation
        return reservation

    def free(self, share: float = 1.0) -> Amounts:
        """The amounts of that share that are neither spent nor set aside."""
        budget = self.budget
        return budget.caps.scale(share).minus(budget.used).minus(self._set_aside)

    @property
    def _set_aside(self) -> Amounts:
        """The amounts for calls in flight and for nested runs that go on."""
        return add_amounts((*(one.amounts for one in self._reserved.values()), *self.budget.set_aside.values()))

    def _fits(self, reservation: Reservation, share: float, *, alone: bool = False) -> bool:
        room = self.free(share)
        return reservation.amounts.is_within(room.plus(self._set_aside) if alone else room)

    def wake(self) -> None:
        """Have those who wait for a change look again."""
        self._changed.set()
        self._changed = anyio.Event()
