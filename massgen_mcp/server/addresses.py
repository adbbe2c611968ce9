"""The addresses of what can be read: `massgen://runs/{run_id}/...` and `massgen://configs/{name}`."""

import re
from typing import Literal, cast, get_args
from urllib.parse import quote

SCHEME = "massgen://"
View = Literal["status", "result", "events", "log", "artifacts"]
_OF_A_RUN = re.compile(rf"{SCHEME}runs/([^/?#]+)/({'|'.join(get_args(View))})(?:[/?].*)?")


def run_uri(run_id: str, view: View, rest: str = "") -> str:
    """`rest`: what follows the view, such as a path or a query."""
    return f"{SCHEME}runs/{run_id}/{view}{rest}"


def artifact_uri(run_id: str, path: str) -> str:
    return run_uri(run_id, "artifacts", f"/{quote(path)}")


def config_uri(name: str) -> str:
    return f"{SCHEME}configs/{quote(name)}"


def run_in(uri: str) -> tuple[str, View] | None:
    """The run that a resource shows, and what of it; None for anything else."""
    found = _OF_A_RUN.fullmatch(uri)
    return (found[1], cast("View", found[2])) if found else None
