"""The command line of `massgen-mcp`: its verbs and what each of them takes."""

import argparse
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import get_args

from massgen_mcp.cli.command_line import (
    AS_IT_IS,
    OF_EVERY_PROGRAM,
    ArgumentGroups,
    CommandArgument,
    Parser,
    answer_shell,
    argument,
    counting_number,
    trust_argument,
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
        for (option, *_), _ in OF_THE_SERVER[OVER_HTTP]:
            if getattr(options, option.removeprefix("--").replace("-", "_")) not in (None, [], False):
                parser.error(f"{option} goes with --transport http")
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


def _written_like(pattern: str, expected: str) -> Callable[[str], str]:
    def checked(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise argparse.ArgumentTypeError(f"expected {expected}")
        return text

    return checked


_ENTRY_NAME = _written_like(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", "letters, digits, - and _")
_VARIABLE = _written_like(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable, never its value")


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


JSON = argument("--json", action="store_true", help="one JSON document on standard output")
RUN = argument("run_id", metavar="ID", help="the run's id, or the beginning of it that no other run has")
TRUST = argument(
    "--trust",
    metavar="DIGEST",
    nargs="?",
    type=trust_argument,
    const=AS_IT_IS,
    help="accept what an imported run asks for, as it is now or if it has this digest",
)
OF_RUN = (JSON, RUN)
SINCE = argument("--since", type=_moment, metavar="WHEN", help="only runs started since: 2026-11-21, 36h, 7d")
STORE = argument(
    "--store",
    metavar="URL",
    default=argparse.SUPPRESS,
    help="where runs are kept: postgresql://...; without a password here, as everybody can see it (unset)",
)
LOG_FORMAT = argument(
    "--log-format",
    choices=["text", "json"],
    default="text",
    help="how what is told on standard error looks (text)",
)
OF_CLIENT = (
    JSON,
    argument("client", metavar="CLIENT", choices=CLIENTS, help=", ".join(CLIENTS)),
    argument("--scope", choices=SCOPES, default="user", help="for all your projects, or this one (user)"),
    argument("--name", metavar="ENTRY", type=_ENTRY_NAME, default="massgen", help="of the entry (massgen)"),
)

OVER_HTTP = "with --transport http, one server for many clients"
OF_THE_SERVER: ArgumentGroups = {
    "": (
        *OF_EVERY_PROGRAM,
        argument("--transport", choices=["stdio", "http"], default="stdio", help="how clients reach the server"),
        STORE,
        LOG_FORMAT,
    ),
    OVER_HTTP: (
        argument("--host", metavar="ADDRESS", help="address to listen on (127.0.0.1); any other needs a token"),
        argument("--port", metavar="N", type=whole_number, help="port to listen on; without it, or 0, a free one"),
        argument("--token-file", type=Path, metavar="FILE", help="the bearer token; else MASSGEN_MCP_HTTP_TOKEN"),
        argument("--people", metavar="FILE", help="who may come, each with runs of his own (docs/serving.md)"),
        argument("--pages", action="store_true", help="show runs in browsers, too, to whoever has a token"),
        argument("--allowed-host", metavar="NAME", action="append", default=[], help="a name that clients call it by"),
        argument("--public-url", metavar="URL", help="what clients call it, with a proxy before it: https://HOST/mcp"),
        argument("--oauth-issuer", metavar="URL", help="take tokens of this authorization server for --public-url"),
        argument("--oauth-subject", metavar="SUB", action="append", default=[], help="who may come; acts as you"),
        argument("--oauth-scope", metavar="SCOPE", action="append", default=[], help="what a token must be good for"),
        argument("--oauth-jwks-url", metavar="URL", help="the issuer's keys, where it does not say that itself"),
        argument("--oauth-introspection-url", metavar="URL", help="ask there about tokens that are not signed"),
    ),
}

OF_VERBS: Mapping[str, Sequence[CommandArgument]] = {
    "demo": (),
    "doctor": (
        JSON,
        argument(
            "--rebuild",
            action="store_true",
            help="first make the list of runs again from their directories, after runs.sqlite3 was lost or damaged",
        ),
        argument("--config", metavar="FILE", help="try the checks of this config; else of the one that is found"),
    ),
    "install": (
        *OF_CLIENT,
        argument(
            "--key",
            metavar="VARIABLE",
            type=_VARIABLE,
            action="append",
            default=[],
            help="pass this variable on, too; those of known providers that are set here always are",
        ),
        argument("--hook", action="store_true", help="Codex only: add the hook that wakes it with the result of a run"),
        argument("--print", "--dry-run", action="store_true", help="print the entry, write nothing"),
    ),
    "uninstall": OF_CLIENT,
    "acp": (),
    "check-adapter": (JSON, argument("name", metavar="NAME", help="the adapter's, as `type` names it")),
    "configs": (
        JSON,
        argument("name", metavar="NAME", nargs="?", help="show this one in full"),
        argument("--schema", action="store_true", help="print the JSON schema of a config, for editors"),
    ),
    "trust": (
        JSON,
        argument("path", metavar="PATH", nargs="?", help="the config, or the directory in whose .massgen it is"),
        argument("--list", action="store_true", help="list what was accepted"),
        argument("--forget", metavar="PATH", help="take back what was accepted, with its keys"),
    ),
    "start": (
        JSON,
        argument("question", metavar="QUESTION", help="the whole task"),
        argument("--config", metavar="FILE", help="the team, as massgen finds it"),
        argument("--model", metavar="MODEL", action="append", default=[], help="one agent each, as backend/model"),
        argument(
            "--context",
            metavar="DIR",
            type=Path,
            action="append",
            default=[],
            help="upload this directory: agents change copies, and massgen-mcp apply brings changes back here",
        ),
        argument("--check", metavar="COMMAND", action="append", default=[], help="a command that tests changes"),
        argument("--max-usd", metavar="USD", type=_float_argument, help="budget, in US dollars"),
        argument("--idempotency-key", metavar="KEY", help="same key and request: same run"),
        STORE,
    ),
    "runs": (
        JSON,
        argument("--state", choices=get_args(RunStatus), help="only runs in this state"),
        argument("--session", metavar="NAME", help="only turns of this session"),
        SINCE,
        argument("--limit", type=counting_number, default=20, metavar="N", help="at most so many (20)"),
    ),
    "status": OF_RUN,
    "wait": (
        *OF_RUN,
        argument(
            "--timeout", type=_float_argument, metavar="SECONDS", help="wait no longer than this; default: no limit"
        ),
    ),
    "watch": (
        *OF_RUN,
        argument("--plain", action="store_true", help="sentences instead of the live view, for screen readers"),
    ),
    "result": (
        *OF_RUN,
        argument("--view", choices=VIEWS, help="full: every answer; votes: no answer; diff: the patch (summary)"),
        argument(
            "--agent",
            metavar="NAME",
            help="the latest answer of one agent, by the id of its config; with --view diff its patch",
        ),
    ),
    "report": (
        *OF_RUN,
        argument("--open", action="store_true", help="open it in the browser"),
        argument("--output", metavar="FILE", type=Path, help="write it to this file"),
        argument("--redact", action="store_true", help="leave out everything that people, models and tools wrote"),
    ),
    "apply": (
        *OF_RUN,
        argument("--dry-run", action="store_true", help="only say what would be changed"),
        argument("--agent", metavar="NAME", help="what this agent changed, instead of the winner"),
        argument(
            "--paths",
            metavar="PATH",
            nargs="+",
            default=[],
            help="only what was changed at these paths; PATH#2 is the second hunk of a file in the shown diff",
        ),
        argument("--branch", metavar="NAME", help="commit it to this new branch, and leave the files alone"),
        argument("--all", action="store_true", help="with --branch: a branch NAME/AGENT for each agent's changes"),
        argument(
            "--directory",
            metavar="DIR",
            type=Path,
            help="where on this machine the run's directory is, if it was another machine's or a clone",
        ),
        argument("--undo", action="store_true", help="take back what was applied last"),
        STORE,
    ),
    "mark": (
        *OF_RUN,
        argument("verdict", metavar="VERDICT", nargs="?", choices=["right", "wrong"], help="right or wrong"),
        argument("--agent", metavar="NAME", help="what this agent said, by the id of its config"),
        argument("--note", metavar="TEXT", help="why"),
        argument("--undo", action="store_true", help="take back what was noted"),
    ),
    "answer": (*OF_RUN, argument("text", metavar="TEXT", help="the answer")),
    "raise-budget": (
        *OF_RUN,
        argument("usd", metavar="USD", type=_float_argument, help="the new max_usd, in US dollars"),
    ),
    "resume": (*OF_RUN, TRUST),
    "cancel": OF_RUN,
    "stats": (
        JSON,
        SINCE,
        argument("--team", type=_model_names, metavar="MODELS", help="only runs of exactly these models: a,b"),
        argument("--config", metavar="NAME", help="only runs of this config, in the words of `runs --json`"),
        argument("--model", metavar="MODEL", help="only runs in which this model took part"),
        argument(
            "--html",
            metavar="FILE",
            type=Path,
            nargs="?",
            const=Path(),
            help="write them as a page, to FILE or into the state directory, and name it",
        ),
        argument("--open", action="store_true", help="write the page, and open it in the browser"),
    ),
    "web": (
        JSON,
        argument(
            "--port",
            metavar="N",
            dest="web_port",
            type=whole_number,
            default=0,
            help="port to listen on; else a free one",
        ),
        argument("--open", action="store_true", help="open it in the browser"),
    ),
    "export": (*OF_RUN, argument("--to", metavar="FILE", type=Path, help="a new file (ID.tar.gz, here)"), STORE),
    "import": (
        JSON,
        argument("file", metavar="FILE", type=Path, help="what export has written"),
        argument(
            "--back",
            action="store_true",
            help="also import a run that left this store in this file; needs --yes",
        ),
        argument("--yes", action="store_true", help="import it although another store may continue the run"),
        argument("--owner", metavar="NAME", help="whose it is here, of the people on a server; '' for nobody's"),
        TRUST,
        STORE,
    ),
    "audit": (
        JSON,
        argument("--person", metavar="NAME", help="only what this one did"),
        argument("--run", metavar="ID", help="only what was done to this run"),
        argument("--limit", type=counting_number, default=100, metavar="N", help="at most so many (100)"),
    ),
    "prices": (
        JSON,
        argument("--from", dest="source", metavar="FILE|URL", help="take in the list there, and use it from now on"),
        argument("--installed", action="store_true", help="return to the list that is installed"),
    ),
    "prune": (
        JSON,
        argument("run_ids", metavar="ID", nargs="*", help="delete these runs, wherever they lie"),
        argument("--dry-run", action="store_true", help="only say what would be deleted"),
        argument("--older-than", type=_float_argument, metavar="DAYS", help="in place of both limits; not with ID"),
    ),
    "worker": (
        argument(
            "--pools", metavar="NAMES", type=_names_argument, default=("default",), help="serve these: a,b (default)"
        ),
        argument("--concurrency", metavar="N", type=counting_number, default=50, help="runs at once (50)"),
        STORE,
        LOG_FORMAT,
    ),
    "store": (argument("action", metavar="ACTION", choices=["upgrade"], help="upgrade"), STORE),
    "hook": (argument("directory", metavar="DIRECTORY", help="where the plugin keeps its data"),),
}
"""Of each verb, in the order of the help."""


def make_parser() -> Parser:
    parser = _Parser(
        OF_THE_SERVER,
        prog="massgen-mcp",
        description="Serve MCP tools that delegate a hard question to a team of LLM agents, and operate their runs.",
        epilog=MANUAL,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser)
    for name, arguments in OF_VERBS.items():
        verbs.add_parser(name, groups={"": arguments}, help=VERBS[name], description=VERBS[name])
    return parser
