"""What a user of `massgen eval` asked for on the command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.cli.command_line import ArgumentGroups, Parser, argument, counting_number
from massgen_mcp.cli.exits import EXIT_CONFIG
from massgen_mcp.cli.massgen.options import CONCURRENCY, dollars, model_names

MANUAL = """
massgen gives every item to each team and to a single model. It then asks that model again until the model's \
answers have cost as much as each team's. A run without an answer counts as wrong. The evaluation ends when all \
items are done, when the budget can't cover the next run, or when every comparison with the single model is settled. \
Repeat the command to continue; massgen never pays for an item twice.

examples:
  massgen eval @questions --configs team.yaml --against gpt-5 --max-usd 20
  massgen eval --from runs --configs team.yaml --against gpt-5 --max-usd 5
  massgen eval mine.jsonl --configs a.yaml,@examples/two_providers --against one.yaml --max-usd 5 --page page.html

exit codes:
  0  all items are done, or every comparison is settled
  1  the command line or a config is wrong; massgen asked no model
  2  the budget can't cover the next run, or a fault on this machine stopped the evaluation
  4  interrupted
"""


MOST_SAMPLES = 40


@dataclass(frozen=True, slots=True)
class EvalOptions:
    tasks: str
    from_runs: bool
    teams: tuple[str, ...]
    against: str
    budget: float | None
    max_usd_each: float | None
    items: int | None
    samples: int
    concurrency: int
    results: Path
    html: Path | None
    json: bool
    debug: bool


def parse(arguments: Sequence[str]) -> EvalOptions:
    """Exits for --help and whatever is wrong."""
    parser = make_parser()
    given = parser.parse(arguments)
    names = [team_name(team) for team in given.teams]
    if len({*names, "one"}) <= len(names):
        parser.error(
            "--configs: two files have the same name, or a file has the reserved name `one`; to rename a team, rename "
            "its file"
        )
    given.from_runs = given.__dict__.pop("from") is not None
    if given.from_runs is (given.tasks is not None):
        parser.error(
            "TASKS is missing; name a file of tasks, or pass --from runs"
            if not given.tasks
            else "pass either TASKS or --from runs, not both"
        )
    given.tasks = given.tasks or "runs"
    given.teams = tuple(given.teams)
    given.results = given.results or Path(f"{Path(given.tasks.lstrip('@')).stem}.eval.jsonl")
    return EvalOptions(**vars(given))


def team_name(config: str) -> str:
    return Path(config).stem[:60]


ARGUMENTS: ArgumentGroups = {
    "": (
        argument(
            "tasks",
            metavar="TASKS",
            nargs="?",
            help="@questions, @reviews, @coding, or a file with `input` and `target` fields",
        ),
        argument(
            "--configs",
            "-c",
            dest="teams",
            metavar="CONFIG,...",
            type=model_names,
            required=True,
            help="the teams' configs, separated by commas",
        ),
        argument(
            "--against",
            metavar="MODEL|CONFIG",
            required=True,
            help="the model to compare with, or a config with one agent",
        ),
        argument("--from", choices=("runs",), help="instead of TASKS: your own runs that you marked as right"),
        argument(
            "--max-usd",
            dest="budget",
            metavar="USD",
            type=dollars,
            help="total budget; massgen starts no run that could exceed it",
        ),
        argument("--max-usd-each", metavar="USD", type=dollars, help="budget of each run, instead of its config's"),
        argument("--items", metavar="N", type=counting_number, help="use a fixed random sample of N items"),
        argument(
            "--samples",
            metavar="N",
            type=counting_number,
            default=MOST_SAMPLES,
            help="maximum number of answers from the single model per item (%(default)s)",
        ),
        argument(
            "--concurrency",
            metavar="N",
            type=counting_number,
            default=CONCURRENCY,
            help="maximum number of parallel runs (%(default)s)",
        ),
        argument(
            "--output",
            "-o",
            dest="results",
            metavar="FILE",
            type=Path,
            help="file with one line per run; default: TASKS.eval.jsonl",
        ),
        argument(
            "--page", dest="html", metavar="FILE", type=Path, help="also write an HTML page, and its chart as .svg"
        ),
        argument("--json", action="store_true", help="print one JSON document"),
        argument("--debug", "-v", action="store_true", help=argparse.SUPPRESS),
    ),
}
"""What may be given, by the headings of the help."""


def make_parser() -> Parser:
    return Parser(
        ARGUMENTS,
        exit_code=EXIT_CONFIG,
        prog="massgen eval",
        description="Measure teams on tasks with known answers: against a single model, and against repeated answers "
        "from that model at the same cost.",
        epilog=MANUAL,
    )
