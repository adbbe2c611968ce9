"""Ways to start the commands, and where they do not start."""

import subprocess
import sys

import pytest

ON_WINDOWS = "import sys; sys.platform = 'win32'; sys.argv[0] = {!r}; import massgen_mcp"


@pytest.mark.parametrize(("module", "program"), [("massgen_mcp", "massgen-mcp"), ("massgen_mcp.cli", "massgen")])
def test_each_command_is_a_module_too(module: str, program: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--nope"], capture_output=True, text=True, check=False)
    assert f"`{program} --help`" in done.stderr


@pytest.mark.parametrize("started", [r"C:\bin\massgen-mcp.exe", "-m", "program.py"])
def test_on_windows_commands_and_imports_name_wsl(started: str) -> None:
    command = [sys.executable, "-c", ON_WINDOWS.format(started)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "run `wsl --install` in PowerShell" in done.stderr.splitlines()[-1]
    assert ("Traceback" in done.stderr) is (started == "program.py"), "a program can catch an ImportError"
