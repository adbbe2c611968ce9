"""What a user of `massgen` asked for on the command line, parsed once."""

import argparse
import math
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import get_args

from massgen_mcp.cli.command_line import (
    AS_IT_IS,
    OF_EVERY_PROGRAM,
    ArgumentGroups,
    Parser,
    answer_shell,
    argument,
    counting_number,
    trust_argument,
    whole_number,
)
from massgen_mcp.cli.exits import EXIT_CONFIG
from massgen_mcp.cli.verbs import VERBS, WORDS_FROM_ELSEWHERE
from massgen_mcp.config.given import GivenDecide

CONCURRENCY = 4
_NAMES_CONFIG = re.compile(r"@examples/\S+|\S+\.(ya?ml|json)")

MANUAL = """
Without --config or a model the team is that of .massgen/config.yaml, else that of your own config.yaml (see files), \
else the default team: of the keys that are set, or of a local model server. Where there is none, a short dialogue on \
a terminal sets one up. When standard output is no terminal, it has the answer and nothing else. A config that \
came with the directory and could do harm waits for your consent (see --trust). Without a QUESTION \
the interactive mode begins: a conversation of several turns, kept as a session.

Another command, massgen-mcp, has the rest: `massgen-mcp doctor` says what is here and what is missing, \
`runs`, `watch`, `result`, `report` and `apply` are for runs that were begun, and `install` puts the team into a \
coding agent.

examples:
  massgen "Is our retry policy sound?"
  massgen --config @examples/two_providers "Postgres or SQLite?"
  massgen --models openai/gpt-5,claude/claude-sonnet-4-5 "Review this plan"
  massgen --backend gemini --num-agents 3 "Name a better name"
  git diff | massgen --automation --output-file review.md -
  massgen batch questions.jsonl --max-usd 20
  massgen review --help
  massgen eval --help
  massgen --resume run-4t6d
  massgen --validate team.yaml

output of --automation:
Ten to twenty lines, which begin with these words; nothing else is on standard output.
  LOG_DIR:         directory of this run, absolute; always the first line
  STATUS:          its status.json, rewritten at least every two seconds
  AGENTS:          the team, as agent_a (backend/model), ...
  QUESTION:        the question, shortened
  [Coordination    in progress: now the agents work
  TEAM:            where the team comes from; its hosts, keys by name, writable paths
  NOTE:            what of the config was ignored; a model that a gateway does not list
  WARNING:         something went wrong, the run went on
  WINNER:          the agent whose answer won
  OUTCOME:         how the winner was found, and how many voted
  DURATION:        seconds, such as 12.3s
  COST:            US dollars and tokens; what has no known price is said
  ANSWER_FILE:     the final answer, whole; not with --no-logs
  REPORT:          the run as a page to look at; not with --no-logs
  ANSWER_PREVIEW:  the answer, shortened
  OUTPUT_FILE:     where the whole answer was written as well, with --output-file
  APPLIED:         your files that were changed; or NOT_APPLIED with the number or reason, and the command
  COMPLETED:       N agents, seconds in total; or FAILED, TIMED_OUT, CANCELLED with the cause

exit codes:
  0  success
  1  the command line or the config is wrong, or a key or your consent is missing; no model was asked
  2  the run failed
  3  the run reached its time limit; the best answer so far is shown
  4  interrupted; Ctrl-C once ends the run in good order, twice at once

environment:
  *_API_KEY            keys of the providers; `massgen-mcp configs` names those that each team needs
  MASSGEN_CONFIG_HOME  directory of your own config.yaml and keys.yaml
  MASSGEN_ALLOWED_KEYS  KEY@HOST ...: keys that may go to hosts that are not their own
  NO_COLOR             no colours
  COLUMNS              width of this text

files:
  .massgen/config.yaml    team of this directory
  ~/.config/massgen/config.yaml  your own team (on Linux; elsewhere where the system keeps configs)
  .massgen/massgen_logs/  one directory per run: events, status, log, every answer, final/<agent>/answer.txt
  .massgen/sessions/      the conversations of the interactive mode
"""


@dataclass(frozen=True, slots=True)
class Options:
    """One field per option, of its name; what was not given is None, empty or False."""

    question: str | None = None
    """None: the interactive mode. `-` is still to be read from standard input (`questions.whole_question`)."""
    config: str | None = None
    models: tuple[str, ...] = ()
    """Of `--model` and `--models`."""
    backend: str | None = None
    num_agents: int | None = None
    system_message: str | None = None
    checks: tuple[str, ...] = ()
    """Of `--check`, in their order."""
    decide: GivenDecide | None = None
    automation: bool = False
    apply: bool = False
    output_file: Path | None = None
    no_display: bool = False
    quiet: bool = False
    json: bool = False
    plain: bool = False
    no_logs: bool = False
    debug: bool = False
    notify: tuple[str, ...] = ()
    session_id: str | None = None
    changes_of: str | None = None
    list_sessions: bool = False
    background: bool = False
    batch: bool = False
    """`question` is a file of questions."""
    concurrency: int = CONCURRENCY
    max_usd: float | None = None
    max_usd_each: float | None = None
    resume: str | None = None
    """The beginning of the id of an interrupted run."""
    validate: str | None = None
    select: bool = False
    init: bool = False
    trust: str | None = None
    """`AS_IT_IS`, or the digest that is accepted for this call."""


class _Parser(Parser):
    """A wrong command line is a configuration error, and exits as one."""

    exit_code = EXIT_CONFIG
    quoted = "question"

    def fault(self, given: argparse.Namespace, rest: Sequence[str]) -> str | None:
        """Also a verb of the other program, or a config, in place of a question: nobody is to pay for that."""
        only_words = not any(word.startswith("-") for word in rest)
        asked = shlex.quote(" ".join(rest)) if rest else '"your question"'
        if only_words and not (given.config or given.batch) and names_config(given.question or ""):
            option = " --trust" if given.trust else ""
            return (
                f"{given.question} is a config and no question: "
                f"{self.prog} --config {shlex.quote(given.question)}{option} {asked}"
            )
        first: str = given.question or ""
        if given.question is not None and not first.strip():
            return f"the question is empty: {self.prog} {asked}"
        if first in VERBS:
            return f"{first} is a verb of massgen-mcp: {' '.join(['massgen-mcp', first, *rest])}"
        if first in ("help", "version"):
            return f"{first} is an option: {self.prog} --{first}"
        if first in WORDS_FROM_ELSEWHERE and len(rest) < 2:
            return f"{first} alone is no question; {WORDS_FROM_ELSEWHERE[first]}"
        if rest and given.models and _is_model(first):
            return f"the models go together, with commas: --models {','.join([*given.models, first])}"
        if first in ("ask", "run", "start"):
            return f"{first} is not needed: {self.prog} {asked}"
        return super().fault(given, rest)


def names_config(text: str) -> bool:
    return _NAMES_CONFIG.fullmatch(text) is not None


def parse(arguments: Sequence[str] | None) -> Options:
    """Options from a command line (default: this process's own). Exits for --help, --version and whatever is wrong."""
    parser = make_parser()
    answer_shell(parser)
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["batch"] and len(arguments) > 1:
        arguments[0] = "--batch"
    given = parser.parse(_with_whole_trust(arguments))
    _check_together(parser, given, named_team=bool(given.model or given.models or given.backend))
    given.models = (*filter(None, [given.model]), *given.models)
    given.checks = tuple(given.checks)
    given.concurrency = given.concurrency or CONCURRENCY
    return Options(**{one.name: getattr(given, one.name) for one in fields(Options)})


def _check_together(parser: Parser, given: argparse.Namespace, *, named_team: bool) -> None:
    """Refuses options that contradict each other, in words that say what to leave out."""
    team = given.config or named_team
    one_answer = given.json or given.quiet or given.background
    resumed_otherwise = given.resume is not None and (given.question is not None or _changes_the_run(given))
    left_alone_and = given.apply or given.automation or given.json or given.output_file or given.no_logs or given.notify
    kept_alone = given.automation or given.json or given.no_logs or given.notify or given.quiet
    batch_and = kept_alone or given.background or given.apply or given.session_id or given.resume
    of_batch = given.concurrency is not None or given.max_usd_each
    faults = (
        (
            given.batch and (given.question is None or batch_and),
            "batch takes a FILE, options of the team, --output-file, --concurrency, --max-usd, --max-usd-each",
        ),
        (of_batch and not given.batch, "--concurrency and --max-usd-each go with: batch FILE"),
        (
            given.config and named_team,
            "--config names a team of its own; it does not go with --model, --models or --backend",
        ),
        (given.select and team, "--select chooses the config; it does not go with another choice of a team"),
        (
            given.num_agents is not None and not named_team,
            "--num-agents goes with --model, --models or --backend; a config names its own agents",
        ),
        (
            given.no_logs and given.session_id,
            "--no-logs keeps nothing, but a session is kept; leave one of --no-logs and --session-id out",
        ),
        (
            resumed_otherwise,
            "--resume continues a run as it was started; only --automation, --apply, --output-file, --debug go with it",
        ),
        (
            given.automation and (given.json or given.quiet or given.plain),
            "--automation prints lines of its own; it does not go with --json, --quiet or --plain",
        ),
        (
            given.json and given.no_logs,
            "--json says where the files of the run are, and --no-logs keeps none; leave one of them out",
        ),
        (
            given.question is None and one_answer,
            "--json, --quiet and --background are about one answer; they need a QUESTION",
        ),
        (
            given.background and left_alone_and,
            "--background prints an id; leave --apply, --automation, --json, --output-file, --no-logs, --notify out",
        ),
        (
            given.automation and (given.select or given.init),
            "--select and --init ask a person; --automation is for programs",
        ),
    )
    if fault := next((message for holds, message in faults if holds), None):
        parser.error(fault)


def _changes_the_run(given: argparse.Namespace) -> bool:
    """Whether anything is said about the team, the session or the files of a run."""
    team = (given.config, given.trust, given.select, given.init, given.model, given.models, given.backend)
    how = (given.num_agents, given.system_message, given.checks, given.decide)
    return any((*team, *how, given.max_usd, given.no_logs, given.session_id, given.changes_of, given.background))


def _with_whole_trust(arguments: Sequence[str]) -> list[str]:
    """The command line with `--trust` alone as `--trust=…`: only sha256:... that follows it is its value."""
    options = arguments.index("--") if "--" in arguments else len(arguments)
    return [
        f"--trust={AS_IT_IS}"
        if place < options and argument == "--trust" and not after.startswith("sha256:")
        else argument
        for place, (argument, after) in enumerate(pairwise([*arguments, ""]))
    ]


def dollars(text: str) -> float:
    with suppress(ValueError):
        if 0 < (value := float(text)) < math.inf:
            return value
    raise argparse.ArgumentTypeError("expected an amount in US dollars, such as 2.50")


def _split_words(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not words:
        raise argparse.ArgumentTypeError("expected a program and its arguments")
    return words


def _model_name(text: str) -> str:
    if "," in text:
        raise argparse.ArgumentTypeError(f"this is one model; several are --models {text}")
    return text


def _is_model(text: str) -> bool:
    from massgen_mcp.config.providers.model_names import detect_backend  # a right command line needs none of it
    from massgen_mcp.errors import MassgenError

    with suppress(MassgenError):
        return bool(detect_backend(text))
    return False


def model_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError("expected model names, separated by commas")
    return names


ARGUMENTS: ArgumentGroups = {
    "": (
        argument(
            "question", metavar="QUESTION", nargs="?", help="what the team is to answer; - reads it from standard input"
        ),
    ),
    "the team": (
        argument("--config", metavar="PATH|@examples/NAME", help="the team; default: .massgen/config.yaml, ..."),
        argument(
            "--trust",
            metavar="=sha256:DIGEST",
            nargs="?",  # for the help alone: see `_with_whole_trust`
            type=trust_argument,
            help="accept what the config asks for, and remember it; with =sha256:... only that version, for this call "
            "only",
        ),
        argument("--select", action="store_true", help="choose the config from a list"),
        argument(
            "--model",
            metavar="MODEL",
            type=_model_name,
            help="one agent with this model, such as gpt-5 or openrouter/NAME",
        ),
        argument(
            "--models",
            metavar="MODEL,...",
            type=model_names,
            action="extend",
            default=[],
            help="one agent per model, comma-separated",
        ),
        argument("--backend", metavar="TYPE", help="provider of --model; alone: its strongest model"),
        argument(
            "--num-agents", metavar="N", type=whole_number, help="this many agents, which take the models in turn"
        ),
        argument("--system-message", metavar="TEXT", help="system message of every agent"),
        argument(
            "--check",
            metavar="COMMAND",
            dest="checks",
            action="append",
            default=[],
            help="a command that tests what answers change in the context paths, such as 'make test'; may be repeated",
        ),
        argument(
            "--decide",
            choices=get_args(GivenDecide),
            help="how the winner is found: by votes, by tests that agents write, or one writes from all answers",
        ),
        argument(
            "--max-usd",
            metavar="USD",
            type=dollars,
            help="what a run may cost; of batch: all together, and no run begins that could pass it",
        ),
    ),
    "output": (
        argument("--automation", action="store_true", help="few, stable lines for programs that read them"),
        argument("--apply", action="store_true", help="apply the changes of the run without asking"),
        argument("--output-file", metavar="FILE", type=Path, help="also write the final answer here"),
        argument("--quiet", action="store_true", help="print the answer, and errors, and nothing else"),
        argument("--json", action="store_true", help="print the result as one JSON document, as get_result gives it"),
        argument("--plain", action="store_true", help="sentences instead of the live view, as for screen readers"),
        argument("--no-display", action="store_true", help="show nothing until the result"),
        argument("--no-logs", action="store_true", help="leave nothing on disk but the output file"),
        argument(
            "--notify",
            metavar="COMMAND",
            type=_split_words,
            default=(),
            help="start this when the run has ended, without a shell; MASSGEN_RUN_ID, _STATE, _OUTCOME, _COST tell of "
            "it",
        ),
        argument("--debug", action="store_true", help="show every log line, with tracebacks"),
    ),
    "sessions": (
        argument("--session-id", metavar="ID", help="go on with this session"),
        argument(
            "--changes-of", metavar="winner|AGENT", help="begin with what it changed in the session and is not applied"
        ),
        argument("--list-sessions", action="store_true", help="list the sessions of this directory"),
        argument(
            "--background",
            action="store_true",
            help="start the run, print its id, and leave it to a process of its own",
        ),
        argument("--resume", metavar="ID", help="go on with a run whose process was killed"),
    ),
    "many questions: massgen batch FILE": (
        argument("--batch", action="store_true", help=argparse.SUPPRESS),
        argument(
            "--concurrency", metavar="N", type=counting_number, help=f"so many runs at once; default: {CONCURRENCY}"
        ),
        argument("--max-usd-each", metavar="USD", type=dollars, help="for each run, instead of its config's"),
    ),
    "set-up": (
        argument("--init", action="store_true", help="set up a config in a short dialogue"),
        argument("--validate", metavar="FILE", help="check a config: show every error, run nothing"),
        *OF_EVERY_PROGRAM,
    ),
}
"""What may be given, by the headings of the help."""


def make_parser() -> Parser:
    return _Parser(
        ARGUMENTS,
        prog="massgen",
        description="Ask a team of LLM agents; they answer, read each other and vote.",
        epilog=MANUAL,
    )
