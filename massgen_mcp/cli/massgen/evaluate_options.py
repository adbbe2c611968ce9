"""`massgen eval` on the command line."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from massgen_mcp.cli.command_line import argument, counting_number
from massgen_mcp.cli.exits import CODES_OF_QUESTION
from massgen_mcp.cli.massgen.options import CONCURRENCY, dollars, model_names
from massgen_mcp.cli.verb import Verb

MANUAL = """
massgen gives every item to each team and to a single model. It then keeps asking that model until its \
answers have cost as much as each team's. A run without an answer counts as wrong. The evaluation ends when all \
items are done, when the budget can't cover the next run, or when every comparison with the single model is settled. \
Repeat the command to continue; massgen never pays for an item twice.

examples:
  massgen eval @questions --configs team.yaml --against gpt-5 --max-usd 20
  massgen eval --from runs --configs team.yaml --against gpt-5 --max-usd 5
  massgen eval mine.jsonl --configs a.yaml,@examples/two_providers --against one.yaml --max-usd 5 --page page.html

exit codes:
  0  all items are done, or every comparison is settled
  1  the command line or a config is wrong; no model was called
  2  the budget can't cover the next run, or a problem on this machine stopped the evaluation
  4  interrupted
"""
MOST_SAMPLES = 40


def team_name(config: str) -> str:
    return Path(config).stem[:60]


class EvalVerb(Verb):
    description = (
        "Measure teams on tasks with known answers: against a single model, and against repeated answers from that "
        "model at the same cost."
    )
    manual = MANUAL
    codes = CODES_OF_QUESTION
    is_private = False

    def find_contradiction(self, options: argparse.Namespace) -> str | None:
        names = [team_name(team) for team in options.teams]
        if len({*names, "one"}) <= len(names):
            return (
                "--configs: two files have the same name, or a file has the reserved name `one`; to rename a team, "
                "rename its file"
            )
        if options.from_runs and options.tasks is not None:
            return "pass either TASKS or --from runs, not both"
        if not options.from_runs and options.tasks is None:
            return "TASKS is missing; name a file of tasks, or pass --from runs"
        options.tasks = options.tasks or "runs"
        options.results = options.results or Path(f"{Path(options.tasks.lstrip('@')).stem}.eval.jsonl")
        return None

    def run(self, options: argparse.Namespace) -> int:
        from massgen_mcp.cli.massgen.command import run_many
        from massgen_mcp.cli.massgen.evaluate import evaluate

        return run_many(evaluate, options)


VERBS: Sequence[Verb] = (
    EvalVerb(
        "eval",
        "measure teams against a single model on tasks with known answers",
        arguments=(
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
            argument(
                "--from",
                dest="from_runs",
                choices=("runs",),
                help="use your own runs that you marked as right, instead of TASKS",
            ),
            argument(
                "--max-usd",
                dest="budget",
                metavar="USD",
                type=dollars,
                help="total budget; massgen won't start a run that could exceed it",
            ),
            argument(
                "--max-usd-each", metavar="USD", type=dollars, help="budget for each run, instead of its config's"
            ),
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
    ),
)
