"""Our commands as processes of their own, run to their end."""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.harness import ROOT, TempHome
from tests.planted import SEARCH

_ONE_AT_A_TIME = threading.Lock()


def run_command(home: TempHome, module: str, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a command's module in the home's working directory; fails the test if it does not end in time."""
    with TemporaryDirectory() as scratch, _ONE_AT_A_TIME:
        stdout, stderr = Path(scratch) / "stdout", Path(scratch) / "stderr"
        stdout.touch()
        stderr.touch()
        command = {
            "module": module,
            "arguments": arguments,
            "cwd": str(home.work),
            "environ": home.environ,
            "stdout": str(stdout),
            "stderr": str(stderr),
        }
        code = _ask(command, seconds)
        done = subprocess.CompletedProcess([module, *arguments], code, stdout.read_text(), stderr.read_text())
        SEARCH.look(f"output of {done.args!r:.200}", f"{done.stdout}\n{done.stderr}")
        return done


def _ask(command: Mapping[str, object], seconds: float) -> int:
    server = _server()
    assert server.stdin
    assert server.stdout
    server.stdin.write(f"{json.dumps(command)}\n")
    server.stdin.flush()
    pid = int(server.stdout.readline())
    late = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
    late.start()
    try:
        code = int(server.stdout.readline())
    finally:
        late.cancel()
    if code == -signal.SIGKILL:
        raise subprocess.TimeoutExpired(str(command["module"]), seconds)
    return code


@cache
def _server() -> "subprocess.Popen[str]":
    """One for this process; it leaves with it."""
    command = [sys.executable, "-m", "tests.command_server"]
    server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)
    return server
