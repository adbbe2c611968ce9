"""Deciding by tests against deciding by votes, in the real orchestrator. See the package's docstring.

An answer's files are known by its option; what a test prints is simulated, and nothing runs (`benchmarks.deciding` runs
real programs). A test expects what one option does. It passes for that option, and for another one by chance, the same
whenever it runs. Its author takes the right option for its expectation; but a share of the wrong agents misread the
question and expect their own, and a share of the other expectations is false. Voters are judges, as in `substance`.
"""

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from statistics import fmean
from string import ascii_uppercase
from typing import Literal, cast

import anyio

from examples.simulation.agents import Judging, Poll, SimulatedAgent
from examples.simulation.substance import OWN_WEIGHT, SKILL, TEAMS, Estimate
from examples.simulation.world import World, draw
from massgen_mcp.backends.base import ModelRequest, Part, StopPart, ToolCall, ToolCallPart
from massgen_mcp.checks.judge import FileJudge
from massgen_mcp.coordination.state import Rules
from massgen_mcp.events.agent_work import ModelCallStarted
from massgen_mcp.events.coordination import WinnerChosen
from massgen_mcp.events.parts import Changes, CheckOutcome, public_agent_name
from massgen_mcp.orchestration.conduct import Conductor
from massgen_mcp.orchestration.live_run import StoredAnswer
from massgen_mcp.orchestration.team import Member, RunSpec, TeamLimits
from massgen_mcp.workspace.directory import Workspace
from tests.in_memory import EventList, NullAnswerStore

WORLD = World(p=0.55, choices=4, c=0.5)
TESTS = 3
BLIND = 0.4
"""How often a test passes for an option that does something else."""


@dataclass(frozen=True, slots=True)
class Setting:
    """`misread`: so many wrong agents expect their own option. `false`: so many other expectations are of a wrong one.
    `skill`: how often a voter recognises what is right.
    """

    name: str
    misread: float = 0.3
    false: float = 0.1
    skill: float = SKILL


SETTINGS = (
    Setting("base"),
    Setting("nothing misread", misread=0),
    Setting("half of the others false", false=0.5),
    Setting("every error misread", misread=1),
    Setting("good voters", skill=0.6),
)
Way = Literal["vote", "checks", "checks, own files"]
WAYS: tuple[Way, ...] = ("vote", "checks", "checks, own files")


@dataclass(frozen=True, slots=True)
class Result:
    """One run. `lot`: how often a random answer is right; `best`: whether one is."""

    right: bool
    calls: int
    lot: float
    best: bool


class _Writer(SimulatedAgent):
    """Writes tests, besides."""

    def __init__(self, expected: Sequence[str], *agent: object) -> None:
        super().__init__(*agent)  # type: ignore[arg-type]
        self._expected = expected

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part]:
        if "submit_tests" not in {tool.name for tool in request.tools}:
            async for part in super().stream(request):
                yield part
            return
        await anyio.lowlevel.checkpoint()
        tests = [
            {"title": "a test", "script": f"{number} {option} {self._misread.random()}", "expected": "as expected"}
            for number, option in enumerate(self._expected)
        ]
        yield ToolCallPart(ToolCall("call_tests", "submit_tests", json.dumps({"tests": tests})))
        yield StopPart("tool_calls")


class _Store(NullAnswerStore):
    """Answers have files, named by their first letter, or by all of the text."""

    def __init__(self, *, own_files: bool) -> None:
        self._own_files = own_files

    async def keep(self, attempt: int, agent: str, content: str, workspace: Workspace | None) -> StoredAnswer:
        kept = await super().keep(attempt, agent, content, workspace)
        return kept._replace(changes=Changes(tree=content if self._own_files else content[0]))


class _Judge:
    """Says how a test came out, as `FileJudge` does."""

    commands: tuple[str, ...] = ()
    base = "-"

    async def check(self, tree: str, command: str, expected: str | None = None) -> CheckOutcome:
        option = command.split()[1]
        passes = tree[0] == option or Random(f"{command} {tree[0]}").random() < BLIND
        result = "passed" if passes else "failed"
        return CheckOutcome(command=command, expected=expected, result=result, how="", seconds=0)


async def run_one(setting: Setting, agents: int, way: Way, seed: str) -> Result:
    """One run; the same seed gives the same question, answers, tests and votes for every way."""
    luck = Random(seed)
    question = draw(WORLD, agents, luck)
    judging = Judging(setting.skill, own_weight=OWN_WEIGHT, same_wrong=0.05)
    poll = Poll()

    def expectations(option: str) -> list[str]:
        if option != question.right and luck.random() < setting.misread:
            return [option] * TESTS
        wrong = [other for other in ascii_uppercase[: WORLD.choices] if other != question.right]
        return [luck.choice(wrong) if luck.random() < setting.false else question.right for _ in range(TESTS)]

    team = tuple(
        Member(
            public_agent_name(seat),
            _Writer(expectations(option), option, question.right, judging, poll, Random(f"{seed}/{seat}")),
        )
        for seat, option in enumerate(question.answers)
    )
    rules = Rules(max_answers=1, early_decision="off", seed=seed, decide="vote" if way == "vote" else "checks")
    store = _Store(own_files=way == "checks, own files")
    journal = EventList()
    run_spec = RunSpec("Which one?", team, rules, TeamLimits(), store, judge=cast("FileJudge", _Judge()))
    await Conductor(run_spec, journal).conduct()
    (winner,) = (event for event in journal.events if isinstance(event, WinnerChosen))
    rights = [option == question.right for option in question.answers]
    calls = sum(isinstance(event, ModelCallStarted) for event in journal.events)
    return Result(rights[ord(winner.agent[-1]) - ord("a")], calls, fmean(rights), any(rights))


@dataclass(frozen=True, slots=True)
class Work:
    """One row's runs, in a process of their own."""

    setting: Setting
    agents: int
    way: Way
    trials: int
    seed: str

    def __call__(self) -> Sequence[Result]:
        return anyio.run(self._run)

    async def _run(self) -> Sequence[Result]:
        seeds = (f"{self.seed}/{self.agents}/{number}" for number in range(self.trials))
        return [await run_one(self.setting, self.agents, self.way, seed) for seed in seeds]


def decide_work(trials: int, seed: str) -> list[Work]:
    return [Work(setting, agents, way, trials, seed) for agents, setting, way in _cells()]


def _cells() -> list[tuple[int, Setting, Way]]:
    return [*product(TEAMS, SETTINGS, WAYS)]


def decide_table(found: Sequence[Sequence[Result]]) -> str:
    """Gap: the part of the way from a random answer to the best one. Against the vote: on the same questions."""
    lines = [" n  world                      decided by          right              calls    gap   against the vote"]
    lines.append("-" * len(lines[0]))
    votes: Sequence[Result] = ()
    for (agents, setting, way), results in zip(_cells(), found, strict=True):
        right = [float(one.right) for one in results]
        lot, best = fmean(one.lot for one in results), fmean(one.best for one in results)
        votes = results if way == "vote" else votes
        more = Estimate.of([one.right - vote.right for one, vote in zip(results, votes, strict=True)])
        told = "" if way == "vote" else f"{more.mean:+.4f} ± {more.within:.4f}{_verdict(more)}"
        closed = (fmean(right) - lot) / (best - lot) if best > lot else 0.0
        calls = fmean(one.calls for one in results)
        line = (
            f"{agents:>2}  {setting.name:<25}  {way:<18}  {Estimate.of(right)}  {calls:>5.2f}  {closed:>5.0%}   {told}"
        )
        lines.append(line.rstrip())
    return "\n".join(lines)


def _verdict(more: Estimate) -> str:
    if abs(more.mean) <= more.within:
        return ""
    return "  a gain" if more.mean > 0 else "  A LOSS"
