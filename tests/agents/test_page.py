"""docs/agents-api.md tells the truth: its blocks run one after the other and print what it shows, and it names all."""

import re
from pathlib import Path

import pytest

import massgen_mcp
from massgen_mcp import MessageTemplates
from massgen_mcp.agent_config import AgentConfig, CoordinationConfig, TimeoutConfig
from massgen_mcp.agents.templates import TEMPLATES
from tests.harness import ROOT

PAGE = (ROOT / "docs" / "agents-api.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def test_every_block_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert [language for language, _ in BLOCKS] == ["python", "text"] * (len(BLOCKS) // 2)
    assert len(BLOCKS) == 10
    names: dict[str, object] = {"__name__": "page"}
    for (_, code), (_, shown) in zip(BLOCKS[::2], BLOCKS[1::2], strict=True):
        exec(compile(code, "docs/agents-api.md", "exec"), names)  # noqa: S102 - our own page
        assert capsys.readouterr().out == shown


def test_the_page_names_everything_public() -> None:
    of_ours = {
        name
        for name in vars(massgen_mcp)["_HOMES"]
        if vars(massgen_mcp)["_HOMES"][name].startswith("massgen_mcp.agents")
    }
    names = {name for one in (AgentConfig(), CoordinationConfig(), TimeoutConfig()) for name in dir(one)} | of_ours
    told = set(re.findall(r"`(\w+)`", PAGE))
    assert sorted(name for name in names if not name.startswith("_") and name not in told) == []
    assert set(TEMPLATES) <= told
    assert MessageTemplates.__name__ in told
