"""Ways to start the commands, and where they do not start."""

import subprocess
import sys

import pytest

from tests.harness import TempHome
from tests.terminal import terminal

ON_WINDOWS = "import sys; sys.platform = 'win32'; sys.argv[0] = {!r}; import massgen_mcp"


@pytest.mark.parametrize(
    ("module", "program"), [("massgen_mcp", "massgen help serve"), ("massgen_mcp.cli", "massgen help ask")]
)
def test_each_command_is_a_module_too(module: str, program: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--nope"], capture_output=True, text=True, check=False)
    assert "unknown option --nope" in done.stderr
    assert program in done.stderr


def test_a_server_at_a_terminal_says_for_whom_it_waits(home: TempHome) -> None:
    with terminal(home, size=(100, 24), python="from massgen_mcp.__main__ import main; main()") as window:
        window.wait_for("Waiting for an MCP client on standard input; press Ctrl-C to stop. Verbs: `massgen --help`")
        window.type("\x03")
        assert window.leave() in (0, 130)


@pytest.mark.parametrize("started", [r"C:\bin\massgen-mcp.exe", "-m", "program.py"])
def test_on_windows_commands_and_imports_name_wsl(started: str) -> None:
    command = [sys.executable, "-c", ON_WINDOWS.format(started)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "run `wsl --install` in PowerShell" in done.stderr.splitlines()[-1]
    assert ("Traceback" in done.stderr) is (started == "program.py"), "a program can catch an ImportError"
