"""A state directory belongs to one machine: one that others could share is refused, with a way out."""

import os
import subprocess
import sys

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from massgen_mcp.file_systems import type_in_statfs, type_of_mount
from tests.faults import ROOT, can_mount
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, expect_error

MOUNTINFO = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
31 27 0:40 / /home rw,nosuid,relatime shared:7 - nfs4 nas:/home rw,vers=4.2
32 27 0:41 / /mnt/share\\040one rw,relatime - cifs //nas/share rw
33 27 0:42 / /mnt/far rw,relatime shared:9 master:3 - fuse.sshfs me@far: rw,user_id=1000
34 27 0:43 / /mnt/unknown rw,relatime - fuse somewhere rw
35 27 8:17 / /mnt/stick rw,relatime - fuseblk /dev/sdb1 rw
36 27 0:44 / /merged rw,relatime - fuse.fuse-overlayfs fuse-overlayfs rw
37 27 0:45 / /ctr rw,relatime - overlay overlay rw,lowerdir=/l
38 27 0:46 / /mnt/c rw,relatime - 9p C:\\134 rw,aname=drvfs
39 27 0:47 / /shared rw,relatime - virtiofs host rw
40 27 0:48 / /run rw - tmpfs none rw
41 27 0:49 / /mnt/ceph rw,relatime - ceph 10.0.0.1:/ rw
42 27 0:50 / /cluster rw,relatime - lustre 10.0.0.1@tcp:/fs rw
43 27 0:51 / /bricks rw,relatime - fuse.glusterfs far:/volume rw
44 27 0:52 / /afs rw,relatime - afs AFS rw
"""


@pytest.mark.parametrize(
    ("mount", "kind"),
    [
        *((31, "nfs4"), (32, "cifs"), (33, "fuse.sshfs"), (34, "fuse"), (38, "9p"), (39, "virtiofs"), (41, "ceph")),
        *((42, "lustre"), (43, "fuse.glusterfs"), (44, "afs")),
        *((27, None), (35, None), (36, None), (37, None), (40, None), (99, None), (3, None)),
    ],
)
def test_mounts_of_linux_are_told_local_or_not_by_their_type(mount: int, kind: str | None) -> None:
    assert type_of_mount(MOUNTINFO, mount) == kind


@pytest.mark.parametrize(
    ("flags", "name", "kind"),
    [
        *((0x1000, b"apfs", None), (0x1000, b"hfs", None), (0, b"nfs", "nfs"), (0, b"smbfs", "smbfs")),
        *((0, b"newfs", "newfs"), (0x1000, b"macfuse", "macfuse"), (0x1000, b"virtiofs", "virtiofs")),
    ],
)
def test_mounts_of_macos_are_told_local_or_not_by_flag_and_type(flags: int, name: bytes, kind: str | None) -> None:
    laid_out = bytes(64) + flags.to_bytes(4, sys.byteorder) + bytes(4) + name.ljust(16, b"\0") + bytes(2048)
    assert type_in_statfs(laid_out) == kind


class TestOnARealMount:
    """Of the kind that sshfs makes; answered by this suite, in a mount namespace of its own."""

    @pytest.fixture(autouse=True)
    def command(self, home: TempHome) -> list[str]:
        """What a command begins with so that it sees the home on a network file system."""
        if not (can_mount() and os.access("/dev/fuse", os.R_OK | os.W_OK)):
            pytest.skip("this user may not mount FUSE here, and no other network file system needs no server")
        home.path.mkdir()
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        return ["unshare", "--mount", *user, sys.executable, "-m", "tests.fuse_mount", str(home.path), sys.executable]

    async def test_every_tool_refuses_the_home_with_a_way_out(self, home: TempHome, command: list[str]) -> None:
        server = StdioServerParameters(
            command=command[0], args=[*command[1:], "-m", SERVER_MODULE], env=home.environ, cwd=ROOT
        )
        async with Client(stdio_client(server)) as client:
            for tool, arguments in (
                ("start_run", {"question": "q", "models": ["scripted/x"]}),
                ("list_runs", {}),
                ("get_status", {"run_id": "run-x"}),
            ):
                code, told = await expect_error(client, tool, **arguments)
                assert code == "store_unavailable"
                assert "network file system (fuse.sshfs)" in told
                assert "MASSGEN_MCP_HOME" in told

    def test_the_doctor_names_it_and_what_to_do(self, home: TempHome, command: list[str]) -> None:
        done = run(home, *command, "-m", SERVER_MODULE, "doctor")
        _, _, told = done.stdout.partition("fail  file system: ")
        assert "(fuse.sshfs)" in told.splitlines()[0]
        assert "local disk" in told.splitlines()[1]

    def test_a_command_line_run_works_without_the_home_and_says_that_it_is_in_no_list(
        self, home: TempHome, command: list[str]
    ) -> None:
        done = run(
            home,
            *command,
            "-m",
            COMMAND_MODULE,
            "--automation",
            "--model",
            "x",
            "--backend",
            "scripted",
            "six by seven?",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        lines = done.stdout.splitlines()
        (warning,) = [line for line in lines if line.startswith("WARNING: ")]
        assert "isn't in the list" in warning
        assert "fuse.sshfs" in warning
        assert lines[-1].startswith("COMPLETED: ")


def run(home: TempHome, *command: str) -> subprocess.CompletedProcess[str]:
    environ = {**home.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=home.work, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def test_a_command_line_run_on_a_local_disk_says_nothing_about_lists(home: TempHome) -> None:
    done = run(
        home, sys.executable, "-m", COMMAND_MODULE, "--automation", "--model", "x", "--backend", "scripted", "q?"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "isn't in the list" not in done.stdout
