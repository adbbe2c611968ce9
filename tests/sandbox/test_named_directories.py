"""No login is readable in what a config names besides tool chains: `readable` directories, images, and the directories
of MCP servers and custom tools. In whole runs.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.events.agent_work import ToolFinished
from tests.needs import needs
from tests.sandbox.layouts import entry, image, layer, shell
from tests.sandbox.logins import ROWS, mark_secret, plant_logins
from tests.teams import run_team

pytestmark = needs("bwrap")

SEARCH = "grep -Raoh 'PLANTED[0-9]*X' {} 2>/dev/null; find {} 2>/dev/null | grep PLANTED; echo over"
UNRECOGNISABLE = re.compile(r"@@|\{\"@@\":1\}|export K=@@")
"""Texts in which nothing says that they are a login: hidden below tool chains, where only a list is shown."""
BESIDE = {
    ".env": "TOKEN=@@",
    ".git/config": '[remote "o"]\nurl = https://u:@@@h/x.git',
    "notes.txt": "@@",
    "deploy.sh": "export DEPLOY_TOKEN=@@",
    "secrets.yaml": "password: @@",
    "server.key": "@@",
    "etc/npmrc": "//r/:_authToken=@@",
    "pip.conf": "[global]\nindex-url=https://u:@@@h/simple",
    "conf/.env.production": "@@",
}
"""What lies beside a program."""
WITHIN = {
    "bin/.env": "@@",
    "bin/server.key": "@@",
    "lib/.netrc": "machine h login u password @@",
    "lib/python3.11/site-packages/.pypirc": "password=@@",
    "lib/python3.11/site-packages/x-1.dist-info/direct_url.json": '{"url":"https://u:@@@h/x.git"}',
    "lib/python3.11/site-packages/x/.env": "TOKEN=@@",
    "share/x/credentials.json": '{"token": "@@"}',
    "share/x/.npmrc": "//r/:_authToken=@@",
    "node_modules/x/.env": "@@",
    "node_modules/x/id_rsa": "@@",
    "node_modules/.npmrc": "//r/:_authToken=@@",
    "node_modules/x/.git/config": "url = https://u:@@@h/x.git",
}
"""What lies in the parts of its environment or packages that are shown."""
SERVER = """
import json, os, sys
def search(top):
    for above, _, names in os.walk(top):
        for name in names:
            path = os.path.join(above, name)
            try:
                text = path + open(path, errors="replace").read()
            except OSError:
                continue
            if "PLAN" "TED" in text:
                yield path
for line in sys.stdin:
    asked = json.loads(line)
    result = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "x", "version": "1"}},
        "tools/list": {"tools": [{"name": "search", "inputSchema": {"type": "object"}}]},
    }.get(asked["method"])
    if asked["method"] == "tools/call":
        top = asked["params"]["arguments"]["top"]
        found = json.dumps({"found": list(search(top)), "seen": sorted(os.listdir(top))})
        result = {"content": [{"type": "text", "text": found}]}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A state directory in which the levels of this machine are known after the first run."""
    return {"MASSGEN_MCP_HOME": str(tmp_path_factory.mktemp("home"))}


@pytest.fixture
def place() -> Iterator[Path]:
    """Not below /tmp, which commands have for themselves."""
    with TemporaryDirectory(dir="/var/tmp") as directory:
        yield Path(directory)


def plant(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text.replace("@@", mark_secret(1)) + "\n")


async def results_of(
    path: Path, environ: dict[str, str], *calls: tuple[str, dict[str, Any]], commands: Any = None, **agent: Any
) -> list[str]:
    """What these calls give to the agent of a whole run."""
    script = [*({"call": name, "arguments": arguments} for name, arguments in calls), {"answer": "42"}]
    one = {"backend": {"type": "scripted", "script": script, **agent}}
    orchestrator = {"commands": {"enabled": True, "sandbox": "bubblewrap", **commands}} if commands else {}
    config = config_from_data({"agents": [one], "orchestrator": orchestrator}, "test", environ={})
    ended = await run_team(path, config, environ=environ)
    return [event.result for event in ended.of(ToolFinished)]


def find_rows(result: str) -> list[tuple[str, str]]:
    assert "over" in result
    return [ROWS[number] for number in sorted({int(number) for number in re.findall(r"PLANTED(\d+)X", result)})]


async def test_of_a_readable_directory_every_file_but_those_with_a_login_is_readable(
    tmp_path: Path, place: Path, environ: dict[str, str]
) -> None:
    plant_logins(place)
    (place / "lib.py").write_text("plain")
    look = ("run_command", {"command": f"cat {place}/lib.py; {SEARCH.format(place, place)}"})
    (result,) = await results_of(tmp_path, environ, look, commands={"readable": [str(place)]})
    assert "plain" in result
    assert [row for row in find_rows(result) if UNRECOGNISABLE.fullmatch(row[1]) is None] == []


@needs("skopeo")
@needs("umoci")
async def test_of_an_image_no_login_is_readable(tmp_path: Path, environ: dict[str, str]) -> None:
    planted = [
        entry(f"opt/home/{name}", text.replace("@@", mark_secret(number)), mode=0o644)
        for number, (name, text) in enumerate(ROWS)
        if UNRECOGNISABLE.fullmatch(text) is None
    ]
    deep = [entry(f"{above}/.npmrc", "//r/:_authToken=PLANTED0000X", mode=0o644) for above in ("etc", "srv/a", "usr/x")]
    programs = [Path("/usr/bin", name) for name in ("grep", "find")]
    searching = [entry(f"usr/bin/{one.name}", one.read_bytes()) for one in programs]
    made = image(tmp_path / "image", "oci", layer(shell()), layer([*planted, *deep, *searching]))
    everywhere = "/opt /etc /srv /usr"
    look = ("run_command", {"command": f"ls /opt/home; {SEARCH.format(everywhere, everywhere)}"})
    (result,) = await results_of(tmp_path / "run", environ, look, commands={"image_archive": str(made)})
    assert find_rows(result) == []


@pytest.mark.parametrize("laid_out", ["alone", "environment", "packages"])
async def test_of_the_directory_of_an_mcp_server_no_login_is_readable(
    tmp_path: Path, place: Path, environ: dict[str, str], laid_out: str
) -> None:
    home = place / "tool"
    plant(home, {**BESIDE, **WITHIN})
    program = (
        home / {"alone": "server.py", "environment": "bin/server.py", "packages": "node_modules/x/server.py"}[laid_out]
    )
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/usr/bin/env -S python3 -I -S\n{SERVER}")
    program.chmod(0o755)
    if laid_out == "environment":
        (home / "pyvenv.cfg").write_text("home = /usr/bin\n")
    servers = {"odd": {"command": str(program), "start_seconds": 300}}
    (result,) = await results_of(tmp_path, environ, ("search", {"top": str(home)}), mcp_servers=servers)
    told = json.loads(result)
    assert told["found"] == []
    assert {"alone": "server.py", "environment": "bin", "packages": "node_modules"}[laid_out] in told["seen"]
    assert "notes.txt" not in told["seen"]


async def test_the_directory_of_a_custom_tool_is_not_there(
    tmp_path: Path, place: Path, environ: dict[str, str]
) -> None:
    plant(place, {**BESIDE, **WITHIN})
    look = "def look(top: str):\n    return [list(search(top)), os.path.exists(top)]\n"
    (place / "tools.py").write_text(f"import os\n{SERVER.partition('for line')[0]}\n{look}")
    tools = [{"path": str(place / "tools.py"), "function": "look", "name": "look"}]
    (result,) = await results_of(tmp_path, environ, ("look", {"top": str(place)}), custom_tools=tools)
    assert json.loads(result) == [[], False]
