"""Verbs that decide about a run."""

import argparse
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from massgen_mcp.cli.arguments import OF_RUN_TO_CHANGE, TRUST, VERDICTS, YES, amount, output
from massgen_mcp.cli.command_line import argument
from massgen_mcp.cli.exits import CODES_OF_QUESTION
from massgen_mcp.cli.verb import Verb, run_async


class ApplyVerb(Verb):
    def find_contradiction(self, options: argparse.Namespace) -> str | None:
        if options.undo and (options.branch is not None or options.paths or options.agent is not None):
            return "--undo undoes the whole last apply; leave out --agent, --branch and --paths"
        if options.all and (options.branch is None or options.paths or options.agent is not None):
            return "--all commits each agent's changes to --branch NAME/AGENT; leave out --agent, --paths and --undo"
        return None


class MarkVerb(Verb):
    def find_contradiction(self, options: argparse.Namespace) -> str | None:
        if options.verdict is None and options.run_id in VERDICTS:
            options.run_id, options.verdict = None, options.run_id
        if options.verdict is None and not options.undo:
            return "VERDICT is missing; add `right` or `wrong`, or pass --undo"
        return None


class ResumeVerb(Verb):
    def find_contradiction(self, options: argparse.Namespace) -> str | None:
        if options.here:
            self.codes, self.is_private, self.changes_run = CODES_OF_QUESTION, False, False
        if options.here and (options.trust is not None or options.json):
            return "--here keeps the run's original settings; leave out --trust and --json"
        if not options.here and (options.automation or options.apply or options.output_file or options.debug):
            return "--automation, --apply, --output and --debug work only with --here"
        return None

    def run(self, options: argparse.Namespace) -> int:
        if not options.here:
            return super().run(options)
        from massgen_mcp.cli.massgen.one_run import continue_run
        from massgen_mcp.cli.massgen.options import Options

        known = {one.name for one in fields(Options)}
        given = {name: value for name, value in vars(options).items() if name in known}
        return run_async(continue_run, Options(**given, resume=options.run_id or ""))


VERBS: Sequence[Verb] = (
    ApplyVerb(
        "apply",
        "apply a run's changes to your files, all or nothing",
        changes_run=True,
        arguments=(
            *OF_RUN_TO_CHANGE,
            YES,
            argument("--dry-run", action="store_true", help="show what would change, without changing it"),
            argument("--agent", metavar="NAME", help="apply this agent's changes instead of the winner's"),
            argument(
                "--paths",
                metavar="PATH",
                nargs="+",
                default=[],
                help="apply only changes to these paths; PATH#2 selects only the second hunk of that file's diff",
            ),
            argument(
                "--branch", metavar="NAME", help="commit the changes to this new branch; your files stay unchanged"
            ),
            argument(
                "--all", action="store_true", help="with --branch: create a branch NAME/AGENT for each agent's changes"
            ),
            argument(
                "--directory",
                metavar="DIR",
                type=Path,
                help="your copy of the directory that the run worked in, if the run was on another machine or in a "
                "clone",
            ),
            argument("--undo", action="store_true", help="undo the last apply"),
        ),
    ),
    Verb(
        "answer",
        "answer a run's question",
        work="controls:control_run",
        changes_run=True,
        arguments=(*OF_RUN_TO_CHANGE, YES, argument("text", metavar="TEXT", help="the answer")),
    ),
    Verb(
        "raise-budget",
        "raise a run's budget, even if the run is already waiting for more",
        work="controls:control_run",
        changes_run=True,
        arguments=(
            *OF_RUN_TO_CHANGE,
            YES,
            argument("usd", metavar="USD", type=amount, help="new max_usd in US dollars"),
        ),
    ),
    MarkVerb(
        "mark",
        "record whether a run's answer was right or wrong, for the statistics",
        work="controls:mark_run",
        changes_run=True,
        arguments=(
            *OF_RUN_TO_CHANGE,
            YES,
            argument("verdict", metavar="VERDICT", nargs="?", choices=VERDICTS, help="right or wrong"),
            argument("--agent", metavar="NAME", help="mark this agent's answer"),
            argument("--note", metavar="TEXT", help="why"),
            argument("--undo", action="store_true", help="remove the mark"),
        ),
    ),
    Verb(
        "cancel",
        "stop a run, keeping its best answer",
        work="controls:control_run",
        changes_run=True,
        arguments=(*OF_RUN_TO_CHANGE, YES),
    ),
    ResumeVerb(
        "resume",
        "continue an interrupted run, using the keys in this environment",
        work="controls:control_run",
        changes_run=True,
        arguments=(
            *OF_RUN_TO_CHANGE,
            YES,
            TRUST,
            argument("--here", action="store_true", help="continue the run in this process and show it"),
            argument(
                "--automation", action="store_true", help="with --here: print the same lines as `massgen --automation`"
            ),
            argument("--apply", action="store_true", help="with --here: apply the run's changes without asking"),
            output("with --here: also write the final answer to FILE", dest="output_file"),
            argument("--debug", "-v", action="store_true", help="with --here: show every log line"),
            argument("--no-display", action="store_true", help=argparse.SUPPRESS),
        ),
    ),
)
