"""What was spent, by agent, model and phase, as the page draws it. An unknown price is never drawn as nothing."""

from collections.abc import Mapping

from massgen_mcp.events.parts import Spent
from massgen_mcp.money.spending import Spending
from massgen_mcp.page.data import Phase, Sum, Sums
from massgen_mcp.run_state.state import RunState
from massgen_mcp.views.spent import cost_of, count, money_notes

PHASES: tuple[Phase, ...] = ("First answers", "Reading, improving, voting", "Final answer", "Judging it", "Making room")


def sums_of(run: RunState, by_phase: Mapping[Phase, Spending]) -> Sums:
    spending = run.budget.spending
    in_dollars = not spending.total.unpriced_calls and spending.total.usd > 0
    nested = {"Nested runs": spending.nested} if run.nested_ends else dict[str, Spent]()
    by_agent = {agent.info.id: spending.by_agent.get(name, Spent()) for name, agent in run.agents.items()}
    phases = {phase: by_phase[phase].total for phase in PHASES if phase in by_phase}

    def rows(spent_by: Mapping[str, Spent]) -> tuple[Sum, ...]:
        sizes = [spent.usd if in_dollars else spent.tokens for spent in spent_by.values()]
        most = max(sizes, default=0)
        return tuple(
            Sum(
                name=name,
                calls=spent.calls + spent.lost_calls,
                tokens=count(spent.tokens),
                cost=cost_of(spent) if spent.calls + spent.lost_calls else "none",
                share=size / most if most else 0.0,
            )
            for (name, spent), size in zip(spent_by.items(), sizes, strict=True)
        )

    return Sums(
        measure="cost" if in_dollars else "tokens",
        by_agent=rows({**by_agent, **nested}),
        by_model=rows({**spending.by_model, **nested}),
        by_phase=rows({**phases, **nested}),
        notes=tuple(money_notes(run)),
    )
