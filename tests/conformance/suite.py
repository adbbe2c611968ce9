"""Runs the conformance suite against our server: `python -m tests.conformance.suite [REVISION] [SCENARIO ...]`.

Without a scenario it is everything that a revision requires, and what the suite has beyond that.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from tests.commands import ROOT
from tests.harness import TempHome, spawned, wait_until
from tests.needs import node, npm_tool

REVISIONS = ("2026-07-28", "2025-11-25")
SERVER = "tests.conformance.server"
MAIN = "@modelcontextprotocol/conformance/dist/index.js"


@dataclass(frozen=True)
class Verdict:
    passed: int
    failed: int
    warnings: int
    found: tuple[str, ...]
    """What failed or was warned of, and why."""
    told: str
    """What the suite printed."""

    @property
    def counts(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.warnings} warnings"


@dataclass(frozen=True)
class Tested:
    """The server with the fixtures on it."""

    url: str
    token: str

    def check(self, *options: str) -> Verdict:
        """Run the suite with these options."""
        main = npm_tool(MAIN)
        preload = Path(__file__).with_name("token.mjs").as_uri()
        command = [node(), "--import", preload, main, "server", "--url", self.url, *options]
        environ = {**os.environ, "CONFORMANCE_TOKEN": self.token, "CONFORMANCE_MAIN": main, "NO_COLOR": "1"}
        with tempfile.TemporaryDirectory() as place:
            results = ["--output-dir", place]
            done = subprocess.run([*command, *results], env=environ, capture_output=True, text=True, check=False)
            checks = [check for file in Path(place).rglob("checks.json") for check in json.loads(file.read_bytes())]
        found = [f"{one['id']}: {one.get('errorMessage')}" for one in checks if one["status"] in ("FAILURE", "WARNING")]
        count = Counter(one["status"] for one in checks)
        return Verdict(count["SUCCESS"], count["FAILURE"], count["WARNING"], tuple(found), done.stdout + done.stderr)


@asynccontextmanager
async def server_under_test(home: TempHome) -> AsyncGenerator[Tested]:
    log = home.work / "conformance.log"
    command = (sys.executable, "-m", SERVER, "--transport", "http", "--port", "0")
    with log.open("ab") as output:
        async with spawned(home, *command, stderr=output, cwd=ROOT):
            told = await wait_until(lambda: re.search(r"(http://\S+/mcp), bearer token in (.+)\n", log.read_text()))
            assert told
            yield Tested(told[1], Path(told[2]).read_text().strip())


async def main(revisions: list[str], scenarios: list[str]) -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        work = Path(place) / "work"
        work.mkdir()
        home = TempHome(Path(place) / "home", work)
        async with server_under_test(home) as server:
            for revision in revisions:
                chosen = [["--requirements", revision]]
                if scenarios:
                    chosen = [["--spec-version", revision, "--force", "--scenario", one] for one in scenarios]
                for options in chosen:
                    verdict = await anyio.to_thread.run_sync(lambda options=options: server.check(*options))
                    print("\n".join(verdict.found))
                    print(" ".join(options), verdict.counts, sep=": ")
                    failed += verdict.failed
        home.close()
    return 1 if failed else 0


if __name__ == "__main__":
    given = sys.argv[1:]
    chosen_revisions = [one for one in given if one in REVISIONS] or list(REVISIONS)
    sys.exit(anyio.run(main, chosen_revisions, [one for one in given if one not in REVISIONS]))
