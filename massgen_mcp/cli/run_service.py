"""Runs, for whatever a command does with them."""

import os
from collections.abc import Generator
from contextlib import closing, contextmanager

from massgen_mcp.home import find_home
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine, open_engine


@contextmanager
def run_service(*, here: bool = False) -> Generator[RunService]:
    """`here`: this user's own runs, which `massgen` executes, also where others are kept for several machines. Raises
    `MassgenError` store_unavailable, invalid_arguments.
    """
    home = find_home(os.environ)
    engine = local_engine(home) if here else open_engine(home, os.environ)
    with closing(RunService(engine, os.environ)) as service:
        yield service
