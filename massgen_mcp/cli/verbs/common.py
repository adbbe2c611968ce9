"""What the verbs share: this user's run manager, and output as JSON."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from massgen_mcp.cli.saying import say
from massgen_mcp.home import find_home
from massgen_mcp.runs.local import local_engine
from massgen_mcp.runs.manager import RunManager, RunView
from massgen_mcp.server.results import controlled

if TYPE_CHECKING:
    from pydantic import BaseModel


@contextmanager
def run_manager() -> Generator[RunManager]:
    """Raises `MassgenError` store_unavailable."""
    os.umask(0o077)
    manager = RunManager(local_engine(find_home(os.environ)), os.environ)
    try:
        yield manager
    finally:
        manager.close()


def say_json(document: "BaseModel") -> None:
    """One JSON document, the only thing that this command prints."""
    say(document.model_dump_json())


def say_controlled(view: RunView, *, as_json: bool) -> None:
    """The state of a run after a control."""
    if as_json:
        say_json(controlled(view))
    else:
        say(f"{view.row.run_id}: {view.state}")
