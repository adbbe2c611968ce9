"""The README tells the truth: every block of it is run or parsed here."""

import doctest
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from massgen_mcp.config.loader import parse_config, require_keys
from tests.commands import run_command
from tests.harness import ROOT, TempHome, home

__all__ = ["home"]

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
CONSOLE = [text for language, text in BLOCKS if language == "console"]


def block(language: str) -> str:
    (text,) = (text for found, text in BLOCKS if found == language)
    return text


def matches(printed: str, promised: str) -> bool:
    """Whether the promised output, in which `...` stands for anything, is what was printed."""
    return doctest.OutputChecker().check_output(promised, printed, doctest.ELLIPSIS)


def test_no_block_escapes_these_tests() -> None:
    assert sorted(language for language, _ in BLOCKS) == ["console", "console", "json", "yaml"]


def test_it_is_short_and_shows_something_to_do_at_once() -> None:
    assert len(README.split()) < 600
    assert "make demo" in "\n".join(README.splitlines()[:30])


def test_the_demo_prints_what_the_readme_shows(home: TempHome) -> None:
    command, promised = CONSOLE[0].split("\n", 1)
    assert command == "$ make demo"
    assert "$(BIN)/massgen-mcp demo" in (ROOT / "Makefile").read_text()
    ended = run_command(home, "massgen_mcp.cli.massgen_mcp.main", "demo")
    assert ended.returncode == 0
    assert matches("\n" + ended.stdout, re.sub(r"in 1\.\d\d s", "in ... s", promised) + "...\n")


def test_the_automation_example_prints_what_the_readme_shows(home: TempHome) -> None:
    command, promised = CONSOLE[1].split("\n", 1)
    arguments = ["--automation", "--config", "@examples/scripted", "Rewrite it, or mend it?"]
    assert command == '$ massgen --automation --config @examples/scripted "Rewrite it, or mend it?"'
    ended = run_command(home, "massgen_mcp.cli.massgen.main", *arguments)
    assert ended.returncode == 0
    assert matches(ended.stdout, promised)


def test_the_client_entry_starts_a_command_that_is_installed() -> None:
    entry = json.loads(block("json"))["mcpServers"]["massgen"]
    assert shutil.which(entry["command"], path=str(Path(sys.executable).parent))


@pytest.mark.parametrize("environ", [{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}])
def test_the_team_of_the_readme_is_a_valid_config(environ: dict[str, str]) -> None:
    config = parse_config(block("yaml"), "README.md", environ)
    require_keys(config, environ)
    assert [agent.id for agent in config.agents] == ["gpt", "claude", "local"]


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)]+)\)", README))
def test_its_links_lead_somewhere(target: str) -> None:
    assert (ROOT / target).exists()
