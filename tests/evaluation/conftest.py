"""Fixtures of the tests in this directory."""

from tests.harness import home

__all__ = ["home"]
