"""`HOME=DIR python -m tests.sandbox.logins`: plants every login of `logins.txt` in the home, and prints those that a
command in bubblewrap finds there when it has every tool chain, as a list in JSON. The home has to be empty.
"""

import json
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from massgen_mcp.sandbox import Policy, ResourceLimits, project_tools, spawn
from tests.sandbox.tool_home import MARKS

ROWS = tuple(
    (line.partition("|")[0], line.partition("|")[2].replace("\\n", "\n"))
    for line in Path(__file__).with_name("logins.txt").read_text().splitlines()
    if line and not line.startswith("#")
)


def mark_secret(number: int) -> str:
    return f"PLANTED{number:04}X"


def plant_logins(home: Path) -> None:
    for number, (name, text) in enumerate(ROWS):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("@@", mark_secret(number)) + "\n")
        if path.parent.name in ("bin", "shims", "tools"):
            path.chmod(0o755)


async def find_readable(home: Path) -> list[str]:
    """Return the places whose secret a command finds in the home, links followed."""
    with TemporaryDirectory(dir="/var/tmp") as directory:
        project, workspace, scratch = (Path(directory, name) for name in ("project", "workspace", "scratch"))
        for place in (project, workspace, scratch):
            place.mkdir()
        for mark in MARKS:
            (project / mark).parent.mkdir(exist_ok=True)
            (project / mark).touch()
        tools = project_tools([project], {"HOME": str(home)})
        policy = Policy(
            workspace, scratch, shown=tools.layered, toolchains=tools.readable, empty=tools.empty,
            environ=tools.environ, bounds=ResourceLimits(seconds=300),
        )  # fmt: skip
        look = f"grep -Raoh 'PLANTED[0-9]*X' {home} /tmp /workspace 2>/dev/null; find {home} 2>/dev/null | grep PLANTED"
        output = b""
        async with spawn(["/bin/sh", "-c", f"{look}; echo over"], policy, "bubblewrap") as process:
            async for chunk in process.stdout:
                output += chunk
        assert output.endswith(b"over\n"), output
        found = {int(number) for number in re.findall(rb"PLANTED(\d+)X", output)}
        return [ROWS[number][0] for number in sorted(found)]


def main() -> None:
    home = Path(os.environ["HOME"])
    plant_logins(home)
    print(json.dumps(anyio.run(find_readable, home)))


if __name__ == "__main__":
    main()
