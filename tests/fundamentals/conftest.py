from tests.harness import home

__all__ = ["home"]
