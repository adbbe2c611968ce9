"""Prints the tables. Exits with 1 if a simulated figure lies outside the band around its exact value."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from examples.simulation.decide import decide_table, decide_work
from examples.simulation.report import (
    BAND,
    Row,
    judge_cells,
    judge_table,
    majority_cells,
    majority_table,
    measure,
)
from examples.simulation.substance import (
    early_table,
    early_work,
    lots_table,
    lots_work,
    substance_table,
    substance_work,
)

HEADER = """\
Simulated agents in the real orchestrator: {trials} whole runs per row, seed {seed}.
This claims nothing about real models: how often an agent is right and how well it judges are assumptions.
It shows that answers, ballots, votes, ties and the decision arrive as the rules say."""

MAJORITY = """\
Majority: everybody votes for the option it answered itself.
n agents, each right with p; c: a wrong one picks the common wrong option; rho: all share one draw."""

JUDGES = """\
Judges: four options, independent errors. In brackets: the exact value. The variants change the simulated voters only;
the product shows no votes to voters and hides who wrote the others' answers."""


class Experiment(NamedTuple):
    title: str
    work: Callable[[int, str], Sequence[Callable[[], Sequence[Any]]]]
    table: Callable[[Sequence[Sequence[Any]]], str]


EXPERIMENTS = {
    "substance": Experiment(
        "Votes by substance against votes by wording. p 0.7, four options, two wrong agents agree in 60 %; voters\n"
        "tell right from wrong in 65 %. Gain: against the same votes by wording, ties drawn. Intervals of 95 %.",
        substance_work,
        substance_table,
    ),
    "early": Experiment(
        "What early decisions save, where calls take very different times. Voters as in `substance`, 5 % wrong.",
        early_work,
        early_table,
    ),
    "decide": Experiment(
        "Tests that agents write against votes. p 0.55, four options, wrong agents share one in half of the cases; an\n"
        "agent writes three tests. Intervals of 95 %; against the vote: the same questions, answers and voters.",
        decide_work,
        decide_table,
    ),
    "lots": Experiment("Two agents that vote for themselves.", lots_work, lots_table),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.simulation", description="The jury theorem, simulated.")
    parser.add_argument("what", nargs="?", choices=("jury", *EXPERIMENTS), default="jury")
    parser.add_argument("--trials", type=int, default=1000, help="runs per row, at least 2 (default: %(default)s)")
    parser.add_argument("--seed", default="1", help="any text; the same one prints the same tables")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    options = parser.parse_args()
    if options.trials < 2:
        parser.error("a standard error needs at least two trials")
    began = time.monotonic()
    print(HEADER.format(trials=options.trials, seed=options.seed))
    with ProcessPoolExecutor(options.jobs) as processes:
        if options.what == "jury":
            return _jury(processes, options.trials, options.seed, began)
        experiment = EXPERIMENTS[options.what]
        pending = [processes.submit(work) for work in experiment.work(options.trials, options.seed)]
        found = [each.result() for each in pending]
    print(f"\n{experiment.title}\n\n{experiment.table(found)}\n\n{time.monotonic() - began:.0f} s.")
    return 0


def _jury(processes: ProcessPoolExecutor, trials: int, seed: str, began: float) -> int:
    rows: list[Row] = []
    work = partial(measure, trials=trials, seed=seed)
    majority, judges = processes.map(work, majority_cells()), processes.map(work, judge_cells())
    for title, found, table in ((MAJORITY, majority, majority_table), (JUDGES, judges, judge_table)):
        part = list(found)
        print(f"\n{title}\n\n{table(part)}", flush=True)
        rows.extend(part)
    print(f"\n{_summary(rows)} {time.monotonic() - began:.0f} s.")
    return int(_widest(rows) > BAND)


def _summary(rows: Iterable[Row]) -> str:
    found = [figure for row in rows for figure in row.figures]
    return f"Largest deviation of {len(found)} figures: {_widest(rows):.2f} standard errors (allowed: {BAND:g})."


def _widest(rows: Iterable[Row]) -> float:
    return max(abs(figure.deviation) for row in rows for figure in row.figures)


if __name__ == "__main__":
    sys.exit(main())
