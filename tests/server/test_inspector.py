"""The MCP Inspector's command line, written by others, as client: one process, and one server, for each call."""

import json
import os
import subprocess
from typing import Any

import pytest

from tests.harness import SERVER_MODULE, TempHome, variables
from tests.needs import node, npm_tool

ERAS = ("legacy", "modern")
EXIT_TOOL_ERROR = 5
PATIENT = ("--connect-timeout", "60000")
"""Its own 15 s for a connection are short on a busy machine."""


def inspect(home: TempHome, era: str, *arguments: str, code: int = 0) -> dict[str, Any]:
    """What the Inspector prints, the reply as `result`; it must end with this exit code."""
    launcher = npm_tool("@modelcontextprotocol/inspector/clients/launcher/build/index.js")
    ours = {name: value for name, value in home.environ.items() if name.startswith("MASSGEN_")}
    server = [home.python, "-m", SERVER_MODULE]
    options = ("--protocol-era", era, *PATIENT, "--format", "json", "-q")
    command = [node(), launcher, "--cli", *variables(ours), *server, *options]
    environ = {**os.environ, "HOME": str(home.work), "NO_COLOR": "1"}
    done = subprocess.run([*command, *arguments], env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def call(home: TempHome, era: str, tool: str, **arguments: Any) -> dict[str, Any]:
    named = ("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
    return inspect(home, era, *named)["result"]["structuredContent"]


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_takes_the_tools_and_finds_their_schemas_portable(home: TempHome, era: str) -> None:
    told = inspect(home, era, "--method", "tools/list", "--strict")
    assert "start_run" in [tool["name"] for tool in told["result"]["tools"]]
    assert "schemaFindings" not in told, "not even a warning"


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_drives_a_run_to_its_final_answer(home: TempHome, era: str) -> None:
    result = call(home, era, "start_run", question="q", config="scripted", wait_seconds=50)
    assert result["status"] == "completed"
    assert result["answer"].startswith("Neither")
    assert result["winner"] == "bo"


def test_the_inspector_sees_a_refusal_as_a_tool_error(home: TempHome) -> None:
    wrong = ("--method", "tools/call", "--tool-name", "get_status", "--tool-args-json", '{"run_id": "../x"}')
    result = inspect(home, "modern", *wrong, code=EXIT_TOOL_ERROR)["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith("ERROR unknown_run: ")
