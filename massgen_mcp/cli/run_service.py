"""This user's runs, for whatever a command does with them."""

import os
from collections.abc import Generator
from contextlib import contextmanager

from massgen_mcp.home import find_home
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.local import local_engine


@contextmanager
def run_service() -> Generator[RunService]:
    """Raises `MassgenError` store_unavailable."""
    service = RunService(local_engine(find_home(os.environ)), os.environ)
    try:
        yield service
    finally:
        service.close()
