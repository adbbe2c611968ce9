"""Fixtures that every test may use."""

import pytest
from hypothesis import HealthCheck, settings

from tests.wire_double import aimock, aimock_server

__all__ = ["aimock", "aimock_server"]


settings.register_profile(
    "repeatable", derandomize=True, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
