"""Which queued runs a runner takes: those whose calls a provider's limit lets through soon.

Calls are counted, not runs: a run that calls nobody, as while it waits for another one, is in nobody's way.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from massgen_mcp.backends.limiter import Destination
from massgen_mcp.backends.registry import destination_of
from massgen_mcp.config.access.limits import limits_of
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.parts import public_agent_name
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import FileStore, WorkRow
from massgen_mcp.views.plain_text import counted

AHEAD = 2
"""No run is taken while so many times the calls that a limit lets through at once are under way or waiting."""
READS = 200
"""So many requests of queued runs are read at a time; those of the others, the next time."""


@dataclass(frozen=True, slots=True)
class _Call:
    """Whom an agent calls, and how many calls to there may be under way at once."""

    destination: Destination
    concurrency: int


_Team = dict[str, _Call]
"""The agents of a run that call somebody, by name."""


@dataclass(slots=True)
class Load:
    """How many calls are under way, waiting or about to be made, and the narrowest limit that is in force."""

    calls: Counter[Destination] = field(default_factory=Counter[Destination])
    limits: dict[Destination, int] = field(default_factory=dict[Destination, int])

    def add(self, calls: Iterable[_Call]) -> None:
        for call in calls:
            self.calls[call.destination] += 1

    def obstacle(self, team: _Team) -> str | None:
        """What the calls of one more team would wait for long, in a few words; None where nothing is in their way."""
        for call in team.values():
            limit = min(call.concurrency, self.limits.get(call.destination, 1 << 30))
            if self.calls[call.destination] >= AHEAD * limit:
                allowed = counted(limit, "parallel call")
                return f"other runs have reached the limit of {allowed} at {call.destination.address}"
        return None


@dataclass(frozen=True, slots=True)
class QueueAdmission:
    """Of the runs in a queue: ids of those that can be taken, in its order; and by id, what others wait for."""

    chosen: list[str]
    held_back: dict[str, str]


class Capacity:
    """For one runner. `load` belongs to its event loop, `choose` to one thread at a time."""

    def __init__(self, files: FileStore, environ: Mapping[str, str]) -> None:
        self._files = files
        self._environ = environ
        self._teams: dict[str, _Team] = {}
        self._active: set[str] = set()

    def load(self, runs: Mapping[str, RunState | None]) -> Load:
        """What these runs ask of their providers now. None: a run that has been taken and has not begun yet."""
        load = Load()
        self._active = set(runs)
        for run_id, state in runs.items():
            team = self._teams.get(run_id, {})
            for call in team.values():
                load.limits[call.destination] = min(call.concurrency, load.limits.get(call.destination, 1 << 30))
            if state is None or not (state.spent.calls or state.resume_point.in_flight):
                load.add(team.values())
            else:
                load.add(team[agent] for agent in state.resume_point.in_flight if agent in team)
        return load

    def choose(self, queue: Iterable[WorkRow], load: Load) -> QueueAdmission:
        """Which runs of the queue can be taken; `load` has their calls in it then."""
        choice = QueueAdmission([], {})
        reads = 0
        queue = list(queue)
        known = self._active | {row.run_id for row in queue}
        self._teams = {run_id: team for run_id, team in self._teams.items() if run_id in known}
        for row in queue:
            if row.run_id not in self._teams:
                if reads == READS:
                    break
                reads += 1
                self._teams[row.run_id] = self._team(row)
            team = self._teams[row.run_id]
            if obstacle := load.obstacle(team):
                choice.held_back[row.run_id] = obstacle
            else:
                load.add(team.values())
                choice.chosen.append(row.run_id)
        return choice

    def _team(self, row: WorkRow) -> _Team:
        """Nobody, where the request cannot be read: whoever executes the run tells why."""
        team: _Team = {}
        try:
            config = self._files.of(row).read_request().config
            for place, agent in enumerate(config.agents):
                if (destination := destination_of(agent.backend, self._environ)) is not None:
                    limits = limits_of(config, agent.backend, self._environ)
                    team[public_agent_name(place)] = _Call(destination, limits.concurrency)
        except MassgenError:
            return {}
        return team
