"""Fixtures that every test may use."""

import pytest

from tests.wire_double import aimock, aimock_server

__all__ = ["aimock", "aimock_server"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
