"""Verbs that show runs."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from massgen_mcp.cli.arguments import JSON, KIND, OF_RUN, OPEN, SINCE, STORE, TIMEOUT, VIEWS, output, set_of_names
from massgen_mcp.cli.command_line import argument, counting_number
from massgen_mcp.cli.verb import Verb
from massgen_mcp.run_state.status import RunStatus


class WatchVerb(Verb):
    def find_contradiction(self, options: argparse.Namespace) -> str | None:
        if options.json and options.plain:
            return "--json prints events, --plain prints sentences; use only one of them"
        return None


class ResultVerb(Verb):
    def find_contradiction(self, options: argparse.Namespace) -> str | None:
        options.page = options.page or options.open or options.redact or options.output is not None
        if options.page and (options.view or options.agent):
            return "--page shows the whole run; leave out --view and --agent"
        if options.agent is not None and options.view not in (None, "diff"):
            return "--agent shows one agent's answer, or its patch with --view diff; leave out other views"
        return None

    def run(self, options: argparse.Namespace) -> int:
        self.work = "pages:write_report" if options.page else self.work
        return super().run(options)


VERBS: Sequence[Verb] = (
    Verb(
        "runs",
        "list runs, newest first",
        work="status:list_runs",
        arguments=(
            JSON,
            argument("--state", choices=get_args(RunStatus), help="only runs in this state"),
            argument("--session", "-s", metavar="NAME", help="only turns in this session"),
            argument("--sessions", action="store_true", help="list this directory's sessions instead"),
            SINCE,
            KIND,
            argument("--limit", type=counting_number, default=20, metavar="N", help="list at most N runs (20)"),
            STORE,
        ),
    ),
    Verb("status", "show what a run is doing now", work="watch:follow_run", arguments=OF_RUN),
    WatchVerb(
        "watch",
        "follow a run live; the run continues when you leave",
        work="watch:follow_run",
        arguments=(
            *OF_RUN,
            argument(
                "--plain", action="store_true", help="print sentences instead of the live view, for screen readers"
            ),
        ),
    ),
    Verb("wait", "wait until a run ends or needs an answer", work="watch:follow_run", arguments=(*OF_RUN, TIMEOUT)),
    ResultVerb(
        "result",
        "show a run's answer, winner and votes, or write its HTML page",
        work="result:show_result",
        arguments=(
            *OF_RUN,
            argument("--view", choices=VIEWS, help="summary (default), full (all answers), votes, or diff (the patch)"),
            argument("--agent", metavar="NAME", help="show one agent's latest answer, or its patch with --view diff"),
            argument("--page", action="store_true", help="write the run's report.html and print its path"),
            output("write the page to FILE"),
            argument(
                "--redact",
                action="store_true",
                help="with --page: leave out everything that people, models and tools wrote",
            ),
            OPEN,
        ),
    ),
    Verb(
        "stats",
        "show statistics of all finished runs: outcomes, costs, wins and how often models agree",
        work="pages:show_statistics",
        arguments=(
            JSON,
            SINCE,
            KIND,
            argument(
                "--models",
                dest="team",
                type=set_of_names,
                metavar="MODELS",
                help="only runs with exactly these models, separated by commas",
            ),
            argument(
                "--config",
                "-c",
                metavar="NAME",
                help="only runs that used the config with this name, as shown by `massgen runs --json`",
            ),
            argument("--model", "-m", metavar="MODEL", help="only runs with this model"),
            argument(
                "--page", dest="html", action="store_const", const=Path(), help="write an HTML page and print its path"
            ),
            output("write the page to FILE", dest="html"),
            argument("--html", dest="html", metavar="FILE", type=Path, nargs="?", const=Path(), help=argparse.SUPPRESS),
            OPEN,
            STORE,
        ),
    ),
)
