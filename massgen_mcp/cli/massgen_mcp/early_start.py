"""Answers a client's first questions while the server is imported."""

import os
from importlib import import_module

from massgen_mcp.cli.exits import EXIT_BROKEN, exit_of_error
from massgen_mcp.cli.output import print_error
from massgen_mcp.errors import MassgenError
from massgen_mcp.home import find_home
from massgen_mcp.server.front import Front, first_answers


def answer_early() -> Front:
    """Return the front, once the server is imported. Settings that cannot be used are reported first."""
    code = 0
    try:
        find_home(os.environ)
    except MassgenError as error:
        print_error(f"ERROR {error.code}: {error}")
        code = exit_of_error(error)
    front = Front(first_answers(), exit_code=code)
    try:
        front.answer_until(_load)
    except Exception as error:  # noqa: BLE001 - a client that already talks to us has to hear why it ends
        front.refuse("internal", f"cannot load the server: {type(error).__name__}: {error}", EXIT_BROKEN)
    return front


def _load() -> None:
    import_module("massgen_mcp.cli.massgen_mcp.verbs.serve")
    import_module("massgen_mcp.server.stdio")
