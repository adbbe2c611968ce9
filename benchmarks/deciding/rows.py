"""The rows of the table: what was found, the bar, and whether it is met."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from benchmarks.deciding.deciding import Decided, decided, most_passed, swapped
from benchmarks.deciding.doubles import Trial, World
from benchmarks.deciding.estimates import Outcome, calls, describe_costs, estimate, gap, right
from benchmarks.deciding.refuter import challenged, unanimous
from benchmarks.deciding.variants import Task
from massgen_mcp.events.parts import Decide
from tests.coordination.reference import OneTest, Reference, Settings, Stage

BASE = World()
WORLDS = {
    "no misunderstanding": World(misread=0),
    "false expectations .5": World(false=0.5),
    "every error a misunderstanding": World(misread=1),
    "voters know .6": World(knows=0.6),
    "nobody looks for differences": World(looks=0),
    "hard tasks, p .35": World(p=0.35),
    "easy tasks, p .8": World(p=0.8),
}

Met = Literal["met", "NOT MET", "a loss", "a gain", "fails, as it must", "DOES NOT FAIL", "told"]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    what: str
    found: str
    bar: str
    met: Met
    costs: tuple[str, ...] = ()
    """Of each way to decide in it: its costs, and how often its result is weak."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The tasks, and so many questions of each."""

    tasks: Sequence[Task]
    seed: int
    trials: int

    def trials_of(self, world: World, agents: int) -> Iterable[Trial]:
        for task in self.tasks:
            for number in range(self.trials):
                yield Trial.draw(task, world, agents, f"{self.seed}/{task.name}/{number}")

    def outcomes(self, world: World, agents: int, decide: Callable[[Trial], Decided]) -> list[Outcome]:
        return [outcome(trial, decide(trial)) for trial in self.trials_of(world, agents)]


def by(how: Decide, **more: object) -> Callable[[Trial], Decided]:
    return partial(decided, decide=how, **more)  # type: ignore[arg-type]


def outcome(trial: Trial, result: Decided) -> Outcome:
    rights = [trial.right(agent) for agent in range(len(trial.programs))]
    return Outcome(
        trial.task.name,
        trial.right(result.winner),
        result.calls,
        sum(rights) / len(rights),
        max(rights),
        result.dollars,
        result.weak,
    )


# -- checks against vote ----------------------------------------------------------------------------------------------


def base_rows(bench: Bench, agents: int, points: int) -> list[Row]:
    vote = bench.outcomes(BASE, agents, by("vote"))
    rows = [_plain("vote", agents, vote)]
    for name, same_files in (("checks", True), ("checks, every answer its own files", False)):
        checks = bench.outcomes(BASE, agents, by("checks", same_files=same_files))
        more, dearer = estimate(gap, checks, vote), estimate(calls, checks, vote)
        met: Met = "met" if more.value >= points / 100 and dearer.value <= 0.5 else "NOT MET"
        rows += [
            _plain(name, agents, checks),
            Row(
                f"{name} against vote, {agents} agents",
                f"{more.points()} points of the gap, {dearer.value:+.2f} calls",
                f"≥ +{points} points, ≤ +.5 calls",
                met,
            ),
        ]
    return rows


def _plain(name: str, agents: int, found: Sequence[Outcome]) -> Row:
    """One way to decide, without a bar."""
    share, cost = estimate(right, found).value, estimate(calls, found).value
    random = sum(one.lot for one in found) / len(found)
    what = f"{name}, {agents} agents: right {share:.3f} (a random answer {random:.3f}), {cost:.1f} calls"
    return Row(what, f"closes {estimate(gap, found).percent()} of the gap", "", "told", (describe_costs(found),))


# -- late agents and ties ---------------------------------------------------------------------------------------------

SITUATIONS: Mapping[str, tuple[int, Callable[[Trial], Decided]]] = {
    "vote, the last agent's answer is late and included": (3, by("vote", late="included")),
    "vote, the last agent's answer never comes": (3, by("vote", late="left out")),
    "checks, the last agent's answer never comes": (3, by("checks", late="left out")),
    "vote, each agent of another vendor": (3, by("vote", vendors=("a", "b", "c"))),
    "vote, two agents of one vendor": (3, by("vote", vendors=("a", "b", "a"))),
    "vote, two vendors": (2, by("vote", vendors=("a", "b"))),
    "vote, two vendors, a fallback of a third one": (2, by("vote", vendors=("a", "b"), fallbacks=("c",))),
}
"""The number of agents, and the way to decide."""


def situation_row(bench: Bench, name: str) -> Row:
    agents, decide = SITUATIONS[name]
    return _plain(name, agents, bench.outcomes(BASE, agents, decide))


def world_row(bench: Bench, name: str, agents: int = 3) -> Row:
    world = WORLDS[name]
    vote, checks = (bench.outcomes(world, agents, by(how)) for how in ("vote", "checks"))
    closed, more = estimate(gap, checks), estimate(gap, checks, vote)
    found = f"vote {estimate(gap, vote).percent()}, checks {closed.percent()}: {more.points()}"
    costs = (f"vote: {describe_costs(vote)}", f"checks: {describe_costs(checks)}")
    match name:
        case "no misunderstanding":
            return Row(name, found, "checks ≥ 80 %", "met" if closed.value >= 0.8 else "NOT MET", costs)
        case "false expectations .5":
            return Row(name, found, "≥ -5 points", "met" if more.value >= -0.05 else "NOT MET", costs)
        case _:
            return Row(name, found, "", "a loss" if more.value < 0 else "a gain", costs)


# -- fakes, and a second program --------------------------------------------------------------------------------------


def hostile_rows(bench: Bench) -> list[Row]:
    """How often the hostile writer wins, by the rule and by its twin that counts every test."""
    trials = list(bench.trials_of(World(hostile=True), 3))
    rule = sum(decided(trial, "checks").winner == 0 for trial in trials) / len(trials)
    twin = sum(most_passed(trial) == 0 for trial in trials) / len(trials)
    return [
        Row("a hostile writer wins", f"{rule:.1%}", "≤ 20 %", "met" if rule <= 0.2 else "NOT MET"),
        Row("twin: own tests counted", f"{twin:.1%}", "> 20 %", "fails, as it must" if twin > 0.2 else "DOES NOT FAIL"),
    ]


def second_program_row(bench: Bench) -> Row:
    same = total = 0
    for trial in bench.trials_of(BASE, 3):
        by_tests = decided(trial, "checks", same_files=False)
        if not by_tests.shares and by_tests.outcome == "same_files":
            continue
        total += 1
        same += (by_tests.winner if by_tests.outcome == "tested" else None) == _second(trial)
    found = f"{same:,} of {total:,} alike"
    return Row("what tests choose, against a second program", found, "all", "met" if same == total else "NOT MET")


def _second(trial: Trial) -> int | None:
    agents = range(len(trial.programs))
    labels = tuple((agent, 1) for agent in agents)
    reference = Reference(Settings(len(agents), trial.seed, 1, "off", by_tests=True, checks=False, required=False))
    reference.answers = dict.fromkeys(labels, "")
    reference.files = {label: str(label) for label in labels}
    reference.stages = [Stage("tests", labels, tuple(agents))]
    for author in agents:
        reference.tests[author] = [
            OneTest(author, {str((agent, 1)): (trial.passes(test, agent),) for agent in agents}, f"{author} {number}")
            for number, test in enumerate(trial.tests(author))
        ]
    chosen = reference.chosen_by_tests()
    return None if chosen is None else chosen[0]


def swapped_row(bench: Bench) -> Row:
    honest = bench.outcomes(BASE, 3, by("checks"))
    twin = bench.outcomes(BASE, 3, by("checks", passes=swapped))
    less = estimate(gap, twin, honest)
    return Row(
        "twin: verdicts of two answers swapped",
        f"{less.points()} points of the gap",
        "below 0",
        "fails, as it must" if less.high < 0 else "DOES NOT FAIL",
        (describe_costs(twin),),
    )


def order_row(bench: Bench) -> Row:
    """Agents listed backwards, with the same luck. Ties are left out: which answer is named depends on its label."""
    changed = total = ties = 0
    for trial in bench.trials_of(BASE, 3):
        forth, back = (decided(trial, "checks", backwards=turned) for turned in (False, True))
        if "tie_broken" in (forth.outcome, back.outcome):
            ties += 1
            continue
        total += 1
        changed += trial.programs[forth.winner] is not trial.programs[back.winner]
    found = f"{changed:,} of {total:,} verdicts change ({ties:,} ties left out)"
    return Row("agents listed backwards", found, "≤ 1 %", "met" if changed <= total / 100 else "NOT MET")


# -- refuter, effort --------------------------------------------------------------------------------------------------


def refuter_rows(bench: Bench) -> list[Row]:
    voted = [(trial, decided(trial, "vote")) for trial in bench.trials_of(BASE, 3)]
    plain = [outcome(trial, result) for trial, result in voted]
    rows: list[Row] = []
    for confirmed in (False, True):
        each = [(trial, result, challenged(trial, result.winner, confirmed=confirmed)) for trial, result in voted]
        after = [Outcome(t.task.name, c.right, result.calls + c.calls) for t, result, c in each]
        more = estimate(right, after, plain)
        sound = [c for t, result, c in each if t.right(result.winner)]
        lost = sum(not c.right for c in sound) / len(sound)
        proofs = [c for _, _, c in each if c.proven]
        false = sum(c.false for c in proofs) / len(proofs)
        found = f"{more.points()} points right, {false:.0%} of the proofs false, {lost:.1%} of sound answers lost"
        if confirmed:
            rows.append(Row("refuter, confirmed blind", found, "≤ 3 % lost", "met" if lost <= 0.03 else "NOT MET"))
        else:
            met: Met = "fails, as it must" if more.high < 0 or lost > 0.03 else "DOES NOT FAIL"
            rows.append(Row("twin: refuter unconfirmed", found, "harm", met))
    planted = [unanimous(trial) for trial in bench.trials_of(BASE, 3)]
    caught = sum(challenged(trial, 0, confirmed=True).proven for trial in planted)
    found = f"{caught / len(planted):.0%} of {len(planted):,} caught"
    return [*rows, Row("unanimous planted errors, refuter confirmed", found, "", "told")]


def effort_row(bench: Bench, *, same_files: bool) -> Row:
    all_five = bench.outcomes(BASE, 5, by("checks", same_files=same_files))
    three_first = bench.outcomes(BASE, 5, by("checks", same_files=same_files, effort="auto"))
    lost, saved = estimate(right, three_first, all_five), estimate(calls, three_first).value
    share = 1 - saved / estimate(calls, all_five).value
    name = "effort auto, five agents" + ("" if same_files else ", every answer its own files")
    found = f"{lost.points()} points right, {share:.0%} of the calls saved"
    met: Met = "met" if lost.value >= -0.01 else "NOT MET"
    return Row(name, found, "≥ -1 point", met, (describe_costs(three_first),))
