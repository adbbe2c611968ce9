"""Where the machine around a command is not as usual, it says what is wrong and what to do, or works all the same."""

import errno
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from massgen_mcp.errors import MassgenError, translate_system_error
from massgen_mcp.home import find_home
from massgen_mcp.sandbox import policy, probe
from tests.harness import COMMAND_MODULE, SERVER_MODULE, TempHome, agent, expect_error, home

__all__ = ["home"]

GONE = "the working directory was deleted; change to an existing directory and start again"


def in_a_deleted_directory(home: TempHome, *command: str) -> subprocess.CompletedProcess[str]:
    shell = f'mkdir -p {home.work}/gone && cd {home.work}/gone && rmdir {home.work}/gone && exec "$@"'
    given = ["sh", "-c", shell, "sh", sys.executable, "-m", *command]  # a copy does not start there
    return subprocess.run(given, env=home.environ, capture_output=True, text=True, check=False, timeout=90)


@pytest.mark.parametrize("command", [(COMMAND_MODULE, "--automation", "q"), (SERVER_MODULE, "doctor")])
def test_a_deleted_working_directory_is_named_and_is_no_fault_of_the_store(
    home: TempHome, command: tuple[str, ...]
) -> None:
    done = in_a_deleted_directory(home, *command)
    assert done.returncode != 0
    assert f"ERROR invalid_action: {GONE}" in done.stderr


async def test_a_server_whose_working_directory_was_deleted_says_so(
    home: TempHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = home.work / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    async with home.client() as client:
        gone.rmdir()
        monkeypatch.chdir(home.work)
        config = home.config("solo", agent("solo", {"answer": "done"}))
        assert await expect_error(client, "start_run", question="q", config=config) == ("invalid_action", GONE)


def test_a_user_without_a_home_is_told_which_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> pwd.struct_passwd:
        raise KeyError

    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.raises(MassgenError, match=rf"user {os.getuid()} has no home directory; set HOME to") as refused:
        find_home({})
    assert refused.value.code == "invalid_arguments"
    assert find_home({"MASSGEN_MCP_HOME": "/state"}).path == Path("/state")


def test_a_home_that_cannot_be_looked_into_is_left_out_of_what_commands_may_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", f"/{'x' * 300}")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/opt/{'y' * 300}/bin")
    policy.readable.cache_clear()
    try:
        assert Path("/usr") in policy.readable()
    finally:
        policy.readable.cache_clear()


async def test_a_bubblewrap_that_never_returns_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(probe, "TRY_SECONDS", 1)
    report = await probe.try_level("bubblewrap")
    assert (report.holds, report.why) == (False, "a command in it didn't finish within 1 s")


def test_a_mark_before_the_question_on_standard_input_is_no_part_of_it(home: TempHome) -> None:
    config = home.config("solo", agent("solo", {"answer": "done"}))
    for given in ((COMMAND_MODULE, "--config", config, "--automation", "-"), (COMMAND_MODULE, "--config", config)):
        done = subprocess.run(
            [home.python, "-m", *given],
            cwd=home.work,
            env=home.environ,
            input=b"\xef\xbb\xbfWhat is it?\n",
            capture_output=True,
            check=False,
            timeout=90,
        )
        assert b"What is it?" in done.stdout
        assert b"\xef\xbb\xbf" not in done.stdout


@pytest.mark.parametrize(
    ("number", "path", "code"),
    [
        (errno.EACCES, "/state/runs/x", "store_unavailable"),
        (errno.ENOENT, "/state", "store_unavailable"),
        (errno.EROFS, "/elsewhere/x", "invalid_action"),
        (errno.EACCES, "/state-of-others", "invalid_action"),
        (errno.EIO, "/mnt/x", "invalid_action"),
        (errno.ENOSPC, "/state/runs", "disk_full"),
        (errno.ENOSPC, "/elsewhere", "disk_full"),
        (errno.ENOSPC, None, "disk_full"),
        (errno.EMFILE, None, "store_unavailable"),
        (errno.ENOENT, None, "internal"),
        (errno.ECONNREFUSED, None, "internal"),
        (errno.EACCES, "relative", "internal"),
    ],
)
def test_an_error_is_a_fault_of_the_store_only_if_the_path_is_the_stores(
    number: int, path: str | None, code: str
) -> None:
    error = OSError(number, os.strerror(number), path)
    found = translate_system_error(error, "/state")
    assert found.code == code
    assert os.strerror(number) in str(found)
    assert code != "invalid_action" or str(path) in str(found)
    assert translate_system_error(error, None).code != "store_unavailable" or path is None
