"""On a machine that lacks something it is named, its tests are left out and counted, and in CI they fail."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT

OF_A_TEST = """
from tests.needs import needs, npm_tool

@needs("strace")
def test_a_fault(): raise AssertionError("no strace")

def test_a_tool(): npm_tool("nothing/of/the/kind.js")
"""


def run(path: Path, *command: str, ci: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": str(path), "HOME": str(path), "CI": ci, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command], env=environ, cwd=path, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_what_is_missing_is_named_before_the_work_and_ends_it_in_ci(tmp_path: Path, ci: str, code: int) -> None:
    (tmp_path / "git").symlink_to(shutil.which("git") or "/usr/bin/git")
    done = run(tmp_path, str(ROOT / "tests/needs.py"), "programs", ci=ci)
    assert done.returncode == code
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["strace", "bwrap", "skopeo", "umoci", "chromium"]
    assert "MISSING: strace (Debian: apt install strace). NOT TRIED: " in done.stdout


@pytest.mark.parametrize(("ci", "outcome"), [("", "2 skipped"), ("true", "2 failed")])
def test_its_tests_are_left_out_and_counted_and_fail_in_ci(tmp_path: Path, ci: str, outcome: str) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_terminal_summary\n")
    (tmp_path / "test_it.py").write_text(OF_A_TEST)
    done = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path), ci=ci)
    assert outcome in done.stdout, done.stdout + done.stderr
    told = "TESTS LEFT OUT: 1, because strace is missing" in done.stdout
    assert told is not bool(ci)
