"""Every file of `examples/` is run here, with the commands as they are installed."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from massgen_mcp.config.loader import load_config
from massgen_mcp.home import find_home
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.opening import local_engine
from tests.harness import ROOT, TempHome, agent, home
from tests.run_requests import asked

__all__ = ["home"]

EXAMPLES = ROOT / "examples"
ELSEWHERE = {"__init__.py", "README.md", "notebook.ipynb"}
"""Not examples, and one that tests/api/test_notebook.py runs in a kernel. The simulation has tests of its own."""


@pytest.fixture
def installed(home: TempHome) -> TempHome:
    return home.with_variables(PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def run(home: TempHome, name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    program: Sequence[str] = [sys.executable] if name.endswith(".py") else []
    return subprocess.run(
        [*program, str(EXAMPLES / name), *arguments],
        cwd=home.work, env=home.environ, capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip


def test_no_example_escapes_these_tests() -> None:
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - ELSEWHERE
    assert files == set(re.findall(r'run\(\s*\w+, "(\w+\.\w+)"', Path(__file__).read_text()))


def test_a_script_decides_by_the_exit_code(installed: TempHome) -> None:
    def told(*agents: dict[str, object], **settings: object) -> str:
        return run(installed, "exit_codes.sh", installed.config("team", *agents, **settings), "q").stdout

    assert re.fullmatch(r"answered by agent_a: /.*/final/agent_a/answer.txt\n", told(agent("a", {"answer": "x"})))
    assert told(agent("a b")) == "correct the command line, the config or the keys\n"
    assert told(agent("a", {"fail": "auth"})).startswith("the team failed: auth: ")
    limits = {"orchestrator_timeout_seconds": 3}
    late = told(agent("a", {"answer": "early"}), agent("b", {"hang": True}), timeout_settings=limits)
    assert late == "out of time; so far: early\n"


def test_a_second_turn_in_python_goes_on_with_the_first(installed: TempHome) -> None:
    done = run(
        installed, "two_turns.py", "@examples/scripted", "Should we rewrite it or refactor it?", "And what first?"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Neither: replace it piece by piece.") == 2
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"agent_b won with \{.*\}; cost: \{'usd': .*\}", last)


def test_a_team_answers_where_a_model_is_wanted(installed: TempHome) -> None:
    done = run(installed, "a_team_as_a_model.py", "massgen/model:scripted/x", "Should we rewrite it or refactor it?")
    assert done.returncode == 0, done.stderr
    assert "Should we rewrite it or refactor it?" in done.stdout
    assert int(done.stdout.splitlines()[-1].split()[0]) > 0


def test_a_review_comes_back_as_findings_with_file_and_line(installed: TempHome) -> None:
    done = run(installed, "review_findings.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "cache.py:10: blocker: Lives a thousand times too long. Compare with `self.ttl`.\n"


def test_the_tests_of_a_repository_decide_and_not_the_best_words(installed: TempHome) -> None:
    done = run(installed, "evidence_decides.sh", "shop")
    assert done.returncode == 0, done.stderr
    assert "WINNER: agent_c" in done.stdout
    told = re.sub("AssertionError: .*?; ", "", done.stdout)
    assert "the files of quick's 1st answer: tests/test_total.py: failed, tests/test_mean.py: passed" in told
    assert "the files of sly's 1st answer: tests/test_total.py: passed, tests/test_mean.py: failed" in told
    assert "the final files: tests/test_total.py: passed twice, tests/test_mean.py: passed twice" in done.stdout
    patch = done.stdout.partition("--- the winner's patch\n")[2]
    assert "-    return total(numbers) / len(numbers) + 1\n+    return total(numbers) / len(numbers)\n" in patch


async def test_a_run_in_the_background_is_operated_by_its_id(installed: TempHome) -> None:
    service = RunService(local_engine(find_home(installed.environ)), installed.environ)
    view, _ = await service.start(await service.prepare(asked("q", load_config("@examples/scripted", environ={}))))
    done = run(installed, "background_run.sh", view.row.run_id, "60")
    assert done.returncode == 0, done.stderr
    assert "4. Set an end date for the old code" in done.stdout
    stuck = load_config(installed.config("stuck", agent("a", {"hang": True})), environ={})
    view, _ = await service.start(await service.prepare(asked("q", stuck)))
    assert f"{view.row.run_id}: cancelled" in run(installed, "background_run.sh", view.row.run_id, "0.1").stdout
    service.close()


def test_a_nested_run_is_followed_by_its_status_file(installed: TempHome) -> None:
    done = run(installed, "nested_run.py", "@examples/scripted", "q")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    percentages = [int(line.partition(" %: ")[0]) for line in lines if " %: " in line]
    assert percentages[-1] == 100
    assert len(percentages) > 2, "it was seen on its way"
    assert "4. Set an end date for the old code, and hold it." in lines


def test_a_client_delegates_over_mcp(installed: TempHome) -> None:
    done = run(installed, "mcp_client.py", "scripted", "q")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Neither: replace it piece by piece.")
    assert "bo won with {" in done.stdout
