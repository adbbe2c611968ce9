"""Each test of this directory is run on every engine there is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from massgen_mcp.runs.engine import Engine
from tests.engine.machine import IMPLEMENTATIONS, Machine
from tests.needs import needs


@pytest.fixture(
    params=[pytest.param(name, marks=needs("postgres") if name == "postgres" else ()) for name in IMPLEMENTATIONS]
)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    made = IMPLEMENTATIONS[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def engine(machine: Machine) -> Engine:
    return machine.open()
