"""Where there is little room for names, paths and open files, a sentence says what to do."""

import subprocess
import sys
from pathlib import Path

import pytest

from massgen_mcp.home import MAX_PATH_BYTES
from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome, call, expect_error


def deep(path: Path, length: int) -> Path:
    while len(str(path)) < length - 200:
        path = path / ("d" * 100)
    return path / ("x" * (length - len(str(path)) - 1))


@pytest.mark.parametrize("linked", [False, True])
def test_a_state_directory_is_as_deep_as_the_store_can_be_opened_and_no_deeper(home: TempHome, linked: bool) -> None:
    for length, code in ((MAX_PATH_BYTES, 0), (MAX_PATH_BYTES + 1, 1)):
        place = deep(home.path, length)
        if linked:
            place.mkdir(parents=True)
            link = home.work / f"link{length}"
            link.symlink_to(place)
            place = link
        done = run_command(home.with_variables(MASSGEN_MCP_HOME=str(place)), SERVER_MODULE, "runs")
        assert done.returncode == code, done.stderr
        assert bool(code) == ("at most 480 bytes" in done.stderr)


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31m", "a\x7f", "a\x9fb", "back\\slash"])
async def test_a_context_path_that_cannot_be_shown_to_agents_is_refused_before_a_run(home: TempHome, name: str) -> None:
    (home.work / name).mkdir()
    given = {"question": "q", "models": ["scripted/x"], "context_paths": [str(home.work / name)]}
    async with home.client() as client:
        code, told = await expect_error(client, "start_run", **given)
        assert (code, "control characters or a backslash" in told) == ("invalid_arguments", True)
        assert (await call(client, "list_runs"))["runs"] == []


@pytest.mark.parametrize("files", [18, 28])
def test_too_few_open_files_are_told_in_a_sentence(home: TempHome, files: int) -> None:
    command = f"{sys.executable} -m massgen_mcp.cli.massgen.main --automation --config @examples/scripted q"
    limited = ["sh", "-c", f"ulimit -n {files}; exec {command}"]
    done = subprocess.run(limited, cwd=home.work, env=home.environ, capture_output=True, text=True, check=False)
    assert "ERROR internal" not in done.stderr
    assert not done.returncode or "raise the limit (ulimit -n)" in done.stderr
