"""Verbs that few people type."""

import sys
from collections.abc import Sequence
from typing import NoReturn

from massgen_mcp.cli.arguments import JSON, LOG_FORMAT, STORE, pool_names
from massgen_mcp.cli.command_line import argument, counting_number
from massgen_mcp.cli.commands import NAMES, load_verb
from massgen_mcp.cli.exits import EXIT_OK
from massgen_mcp.cli.manual import FIRST_HELP, format_manual
from massgen_mcp.cli.verb import Verb


class HelpVerb(Verb):
    def parse(self, words: Sequence[str]) -> NoReturn:
        """Show it at once and exit, as --help does: nothing else is needed for that."""
        topic = super().parse(words).topic
        if topic is None:
            sys.stdout.write(FIRST_HELP)
        elif topic == "all":
            sys.stdout.write(format_manual())
        else:
            load_verb(topic).make_parser().print_help()
        sys.exit(EXIT_OK)


VERBS: Sequence[Verb] = (
    Verb(
        "worker",
        "execute runs from a shared store (--store), using the keys in this environment",
        work="several_machines:work_on_runs",
        arguments=(
            argument(
                "--pools",
                metavar="NAMES",
                type=pool_names,
                default=("default",),
                help="pools to serve, separated by commas; default: the pool named default",
            ),
            argument(
                "--concurrency",
                metavar="N",
                type=counting_number,
                default=50,
                help="maximum number of parallel runs (50)",
            ),
            STORE,
            LOG_FORMAT,
        ),
    ),
    Verb(
        "store",
        "upgrade: convert a shared store for this version of massgen",
        work="several_machines:upgrade_store",
        arguments=(argument("action", metavar="ACTION", choices=["upgrade"], help="upgrade"), STORE),
    ),
    Verb(
        "check-adapter",
        "test an installed agent adapter",
        work="doctor:check_one_adapter",
        arguments=(JSON, argument("name", metavar="NAME", help="name of the adapter, as given in `type`")),
    ),
    Verb(
        "hook",
        "used by the hooks for Claude Code and Codex",
        arguments=(argument("directory", metavar="DIRECTORY", help="the plugin's data directory"),),
    ),
    HelpVerb(
        "help",
        "show help for everything (all) or for a verb",
        arguments=(argument("topic", metavar="all|VERB", nargs="?", choices=("all", *NAMES), help="what to show"),),
    ),
)
