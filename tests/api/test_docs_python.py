"""Every block of docs/python.md is run here, one after the other as a reader would."""

import re
from typing import Any

import pytest

from tests.api.blocks import Place
from tests.harness import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_all_blocks_are_python() -> None:
    assert {language for language, _ in BLOCKS} == {"python"}


def test_the_blocks_run_in_their_order(place: Place, litellm: Any, capsys: pytest.CaptureFixture[str]) -> None:
    del litellm
    printed: list[str] = []
    for _, code in BLOCKS:
        exec(compile(code, "docs/python.md", "exec"), place.names)  # noqa: S102 - the page is ours
        printed.append(capsys.readouterr().out)
    run, models, session, error, built, completed, streamed, langchain = printed
    assert run.startswith("Neither: replace it piece by piece.")
    assert re.search(r"^agent_[abc] won with \{'agent_a': \d", models)
    assert session == "teacher's answer to: And a functor?\n"
    assert error == "config_not_found There is no example @examples/scriptd. Did you mean @examples/scripted?\n"
    assert built.startswith("['scripted-x1', 'scripted-y2']\n")
    assert re.search(r"answer to: Which one\? \d+\n\{'agent_a': ", completed)
    assert streamed == run.rstrip("\n") + "\n"
    assert langchain == run
    assert list(place.path.iterdir()) == []
