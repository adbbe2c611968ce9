"""What a policy shows is shown, and nothing more, in every level that this machine has."""

import os
import shutil
from pathlib import Path

import anyio
import pytest

from massgen_mcp.sandbox import SCRATCH, LevelName, Policy, ResourceLimits, SandboxFailed, VisiblePath, spawn
from tests.sandbox.table import LEVELS

pytestmark = pytest.mark.parametrize("level", LEVELS)


async def told(level: LevelName, policy: Policy, command: str) -> str:
    """What the command prints."""
    output = b""
    async with spawn(["/bin/sh", "-c", command], policy, level) as process:
        try:
            while True:
                output += await process.stdout.receive()
        except anyio.EndOfStream:
            assert (await process.wait()).reason == "exited"
    return output.decode()


def places(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "workspace", tmp_path / "scratch"
    for place in made:
        place.mkdir()
    return made


async def test_the_whole_machine_shown_is_still_without_its_processes_and_devices(
    tmp_path: Path, level: LevelName
) -> None:
    policy = Policy(*places(tmp_path), shown=(VisiblePath(Path("/"), "/context/root"),))
    assert await told(level, policy, "head -c 1 /context/root/etc/os-release > /dev/null && echo fine") == "fine\n"
    own = f"/context/root/proc/{os.getpid()}"
    deeds = f"cat {own}/environ; ls {own}/fd; ls /context/root/dev /context/root/sys /context/root/run; echo over"
    assert [line for line in (await told(level, policy, deeds)).splitlines() if ": " not in line] == ["over"]


async def test_what_is_hidden_stays_so_where_it_holds_the_workspace(tmp_path: Path, level: LevelName) -> None:
    state = tmp_path / "state"
    (state / "runs").mkdir(parents=True)
    (state / "other.txt").write_text("of another run\n")
    workspace, scratch = places(state / "runs")
    policy = Policy(workspace, scratch, shown=(VisiblePath(tmp_path, "/context/all"),), hidden=(state,))
    printed = await told(level, policy, "echo mine > f; cat f; cat /context/all/state/other.txt; ls /context/all/state")
    assert "mine" in printed
    assert "of another run" not in printed
    assert "other.txt\n" not in printed.replace("cat: /context/all/state/other.txt: Permission denied\n", "")


async def test_a_person_s_large_directory_may_grow_by_what_a_command_may_write(
    tmp_path: Path, level: LevelName
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "large").write_bytes(b"x" * (40 << 20))
    bounds = ResourceLimits(disk_bytes=32 << 20, seconds=60)
    shown = (VisiblePath(project, "/context/project", writable=True),)
    policy = Policy(*places(tmp_path), shown=shown, bounds=bounds)
    deed = "head -c 8000000 /dev/zero > /context/project/new; sleep 1; echo fine"
    try:
        assert await told(level, policy, deed) == "fine\n"
    finally:
        shutil.rmtree(project)


async def test_the_variables_of_a_command_reach_no_program_outside(tmp_path: Path, level: LevelName) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    traced = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(outside / "log"), "WORD": "schön 日本"}
    policy = Policy(*places(tmp_path), environ=traced)
    assert "of a command: schön 日本" in await told(level, policy, 'echo "of a command: $WORD"')
    assert not [*outside.iterdir()]


@pytest.mark.parametrize("place", ["/workspace/a/b", "/workspace/link", "/workspace/real/link/b", f"{SCRATCH}/link/b"])
async def test_nothing_is_shown_below_a_link_that_a_command_left(tmp_path: Path, level: LevelName, place: str) -> None:
    if level != "bubblewrap":
        pytest.skip("only there are places made")
    workspace, scratch = places(tmp_path)
    victim, shown = tmp_path / "victim", tmp_path / "shown"
    for made in (victim, shown, workspace / "real"):
        made.mkdir()
    for link in (workspace / "a", workspace / "link", workspace / "real/link", scratch / "link"):
        link.symlink_to(f"/oldroot{victim}")
    policy = Policy(workspace, scratch, shown=(VisiblePath(shown, place),))
    with pytest.raises(SandboxFailed, match="link"):
        await told(level, policy, "true")
    assert [*victim.iterdir()] == []
