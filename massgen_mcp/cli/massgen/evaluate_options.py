"""What a user of `massgen eval` asked for on the command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.cli.command_line import ArgumentGroups, Parser, argument, counting_number
from massgen_mcp.cli.exits import EXIT_CONFIG
from massgen_mcp.cli.massgen.options import CONCURRENCY, dollars, model_names
from massgen_mcp.evaluation.comparing import MOST_SAMPLES

MANUAL = """
Every item is asked of each team and of one model; then of the one model again, as often as the team's money for this \
item pays. A run that comes to no answer is wrong. It ends when all items are asked, when the budget has no room for \
the next run, or when every comparison with the one model is settled. The same command goes on where it ended, and \
pays for nothing twice.

examples:
  massgen eval @questions --configs team.yaml --against gpt-5 --max-usd 20
  massgen eval --from runs --configs team.yaml --against gpt-5 --max-usd 5
  massgen eval mine.jsonl --configs a.yaml,@examples/two_providers --against one.yaml --max-usd 5 --page page.html

exit codes:
  0  all items were asked, or every comparison is settled
  1  the command line or a config is wrong; no model was asked
  2  the budget had no room for the next run, or this machine is at fault
  4  interrupted
"""


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


class _Parser(Parser):
    exit_code = EXIT_CONFIG


def parse(arguments: Sequence[str]) -> EvalOptions:
    """Exits for --help and whatever is wrong."""
    parser = make_parser()
    given = parser.parse(arguments)
    names = [team_name(team) for team in given.teams]
    if len({*names, "one"}) <= len(names):
        parser.error("--configs: two have the same name, or one is called `one`; a team is called as its file is")
    given.from_runs = given.__dict__.pop("from") is not None
    if given.from_runs is (given.tasks is not None):
        parser.error("TASKS are missing, or --from runs in their place" if not given.tasks else "TASKS or --from runs")
    given.tasks = given.tasks or "runs"
    given.teams = tuple(given.teams)
    given.results = given.results or Path(f"{Path(given.tasks.lstrip('@')).stem}.eval.jsonl")
    return EvalOptions(**vars(given))


def team_name(config: str) -> str:
    return Path(config).stem[:60]


ARGUMENTS: ArgumentGroups = {
    "": (
        argument(
            "tasks", metavar="TASKS", nargs="?", help="@questions, @reviews, @coding, or a file with input and target"
        ),
        argument(
            "--configs",
            "-c",
            dest="teams",
            metavar="CONFIG,...",
            type=model_names,
            required=True,
            help="configs of the teams, comma-separated",
        ),
        argument("--against", metavar="MODEL|CONFIG", required=True, help="the one model, or a config with one agent"),
        argument("--from", choices=("runs",), help="in place of TASKS: your own runs that proved right"),
        argument(
            "--max-usd", dest="budget", metavar="USD", type=dollars, help="for all: no run begins that could pass it"
        ),
        argument("--max-usd-each", metavar="USD", type=dollars, help="for each run, instead of its config's"),
        argument("--items", metavar="N", type=counting_number, help="so many of them, drawn always alike"),
        argument(
            "--samples",
            metavar="N",
            type=counting_number,
            default=MOST_SAMPLES,
            help="ask the one model an item at most so often, whatever a team has cost (%(default)s)",
        ),
        argument(
            "--concurrency",
            metavar="N",
            type=counting_number,
            default=CONCURRENCY,
            help="so many runs at once (%(default)s)",
        ),
        argument(
            "--output",
            "-o",
            dest="results",
            metavar="FILE",
            type=Path,
            help="every run as a line; default: TASKS.eval.jsonl",
        ),
        argument("--page", dest="html", metavar="FILE", type=Path, help="also write a page, and its drawing as .svg"),
        argument("--json", action="store_true", help="print one JSON document"),
        argument("--debug", "-v", action="store_true", help=argparse.SUPPRESS),
    ),
}
"""What may be given, by the headings of the help."""


def make_parser() -> Parser:
    return _Parser(
        ARGUMENTS,
        prog="massgen eval",
        description="Compare teams with one model, and with the same money on one model, on tasks with known answers.",
        epilog=MANUAL,
    )
