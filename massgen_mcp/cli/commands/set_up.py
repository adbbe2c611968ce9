"""Verbs that set massgen up."""

import argparse
from collections.abc import Sequence

from massgen_mcp.cli.arguments import JSON
from massgen_mcp.cli.command_line import argument, make_pattern_type
from massgen_mcp.cli.massgen_mcp.install.clients import CLIENTS, SCOPES
from massgen_mcp.cli.verb import Verb

variable_name = make_pattern_type(r"[A-Za-z_][A-Za-z0-9_]*", "the name of an environment variable, not its value")
_entry_name = make_pattern_type(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", "letters, digits, - and _")
OF_CLIENT = (
    JSON,
    argument("client", metavar="CLIENT", choices=CLIENTS, help=", ".join(CLIENTS)),
    argument(
        "--scope", choices=SCOPES, default="user", help="install for all your projects (user) or this one (project)"
    ),
    argument(
        "--name",
        metavar="ENTRY",
        type=_entry_name,
        default="massgen",
        help="name of the entry in the client's settings (massgen)",
    ),
)


class ValidateVerb(Verb):
    def find_contradiction(self, options: argparse.Namespace) -> str | None:
        if sum((options.path is not None, options.list, options.forget is not None)) > 1:
            return "use one of: FILE, --list, --forget PATH"
        if options.trust and options.path is None and not options.list and options.forget is None:
            return "--trust needs FILE: name the config whose permissions you accept"
        return None


VERBS: Sequence[Verb] = (
    Verb(
        "doctor",
        "check your setup (keys, model servers, runs, clients) and suggest fixes",
        work="doctor:check_setup",
        arguments=(
            JSON,
            argument(
                "--rebuild",
                action="store_true",
                help="first rebuild the list of runs from their directories, if runs.sqlite3 was lost or damaged",
            ),
            argument("--config", "-c", metavar="FILE", help="also try this config's checks"),
        ),
    ),
    ValidateVerb(
        "validate",
        "check a config and show its team, keys and permissions; --trust accepts the permissions",
        work="trust:validate_config",
        arguments=(
            JSON,
            argument(
                "path",
                metavar="FILE",
                nargs="?",
                help="the config or its directory; default: the config for this directory",
            ),
            argument(
                "--trust",
                action="store_true",
                help="accept the config's current permissions; in a terminal, massgen asks first",
            ),
            argument("--try", dest="tries", action="store_true", help="try the config's checks on your files"),
            argument("--list", action="store_true", help="list the configs that you have accepted"),
            argument("--forget", metavar="PATH", help="revoke your consent to this config and to its use of keys"),
        ),
    ),
    Verb(
        "configs",
        "list ready-made teams, or show one",
        arguments=(
            JSON,
            argument("name", metavar="NAME", nargs="?", help="show this team in full"),
            argument("--schema", action="store_true", help="print the JSON schema of configs, for editors"),
        ),
    ),
    Verb(
        "install",
        "add massgen to an MCP client, such as claude-code, codex or cursor",
        work="install:install",
        arguments=(
            *OF_CLIENT,
            argument(
                "--key",
                metavar="VARIABLE",
                type=variable_name,
                action="append",
                default=[],
                help="also pass this environment variable to the server; provider keys set here are always passed",
            ),
            argument(
                "--hook",
                action="store_true",
                help="Codex only: add a hook that gives Codex a run's result when the run ends",
            ),
            argument("--dry-run", dest="print", action="store_true", help="print the entry without writing it"),
        ),
    ),
    Verb("uninstall", "remove massgen from an MCP client", work="install:uninstall", arguments=OF_CLIENT),
    Verb("demo", "watch a complete run with scripted agents; no key needed"),
)
