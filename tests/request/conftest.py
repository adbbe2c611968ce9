"""Fixtures of the tests in this directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.conftest import litellm
from tests.request.scene import Scene, scene

__all__ = ["litellm"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Scene]:
    """A person's machine; the project in it is the working directory."""

    def output() -> tuple[str, str]:
        captured = capsys.readouterr()
        return captured.out, captured.err

    with scene(tmp_path, monkeypatch, output) as made:
        yield made
