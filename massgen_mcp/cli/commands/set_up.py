"""Verbs that set massgen up."""

import argparse

from massgen_mcp.cli.arguments import JSON, OF_CLIENT, variable_name
from massgen_mcp.cli.command_line import argument
from massgen_mcp.cli.verb import Verb


class DoctorVerb(Verb):
    name = "doctor"
    help = "check your setup: keys, model servers, runs, clients; say how to fix it"
    work = "doctor:check_setup"
    arguments = (
        JSON,
        argument(
            "--rebuild",
            action="store_true",
            help="first rebuild the list of runs from their directories, after runs.sqlite3 was lost or damaged",
        ),
        argument("--config", "-c", metavar="FILE", help="also try the checks of this config"),
    )


class ValidateVerb(Verb):
    name = "validate"
    help = "check a config: its errors, team, keys, what it asks for; --trust accepts it"
    work = "trust:validate_config"
    arguments = (
        JSON,
        argument(
            "path", metavar="FILE", nargs="?", help="the config, or its directory; else the one that is used here"
        ),
        argument("--trust", action="store_true", help="accept what it asks for, as it is now; a terminal asks"),
        argument("--try", dest="tries", action="store_true", help="try its checks on your files"),
        argument("--list", action="store_true", help="list what you accepted"),
        argument("--forget", metavar="PATH", help="take back what you accepted, with its keys"),
    )

    def find_contradiction(self, options: argparse.Namespace) -> str | None:
        if sum((options.path is not None, options.list, options.forget is not None)) > 1:
            return "use one of: FILE, --list, --forget PATH"
        if options.trust and options.path is None and not options.list and options.forget is None:
            return "--trust needs FILE, so that it is clear what is accepted; or use --list, --forget PATH"
        return None


class ConfigsVerb(Verb):
    name = "configs"
    help = "list the ready-made teams, or show one"
    work = "configs:run"
    arguments = (
        JSON,
        argument("name", metavar="NAME", nargs="?", help="show this one in full"),
        argument("--schema", action="store_true", help="print the JSON schema of a config, for editors"),
    )


class InstallVerb(Verb):
    name = "install"
    help = "add massgen to an MCP client, such as claude-code, codex or cursor"
    work = "install:install"
    arguments = (
        *OF_CLIENT,
        argument(
            "--key",
            metavar="VARIABLE",
            type=variable_name,
            action="append",
            default=[],
            help="also pass this variable on; those of known providers that are set here always are",
        ),
        argument("--hook", action="store_true", help="Codex only: add the hook that wakes it with the result of a run"),
        argument("--dry-run", dest="print", action="store_true", help="print the entry, write nothing"),
    )


class UninstallVerb(Verb):
    name = "uninstall"
    help = "remove massgen from an MCP client"
    work = "install:uninstall"
    arguments = OF_CLIENT


class DemoVerb(Verb):
    name = "demo"
    help = "see a whole run with scripted agents; needs no key"
    work = "demo:run"
