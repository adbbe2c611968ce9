"""The files of deploy/: as far as they can be tried without root, systemd and a builder of images."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from pathspec import GitIgnoreSpec

from tests.commands import run_command
from tests.harness import ROOT, SERVER_MODULE, TempHome, home

__all__ = ["home"]

DEPLOY = ROOT / "deploy"
UNIT = (DEPLOY / "massgen-mcp.service").read_text()
CONTAINER = (DEPLOY / "Containerfile").read_text()


STARTED_WITH = [
    re.findall(r"^ExecStart=\S+ (.*)$", UNIT, re.MULTILINE)[0].split(),
    json.loads(re.findall(r"^ENTRYPOINT (.*)$", CONTAINER, re.MULTILINE)[0])[1:],
]
"""The arguments of the server, in the unit and in the container."""


def test_systemd_finds_nothing_to_warn_of_in_the_unit(tmp_path: Path) -> None:
    assert [line for line in UNIT.splitlines() if not re.match(r"#|\[\w+\]$|\w+=|$", line)] == []
    if shutil.which("systemd-analyze"):
        unit = tmp_path / "massgen-mcp.service"
        unit.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", UNIT, flags=re.MULTILINE))
        checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("arguments", STARTED_WITH, ids=["unit", "container"])
def test_the_server_takes_the_options_that_it_is_started_with(home: TempHome, arguments: list[str]) -> None:
    """It has no token here, and gets as far as to say so."""
    ended = run_command(home, SERVER_MODULE, *(word.replace("%d", str(home.work)) for word in arguments))
    assert ended.returncode == 1, f"not the code of a wrong command line: {ended.stderr}"
    assert "token" in ended.stderr


def test_the_container_file_copies_what_an_installation_needs() -> None:
    copied = [word for line in re.findall(r"^COPY (.*) \S+$", CONTAINER, re.MULTILINE) for word in line.split()]
    project = (ROOT / "pyproject.toml").read_text()
    needed = {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "massgen_mcp",
        *re.findall(r'^"(\w+)" = "massgen_mcp/', project, re.M),
    }
    assert set(copied) == needed
    assert all((ROOT / name).exists() for name in copied)


def test_the_wheel_holds_every_data_file_of_the_package() -> None:
    """It takes all of the package but what `.gitignore` names, as long as nothing says otherwise."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert set(build) == {"targets"}
    assert build["targets"]["wheel"] == {
        "packages": ["massgen_mcp"],
        "force-include": {"configs": "massgen_mcp/configs"},
    }
    ignored = GitIgnoreSpec.from_lines((ROOT / ".gitignore").read_text().splitlines())
    files = [path.relative_to(ROOT) for path in (ROOT / "massgen_mcp").rglob("*") if path.is_file()]
    data = [str(path) for path in files if path.suffix not in (".py", ".pyc")]
    assert {f"massgen_mcp/page/template/{name}" for name in ("run.html", "web.js", "app.js", "statistics.js")} < set(
        data
    )
    assert [name for name in data if ignored.match_file(name)] == []


async def test_a_copy_of_the_state_directory_has_the_runs_and_their_answers(home: TempHome, tmp_path: Path) -> None:
    async with home.client() as client:
        begun = await client.call_tool("start_run", {"question": "q", "config": "scripted", "wait_seconds": 45})
        await anyio.run_process([DEPLOY / "backup.sh", home.path, tmp_path / "copy"])
    assert begun.structured_content is not None
    restored = replace(home, path=tmp_path / "copy")
    shutil.rmtree(home.path / "runs")
    result = run_command(restored, SERVER_MODULE, "result", begun.structured_content["run_id"], "--json")
    assert json.loads(result.stdout)["answer"] == begun.structured_content["answer"]
    restored.close()
