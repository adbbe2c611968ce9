"""The README tells the truth: every block of it is run or parsed here, by a person who has nothing of ours yet. The
transcript is made by `docs/transcript.py`, and `test_docs` makes it again.
"""

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from massgen_mcp.config.loader import parse_config, require_keys
from massgen_mcp.config.providers.catalog import PROVIDERS, named_provider
from tests.commands import python
from tests.harness import COMMAND_MODULE, ROOT, SERVER_MODULE, home
from tests.planted import SEARCH
from tests.wire_double import Aimock

__all__ = ["home"]

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
INSTALLED, ENTERED, CHANGED, LOOKED_AT, CLONED = (text for language, text in BLOCKS if language == "bash")
ADDRESS = "https://github.com/massgen-mcp/massgen-mcp"
STRONG = str(named_provider("openai").strong_model)
KEY = f"sk-{secrets.token_hex(16)}"
SEARCH.add({"OPENAI_API_KEY": KEY})


def block(language: str) -> str:
    (text,) = (text for found, text in BLOCKS if found == language)
    return text


def block_entry() -> dict[str, Any]:
    return json.loads(block("json"))["mcpServers"]["massgen"]


def test_no_block_escapes_these_tests() -> None:
    assert " ".join(language for language, _ in BLOCKS) == "console bash bash json yaml bash bash bash"


def test_it_is_short_and_shows_a_dissent_the_commands_and_the_cost_at_once() -> None:
    assert len(README.split()) < 600
    first_screen = "\n".join(README.splitlines()[:40])
    for part in ("disagrees", "uv tool install", '\nmassgen "', "**Cost**", "**Access**", "docs/guarantees.md"):
        assert part in first_screen, part


# -- a person who reads it and does what it says ----------------------------------------------------------------------


@dataclass
class Stranger:
    """A person with a home and a directory of their own, and no variable but what a system gives."""

    place: Path
    environ: dict[str, str]

    def types(self, block: str, *, fails: bool = False) -> str:
        """Run the block in a shell; returns what it printed."""
        done = subprocess.run(
            ["bash", "-euc", block],
            cwd=self.place,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        # A network that is down is no fault of this project; the last lines of the run tell of it, in CI as well.
        if re.search("dns error|Failed to fetch|Could not connect", done.stderr):
            pytest.skip("no package index can be reached")
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout

    def has(self, name: str, script: str) -> None:
        """Put a program of this name on their PATH."""
        program = Path(self.environ["HOME"], ".local/bin", name)
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)


def _package_index() -> dict[str, str]:
    """Where packages come from on this machine, for uv: what its own variables say, and else what pip is told."""
    said = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    names = {
        "cert": "SSL_CERT_FILE",
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
    }
    of_pip = {
        names[name]: " ".join(value.split("\\n")).strip()
        for name, value in re.findall(r"^[\w:]*\.([\w-]+)='(.*)'$", said.stdout, re.MULTILINE)
        if name in names
    }
    of_pip["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip looks at all of them
    return of_pip | {name: value for name, value in os.environ.items() if name.startswith(("SSL_", "UV_"))}


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Stranger]:
    person = tmp_path / "person"
    place = person / "projects"
    place.mkdir(parents=True)
    environ = {
        **_package_index(),
        "HOME": str(person),
        "PATH": f"{person}/.local/bin:{os.defpath}",
        "MASSGEN_MCP_RUNNER_IDLE_SECONDS": "0.5",
    }
    yield Stranger(place, environ)
    shutil.rmtree(person, ignore_errors=True)  # what was installed there is no output of ours


ANSWERED: tuple[dict[str, Any], ...] = (
    {"match": {"model": STRONG, "userMessage": "Write the final answer now"}, "response": {"content": "Postgres."}},
    {
        "match": {"userMessage": '<answer name="agent3"', "toolName": "vote"},
        "response": {
            "toolCalls": [{"name": "vote", "arguments": {"agent_id": "agent1", "reason": "r", "same_as": ["agent2"]}}]
        },
    },
    {
        "match": {"toolName": "new_answer"},
        "response": {"toolCalls": [{"name": "new_answer", "arguments": {"content": "Postgres, it is there."}}]},
    },
)


def test_what_it_says_first_installs_the_command_and_answers_a_question(stranger: Stranger, aimock: Aimock) -> None:
    aimock.load(*ANSWERED)
    uv = Path(sys.executable).with_name("uv")
    stranger.has("uv", f'exec "{uv}" "$@"')
    # The address is the project's; what is there is what is here.
    stranger.environ |= {
        "UV_PYTHON": sys.executable,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{ROOT.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": ADDRESS,
        "OPENAI_BASE_URL": f"{aimock.url}/v1",
    }
    assert "Postgres." in stranger.types(INSTALLED.replace("sk-...", KEY))
    assert {request.headers["authorization"] for request in aimock.requests} == {f"Bearer {KEY}"}
    assert (ROOT / "pyproject.toml").read_text().count(f'"{ADDRESS}"') == 2


@pytest.fixture
def equipped(stranger: Stranger) -> Stranger:
    """They have the commands, as the test before this one has shown; these here cost less to start."""
    stranger.has("massgen", f'exec "{python()}" -m {COMMAND_MODULE} "$@"')
    stranger.has("massgen-mcp", f'exec "{python()}" -m {SERVER_MODULE} "$@"')
    return stranger


def test_a_client_gets_its_entry(equipped: Stranger) -> None:
    equipped.environ |= {"OPENAI_API_KEY": KEY}
    equipped.types(ENTERED)
    entry = json.loads(Path(equipped.environ["HOME"], ".claude.json").read_text())["mcpServers"]["massgen"]
    assert Path(entry["command"]).name == block_entry()["command"]
    assert list(entry["env"]) == list(block_entry()["env"])


def test_a_run_can_be_looked_at(equipped: Stranger) -> None:
    equipped.types('massgen --config @examples/scripted "Should we rewrite it or refactor it?"')
    run_id = json.loads(equipped.types("massgen runs --json"))["runs"][0]["run_id"]
    (serving,) = re.findall(r"^massgen web.*\n", LOOKED_AT, re.MULTILINE)
    printed = equipped.types(LOOKED_AT.replace("RUN", run_id).replace(serving, "massgen web --help\n"))
    assert printed.count(run_id[:12]) > 0
    assert "Votes" in printed


def test_a_change_to_code_is_checked_and_applied_when_that_is_said(equipped: Stranger) -> None:
    """With the config of the README, but for its agents."""
    writes = {"call": "write_file", "arguments": {"path": "projects/parser.txt", "content": "accepts\n"}}
    scripted = {"type": "scripted", "script": [writes, {"answer": "It accepts it."}, {"vote": "own"}]}
    config = equipped.place / ".massgen" / "config.yaml"
    config.parent.mkdir()
    written = yaml.safe_load(block("yaml"))
    config.write_text(yaml.safe_dump({**written, "agents": [{"id": "one", "backend": scripted}]}))
    (equipped.place / "Makefile").write_text("test:\n\tgrep accepts parser.txt\n")
    changed = equipped.place / "parser.txt"
    changed.write_text("refuses\n")
    *asked, applied = CHANGED.splitlines()
    assert "It accepts it." in equipped.types("\n".join(asked))
    assert changed.read_text() == "refuses\n", "off a terminal nothing is applied without --apply"
    run_id = json.loads(equipped.types("massgen runs --json"))["runs"][0]["run_id"]
    equipped.types(applied.replace("RUN", run_id))
    assert changed.read_text() == "accepts\n"
    equipped.types(f"massgen apply {run_id} --undo")
    assert changed.read_text() == "refuses\n"
    equipped.types(f"{asked[-1]} --apply")
    assert changed.read_text() == "accepts\n"


def test_a_clone_has_two_commands_one_without_a_key_and_one_for_the_tests(equipped: Stranger) -> None:
    """In a clone whose programs are installed already; what that takes, CI shows with `make demo` and `make check`."""
    cloned, *made = CLONED.splitlines()
    equipped.environ |= {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{ROOT.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": ADDRESS,
        "TESTS": "tests/words/test_sentences.py -k backticks --numprocesses 0",
    }
    equipped.types(cloned.partition(" && ")[0])
    clone = equipped.place / "massgen-mcp"
    bin_directory = clone / ".venv" / "bin"
    bin_directory.mkdir(parents=True)
    for program in ("massgen", "massgen-mcp", "pytest"):
        (bin_directory / program).symlink_to(Path(sys.executable).with_name(program))
    (clone / "node_modules").mkdir()
    for mark in (".venv/installed", ".venv/developed", "node_modules/installed"):
        (clone / mark).touch()
    printed = equipped.types("\n".join(["cd massgen-mcp", *made]))
    assert "ANSWER" in printed
    assert "1 passed" in printed


# -- the other blocks -------------------------------------------------------------------------------------------------


def test_the_client_entry_starts_a_command_that_is_installed() -> None:
    assert shutil.which(block_entry()["command"], path=str(Path(sys.executable).parent))


@pytest.mark.parametrize("environ", [{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}])
def test_the_team_of_the_readme_is_a_valid_config(environ: dict[str, str]) -> None:
    config = parse_config(block("yaml"), "README.md", environ)
    require_keys(config, environ)
    assert [agent.id for agent in config.agents] == ["gpt", "claude", "local"]
    asked = {f"{agent.backend.type}/{agent.backend.model}" for agent in config.agents if agent.id != "local"}
    assert {named for names in re.findall(r"`-m ([^`]+)`", README) for named in names.split(",")} == asked
    assert asked <= {f"{row.type}/{row.strong_model}" for row in PROVIDERS}, "as the default team asks them"


def test_the_costs_are_those_of_the_estimate_that_the_tutorial_gets() -> None:
    (estimate,) = re.findall(r"^estimate: .*", (ROOT / "docs" / "tutorial.md").read_text(), re.MULTILINE)
    figures = re.findall(r"`([^`]*\d to [^`]*)`", README)
    assert len(figures) == 2
    assert [figure for figure in figures if figure not in estimate] == []
    low, high = (float(figure) for figure in re.findall(r"\$([\d.]+)", figures[0]))
    (about,) = re.findall(r"about \$([\d.]+) per question", README)
    assert low < float(about) < high


@pytest.mark.parametrize("target", re.findall(r"(?:\]\(|src(?:set)?=\")(?!https:)([^)\"]+)", README))
def test_its_links_lead_somewhere(target: str) -> None:
    assert (ROOT / target.partition("#")[0]).exists()
