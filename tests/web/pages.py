"""The program that serves the pages, in a home of a test, and how a test asks it beside a browser."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from massgen_mcp.certificates import trusted
from tests.harness import PATIENCE_SECONDS, SERVER_MODULE, TempHome


@dataclass(frozen=True)
class Pages:
    """`base` is the address without the token; `address` is what the program printed."""

    base: str
    token: str

    @property
    def address(self) -> str:
        return f"{self.base}/#token={self.token}"

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """What a page is answered when it calls a tool."""
        with httpx2.Client(verify=trusted(), trust_env=False, timeout=PATIENCE_SECONDS) as http:
            headers = {"Authorization": f"Bearer {self.token}"}
            reply = http.post(f"{self.base}/api/tools/{name}", json=arguments, headers=headers)
        assert reply.status_code == 200, reply.text
        return reply.json()


@contextmanager
def pages(home: TempHome, *options: str) -> Generator[Pages]:
    command = [home.python, "-m", SERVER_MODULE, "web", *options]
    with (
        (home.work / "web.log").open("ab") as log,
        subprocess.Popen(command, env=home.environ, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            base, _, token = process.stdout.readline().strip().partition("/#token=")
            yield Pages(base, token)
        finally:
            process.terminate()
