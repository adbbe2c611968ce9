"""Which runs statistics are asked for."""

from dataclasses import dataclass
from datetime import UTC, datetime

from massgen_mcp.statistics.sums import CountedRun


@dataclass(frozen=True, slots=True)
class StatisticsFilter:
    """`since`: started then or later, in seconds since the epoch; `config`: where the team came from, in the words of
    `list_runs`; `team`: its agents have these models and no others; `model`: an agent with it took part.
    """

    since: float | None = None
    config: str | None = None
    team: frozenset[str] | None = None
    model: str | None = None

    def fits(self, run: CountedRun) -> bool:
        """As far as the run's digest tells it."""
        models = frozenset(agent.model for agent in run.digest.agents)
        return (self.team is None or models == self.team) and (self.model is None or self.model in models)

    @property
    def filters(self) -> tuple[str, ...]:
        """In words."""
        since = None if self.since is None else datetime.fromtimestamp(self.since, UTC).strftime("%Y-%m-%d %H:%M UTC")
        return tuple(
            f"{name} {value}"
            for name, value in (
                ("since", since),
                ("config", self.config),
                ("team", None if self.team is None else ", ".join(sorted(self.team))),
                ("model", self.model),
            )
            if value is not None
        )
