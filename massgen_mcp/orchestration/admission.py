"""Lets a model call begin once the budget has room for it; where it never will, the run is told to come to its end.

Votes and the final answer are what the money for answers was spent for, so a last part of the budget is theirs. Must
not know what is asked or answered.
"""

import math

from massgen_mcp.coordination.agent_view import AgentView
from massgen_mcp.errors import BackendError
from massgen_mcp.events.agent_work import CallPurpose, ModelCallWaiting
from massgen_mcp.events.run import BudgetReached, InputRequired
from massgen_mcp.money.budget import add_amounts, format_bound_note
from massgen_mcp.money.reservations import CallEstimate, Reservation
from massgen_mcp.name_lists import join_names
from massgen_mcp.orchestration.live_run import LiveRun
from massgen_mcp.orchestration.team import Member

ANSWERS_SHARE = 0.8
"""So much of the budget is for answers, ..."""
VOTES_SHARE = 0.9
"""... so much for answers and votes; all of it for the final answer as well."""


async def admit(
    live_run: LiveRun, member: Member, estimate: CallEstimate, purpose: CallPurpose, call_id: str
) -> Reservation:
    """Set aside what the call may cost, waiting for calls in flight, or for a person who is asked, if need be.
    `release` it afterwards.

    Raises `BackendError` with reason "budget" when it does not fit; then the run is at its cap, and knows it.
    """
    await member.tariff.ready()
    reservations, waits = live_run.reservations, False
    while True:
        share = share_of(live_run, member, purpose)
        if live_run.awaits_caller:
            await live_run.change()
        elif reservation := reservations.reserve(call_id, estimate, share):
            return reservation
        elif reservations.may_fit(estimate, share):
            if not waits:
                message = _explain_wait(live_run, member, estimate)
                live_run.record(
                    ModelCallWaiting(agent=member.name, call_id=call_id, obstacle="budget", message=message)
                )
            waits = True
            await reservations.change()
        elif (
            reservations.asks_first and not live_run.coordination.finish_requested and not live_run.state.budget_reached
        ):
            await _ask(
                live_run, f"{_question(live_run, estimate)}{describe_bounds(member)}", _enough(live_run, estimate)[0]
            )
        else:
            if live_run.state.budget_reached:
                reached = live_run.state.budget.reached
                raise BackendError("budget", f"the budget ({reached}) had been reached", limit=reached)
            message = f"{_question(live_run, estimate)}{describe_bounds(member)}"
            cap = live_run.state.budget.choose_cap(estimate.least.amounts)
            live_run.record(BudgetReached(agent=member.name, message=message, cap=cap))
            raise BackendError("budget", message, limit=cap)


def can_pay_votes(live_run: LiveRun) -> bool:
    """Return whether the part of the budget that is for votes has room for one more call of every agent, by what their
    calls cost so far.
    """
    spending, budget = live_run.state.budget.spending, live_run.state.budget
    needed = [
        budget.count(spent).scale(1 / max(1, spent.calls))
        for agent in live_run.coordination.live
        if (spent := spending.by_agent.get(agent)) is not None
    ]
    return add_amounts(needed).is_within(live_run.reservations.free(VOTES_SHARE))


def share_of(live_run: LiveRun, member: Member, purpose: CallPurpose) -> float:
    """The part of the budget that must not be left by this call."""
    if purpose in ("present", "evaluate") or len(live_run.coordination.seats) == 1:
        return 1.0
    return ANSWERS_SHARE if AgentView(live_run.coordination, member.name).may_answer() else VOTES_SHARE


async def _ask(live_run: LiveRun, question: str, proposed: float | None) -> None:
    """Have the caller raise the budget or finish."""
    live_run.record(InputRequired(kind="budget_reached", text=question, proposed_usd=proposed))
    await live_run.settle()


def _explain_wait(live_run: LiveRun, member: Member, estimate: CallEstimate) -> str:
    """Return why the call has to wait for others, and what makes it need less."""
    usd, tokens, _ = estimate.smallest.amounts
    return (
        f"A call of {member.name} reserves up to ${usd:.4g} and {tokens:,} tokens, which does not fit into the budget "
        f"(max_usd {live_run.state.budget.max_usd:g}) beside the calls under way: it waits until they end"
        f"{describe_bounds(member)}"
    )


def _question(live_run: LiveRun, estimate: CallEstimate) -> str:
    budget, (usd, tokens, calls) = live_run.state.budget, _enough(live_run, estimate)
    enough = [] if usd is None else [f"max_usd {usd:g}"]
    enough += [] if tokens is None else [f"max_tokens {tokens:,.0f}"]
    enough += [] if calls is None else [f"max_calls {calls:,.0f}"]
    hint = f" ({join_names(enough)} would do for short replies)" if enough else ""
    spent = [
        f"${budget.spent.usd:.4f} of ${budget.max_usd:g} (max_usd)",
        f"{budget.used_tokens:,} of {budget.max_tokens:,.0f} tokens (max_tokens)",
    ]
    if estimate.least.calls:
        spent.append(f"{budget.spent.unpriced_calls:,} of {budget.max_calls:,.0f} calls without a price (max_calls)")
    return f"the next call does not fit into the budget{hint}: {join_names(spent)} are spent"


def describe_bounds(member: Member) -> str:
    """Return at which prices the member's calls are counted where its own are unknown; empty where they are known."""
    return "".join(f". {format_bound_note(model, bound)}" for model, bound in member.tariff.bounds.items())


def _enough(live_run: LiveRun, estimate: CallEstimate) -> tuple[float | None, float | None, float | None]:
    """Return caps of money, tokens and calls that would do for short replies: an answer and a vote of each agent, and
    the final answer. None: the present one does.
    """
    budget, least = live_run.state.budget, estimate.least
    times = (2 * len(live_run.coordination.seats) + 1) / ANSWERS_SHARE
    usd, tokens, calls = budget.used.plus(least.amounts.scale(times))
    return (
        _propose_cap(usd, budget.max_usd),
        _propose_cap(tokens, budget.max_tokens),
        _propose_cap(calls, budget.max_calls),
    )


def _propose_cap(needed: float, present: float) -> float | None:
    """Return a cap that would do, rounded up to two digits. None: the present one does."""
    if needed <= present:
        return None
    step = 10.0 ** (math.floor(math.log10(needed)) - 1)
    return round(math.ceil(needed / step) * step, 9)
