"""`massgen demo`: a stranger sees a whole run without a key."""

import subprocess
from shutil import which

from tests.commands import run_command
from tests.harness import PATIENCE_SECONDS, SERVER_MODULE, TempHome, poll_until, without_escapes


def test_the_demo_shows_a_whole_run_and_says_that_no_model_was_called(home: TempHome) -> None:
    command = [home.python, "-m", SERVER_MODULE, "demo"]
    done = subprocess.run(command, env=home.environ, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    first, (last, *goes_on) = done.stdout.splitlines()[0], done.stdout.splitlines()[-4:]
    assert "No model is called" in first
    assert "No model was called" in last
    assert all(which(line.split()[0]) for line in goes_on), goes_on
    for part in ("start_run", "wait_run", "get_result", "run_id run-", "ANSWER", "VOTES (winner: bo)", "dissent"):
        assert part in done.stdout, part
    assert "Neither: replace it piece by piece." in done.stdout
    assert without_escapes(done.stdout)
    assert done.stderr == ""
    poll_until(lambda: not home.processes())


def test_what_the_server_refuses_in_the_demo_is_told_by_its_own_code(home: TempHome) -> None:
    done = run_command(home.with_variables(MASSGEN_MCP_MAX_QUEUED="0"), SERVER_MODULE, "demo")
    assert done.returncode == 1
    assert done.stderr.startswith("ERROR queue_full: ")


def test_an_unknown_verb_is_refused(home: TempHome) -> None:
    command = [home.python, "-m", SERVER_MODULE, "dmo"]
    done = subprocess.run(
        command, env=home.environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode != 0
    assert "demo" in done.stderr
    assert done.stdout == ""
