"""What a user of `massgen` asked for on the command line, parsed once."""

import argparse
import math
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import get_args

from massgen_mcp.cli.arguments import STORE
from massgen_mcp.cli.command_line import (
    AS_IT_IS,
    OF_EVERY_PROGRAM,
    ArgumentGroups,
    CommandArgument,
    Parser,
    argument,
    counting_number,
    trust_argument,
    whole_number,
)
from massgen_mcp.cli.commands import NAMES
from massgen_mcp.cli.exits import EXIT_CONFIG
from massgen_mcp.cli.old_spellings import VERBS as OLD_VERBS
from massgen_mcp.cli.old_spellings import WORDS_FROM_ELSEWHERE
from massgen_mcp.config.given import GivenDecide
from massgen_mcp.nearest import nearest

CONCURRENCY = 4
_NAMES_CONFIG = re.compile(r"@examples/\S+|\S+\.(ya?ml|json)")


@dataclass(frozen=True, slots=True)
class Options:
    """One field per option, of its name; what was not given is None, empty or False."""

    question: str | None = None
    """None: the interactive mode. `-` is still to be read from standard input (`questions.whole_question`)."""
    config: str | None = None
    models: tuple[str, ...] = ()
    """Of `--model`."""
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
    background: bool = False
    """`massgen start`."""
    context: tuple[Path, ...] = ()
    idempotency_key: str | None = None
    store: str | None = None
    batch: bool = False
    """`question` is a file of questions."""
    concurrency: int = CONCURRENCY
    max_usd: float | None = None
    max_usd_each: float | None = None
    resume: str | None = None
    """The beginning of the id of an interrupted run; empty: the newest one here."""
    yes: bool = False
    """Whatever is asked is answered with yes, except for trust."""
    dry_run: bool = False
    select: bool = False
    init: bool = False
    trust: str | None = None
    """`AS_IT_IS`, or the digest that is accepted for this call."""


class _Parser(Parser):
    """Of a question."""

    quoted = "question"
    on_purpose = False
    """`--` stands before the question: it is one, whatever it looks like."""

    def fault(self, given: argparse.Namespace, rest: Sequence[str]) -> str | None:
        """Also find a verb, a config or a file in place of a question: no one is to pay for that."""
        only_words = not any(word.startswith("-") for word in rest)
        asked = shlex.quote(" ".join(rest)) if rest else '"your question"'
        first: str = given.question or ""
        is_question = self.on_purpose or given.batch or not only_words
        if not is_question and not given.config and names_config(first):
            option = " --trust" if given.trust else ""
            return (
                f"{first} is a config, not a question; use it with: massgen --config "
                f"{shlex.quote(first)}{option} {asked}"
            )
        if given.question is not None and not first.strip():
            return f"the question is empty; ask one: massgen {asked}"
        if rest and only_words and given.models and _is_model(first):
            return f"separate models with commas: --model {','.join([*given.models, first])}"
        if not is_question and (hint := find_misspelling(first, rest)):
            return f"{first[:80]} {hint}; to ask that as a question: massgen -- {shlex.quote(' '.join([first, *rest]))}"
        return super().fault(given, rest)


NEAR_VERB = 0.8
"""So much alike is a word that was meant as a verb."""
_LOOKS_LIKE_A_FILE = re.compile(r"(?!\w+://)(?:\S*/\S*|[\w.~-]*\w\.[A-Za-z][A-Za-z0-9]{0,6})")
_ID = re.compile(r"run-[a-z2-7]+")


def find_misspelling(first: str, rest: Sequence[str] = ()) -> str | None:
    """Say what was meant by a single word, or by a word before an id or an option, that is no question; None: nothing
    else.
    """
    words = first.split()
    if first.startswith("@"):
        question = shlex.quote(" ".join(rest) or "your question")
        return (
            "isn't a question. `massgen configs` lists ready-made teams; use one with: massgen --config "
            f"@examples/NAME {question}"
        )
    if not rest and _ID.fullmatch(first):
        return f"is the ID of a run; show it with: massgen result {first}"
    if not rest and len(words) > 1 and words[0] in NAMES and all(map(_ID.fullmatch, words[1:])):
        return f"is a verb; leave out the quotation marks: massgen {first}"
    if len(words) != 1 or (rest and not _ID.match(rest[0]) and len(rest) > 1):
        return None
    typed = " ".join([first, *rest])
    if first in NAMES:
        return f"is a verb; put it first: massgen {typed}"
    if meant := WORDS_FROM_ELSEWHERE.get(first.lower()):
        return f"isn't a verb; {meant}"
    known = (*NAMES, *OLD_VERBS)
    swapped = next((name for name in known if sorted(name) == sorted(first.lower())), None)
    if near := swapped or nearest(first, known, cutoff=NEAR_VERB):
        return f"isn't a verb; did you mean: massgen {' '.join([near, *rest])}"
    if not rest and _LOOKS_LIKE_A_FILE.fullmatch(first):
        return (
            "looks like a file name, but this file doesn't exist. To ask the question in a file: massgen - < "
            f"{shlex.quote(first)}"
        )
    return None


def names_config(text: str) -> bool:
    return _NAMES_CONFIG.fullmatch(text) is not None


def parse(arguments: Sequence[str], verb: str = "ask") -> Options:
    """Return the options of a verb that takes a question, or a file of them.

    Raises `UsageError`; exits for --help and --version.
    """
    parser = make_parser(verb)
    parser.on_purpose = "--" in arguments or verb != "ask"
    given = parser.parse(_with_whole_trust(arguments))
    given.background = verb == "start"
    given.init = verb == "init"
    _check_together(parser, given, named_team=bool(given.models or given.backend))
    given.models, given.checks, given.context = tuple(given.models), tuple(given.checks), tuple(given.context)
    given.concurrency = given.concurrency or CONCURRENCY
    return Options(**{one.name: getattr(given, one.name) for one in fields(Options) if one.name in given})


def _check_together(parser: Parser, given: argparse.Namespace, *, named_team: bool) -> None:
    """Refuses options that contradict each other, in words that say what to leave out."""
    team = given.config or named_team
    one_answer = given.json or given.quiet or given.background or given.dry_run
    of_one_run = given.automation or given.no_logs or given.notify or given.dry_run
    left_alone_and = of_one_run or given.apply or given.output_file
    kept_alone = given.json or given.quiet or given.apply
    batch_and = of_one_run or kept_alone or given.session_id
    of_batch = given.concurrency is not None or given.max_usd_each
    shared = given.context or given.idempotency_key
    faults = (
        (given.batch and given.question is None, "batch needs a file of questions: massgen batch QUESTIONS.jsonl"),
        (
            given.batch and batch_and,
            "batch accepts only FILE, team options, --output, --concurrency, --max-usd and --max-usd-each",
        ),
        (of_batch and not given.batch, "--concurrency and --max-usd-each work only with: massgen batch FILE"),
        (shared and not given.background, "--context and --idempotency-key work only with: massgen start QUESTION"),
        (
            given.config and named_team,
            "--config already names the team; leave out either --config or --model and --backend",
        ),
        (
            given.select and team,
            "--select chooses the config; remove --select, or remove --config, --model and --backend",
        ),
        (
            given.num_agents is not None and not named_team,
            "--num-agents needs --model or --backend; a config lists its own agents",
        ),
        (
            given.no_logs and given.session_id,
            "--no-logs keeps nothing, but --session needs a saved session; leave one of them out",
        ),
        (
            given.automation and (given.json or given.quiet or given.plain),
            "--automation has its own output format; leave out --json, --quiet and --plain",
        ),
        (
            given.json and given.no_logs,
            "--json prints the paths of the run's files, but --no-logs keeps none; leave one of them out",
        ),
        (
            given.question is None and one_answer,
            f'the question is missing: {parser.prog} "your question"',
        ),
        (
            given.background and left_alone_and,
            "start prints only an ID; leave out --apply, --automation, --output, --no-logs, --notify and --dry-run",
        ),
        (
            given.automation and (given.select or given.init),
            "--select and init need a person to answer; leave out --automation",
        ),
    )
    if fault := next((message for holds, message in faults if holds), None):
        parser.error(fault)


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
            "question", metavar="QUESTION", nargs="?", help="the question for the team; - reads it from standard input"
        ),
    ),
    "the team": (
        argument("--config", "-c", metavar="PATH|@examples/NAME", help="the team; default: .massgen/config.yaml, ..."),
        argument(
            "--trust",
            metavar="=sha256:DIGEST",
            nargs="?",  # for the help alone: see `_with_whole_trust`
            type=trust_argument,
            help="accept the config's permissions and remember your consent; with =sha256:..., accept only that "
            "version, and only for this command",
        ),
        argument("--select", action="store_true", help="choose the config from a list"),
        argument(
            "--model",
            "-m",
            dest="models",
            metavar="MODEL,...",
            type=model_names,
            action="extend",
            default=[],
            help="one agent per model, such as gpt-5 or openrouter/NAME; separated by commas, can be repeated",
        ),
        argument("--backend", metavar="TYPE", help="provider for --model; without --model: use its strongest model"),
        argument("--num-agents", metavar="N", type=whole_number, help="number of agents; models are assigned in turn"),
        argument("--system-message", metavar="TEXT", help="system message for every agent"),
        argument(
            "--check",
            metavar="COMMAND",
            dest="checks",
            action="append",
            default=[],
            help="command that tests each answer's changes, such as 'make test'; can be repeated",
        ),
        argument(
            "--decide",
            choices=get_args(GivenDecide),
            help="how to choose the final answer: by votes, by tests that agents write, or by merging all answers",
        ),
        argument(
            "--max-usd",
            metavar="USD",
            type=dollars,
            help="maximum cost of the run; for batch: of all runs together",
        ),
    ),
    "output": (
        argument("--automation", action="store_true", help="print a few lines in a stable format, for scripts"),
        argument("--apply", action="store_true", help="apply the run's changes without asking"),
        argument(
            "--output", "-o", dest="output_file", metavar="FILE", type=Path, help="also write the final answer to FILE"
        ),
        argument("--quiet", "-q", action="store_true", help="print only the answer and errors"),
        argument("--json", action="store_true", help="print the result as one JSON document, like the get_result tool"),
        argument(
            "--plain",
            action="store_true",
            help="print sentences instead of the live view, for example for screen readers",
        ),
        argument("--no-display", action="store_true", help=argparse.SUPPRESS),
        argument("--no-logs", action="store_true", help="keep nothing on disk except the output file"),
        argument(
            "--dry-run",
            action="store_true",
            help="show the team, its permissions and the estimated cost, without calling a model",
        ),
        argument(
            "--yes",
            "-y",
            action="store_true",
            help="answer yes to all questions except those about trust or applying changes",
        ),
        argument(
            "--notify",
            metavar="COMMAND",
            type=_split_words,
            default=(),
            help="command to run (without a shell) when the run ends; gets MASSGEN_RUN_ID, _STATE, _OUTCOME and _COST",
        ),
        argument("--debug", "-v", action="store_true", help="show every log line, with tracebacks"),
    ),
    "sessions": (
        argument("--session", "-s", dest="session_id", metavar="ID", help="continue this conversation"),
        argument(
            "--changes-of", metavar="winner|AGENT", help="with --session: start from this agent's unapplied changes"
        ),
    ),
    "massgen start": (
        argument(
            "--context",
            metavar="DIR",
            type=Path,
            action="append",
            default=[],
            help="let agents change copies of this directory (`massgen apply` applies the changes); can be repeated",
        ),
        argument("--idempotency-key", metavar="KEY", help="repeating a request with the same key returns the same run"),
        STORE,
    ),
    "massgen batch": (
        argument(
            "--concurrency",
            metavar="N",
            type=counting_number,
            help=f"maximum number of parallel runs; default: {CONCURRENCY}",
        ),
        argument("--max-usd-each", metavar="USD", type=dollars, help="budget for each run, instead of its config's"),
    ),
    "the program": OF_EVERY_PROGRAM,
}
"""The arguments, by the headings of the help."""


def hide(one: CommandArgument) -> CommandArgument:
    names, settings = one
    return names, {**settings, "help": argparse.SUPPRESS}


def make_parser(verb: str = "ask") -> "_Parser":
    """Every verb takes all of them, so that a mistake is told in words; the help has those that it uses."""
    from massgen_mcp.cli.manual import OF_ASK, OF_VERB

    prog = "massgen" if verb == "ask" else f"massgen {verb}"
    groups: dict[str, Sequence[CommandArgument]] = {}
    for title, arguments in ARGUMENTS.items():
        is_shown = not title.startswith("massgen ") or title == prog
        groups[title] = arguments if is_shown else [hide(one) for one in arguments]
    epilog = OF_ASK if verb == "ask" else None
    parser = _Parser(groups, exit_code=EXIT_CONFIG, prog=prog, description=OF_VERB[verb], epilog=epilog)
    parser.set_defaults(batch=verb == "batch")
    return parser
