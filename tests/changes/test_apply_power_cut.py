"""A cut of the power after an apply: what it said to be in the directory is there (see `tests.soak.disk_model`)."""

import os
import subprocess
import sys
from pathlib import Path

from tests.commands import run_command
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, agent, home
from tests.needs import needs
from tests.soak import disk_model

__all__ = ["home"]

BEFORE = {"changed.txt": "before\n", "deep/changed.txt": "before\n", "deleted.txt": "before\n"}
AFTER = {"changed.txt": "after\n", "deep/changed.txt": "after\n", "deep/new.txt": "new\n", "new/file.txt": "new\n"}


def files_in(directory: Path) -> dict[str, str]:
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}


@needs("strace")
def test_an_apply_that_said_so_has_happened_after_a_power_cut(home: TempHome, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    project = disk / "project"
    for name, text in BEFORE.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    writes = [
        {"call": "write_file", "arguments": {"path": f"project/{name}", "content": text}}
        for name, text in AFTER.items()
    ]
    writes.append({"call": "delete_file", "arguments": {"path": "project/deleted.txt"}})
    settings = {"context_paths": [{"path": str(project), "permission": "write"}]}
    config = home.config("writer", agent("ada", *writes, {"answer": "Done."}), orchestrator=settings)
    run_id = run_command(home, COMMAND_MODULE, "--background", "--config", config, "Change it.").stdout.strip()
    assert run_command(home, SERVER_MODULE, "wait", run_id).returncode == 0
    model = disk_model.Disk(disk)
    model.load(disk)
    calls = tmp_path / "calls"
    command = ["strace", *disk_model.OPTIONS, "-o", str(calls), sys.executable, "-m", SERVER_MODULE, "apply", run_id]
    done = subprocess.run(command, cwd=home.work, env=dict(os.environ) | home.environ, check=False, timeout=120)
    assert done.returncode == 0
    assert files_in(project) == AFTER
    model.feed(calls.read_text(errors="replace").splitlines())
    model.cut_power(tmp_path / "afterwards")
    left = files_in(tmp_path / "afterwards" / "project")
    beside = {name for name in left if name.startswith(".massgen-apply-")}
    assert {name: text for name, text in left.items() if name not in beside} == AFTER
