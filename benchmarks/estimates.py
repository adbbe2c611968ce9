"""Estimates beside the cost and time of runs: `python -m benchmarks.estimates [--seed S]`.

30 teams of one to five agents, of listed, configured and unknown prices, answer questions and work on code in the real
orchestrator, in this process, on a clock that jumps. Models are doubles: they read the prompts that a run really sends,
call a tool as often, and write and think as much, as `HABITS` says, with `BREAKS` of the tries broken off, some of
their answers revised, and the prompt cache missed now and then. These figures are assumptions about models, wider than
the differences between today's; they are independent of the constants of `money.estimate`, and this measures no model.

It prints for each team the estimate, and the cost and time of one run; then the same after ten runs of its own, with
the range that the statistics make of these. The estimate is meant to hold for eight of ten runs.
"""

import argparse
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random
from typing import Any

import anyio

from massgen_mcp.backends.base import (
    JsonObject,
    ModelRequest,
    Part,
    StopPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultMessage,
    ToolSpec,
    UsagePart,
)
from massgen_mcp.backends.scripted import ScriptedBackend
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.config.models.backends import ScriptedBackendConfig
from massgen_mcp.config.models.config import AgentSettings, Config
from massgen_mcp.coordination.state import Rules
from massgen_mcp.errors import BackendError
from massgen_mcp.events.agent_work import ModelCallRetried
from massgen_mcp.events.parts import Spent, public_agent_name
from massgen_mcp.events.run import RunCompleted
from massgen_mcp.money.estimate import Estimate, WorkKind, classify_work, estimate
from massgen_mcp.money.tariff import tariff_of
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from massgen_mcp.statistics.digest import AgentDigest, RunDigest, SpentDigest
from massgen_mcp.statistics.sums import CountedRun, usual_runs
from massgen_mcp.tools.base import ToolResult
from tests.in_memory import EventList, NullAnswerStore
from tests.virtual_time import VIRTUAL_TIME

SEED = "1"
OWN_RUNS = 10
ENVIRON: Mapping[str, str] = {}

# -- what is assumed of models ----------------------------------------------------------------------------------------

BREAKS, MISSES, REVISES = 0.03, 0.1, 0.15
"""How often a try breaks off, a call finds nothing in the cache, and an agent revises its answer."""
FIRST_WORD_SECONDS, TOKENS_PER_SECOND = (1.0, 5.0), (40.0, 120.0)


@dataclass(frozen=True, slots=True)
class Spread:
    """Amounts around a median: two of three lie between the median divided by and times `factor`."""

    median: float
    factor: float
    most: float

    def draw(self, random: Random) -> float:
        return min(self.most, self.median * self.factor ** random.gauss(0, 1))


@dataclass(frozen=True, slots=True)
class Habit:
    """Work of one kind. `calls`: of tools before an answer; `told`: tokens of tools that each request describes."""

    calls: Spread
    calls_before_vote: Spread
    told: int
    result: Spread
    tool_seconds: Spread
    step: Spread
    answer: Spread
    thought: Spread


HABITS: Mapping[WorkKind, Habit] = {
    "question": Habit(
        calls=Spread(0.7, 2.5, 6),
        calls_before_vote=Spread(0.1, 2.0, 1),
        told=800,
        result=Spread(500, 2.0, 4_000),
        tool_seconds=Spread(0.1, 2.0, 2),
        step=Spread(120, 2.0, 2_000),
        answer=Spread(500, 1.8, 3_000),
        thought=Spread(500, 2.5, 8_000),
    ),
    "code": Habit(
        calls=Spread(12, 1.7, 50),
        calls_before_vote=Spread(2, 2.0, 10),
        told=2_500,
        result=Spread(700, 2.5, 6_000),
        tool_seconds=Spread(0.5, 4.0, 60),
        step=Spread(200, 2.0, 3_000),
        answer=Spread(350, 1.6, 1_500),
        thought=Spread(250, 2.5, 6_000),
    ),
}
LOOK = "look"


@dataclass
class Look:
    """A tool whose results are as long, and take as long, as those of such work."""

    habit: Habit
    random: Random
    spec: ToolSpec = field(
        default_factory=lambda: ToolSpec(LOOK, "Look something up.", {"type": "object", "properties": {}})
    )
    side_effects: bool = False
    keeps_state: bool = False

    async def run(self, arguments: JsonObject) -> ToolResult:
        del arguments
        await anyio.sleep(self.habit.tool_seconds.draw(self.random))
        return ToolResult("data" * int(self.habit.result.draw(self.random)))


@dataclass
class Double:
    """A model that looks things up before it does its next step in the coordination, and thinks before each."""

    model: str
    habit: Habit
    random: Random
    _calls_left: int = 0
    _read: int = 0
    """Tokens of its last request."""

    def __post_init__(self) -> None:
        self._speed = self.random.uniform(*TOKENS_PER_SECOND)
        answers = 1 + (self.random.random() < REVISES)
        script = [{"answer": self._write_answer()} for _ in range(answers)]
        settings = {"type": "scripted", "model": self.model, "script": script, "presentation": self._write_answer()}
        self._inner = ScriptedBackend(ScriptedBackendConfig.model_validate(settings))

    def _write_answer(self) -> str:
        return f"{self.random.random()} " + "word" * int(self.habit.answer.draw(self.random))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        begins = not isinstance(request.messages[-1], ToolResultMessage)
        if begins:
            offered = {tool.name for tool in request.tools}
            spread = self.habit.calls if offered >= {"new_answer"} and "vote" not in offered else None
            self._calls_left = int((spread or self.habit.calls_before_vote).draw(self.random) + self.random.random())
        await anyio.sleep(self.random.uniform(*FIRST_WORD_SECONDS))
        if self.random.random() < BREAKS:
            yield TextPart("half a")
            raise BackendError("provider_error", "broken", retryable=True)
        looks = self._calls_left > 0 and any(tool.name == LOOK for tool in request.tools)
        spread, self._calls_left = self.habit.step if looks else self.habit.thought, self._calls_left - 1
        thought = int(spread.draw(self.random))
        said = self._look() if looks else [part async for part in self._inner.stream(request)]
        for part in said:
            yield await self._bill(part, request, thought, begins=begins) if isinstance(part, UsagePart) else part

    def _look(self) -> list[Part]:
        call = ToolCall(f"look_{self.random.getrandbits(60)}", LOOK, "{}")
        return [ToolCallPart(call), UsagePart(output_tokens=20), StopPart("tool_calls")]

    async def _bill(self, told: UsagePart, request: ModelRequest, thought: int, *, begins: bool) -> UsagePart:
        """Take the time to write, and count what was read and written."""
        texts = [request.system, *(message.text for message in request.messages)]
        read = self.habit.told + sum(map(len, texts)) // 4
        written = (told.output_tokens or 0) + thought
        cached = 0 if begins or self.random.random() < MISSES else min(read, self._read)
        self._read = read
        await anyio.sleep(written / self._speed)
        return UsagePart(read, cached, written, thought, self.model)

    async def aclose(self) -> None:
        """Nothing is open."""


# -- the runs ---------------------------------------------------------------------------------------------------------

QUESTIONS: Mapping[WorkKind, str] = {
    "question": "Which of these three caches fits a service with many readers and few writers, and why? " * 3,
    "code": "The total of an order with a discount is wrong when the basket is empty. Find the cause and mend it.",
}
CHEAP = {"price": {"input_usd_per_million": 0.1, "cached_input_usd_per_million": 0.02, "output_usd_per_million": 0.4}}
MODELS: Sequence[dict[str, Any]] = (
    {"type": "openai", "model": "gpt-6.1-sol"},
    {"type": "claude", "model": "claude-opus-5-5"},
    {"type": "gemini", "model": "gemini-4-argon"},
    {"type": "openai", "model": "gpt-5-mini"},
    {"type": "grok", "model": "grok-4.7"},
    {"type": "openai", "model": "gpt-6.2-sol"},  # its price is unknown: both sides count it at the same bound
    {"type": "chatcompletion", "model": "our-own", "base_url": "https://gateway.example.com/v1", **CHEAP},
)
SETTINGS: Sequence[dict[str, Any]] = ({}, {"effort": "auto"}, {"final_answer_strategy": "winner_reuse"})


@dataclass(frozen=True, slots=True)
class Team:
    """A team, and the kind of its work."""

    kind: WorkKind
    config: Config

    def __str__(self) -> str:
        models = ", ".join(dict.fromkeys(agent.backend.model for agent in self.config.agents))
        return f"{len(self.config.agents)} on {self.kind}: {models}"


def make_teams(seed: str) -> list[Team]:
    """Return 30: of one to five agents, for both kinds of work, with each of the settings."""
    teams: list[Team] = []
    kinds: Sequence[WorkKind] = ("question", "code")
    for number, (size, kind, settings) in enumerate(product(range(1, 6), kinds, SETTINGS)):
        random = Random(f"{seed}/team {number}")
        backends = random.choices(MODELS, k=1) * size if random.random() < 0.5 else random.choices(MODELS, k=size)
        orchestrator: dict[str, Any] = {"decide": "vote", "enable_filesystem": True, **settings}
        if kind == "code":
            orchestrator["context_paths"] = [{"path": "/tmp", "permission": "read"}]  # noqa: S108 - nothing is read
        data = {"agents": [{"backend": backend} for backend in backends], "orchestrator": orchestrator}
        teams.append(Team(kind, config_from_data(data, "benchmark", environ=ENVIRON)))
    return teams


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run. `counted`: as the statistics keep it."""

    usd: float
    seconds: float
    calls: int
    retries: int
    counted: CountedRun


def make_member(agent: AgentSettings, place: int, kind: WorkKind, seed: str) -> Member:
    random, tariff = Random(f"{seed}/{place}"), tariff_of(agent.backend, ENVIRON)
    tariff.load()
    look = Look(HABITS[kind], Random(f"{seed}/{place}/look"))
    double = Double(agent.backend.model, HABITS[kind], random)
    return Member(public_agent_name(place), double, tools=(look,), tariff=tariff)


def digest_run(team: Team, spent: Spent, seconds: float) -> RunDigest:
    """Return the figures that the statistics keep of a run, as far as estimates read them."""
    kept = SpentDigest(spent.calls, spent.tokens, spent.rounded_usd, spent.unpriced_calls, spent.estimated_calls)
    agents = tuple(
        AgentDigest(agent.id, agent.backend.model, 1, None, None, None, kept) for agent in team.config.agents
    )
    return RunDigest(seconds, 1, None, agents, None, None, True, True, kept, kind=team.kind)


async def run_team(team: Team, seed: str) -> Outcome:
    """Return how a run of the team ended. Only on the clock that jumps."""
    orchestrator, journal = team.config.orchestrator, EventList()
    members = tuple(make_member(agent, place, team.kind, seed) for place, agent in enumerate(team.config.agents))
    rules = Rules(
        seed=seed,
        max_answers=orchestrator.max_new_answers_per_agent,
        early_decision=orchestrator.early_decision,
        decide="vote",
        effort=orchestrator.effort,
        max_agents=orchestrator.max_agents,
    )
    spec = RunSpec(
        QUESTIONS[team.kind], members, rules, TeamLimits(), NullAnswerStore(), orchestrator, budget=team.config.budget
    )
    conductor, began = Conductor(spec, journal), anyio.current_time()
    await conductor.conduct()
    seconds, state = anyio.current_time() - began, conductor.state
    if not isinstance(journal.events[-1], RunCompleted):
        raise SystemExit(f"{team}, seed {seed}: the run did not complete: {journal.events[-1]}")
    retries = sum(isinstance(event, ModelCallRetried) for event in journal.events)
    counted = CountedRun(seed, "completed", "benchmark", began, digest_run(team, state.spent, seconds), {})
    return Outcome(state.spent.usd, seconds, state.spent.calls, retries, counted)


# -- the report -------------------------------------------------------------------------------------------------------


def is_within(amount: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= amount <= bounds[1]


@dataclass(frozen=True, slots=True)
class Row:
    """A run beside the estimate that came before it."""

    team: Team
    estimated: Estimate
    run: Outcome

    @property
    def usd(self) -> tuple[float, float]:
        usual = self.estimated.usual
        return (usual.usd if usual is not None else self.estimated.usd) or (0.0, 0.0)

    @property
    def seconds(self) -> tuple[float, float]:
        return self.estimated.seconds if self.estimated.usual is None else self.estimated.usual.seconds

    @property
    def money_fits(self) -> bool:
        return is_within(self.run.usd, self.usd)

    @property
    def time_fits(self) -> bool:
        return is_within(self.run.seconds, self.seconds)

    def __str__(self) -> str:
        told = f"${self.usd[0]:.2g} to ${self.usd[1]:.2g}, {self.seconds[0] / 60:.1f} to {self.seconds[1] / 60:.1f} min"
        cost = f"${self.run.usd:.2g}, {self.run.seconds / 60:.1f} min, {self.run.calls} calls"
        missed = [name for name, fits in (("money", self.money_fits), ("time", self.time_fits)) if not fits]
        retried = f", {self.run.retries} retried" if self.run.retries else ""
        return f"{str(self.team)[:44]:<44}  {told:<36}  {cost}{retried}" + (
            f"   outside: {', '.join(missed)}" * bool(missed)
        )


def summarise(rows: Sequence[Row]) -> str:
    """Return how many of the runs were within their estimates, and how wide these were."""
    money, time = sum(row.money_fits for row in rows), sum(row.time_fits for row in rows)
    widths = sorted(row.usd[1] / row.usd[0] for row in rows if row.usd[0])
    wide = (
        f"; the upper bound of money is {widths[len(widths) // 2]:.1f} times the lower one (median)" if widths else ""
    )
    return f"within the estimate: {money} of {len(rows)} in money, {time} of {len(rows)} in time{wide}"


def report(name: str, rows: Sequence[Row]) -> str:
    head = f"{'team':<44}  {'estimate':<36}  cost"
    return "\n".join([name, head, *map(str, rows), summarise(rows)])


async def measure(seed: str) -> tuple[list[Row], list[Row]]:
    """Return the rows by kind of work, and those after ten own runs of the team."""
    first: list[Row] = []
    later: list[Row] = []
    for number, team in enumerate(make_teams(seed)):
        told = estimate(
            team.config, QUESTIONS[team.kind], ENVIRON
        )  # it loads the prices: the clock can't wait for that
        runs = [await run_team(team, f"{seed}/{number}/{of}") for of in range(OWN_RUNS + 1)]
        first.append(Row(team, told, runs[0]))
        models = [agent.backend.model for agent in team.config.agents]
        usual = usual_runs([run.counted for run in runs[:-1]], models, classify_work(team.config))
        later.append(Row(team, replace(told, usual=usual), runs[-1]))
    return first, later


def main(seed: str) -> None:
    options: dict[str, Any] = VIRTUAL_TIME[1]
    first, later = anyio.run(measure, seed, backend_options=options)
    print(report("By model and kind of work", first), report(f"After {OWN_RUNS} own runs", later), sep="\n\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimates", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", default=SEED, help="of everything that is drawn (default 1)")
    main(parser.parse_args().seed)
