"""What is installed here is looked at before a model is asked, and whoever brought a wrong version is named."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from massgen_mcp.config.installed import admits, wrong_versions
from tests.commands import ROOT, run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, home

__all__ = ["home"]

TOLD = "openai 2.54.0 is installed, but massgen-mcp needs openai<4,>=3.52; langchain-odd 1.0 asks for openai<3"


def installed(place: Path, name: str, number: str, *requires: str) -> None:
    """A package as an installer writes it down."""
    directory = place / f"{name.replace('-', '_')}-{number}.dist-info"
    directory.mkdir(parents=True)
    lines = [f"Requires-Dist: {line}" for line in requires]
    (directory / "METADATA").write_text(
        "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {number}", *lines])
    )


def test_a_package_in_a_wrong_version_is_named_with_who_brought_it_before_anybody_is_asked(
    home: TempHome, tmp_path: Path
) -> None:
    installed(tmp_path / "first", "openai", "2.54.0")
    installed(tmp_path / "first", "langchain-odd", "1.0", "openai<3,>=2.20", "unrelated; extra == 'x'")
    older = home.with_variables(PYTHONPATH=str(tmp_path / "first"), OPENAI_API_KEY="sk-planted-0815-4711-of-nobody")
    doctor = run_command(older, SERVER_MODULE, "doctor").stdout
    assert f"fail  packages: {TOLD}" in " ".join(doctor.split("\n"))
    asked = run_command(older, COMMAND_MODULE, "--automation", "--model", "openai/gpt-5", "q")
    assert asked.returncode == 1
    assert TOLD in asked.stderr
    assert "pip install 'openai<4,>=3.52'" in asked.stderr
    scripted = run_command(older, COMMAND_MODULE, "--automation", "--config", "@examples/scripted", "q")
    assert scripted.returncode == 0, "who needs none of it is not held up"


def test_what_is_installed_here_fits_together_and_so_does_what_the_docs_name() -> None:
    assert wrong_versions() == ()
    (named,) = re.findall(r'"langchain-litellm([^"]+)"', (ROOT / "docs/python.md").read_text())
    assert admits(named, version("langchain-litellm"))


@pytest.mark.parametrize(
    ("wanted", "fits", "not_these"),
    [
        ("<4,>=3.52", "3.52 3.52.0 3.99.1", "2.54 3.51.9 4.0 4"),
        ("!=1.107.0,<2,>=1.83.0", "1.83 1.106.9 1.107.1", "1.107.0 2 1.82.8"),
        ("~=2.1", "2.1 2.9.3", "2.0 3.0"),
        ("==2.14.*", "2.14 2.14.7", "2.15 2"),
        ("", "1 2.0rc1", ""),
    ],
)
def test_versions_are_compared_as_installers_do(wanted: str, fits: str, not_these: str) -> None:
    assert [one for one in fits.split() if not admits(wanted, one)] == []
    assert [one for one in not_these.split() if admits(wanted, one)] == []


def test_validate_says_what_a_config_wants_and_cannot_have(home: TempHome, tmp_path: Path) -> None:
    team = tmp_path / "meta.yaml"
    team.write_text(
        """agents:
  - id: reader
    backend: {type: scripted, enable_mcp_command_line: true, command_line_execution_mode: local}
    system_message: |
      - Run MassGen in automation mode using:
        uv run massgen --automation --config [config] "[question]"
  - id: coder
    backend: {type: openai, model: gpt-5}
"""
    )
    installed(tmp_path / "first", "openai", "2.54.0")
    bare = home.with_variables(PYTHONPATH=str(tmp_path / "first"))
    told = run_command(bare, COMMAND_MODULE, "--validate", str(team)).stdout
    assert "OK: " in told
    assert "Note: reader: the instructions mention running massgen, but massgen isn't" in told
    assert "add `nested: {}`" in told
    assert "Note: coder: openai 2.54.0 is installed, but massgen-mcp needs openai<4" in told
    team.write_text(team.read_text() + "nested: {}\n")
    assert (
        "the instructions mention running massgen, but massgen isn't in the command sandbox"
        not in run_command(bare, COMMAND_MODULE, "--validate", str(team)).stdout
    )
