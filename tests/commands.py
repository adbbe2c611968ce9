"""Our commands as processes of their own, run to their end."""

import subprocess
import sys

from tests.harness import TempHome


def run_command(home: TempHome, module: str, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a command's module in the home's working directory; fails the test if it does not end in time."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=home.work,
        env=home.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
