"""Limits of time, cost and calls, and of the runs that agents start."""

from typing import Literal

from pydantic import Field

from massgen_mcp.config.models.common import Settings


class TimeoutSettings(Settings, frozen=True):
    """Limits in seconds; each names itself in the message when it is hit."""

    orchestrator_timeout_seconds: float = Field(default=1800, gt=0, le=7 * 86_400)
    """The whole run."""
    round_timeout_seconds: float = Field(default=900, gt=0, le=86_400)
    """One agent's round: from seeing a ballot to one accepted action."""
    first_round_timeout_seconds: float | None = Field(default=None, gt=0, le=86_400)
    """The same for an agent's first round. Default: `round_timeout_seconds`."""
    call_timeout_seconds: float = Field(default=300, gt=0, le=86_400)
    """One model call, from sending the request to the end of its stream, retries included."""


MAX_USD = 100_000.0


class BudgetConfig(Settings, frozen=True):
    """What a run may cost (see docs/budget.md). Calls of unknown price count with their tokens only."""

    max_usd: float = Field(default=10, gt=0, le=MAX_USD)
    """US dollars that the run may cost."""
    max_tokens: int = Field(default=10_000_000, ge=1_000, le=10_000_000_000)
    """Input and output of all calls together."""
    at_cap: Literal["finish", "ask"] = "finish"
    """Vote on the answers that are there, or wait for `raise_budget`, `finish_now` or the run's time limit."""


class NestedConfig(Settings, frozen=True):
    """That agents may start runs of their own (see docs/nested-runs.md). Without it they may not."""

    max_depth: int = Field(default=1, ge=1, le=5)
    """So many levels of runs may lie below this one. 1: what it starts starts nothing."""
    max_runs: int = Field(default=3, ge=1, le=100)
    """So many runs may this one start, by all its agents together."""
    share_of_budget: float = Field(default=0.5, gt=0, le=0.9)
    """They may spend this part of the budget, all together; the rest is for the team's own work."""


class ProviderLimits(Settings, frozen=True):
    """How much all runs of a runner together may ask of one provider with one key. Of two runs that disagree, the
    smaller number holds while both go on.
    """

    concurrency: int | None = Field(default=None, ge=1, le=10_000)
    """Calls under way at once. Default: 100; 4 for `claude_code`, whose calls are processes; 1 for a model server of
    this machine.
    """
    requests_per_minute: int | None = Field(default=None, ge=1, le=1_000_000)
    """Calls begun in any 60 s, retries included. None: no limit of ours."""
