"""`python -m tests.clients.install_listing [DIRECTORY]`: after `massgen-mcp install`, does the client itself show the
server?

Every client gets a fresh home. Those whose program is below DIRECTORY/node_modules (without one: beside this file) are
asked for their own list of servers, without network and without an account; of the others it says loudly that they were
not. Exit code 1 if a client does not show the server as it should.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from massgen_mcp.cli.massgen_mcp.install.clients import CLIENTS

SECONDS = 120
KEY = "OPENAI_API_KEY"
KEY_VALUE = "sk-never-to-be-shown-0123456789"


@dataclass(frozen=True)
class Listing:
    """How a client is asked, and what its answer must hold."""

    program: str
    arguments: Sequence[Sequence[str]]
    wanted: Sequence[str]
    prepare: Callable[[Path, Path], None] | None = None


def _trust(home: Path, project: Path) -> None:
    (home / ".gemini").mkdir(exist_ok=True)
    (home / ".gemini/trustedFolders.json").write_text(json.dumps({str(project): "TRUST_FOLDER"}))


LISTINGS: Mapping[str, Listing] = {
    "claude-code": Listing("claude", [["mcp", "list"], ["mcp", "get", "massgen"]], ["Connected", "Timeout: 300000ms"]),
    "codex": Listing(
        "codex",
        [["mcp", "list"], ["mcp", "get", "massgen"]],
        ["enabled", f"{KEY}=*****", "startup_timeout_sec: 30", "default_tools_approval_mode: approve"],
    ),
    "gemini": Listing("gemini", [["mcp", "list"]], ["massgen", "Connected"], _trust),
}


def main(arguments: Sequence[str]) -> int:
    directory = Path(arguments[0]) if arguments else Path(__file__).parent
    programs = directory.resolve() / "node_modules/.bin"
    failed = 0
    for client in CLIENTS:
        listing = LISTINGS.get(client)
        if listing is None:
            print(f"{client}: SKIPPED, NOT SHOWN: its program lists no servers outside its window")
        elif not (programs / listing.program).exists():
            print(f"{client}: SKIPPED, NOT SHOWN: {listing.program} is not in {programs}")
        else:
            with tempfile.TemporaryDirectory(prefix="massgen-clients-") as place:
                told = _listed(client, listing, programs, Path(place))
            missing = [words for words in listing.wanted if words not in told]
            failed |= bool(missing) or KEY_VALUE in told
            print(f"{client}: FAILED, without {missing}:\n{told}" if missing else f"{client}: shown\n{_indented(told)}")
    return failed


def _listed(client: str, listing: Listing, programs: Path, directory: Path) -> str:
    home, project = directory / "home", directory / "project"
    home.mkdir()
    project.mkdir()
    environ = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "MASSGEN_MCP_HOME": str(directory / "state"),
        KEY: KEY_VALUE,
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    if listing.prepare:
        listing.prepare(home, project)
    server = Path(sys.executable).with_name("massgen-mcp")
    told = _run([str(server), "install", client], project, environ)
    for arguments in listing.arguments:
        told += _run([str(programs / listing.program), *arguments], project, environ)
    return told


def _run(command: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.stdout


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines() if line.strip())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
