"""Prints the table. Exits with 1 if a known-bad twin does not fail; a bar that is missed is told, and no failure."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from benchmarks.deciding.doubles import Trial
from benchmarks.deciding.in_sandbox import agreeing
from benchmarks.deciding.rows import (
    BASE,
    SITUATIONS,
    WORLDS,
    Bench,
    Row,
    base_rows,
    effort_row,
    hostile_rows,
    order_row,
    refuter_rows,
    second_program_row,
    situation_row,
    swapped_row,
    world_row,
)
from benchmarks.deciding.variants import tasks

HEADER = """\
{tasks} functions, {run} changes of their code that were run, {wrong} wrong versions that pass the example; seed {seed},
{trials} questions for each. Agents are doubles: nothing here says anything of real models. In brackets: 95 %.
Prices are those of assumed tokens."""


def work(bench: Bench) -> list[Callable[[], list[Row] | Row]]:
    """The rows, in order; each can be made in a process of its own."""
    fewer = Bench(bench.tasks, bench.seed, max(1, bench.trials // 2))
    return [
        partial(base_rows, bench, 3, 15),
        partial(base_rows, bench, 5, 10),
        *(partial(situation_row, bench, name) for name in SITUATIONS),
        *(partial(world_row, fewer, name) for name in WORLDS),
        partial(second_program_row, fewer),
        partial(hostile_rows, fewer),
        partial(swapped_row, fewer),
        partial(refuter_rows, bench),
        partial(effort_row, fewer, same_files=True),
        partial(effort_row, fewer, same_files=False),
        partial(order_row, fewer),
    ]


def sandbox_row(bench: Bench, count: int) -> Row:
    """So many tasks as whole runs, with tests in the sandbox."""
    trials = [Trial.draw(task, BASE, 3, f"{bench.seed}/{task.name}/0") for task in bench.tasks]
    mixed = [trial for trial in trials if len({program.source for program in trial.programs}) > 1][:count]
    same = sum(agreeing(mixed))
    found = f"{same} of {len(mixed)} runs: the same verdicts"
    return Row(
        "in the real sandbox, against the kept outputs", found, "all", "met" if same == len(mixed) else "NOT MET"
    )


def rows(seed: int, trials: int, sandbox: int, jobs: int) -> Iterator[Row]:
    """The table. `sandbox`: so many tasks run in it."""
    found, run = tasks(seed)
    bench = Bench(found, seed, trials)
    wrong = sum(len(task.wrong) for task in found)
    print(HEADER.format(tasks=len(found), run=run, wrong=wrong, seed=seed, trials=trials), end="\n\n")
    with ProcessPoolExecutor(jobs) as processes:
        for pending in [processes.submit(each) for each in work(bench)]:
            made = pending.result()
            yield from made if isinstance(made, list) else [made]
    if sandbox:
        yield sandbox_row(bench, sandbox)


def line(row: Row) -> str:
    bar = f"bar: {row.bar}; " if row.bar else ""
    verdict = "" if row.met == "told" else f"  [{bar}{row.met}]"
    costs = "".join(f"\n    {each}" for each in row.costs)
    return f"{row.what}\n    {row.found}{verdict}{costs}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deciding", description="How a team decides.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=30, help="questions for each task (default: %(default)s)")
    parser.add_argument("--sandbox", type=int, default=20, help="tasks that run in the sandbox (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    options = parser.parse_args()
    began, failed = time.monotonic(), False
    for row in rows(options.seed, options.trials, options.sandbox, options.jobs):
        failed = failed or row.met == "DOES NOT FAIL"
        print(line(row), flush=True)
    print(f"\n{time.monotonic() - began:.0f} s.")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
