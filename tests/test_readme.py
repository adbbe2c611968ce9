"""The README tells the truth: every block of it is run or parsed here, by somebody who has nothing of ours yet."""

import doctest
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

import pytest
import yaml

from massgen_mcp.config.loader import parse_config, require_keys
from massgen_mcp.config.providers.catalog import PROVIDERS, named_provider
from tests.commands import python, run_command
from tests.harness import COMMAND_MODULE, ROOT, SERVER_MODULE, TempHome, home
from tests.planted import SEARCH
from tests.wire_double import Aimock

__all__ = ["home"]

README = (ROOT / "README.md").read_text()
SHOWN = re.sub(r"<details>.*?</details>", "", README, flags=re.DOTALL)
"""Without the workflows to copy, which are tested with the action."""
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", SHOWN, re.DOTALL)
CONSOLE = [text for language, text in BLOCKS if language == "console"]
INSTALLED, ASKED, LOOKED_AT, CHANGED = (text for language, text in BLOCKS if language == "bash")
ADDRESS = "https://github.com/massgen-mcp/massgen-mcp"
STRONG = str(named_provider("openai").strong_model)
KEY = f"sk-{secrets.token_hex(16)}"
SEARCH.add({"OPENAI_API_KEY": KEY})


def block(language: str) -> str:
    (text,) = (text for found, text in BLOCKS if found == language)
    return text


def matches(printed: str, promised: str) -> bool:
    """Whether the promised output, in which `...` stands for anything, is what was printed."""
    return doctest.OutputChecker().check_output(promised, printed, doctest.ELLIPSIS)


def test_no_block_escapes_these_tests() -> None:
    assert " ".join(language for language, _ in BLOCKS) == "bash console bash json bash yaml bash console"


def test_it_is_short_and_shows_something_to_do_at_once() -> None:
    assert len(SHOWN.split()) <= 750
    assert "massgen-mcp demo" in "\n".join(README.splitlines()[:30])
    assert "$(BIN)/massgen-mcp demo" in (ROOT / "Makefile").read_text()


# -- somebody who reads it and does what it says ----------------------------------------------------------------------


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


def test_what_it_says_first_installs_both_commands_shows_a_run_and_enters_a_client(stranger: Stranger) -> None:
    uv = Path(sys.executable).with_name("uv")
    stranger.has("uv", f'exec "{uv}" "$@"')
    # The address is the project's; what is there is what is here.
    stranger.environ |= {
        "UV_PYTHON": sys.executable,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{ROOT.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": ADDRESS,
    }
    printed = stranger.types(INSTALLED.replace("sk-...", KEY))
    assert (ROOT / "pyproject.toml").read_text().count(f'"{ADDRESS}"') == 2

    command, promised = CONSOLE[0].split("\n", 1)
    assert command == "$ massgen-mcp demo"
    assert command.removeprefix("$ ") in INSTALLED
    assert matches("\n" + printed, re.sub(r"in 1\.\d\d s", "in ... s", promised))
    entry = json.loads(Path(stranger.environ["HOME"], ".claude.json").read_text())["mcpServers"]["massgen"]
    assert Path(entry["command"]) == Path(stranger.environ["HOME"], ".local/bin/massgen-mcp")
    assert list(entry["env"]) == ["OPENAI_API_KEY"]


@pytest.fixture
def equipped(stranger: Stranger) -> Stranger:
    """They have the commands, as the test before this one has shown; these here cost less to start."""
    stranger.has("massgen", f'exec "{python()}" -m {COMMAND_MODULE} "$@"')
    stranger.has("massgen-mcp", f'exec "{python()}" -m {SERVER_MODULE} "$@"')
    return stranger


def test_the_first_question_is_answered_and_the_run_can_be_looked_at(equipped: Stranger, aimock: Aimock) -> None:
    aimock.load(
        {"match": {"model": STRONG, "userMessage": "Write the final answer now"}, "response": {"content": "Postgres."}},
        {
            "match": {"userMessage": '<answer name="agent3"', "toolName": "vote"},
            "response": {
                "toolCalls": [
                    {"name": "vote", "arguments": {"agent_id": "agent1", "reason": "r", "same_as": ["agent2"]}}
                ]
            },
        },
        {
            "match": {"toolName": "new_answer"},
            "response": {"toolCalls": [{"name": "new_answer", "arguments": {"content": "Postgres, it is there."}}]},
        },
    )
    equipped.environ |= {"OPENAI_BASE_URL": f"{aimock.url}/v1", "OPENAI_API_KEY": KEY}
    assert "Postgres." in equipped.types(ASKED)
    assert {request.headers["authorization"] for request in aimock.requests} == {f"Bearer {KEY}"}

    run_id = json.loads(equipped.types("massgen-mcp runs --json"))["runs"][0]["run_id"]
    (serving,) = re.findall(r"^massgen-mcp web.*\n", LOOKED_AT, re.MULTILINE)
    printed = equipped.types(LOOKED_AT.replace("RUN", run_id).replace(serving, "massgen-mcp web --help\n"))
    assert "Postgres." in printed
    assert "report.html" in printed


def test_a_change_to_code_is_checked_and_applied(equipped: Stranger) -> None:
    """With the config of the README, but for its agents."""
    writes = {"call": "write_file", "arguments": {"path": "projects/parser.txt", "content": "accepts\n"}}
    scripted = {"type": "scripted", "script": [writes, {"answer": "It accepts it."}, {"vote": "own"}]}
    config = equipped.place / ".massgen" / "config.yaml"
    config.parent.mkdir()
    written = yaml.safe_load(block("yaml"))
    config.write_text(yaml.safe_dump({**written, "agents": [{"id": "one", "backend": scripted}]}))
    (equipped.place / "Makefile").write_text("test:\n\tgrep accepts parser.txt\n")
    (equipped.place / "parser.txt").write_text("refuses\n")
    *asked, applied = CHANGED.splitlines()
    assert "It accepts it." in equipped.types("\n".join(asked))
    run_id = json.loads(equipped.types("massgen-mcp runs --json"))["runs"][0]["run_id"]
    asked_for = equipped.place / "parser.txt"
    assert asked_for.read_text() == "refuses\n", "off a terminal nothing is applied unasked"
    equipped.types(f"massgen-mcp apply {run_id}")
    assert asked_for.read_text() == "accepts\n"
    equipped.types(f"massgen-mcp apply {run_id} --undo")
    assert asked_for.read_text() == "refuses\n"
    equipped.types(applied.replace("RUN", run_id))
    assert asked_for.read_text() == "accepts\n"


# -- the other blocks -------------------------------------------------------------------------------------------------


def test_the_automation_example_prints_what_the_readme_shows(home: TempHome) -> None:
    command, promised = CONSOLE[1].split("\n", 1)
    arguments = ["--automation", "--config", "@examples/scripted", "Rewrite it, or mend it?"]
    assert command == '$ massgen --automation --config @examples/scripted "Rewrite it, or mend it?"'
    ended = run_command(home, COMMAND_MODULE, *arguments)
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
    asked = {f"{agent.backend.type}/{agent.backend.model}" for agent in config.agents if agent.id != "local"}
    assert {named for names in re.findall(r"--models ([^`]+)`", README) for named in names.split(",")} == asked
    assert asked <= {f"{row.type}/{row.strong_model}" for row in PROVIDERS}, "as the default team asks them"


def test_the_costs_are_those_of_the_estimate_that_the_tutorial_gets() -> None:
    (estimate,) = re.findall(r"^estimate: .*", (ROOT / "docs" / "tutorial.md").read_text(), re.MULTILINE)
    figures = re.findall(r"`([^`]*\d to [^`]*)`", README)
    assert len(figures) == 3
    assert [figure for figure in figures if figure not in estimate] == []


@pytest.mark.parametrize("target", re.findall(r"(?:\]\(|src(?:set)?=\")(?!https:)([^)\"]+)", README))
def test_its_links_lead_somewhere(target: str) -> None:
    assert (ROOT / target.partition("#")[0]).exists()
