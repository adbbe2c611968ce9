"""`massgen review` on the command line."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal, get_args

from massgen_mcp.cli.command_line import ArgumentGroups, Parser, argument, whole_number
from massgen_mcp.cli.exits import CODES_OF_REVIEW
from massgen_mcp.cli.massgen.options import Options, dollars, model_names
from massgen_mcp.cli.verb import Verb

Format = Literal["markdown", "json", "sarif"]
FailOn = Literal["proven", "blocker", "major", "minor", "never"]
SUFFIXES: dict[str, Format] = {".md": "markdown", ".json": "json", ".sarif": "sarif"}

MANUAL = """
A second agent, from another vendor if possible, tries to refute each finding. A finding is "proven" if a script \
showed it in the sandbox and the second agent couldn't refute it, "refuted" if that agent could, and "unproven" \
otherwise. The team comes from --config, --model, your own config or the default team. massgen ignores configs in \
this directory, since they may be part of the change.

examples:
  massgen review
  massgen review --branch origin/main --fail-on proven
  massgen review --pr 7 --output review.md --output review.sarif
  git diff HEAD~3 | massgen review --diff - --format json

exit codes:
  0  no findings that --fail-on covers, or no files differ
  1  findings that --fail-on covers
  2  unclear: no agent was left, the budget ran out, a finding is undecided, no model could be called, the diff is
     empty or incomplete, or a file couldn't be read
  4  interrupted
"""


class _Parser(Parser):
    def fault(self, given: argparse.Namespace, rest: Sequence[str]) -> str | None:
        """Also a file or a branch without its option."""
        if rest and not rest[0].startswith("-"):
            return f"{rest[0]} needs an option: --diff {rest[0]} for a file, --branch {rest[0]} for a branch"
        return super().fault(given, rest)


class ReviewVerb(Verb):
    description = "Let several models review a change, and other models refute or prove their findings."
    manual = MANUAL
    package = "massgen_mcp.cli.massgen.reviewing"
    codes = CODES_OF_REVIEW
    is_private = False
    parser = _Parser
    groups: ClassVar[ArgumentGroups] = {
        "the change": (
            argument("--diff", metavar="FILE", help="a unified diff; - reads it from standard input"),
            argument(
                "--branch",
                metavar="BASE",
                help="changes in this working tree since it branched off from BASE; default: the main branch",
            ),
            argument("--pr", metavar="N", type=whole_number, help="pull request N of the remote `origin`"),
            argument(
                "--text-only",
                action="store_true",
                help="review without showing agents files or running commands; --diff and --pr imply this",
            ),
            argument(
                "--evidence",
                metavar="FILE",
                type=Path,
                help="output from running the change, such as its test log",
            ),
        ),
        "the team": (
            argument("--config", "-c", metavar="PATH|@examples/NAME", help="the team"),
            argument(
                "--model",
                "-m",
                dest="models",
                metavar="MODEL,...",
                type=model_names,
                action="extend",
                default=[],
                help="one agent per model",
            ),
            argument(
                "--num-agents", metavar="N", type=whole_number, help="number of agents; models are assigned in turn"
            ),
            argument(
                "--max-usd",
                metavar="USD",
                type=dollars,
                help="budget for the whole review; default: the config's budget.max_usd",
            ),
        ),
        "output": (
            argument("--format", choices=get_args(Format), default="markdown", help="format of standard output"),
            argument("--json", dest="format", action="store_const", const="json", help="the same as --format json"),
            argument(
                "--output",
                "-o",
                metavar="FILE",
                dest="output_files",
                type=Path,
                action="append",
                default=[],
                help="also write the report to FILE (.md, .json or .sarif); can be repeated",
            ),
            argument(
                "--fail-on",
                choices=get_args(FailOn),
                default="blocker",
                help="exit with code 1 only for proven findings, or also for unrefuted ones of at least this severity; "
                "default: blocker",
            ),
            argument(
                "--previous",
                metavar="FILE",
                type=Path,
                help="previous report on this change; massgen doesn't repeat its findings",
            ),
            argument("--dry-run", action="store_true", help="show what would be reviewed, without calling a model"),
            argument("--no-logs", action="store_true", help="keep nothing on disk except the output files"),
            argument("--debug", "-v", action="store_true", help=argparse.SUPPRESS),
        ),
    }

    def find_contradiction(self, options: argparse.Namespace) -> str | None:
        if options.config and options.models:
            return "--config already names the team; leave out --config or --model"
        if options.num_agents is not None and not options.models:
            return "--num-agents needs --model"
        if options.diff is not None and (options.branch is not None or options.pr is not None):
            return "--diff already names the change; leave out --branch and --pr"
        for file in options.output_files:
            if file.suffix not in SUFFIXES:
                return f"--output {file}: the file name must end with one of {', '.join(SUFFIXES)}"
        options.team = Options(
            config=options.config, models=tuple(options.models), num_agents=options.num_agents, automation=True,
            no_logs=options.no_logs, debug=options.debug,
        )  # fmt: skip
        return None


VERBS: Sequence[Verb] = (ReviewVerb("review", "let several models review a change", work="review:review"),)
