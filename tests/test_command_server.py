"""A copy that the command server makes is the program that was asked for, to itself and to everybody else."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import python
from tests.harness import PATIENCE_SECONDS, TempHome, end, home, poll_until

__all__ = ["home"]

WAITS = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); print(1, flush=True); signal.pause()"


def surroundings(home: TempHome, python: str, flags: list[str], session: bool) -> dict[str, object]:
    reader, writer = os.pipe()
    try:
        os.write(writer, b"handed on")
        done = subprocess.run(
            [python, *flags, "-m", "tests.surroundings", str(reader), "é\udc80"],
            cwd=home.work,
            env=home.environ,
            input="typed",
            pass_fds=(reader,),
            start_new_session=session,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert (done.returncode, done.stderr) == (3, "")
    return json.loads(done.stdout.replace(f'"{reader}"', '"N"'))


@pytest.mark.parametrize("session", [False, True], ids=["", "in a session of its own"])
@pytest.mark.parametrize("flags", [[], ["-P"]], ids=["", "-P"])
def test_a_copy_finds_everything_as_the_program_itself_does(home: TempHome, flags: list[str], session: bool) -> None:
    itself = surroundings(home, sys.executable, flags, session)
    assert surroundings(home, home.python, flags, session) == itself


def test_what_has_variables_for_an_interpreter_starts_anew(home: TempHome) -> None:
    (home.work / "sitecustomize.py").write_text("print('heard')")
    told = [
        subprocess.run([each.python, "-m", "this"], env=each.environ, capture_output=True, text=True, check=True).stdout
        for each in (home, home.with_variables(PYTHONPATH=str(home.work)))
    ]
    assert [text.startswith("heard\n") for text in told] == [False, True]


def test_copies_are_made_also_after_the_end_of_a_home_whose_variables_the_first_of_them_came_by(
    home: TempHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as other:
        other.setattr(os, "environ", home.environ)
        command = python.__wrapped__()
    home.close()
    start = [command, "-m", "tests.surroundings", "0"]
    done = subprocess.run(start, env=home.environ, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 3


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda sign: sign.name)
def test_a_signal_to_whoever_stands_in_for_a_copy_ends_both(home: TempHome, sign: signal.Signals) -> None:
    (home.work / "waits.py").write_text(WAITS)
    command = [home.python, "-m", "waits"]
    with subprocess.Popen(command, cwd=home.work, env=home.environ, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"1\n"
        (copy,) = home.processes("waits")
        assert copy != process.pid
        end(process.pid, sign)
        assert process.wait(PATIENCE_SECONDS) == -sign
    poll_until(lambda: not Path(f"/proc/{copy}").exists())


def test_whoever_stands_in_for_a_copy_that_is_killed_ends_as_killed(home: TempHome) -> None:
    (home.work / "waits.py").write_text(WAITS)
    command = [home.python, "-m", "waits"]
    with subprocess.Popen(command, cwd=home.work, env=home.environ, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        for copy in home.processes("waits"):
            end(copy, signal.SIGKILL)
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
