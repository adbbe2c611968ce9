"""Arguments that several verbs share, so that one thing has one name everywhere."""

import argparse
import re
import time
from datetime import datetime
from pathlib import Path
from typing import get_args

from massgen_mcp.cli.command_line import AS_IT_IS, CommandArgument, argument, trust_argument
from massgen_mcp.request.kind import RunKind


def set_of_names(text: str) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in text.split(","))))


def pool_names(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, text.split(",")))
    if not names or not all(re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name) for name in names):
        raise argparse.ArgumentTypeError(
            "expected names separated by commas; use only lower-case letters, digits, - and _"
        )
    return names


def _moment(text: str) -> float:
    """Convert a day or time in ISO form (local unless it says otherwise), or a time ago, to seconds since the epoch."""
    if ago := re.fullmatch(r"(\d{1,6})([mhd])", text):
        return time.time() - int(ago[1]) * {"m": 60, "h": 3600, "d": 86_400}[ago[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            "expected a date such as 2026-11-21, or a duration such as 36h or 7d"
        ) from None


def amount(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError("expected a number that is 0 or greater, such as 2.5")
    return number


def output(text: str, *, dest: str = "output") -> CommandArgument:
    return argument("--output", "-o", dest=dest, metavar="FILE", type=Path, help=text)


VIEWS = ("summary", "full", "votes", "diff")
VERDICTS = ("right", "wrong")
JSON = argument("--json", action="store_true", help="print one JSON document")
YES = argument("--yes", "-y", action="store_true", help="do not ask")
OPEN = argument("--open", action="store_true", help="write the page and open it in your browser")
TRUST = argument(
    "--trust",
    metavar="DIGEST",
    nargs="?",
    type=trust_argument,
    const=AS_IT_IS,
    help="accept an imported run's permissions; with DIGEST, only if the digest matches",
)
KIND = argument(
    "--kind",
    choices=(*get_args(RunKind), "all"),
    default="single",
    help="only runs of this kind (`all` for every kind); default: runs that you started individually",
)
SINCE = argument(
    "--since",
    type=_moment,
    metavar="WHEN",
    help="only runs started since this date or within this period, such as 2026-11-21, 36h, 7d",
)
TIMEOUT = argument("--timeout", type=amount, metavar="SECONDS", help="maximum time to wait; default: no limit")
STORE = argument(
    "--store",
    metavar="URL",
    default=argparse.SUPPRESS,
    help="database for runs: postgresql://..., without a password (other users can see command lines); default: none",
)
LOG_FORMAT = argument("--log-format", choices=["text", "json"], default="text", help="log format (text)")


def _run_id(absent: str) -> CommandArgument:
    """`absent`: what the verb does without an ID."""
    return argument("run_id", metavar="ID", nargs="?", help=f"a run's ID or its first characters; {absent}")


RUN = _run_id("default: the newest run in this directory")
OF_RUN = (JSON, RUN, STORE)
RUN_TO_CHANGE = _run_id("without it, massgen asks about the newest run (only in a terminal)")
OF_RUN_TO_CHANGE = (JSON, RUN_TO_CHANGE, STORE)
"""Of verbs that change something, so that an ID is never guessed where nobody can be asked."""
