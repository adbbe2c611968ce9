"""Verbs that operate runs and servers."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from massgen_mcp.cli.arguments import JSON, LOG_FORMAT, OF_RUN_TO_CHANGE, STORE, TRUST, YES, amount, output
from massgen_mcp.cli.command_line import ArgumentGroups, argument, counting_number, whole_number
from massgen_mcp.cli.verb import Verb

OVER_HTTP = "with --transport http: one server for many clients"
OF_SERVER: ArgumentGroups = {
    "": (
        argument("--transport", choices=["stdio", "http"], default="stdio", help="how clients connect to the server"),
        STORE,
        LOG_FORMAT,
    ),
    OVER_HTTP: (
        argument("--host", metavar="ADDRESS", help="address to listen on (127.0.0.1); other addresses need a token"),
        argument("--port", metavar="N", type=whole_number, help="port to listen on; 0 (the default) picks a free one"),
        argument(
            "--token-file",
            type=Path,
            metavar="FILE",
            help="file with the bearer token; default: MASSGEN_MCP_HTTP_TOKEN",
        ),
        argument("--people", metavar="FILE", help="file that lists users, each with their own runs (docs/serving.md)"),
        argument("--pages", action="store_true", help="also serve runs as web pages to everyone who has a token"),
        argument(
            "--allowed-host",
            metavar="NAME",
            action="append",
            default=[],
            help="a host name that clients use for this server",
        ),
        argument(
            "--public-url",
            metavar="URL",
            help="the URL that clients use if the server is behind a proxy: https://HOST/mcp",
        ),
        argument(
            "--oauth-issuer", metavar="URL", help="accept tokens that this authorization server issues for --public-url"
        ),
        argument(
            "--oauth-subject", metavar="SUB", action="append", default=[], help="a token subject that may act as you"
        ),
        argument("--oauth-scope", metavar="SCOPE", action="append", default=[], help="required OAuth scope"),
        argument("--oauth-jwks-url", metavar="URL", help="the issuer's JWKS URL, if the issuer doesn't publish it"),
        argument("--oauth-introspection-url", metavar="URL", help="introspection URL, for opaque tokens (not JWTs)"),
    ),
}


class ServeVerb(Verb):
    groups = OF_SERVER

    def find_contradiction(self, options: argparse.Namespace) -> str | None:
        for (option, *_), _ in OF_SERVER[OVER_HTTP] if options.transport == "stdio" else ():
            if getattr(options, option.removeprefix("--").replace("-", "_")) not in (None, [], False):
                return f"{option} needs --transport http: massgen serve --transport http {option} ..."
        options.host, options.port = options.host or "127.0.0.1", options.port or 0
        options.front = None
        return None

    def run(self, options: argparse.Namespace) -> int:
        """Raises `MassgenError` when it cannot begin; a client that already talks to us is told, too."""
        from massgen_mcp.cli.output import print_error
        from massgen_mcp.errors import MassgenError

        if options.transport == "stdio":
            if sys.stdin.isatty():
                print_error(
                    "Waiting for an MCP client on standard input; press Ctrl-C to stop. Verbs: `massgen --help`"
                )
            from massgen_mcp.cli.massgen_mcp.early_start import answer_early

            options.front = answer_early()
        try:
            return super().run(options)
        except MassgenError as error:
            if options.front is not None:
                if not options.front.exit_code:
                    print_error(f"ERROR {error.code}: {error}")
                options.front.refuse(error.code, str(error), self.codes.of_error(error))
            raise


class PruneVerb(Verb):
    def find_contradiction(self, options: argparse.Namespace) -> str | None:
        if options.run_ids and options.older_than is not None:
            return "--older-than selects runs by age; leave out either --older-than or the IDs"
        return None


VERBS: Sequence[Verb] = (
    ServeVerb("serve", "run the MCP server over standard input and output, or over HTTP"),
    Verb(
        "web",
        "show runs in your browser, where you can also start, steer and apply them",
        arguments=(
            JSON,
            argument(
                "--port",
                metavar="N",
                dest="web_port",
                type=whole_number,
                default=0,
                help="port to listen on; default: a free one",
            ),
            argument("--open", action="store_true", help="open the page in the browser"),
            STORE,
        ),
    ),
    Verb("acp", "run as an agent inside an editor (Agent Client Protocol)"),
    Verb(
        "export",
        "export a run to one file, for import into another store",
        work="moving:export_run",
        changes_run=True,
        arguments=(*OF_RUN_TO_CHANGE, YES, output("file to write; default: ID.tar.gz in this directory", dest="to")),
    ),
    Verb(
        "import",
        "import an exported run; if it hadn't ended, it continues here",
        work="moving:import_run",
        arguments=(
            JSON,
            argument("file", metavar="FILE", type=Path, help="a file that `massgen export` wrote"),
            argument(
                "--back",
                action="store_true",
                help="import a run back into the store that exported it; needs --yes",
            ),
            argument("--yes", "-y", action="store_true", help="import the run even if another store may continue it"),
            argument("--owner", metavar="NAME", help="the server user who will own the run; '' for none"),
            TRUST,
            STORE,
        ),
    ),
    PruneVerb(
        "prune",
        "delete old workspaces and results, or runs that you name",
        arguments=(
            JSON,
            argument(
                "run_ids",
                metavar="ID",
                nargs="*",
                help="delete these runs, including runs stored in project directories",
            ),
            argument("--dry-run", action="store_true", help="show what would be deleted, without deleting it"),
            argument(
                "--older-than",
                type=amount,
                metavar="DAYS",
                help="delete runs older than this, ignoring the usual limits; not allowed with ID",
            ),
            STORE,
        ),
    ),
    Verb(
        "prices",
        "show the current price list, or load a newer one",
        arguments=(
            JSON,
            argument("--from", dest="source", metavar="FILE|URL", help="load this list and use it from now on"),
            argument("--installed", action="store_true", help="return to the installed list"),
        ),
    ),
    Verb(
        "audit",
        "show which server user started, steered or applied each run, newest first",
        arguments=(
            JSON,
            argument("--person", metavar="NAME", help="only this user's actions"),
            argument("--run", metavar="ID", help="only actions on this run"),
            argument("--limit", type=counting_number, default=100, metavar="N", help="list at most N actions (100)"),
            STORE,
        ),
    ),
)
