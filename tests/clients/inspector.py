"""The Inspector, strict, in both eras: no error and no warning about the portability of our schemas."""

import os
import subprocess

from tests.clients.places import OURS, hold, new_place, say
from tests.needs import node, npm_tool
from tests.server.test_inspector import ERAS, PATIENT

LAUNCHER = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"


def show() -> None:
    with new_place() as place:
        variable = f"MASSGEN_MCP_HOME={place.home.path}"
        for era in ERAS:
            command = [node(), npm_tool(LAUNCHER), "--cli", "-e", variable, str(OURS), "--protocol-era", era, *PATIENT]
            done = subprocess.run(
                [*command, "--method", "tools/list", "--strict"],
                cwd=place.work,
                env={**os.environ, **place.environ, "NO_COLOR": "1"},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            told = [line for line in done.stderr.splitlines() if "error" in line.lower() or "warning" in line.lower()]
            for line in told[:5]:
                say(f"  {line}")
            hold(done.returncode == 0, f"{era}: no error")
            hold(not told, f"{era}: no warning")
