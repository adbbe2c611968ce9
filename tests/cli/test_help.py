"""`--help` is a manual that fits the terminal and costs nothing; shells complete what it lists."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from massgen_mcp.cli.commands import GROUPS, NAMES
from massgen_mcp.cli.manual import EXIT_CODES
from massgen_mcp.config.providers.catalog import named_provider
from massgen_mcp.home import find_home
from massgen_mcp.runs.engine import NewRun
from massgen_mcp.runs.store.opening import local_engine
from tests.cli.codes import CODES_OF_MASSGEN, CODES_OF_VERBS
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, without_escapes
from tests.typist import typist

COMMANDS = {"massgen": COMMAND_MODULE, "massgen-mcp": SERVER_MODULE}
HEAVY = ("anyio", "mcp", "pydantic", "yaml", "openai", "anthropic", "httpx2", "argcomplete", "prompt_toolkit", "rich")


LINES = 25


@pytest.mark.parametrize("arguments", [["--help"], ["help"], ["-h"]], ids=" ".join)
def test_the_first_help_fits_one_screen(home: TempHome, arguments: list[str]) -> None:
    done = [run_command(home, module, *arguments) for module in COMMANDS.values()]
    assert [(one.returncode, one.stderr) for one in done] == [(0, "")] * 2
    assert done[0].stdout == done[1].stdout
    lines = done[0].stdout.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= 80, max(lines, key=len)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_whole_help_fits_the_terminal(home: TempHome, width: int) -> None:
    done = run_command(home.with_variables(COLUMNS=str(width)), COMMAND_MODULE, "help", "all")
    assert done.returncode == 0
    assert done.stderr == ""
    assert without_escapes(done.stdout)
    prose = [line for line in done.stdout.splitlines() if not line.lstrip().startswith(("massgen", "git diff", "["))]
    assert max(map(len, prose)) <= width, max(prose, key=len)
    for section in (
        "examples:",
        "exit codes of a question",
        "environment:",
        "files:",
        *(f"{group}:" for group in GROUPS),
    ):
        assert f"\n{section}" in done.stdout
    for name in NAMES:
        assert re.search(rf"^  {name} ", done.stdout, re.MULTILINE), name


@pytest.mark.parametrize("module", COMMANDS.values(), ids=COMMANDS)
def test_help_and_version_import_nothing_heavy(home: TempHome, module: str) -> None:
    for option in ("--help", "--version"):
        command = [sys.executable, "-X", "importtime", "-m", module, option]
        done = subprocess.run(command, env=home.environ, capture_output=True, text=True, timeout=60, check=True)
        imported = set(re.findall(r"^import time:\s+\d+ \|\s+\d+ \|\s+([\w.]+)$", done.stderr, re.MULTILINE))
        assert "argparse" in imported
        assert [name for name in HEAVY if name in imported] == []


def test_help_names_the_exit_codes_that_there_are() -> None:
    def listed(title: str) -> set[int]:
        section = EXIT_CODES.partition(f"exit codes of {title}")[2].partition("\n\n")[0]
        return {int(number) for number in re.findall(r"^  (\d+) ", section, re.MULTILINE)}

    assert listed("a question") == CODES_OF_MASSGEN
    assert listed("the other verbs") == CODES_OF_VERBS


# -- completion -------------------------------------------------------------------------------------------------------


@pytest.fixture
def shell_home(home: TempHome) -> TempHome:
    """A home whose PATH has our commands as they are installed."""
    installed = Path(sys.executable).parent
    assert all((installed / name).is_file() for name in COMMANDS)
    return home.with_variables(PATH=f"{installed}{os.pathsep}{os.environ['PATH']}", TERM="dumb", INPUTRC="/dev/null")


def test_bash_completes_what_a_person_begins_to_type(shell_home: TempHome) -> None:
    bash = shutil.which("bash")
    assert bash
    (shell_home.work / "my-team.yaml").touch()
    with typist([bash, "--norc", "--noprofile", "-i"], cwd=shell_home.work, environ=shell_home.environ) as person:
        person.type("PS1='> '\n")
        for name in COMMANDS:
            person.type(f'eval "$({name} --completion bash)"; echo loaded-$((1 + 1))\n')
            person.expect("loaded-2")
        for typed, completed in (
            ("massgen --autom\t", "massgen --automation "),
            ("massgen --config @examples/two_p\t", "massgen --config @examples/two_providers "),
            ("massgen --config my-\t", "massgen --config my-team.yaml "),
            (
                "massgen --model openai/gpt-5,claude/claude-op\t",
                f"massgen --model openai/gpt-5,claude/{named_provider('claude').strong_model} ",
            ),
            ("massgen --completion zs\t", "massgen --completion zsh "),
            ("massgen-mcp canc\t", "massgen-mcp cancel "),
            ("massgen revie\t", "massgen review "),
            ("massgen result --vi\t", "massgen result --view "),
            ("massgen configs scr\t", "massgen configs scripted "),
        ):
            person.type(f"{typed}\x01echo :\x05.\n")
            person.expect("\n:")
            assert person.expect("\n") == f"{completed}.", typed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("name", COMMANDS)
def test_completion_code_is_printed_for_each_shell(home: TempHome, name: str, shell: str) -> None:
    done = run_command(home, COMMANDS[name], "--completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert name in done.stdout
    assert "_ARGCOMPLETE" in done.stdout


def test_run_ids_are_completed_and_an_empty_store_is_no_error(shell_home: TempHome) -> None:
    def candidates() -> list[str]:
        line = "massgen status run-"
        environ = {
            **shell_home.environ, "_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)),
            "_ARGCOMPLETE_STDOUT_FILENAME": str(shell_home.work / "candidates"),
        }  # fmt: skip
        command = [sys.executable, "-m", SERVER_MODULE]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout + done.stderr == ""
        return (shell_home.work / "candidates").read_text().split("\v")

    assert candidates() == [""]
    assert not shell_home.path.exists(), "looking for candidates makes nothing"
    home = find_home(shell_home.environ).ensure()
    store = local_engine(home).store
    added = [f"run-{letter}" for letter in "ab"]
    for run_id in added:
        store.queue.add(NewRun(run_id, question="q", config="c", fingerprint="f", request_hash="h"))
    store.database.close()
    assert sorted(candidates()) == added
