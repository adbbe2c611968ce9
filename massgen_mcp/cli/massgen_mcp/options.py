"""The command line of `massgen-mcp`: its verbs and what each of them takes."""

import argparse
import re
import shlex
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import get_args

from massgen_mcp import __version__
from massgen_mcp.cli.command_line import (
    SHELLS,
    Manual,
    Parser,
    PrintCompletion,
    answer_shell,
    counting_number,
    whole_number,
)
from massgen_mcp.cli.exits import EXIT_USAGE
from massgen_mcp.cli.massgen_mcp.install.clients import CLIENTS, SCOPES
from massgen_mcp.cli.verbs import VERBS, WORDS_FROM_ELSEWHERE
from massgen_mcp.run_state.status import RunStatus

MANUAL = """
Without a verb it serves MCP, over standard input and output unless told otherwise. The verbs look at the same runs as \
the tools of the server, also while the server or its client is gone. With --json a verb prints one document with the \
fields of the tool's result (watch: one event per line), and an error leaves standard output empty. `massgen-mcp VERB \
--help` tells what a verb takes.

examples:
  massgen-mcp demo
  massgen-mcp runs --state running
  massgen-mcp wait 7f3a --timeout 600 && massgen-mcp result 7f3a
  massgen-mcp result 7f3a --json | jq -r .answer
  massgen-mcp install claude-code
  massgen-mcp --transport http --port 8765

exit codes:
  0    done; of wait, watch and result: the run is completed
  1    the run failed, was cancelled or ran out of time; or the request was refused, as apply with conflicts
  2    of wait, watch, result, apply and cancel: the run has not ended yet
  3    there is no such run (any more), or the beginning of the id fits several
  4    of wait, watch and result: the run needs an answer (or, interrupted, its keys) before it can go on
  5    the run store, the run's record or this program failed
  64   the command line is wrong
  130  stopped by Ctrl-C; runs go on

environment:
  *_API_KEY         keys of the providers; each client's runs use its own
  MASSGEN_MCP_HOME  the state directory; an absolute path
  MASSGEN_MCP_RUNNER_IDLE_SECONDS  how long a runner without runs stays (60)
  MASSGEN_MCP_MAX_RUNNING  runs at once, of all processes together (50)
  MASSGEN_MCP_MAX_QUEUED  runs that may wait (1000)
  MASSGEN_MCP_KEEP_RESULTS_DAYS  days after its end that a run is kept (7)
  MASSGEN_MCP_KEEP_WORKSPACES_HOURS  hours after its end that a run's workspaces are kept (24)
  MASSGEN_MCP_STORE  as --store: runs are kept in PostgreSQL, and `massgen-mcp worker` executes them
  MASSGEN_MCP_FILES  where files of these runs are: s3://..., gs://..., az://..., or a directory that all mount
  MASSGEN_MCP_GIT_HOSTS  from where workers may clone: HOST or HOST=TOKEN, with blanks between them
  MASSGEN_MCP_POOL  for whose workers runs are that are started here (default)
  MASSGEN_MCP_HTTP_TOKEN  the bearer token of --transport http
  MASSGEN_MCP_PEOPLE  as --people, or the text of such a file
  MASSGEN_MCP_WEBHOOKS, MASSGEN_MCP_WEBHOOK_SECRET  URLs that hear of the end of runs, and what signs it
  MASSGEN_MCP_OAUTH_CLIENT_ID  for --oauth-introspection-url, and to sign in to --pages
  MASSGEN_MCP_OAUTH_CLIENT_SECRET  for the same
  NO_COLOR          no colours
  COLUMNS           width of this text

files:
  ~/.local/state/massgen-mcp/  the state directory (Linux; elsewhere where the system keeps state), private to you
  runs/<run id>/               in it, one directory per run: events, status, log, every answer, the final one
  runs.sqlite3                 in it, which runs there are
"""

HTTP_OPTIONS = (
    "host",
    "port",
    "token_file",
    "people",
    "pages",
    "allowed_host",
    "public_url",
    "oauth_issuer",
    "oauth_subject",
    "oauth_scope",
    "oauth_jwks_url",
    "oauth_introspection_url",
)
ASKING = ("ask", "run")
"""What people try who want to ask something."""
VIEWS = ("summary", "full", "votes", "diff")


class _Parser(Parser):
    """A wrong command line has an exit code of its own, because 2 is what `wait` says of a run that goes on."""

    exit_code = EXIT_USAGE

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.dest == "verb" and (" " in str(value) or value in ASKING):
            question = '"QUESTION"' if value in ASKING else shlex.quote(str(value)[:80])
            self.error(f"there is no such verb; {how_to_ask(question)}")
        if action.dest == "verb" and (meant := WORDS_FROM_ELSEWHERE.get(str(value))):
            self.error(f"there is no such verb; {meant}")
        super()._check_value(action, value)


def how_to_ask(question: str) -> str:
    """How one asks on this machine."""
    return f"massgen {question} asks a team, massgen --background {question} lets it go on"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What was given; `verb` is `serve` when none was. Exits for --help, --version and whatever is wrong."""
    parser = make_parser()
    answer_shell(parser)
    options = parser.parse(arguments)
    options.verb = options.verb or "serve"
    if options.verb == "serve" and options.transport == "stdio":
        for option in HTTP_OPTIONS:
            if getattr(options, option) not in (None, [], False):
                parser.error(f"--{option.replace('_', '-')} goes with --transport http")
    _check_together(parser.of_verb(options), options)
    options.host, options.port = options.host or "127.0.0.1", options.port or 0
    return options


def _check_together(parser: Parser, given: argparse.Namespace) -> None:
    """Refuses options of a verb that contradict each other."""
    match given.verb:
        case "apply" if given.undo and (given.branch is not None or given.paths or given.agent is not None):
            parser.error("--undo takes back all that was applied last; not with --agent, --branch, --paths")
        case "apply" if given.all and (given.branch is None or given.paths or given.agent is not None):
            parser.error("--all puts each agent's changes on --branch NAME/AGENT; not with --agent, --paths, --undo")
        case "mark" if given.verdict is None and not given.undo:
            parser.error("VERDICT is missing: right or wrong; or give --undo")
        case "prune" if given.run_ids and given.older_than is not None:
            parser.error("--older-than is for runs that are not named; it does not go with ID")
        case "result" if given.agent is not None and given.view not in (None, "diff"):
            parser.error("--agent shows the answer of one agent, or with --view diff its patch")
        case "trust" if sum((given.path is not None, given.list, given.forget is not None)) != 1:
            parser.error("give one of: PATH, --list, --forget PATH")
        case "watch" if given.json and given.plain:
            parser.error("--json prints events, --plain sentences; leave one of them out")
        case _:
            pass


def make_parser() -> Parser:
    parser = _Parser(
        prog="massgen-mcp",
        description="Serve MCP tools that delegate a hard question to a team of LLM agents, and operate their runs.",
        epilog=MANUAL,
        formatter_class=Manual,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--transport", choices=["stdio", "http"], default="stdio", help="how clients reach the server")
    _add_http(parser)
    parser.add_argument(
        "--completion", action=PrintCompletion, choices=SHELLS, help="print completion code, to be evaluated by a shell"
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser)

    def plain_verb(name: str) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=VERBS[name], description=VERBS[name], allow_abbrev=False)

    def verb(name: str) -> argparse.ArgumentParser:
        made = plain_verb(name)
        made.add_argument("--json", action="store_true", help="one JSON document on standard output")
        return made

    def about_run(name: str) -> argparse.ArgumentParser:
        made = verb(name)
        made.add_argument("run_id", metavar="ID", help="the run's id, or the beginning of it that no other run has")
        return made

    plain_verb("demo")
    meant = "first make the list of runs again from their directories, after runs.sqlite3 was lost or damaged"
    made = verb("doctor")
    made.add_argument("--rebuild", action="store_true", help=meant)
    made.add_argument("--config", metavar="FILE", help="try the checks of this config; else of the one that is found")
    for name in ("install", "uninstall"):
        made = verb(name)
        made.add_argument("client", metavar="CLIENT", choices=CLIENTS, help=", ".join(CLIENTS))
        made.add_argument("--scope", choices=SCOPES, default="user", help="for all your projects, or this one (user)")
        made.add_argument("--name", metavar="ENTRY", type=_entry_name, default="massgen", help="of the entry (massgen)")
        if name == "install":
            meant = "pass this variable on, too; those of known providers that are set here always are"
            made.add_argument("--key", metavar="VARIABLE", type=_variable, action="append", default=[], help=meant)
            made.add_argument("--print", "--dry-run", action="store_true", help="print the entry, write nothing")
    plain_verb("acp")
    verb("check-adapter").add_argument("name", metavar="NAME", help="the adapter's, as `type` names it")
    configs = verb("configs")
    configs.add_argument("name", metavar="NAME", nargs="?", help="show this one in full")
    configs.add_argument("--schema", action="store_true", help="print the JSON schema of a config, for editors")
    trust = verb("trust")
    trust.add_argument("path", metavar="PATH", nargs="?", help="the config, or the directory in whose .massgen it is")
    trust.add_argument("--list", action="store_true", help="list what was accepted")
    trust.add_argument("--forget", metavar="PATH", help="take back what was accepted, with its keys")
    start = verb("start")
    start.add_argument("question", metavar="QUESTION", help="the whole task")
    start.add_argument("--config", metavar="FILE", help="the team, as massgen finds it")
    start.add_argument("--model", metavar="MODEL", action="append", default=[], help="one agent each, as backend/model")
    meant = "upload this directory: agents change copies, and massgen-mcp apply brings changes back here"
    start.add_argument("--context", metavar="DIR", type=Path, action="append", default=[], help=meant)
    start.add_argument("--check", metavar="COMMAND", action="append", default=[], help="a command that tests changes")
    start.add_argument("--max-usd", metavar="USD", type=_float_argument, help="budget, in US dollars")
    start.add_argument("--idempotency-key", metavar="KEY", help="same key and request: same run")
    runs = verb("runs")
    runs.add_argument("--state", choices=get_args(RunStatus), help="only runs in this state")
    runs.add_argument("--session", metavar="NAME", help="only turns of this session")
    runs.add_argument("--since", type=_moment, metavar="WHEN", help="only runs started since: 2026-11-21, 36h, 7d")
    runs.add_argument("--limit", type=counting_number, default=20, metavar="N", help="at most so many (20)")
    about_run("status")
    wait = about_run("wait")
    wait.add_argument(
        "--timeout", type=_float_argument, metavar="SECONDS", help="wait no longer than this; default: no limit"
    )
    watch = about_run("watch")
    watch.add_argument("--plain", action="store_true", help="sentences instead of the live view, for screen readers")
    result = about_run("result")
    result.add_argument(
        "--view",
        choices=VIEWS,
        help="full: every answer; votes: no answer; diff: the patch (summary)",
    )
    result.add_argument(
        "--agent",
        metavar="NAME",
        help="the latest answer of one agent, by the id of its config; with --view diff its patch",
    )
    report = about_run("report")
    report.add_argument("--open", action="store_true", help="open it in the browser")
    report.add_argument("--output", metavar="FILE", type=Path, help="write it to this file")
    report.add_argument(
        "--redact", action="store_true", help="leave out everything that people, models and tools wrote"
    )
    apply = about_run("apply")
    apply.add_argument("--dry-run", action="store_true", help="only say what would be changed")
    apply.add_argument("--agent", metavar="NAME", help="what this agent changed, instead of the winner")
    only = "only what was changed at these paths; PATH#2 is the second hunk of a file in the shown diff"
    apply.add_argument("--paths", metavar="PATH", nargs="+", default=[], help=only)
    apply.add_argument("--branch", metavar="NAME", help="commit it to this new branch, and leave the files alone")
    apply.add_argument("--all", action="store_true", help="with --branch: a branch NAME/AGENT for each agent's changes")
    meant = "where on this machine the run's directory is, if it was another machine's or a clone"
    apply.add_argument("--directory", metavar="DIR", type=Path, help=meant)
    apply.add_argument("--undo", action="store_true", help="take back what was applied last")
    mark = about_run("mark")
    mark.add_argument("verdict", metavar="VERDICT", nargs="?", choices=["right", "wrong"], help="right or wrong")
    mark.add_argument("--agent", metavar="NAME", help="what this agent said, by the id of its config")
    mark.add_argument("--note", metavar="TEXT", help="why")
    mark.add_argument("--undo", action="store_true", help="take back what was noted")
    answer = about_run("answer")
    answer.add_argument("text", metavar="TEXT", help="the answer")
    more = about_run("raise-budget")
    more.add_argument("usd", metavar="USD", type=_float_argument, help="the new max_usd, in US dollars")
    about_run("resume")
    about_run("cancel")
    stats = verb("stats")
    stats.add_argument("--since", type=_moment, metavar="WHEN", help="only runs started since: 2026-11-21, 36h, 7d")
    stats.add_argument("--team", type=_model_names, metavar="MODELS", help="only runs of exactly these models: a,b")
    stats.add_argument("--config", metavar="NAME", help="only runs of this config, in the words of `runs --json`")
    stats.add_argument("--model", metavar="MODEL", help="only runs in which this model took part")
    meant = "write them as a page, to FILE or into the state directory, and name it"
    stats.add_argument("--html", metavar="FILE", type=Path, nargs="?", const=Path(), help=meant)
    stats.add_argument("--open", action="store_true", help="write the page, and open it in the browser")
    web = verb("web")
    web.add_argument(
        "--port", metavar="N", dest="web_port", type=whole_number, default=0, help="port to listen on; else a free one"
    )
    web.add_argument("--open", action="store_true", help="open it in the browser")
    export = about_run("export")
    export.add_argument("--to", metavar="FILE", type=Path, help="a new file (ID.tar.gz, here)")
    taken = verb("import")
    taken.add_argument("file", metavar="FILE", type=Path, help="what export has written")
    meant = "also a run that left this store as this file, and was imported nowhere else"
    taken.add_argument("--back", action="store_true", help=meant)
    taken.add_argument("--owner", metavar="NAME", help="whose it is here, of the people on a server; '' for nobody's")
    audit = verb("audit")
    audit.add_argument("--person", metavar="NAME", help="only what this one did")
    audit.add_argument("--run", metavar="ID", help="only what was done to this run")
    audit.add_argument("--limit", type=counting_number, default=100, metavar="N", help="at most so many (100)")
    prune = verb("prune")
    prune.add_argument("run_ids", metavar="ID", nargs="*", help="delete these runs, wherever they lie")
    prune.add_argument("--dry-run", action="store_true", help="only say what would be deleted")
    prune.add_argument(
        "--older-than", type=_float_argument, metavar="DAYS", help="in place of both limits; not with ID"
    )
    worker = plain_verb("worker")
    worker.add_argument(
        "--pools", metavar="NAMES", type=_names_argument, default=("default",), help="serve these: a,b (default)"
    )
    worker.add_argument("--concurrency", metavar="N", type=counting_number, default=50, help="runs at once (50)")
    store = plain_verb("store")
    store.add_argument("action", metavar="ACTION", choices=["upgrade"], help="upgrade")
    for made in (parser, start, apply, export, taken, worker, store):
        meant = "where runs are kept: postgresql://...; without a password here, as everybody can see it (unset)"
        made.add_argument("--store", metavar="URL", default=argparse.SUPPRESS, help=meant)
    for made in (parser, worker):
        meant = "how what is told on standard error looks (text)"
        made.add_argument("--log-format", choices=["text", "json"], default="text", help=meant)
    plain_verb("hook").add_argument("directory", metavar="DIRECTORY", help="where the plugin keeps its data")
    return parser


def _add_http(parser: argparse.ArgumentParser) -> None:
    http = parser.add_argument_group("with --transport http", "one server for many clients")
    http.add_argument("--host", metavar="ADDRESS", help="address to listen on (127.0.0.1); any other needs a token")
    http.add_argument("--port", metavar="N", type=whole_number, help="port to listen on; without it, or 0, a free one")
    http.add_argument("--token-file", type=Path, metavar="FILE", help="the bearer token; else MASSGEN_MCP_HTTP_TOKEN")
    http.add_argument("--people", metavar="FILE", help="who may come, each with runs of his own (docs/serving.md)")
    http.add_argument("--pages", action="store_true", help="show runs in browsers, too, to whoever has a token")
    http.add_argument(
        "--allowed-host", metavar="NAME", action="append", default=[], help="a name that clients call it by"
    )
    http.add_argument(
        "--public-url", metavar="URL", help="what clients call it, with a proxy before it: https://HOST/mcp"
    )
    http.add_argument("--oauth-issuer", metavar="URL", help="take tokens of this authorization server for --public-url")
    http.add_argument("--oauth-subject", metavar="SUB", action="append", default=[], help="who may come; acts as you")
    http.add_argument(
        "--oauth-scope", metavar="SCOPE", action="append", default=[], help="what a token must be good for"
    )
    http.add_argument("--oauth-jwks-url", metavar="URL", help="the issuer's keys, where it does not say that itself")
    http.add_argument("--oauth-introspection-url", metavar="URL", help="ask there about tokens that are not signed")


def _entry_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", text):
        raise argparse.ArgumentTypeError("expected letters, digits, - and _")
    return text


def _variable(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise argparse.ArgumentTypeError("expected the name of a variable, never its value")
    return text


def _model_names(text: str) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in text.split(","))))


def _names_argument(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, text.split(",")))
    if not names or not all(re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name) for name in names):
        raise argparse.ArgumentTypeError("expected names of small letters, digits, - and _, with commas between them")
    return names


def _moment(text: str) -> float:
    """Seconds since the epoch, of a day or time in ISO form (local unless it says otherwise), or of some time ago."""
    if ago := re.fullmatch(r"(\d{1,6})([mhd])", text):
        return time.time() - int(ago[1]) * {"m": 60, "h": 3600, "d": 86_400}[ago[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError("expected a day such as 2026-11-21, or a time ago such as 36h or 7d") from None


def _float_argument(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError("expected a number, 0 or more")
    return number
