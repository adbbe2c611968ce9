"""Many viewers of one run: `python -m benchmarks.web [--viewers N] [--agents N] [--seconds N]`; Linux only.

Scripted agents write without a pause; so many viewers follow the run over HTTP, then one alone. Of the server:

- CPU: of a core, while everybody is sent every update. memory: the most that it ever had.
- updates: what each viewer was sent, in a second; the least of all viewers tells whether one starves.
- sent: to one viewer in a second.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks.processes import cpu_seconds, environment, peak_mib
from benchmarks.table import Table, machine

LINE = "The point is that each step can be reversed, and measured on its own. "
CHUNK_SECONDS = 0.05
"""Between two pieces of 24 characters: about 120 tokens a second for each agent."""


@dataclass
class Viewer:
    """One who follows the run: how many updates came, and how large they were together."""

    updates: int = 0
    size: int = 0

    async def follow(self, port: int, token: str, run_id: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        head = f"GET /api/runs/{run_id} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        writer.write(head.encode())
        while line := await reader.readline():
            self.size += len(line)
            self.updates += line.startswith(b"event: ")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.web", description="Measure viewers of a run that goes on."
    )
    parser.add_argument("--viewers", type=int, default=50, metavar="N", help="how many (default 50)")
    parser.add_argument("--agents", type=int, default=10, metavar="N", help="of the run (default 10)")
    parser.add_argument("--seconds", type=float, default=10, metavar="N", help="how long (default 10)")
    given = parser.parse_args()
    table = Table()
    with _served(given.agents) as (process, port, token, run_id):
        for viewers in (1, given.viewers):
            asyncio.run(_measure(table, process, (port, token, run_id), viewers, given.seconds))
            table.add(f"{viewers} viewers: memory", "MiB", peak_mib(process))
    print(machine(1), table, sep="\n\n")


async def _measure(table: Table, process: int, run: tuple[int, str, str], count: int, seconds: float) -> None:
    viewers = [Viewer() for _ in range(count)]
    tasks = [asyncio.create_task(viewer.follow(*run)) for viewer in viewers]
    await asyncio.sleep(2)
    assert all(viewer.updates for viewer in viewers), "everybody has the first page"
    before = [(viewer.updates, viewer.size) for viewer in viewers]
    used, began = cpu_seconds(process), time.monotonic()
    await asyncio.sleep(seconds)
    passed = time.monotonic() - began
    table.add(f"{count} viewers: CPU", "%", 100 * (cpu_seconds(process) - used) / passed)
    for viewer, (updates, size) in zip(viewers, before, strict=True):
        table.add(f"{count} viewers: updates a second", "x", (viewer.updates - updates) / passed)
        table.add(f"{count} viewers: KiB sent to one in a second", "x", (viewer.size - size) / 1024 / passed)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _served(agents: int) -> Generator[tuple[int, int, str, str]]:
    """The pages, and a run that goes on: process, port, token, run."""
    with tempfile.TemporaryDirectory(prefix="massgen-mcp-web-", ignore_cleanup_errors=True) as directory:
        home = Path(directory)
        team = home / "team.yaml"
        backend = {"type": "scripted", "chunk_delay_seconds": CHUNK_SECONDS, "script": [{"answer": LINE * 340}]}
        team.write_text(json.dumps({"agents": [{"id": f"agent-{k}", "backend": backend} for k in range(agents)]}))
        command = [sys.executable, "-m", "massgen_mcp.cli.massgen_mcp.main", "web"]
        with subprocess.Popen(command, env=environment(home), stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                base, _, token = process.stdout.readline().strip().partition("/#token=")
                call = _Calls(base, token)
                run_id = str(call("start_run", question="How?", config=str(team))["run_id"])
                yield process.pid, int(base.rpartition(":")[2]), token, run_id
                call("control_run", run_id=run_id, action="cancel")
                call("wait_run", run_id=run_id)
            finally:
                process.terminate()


@dataclass(frozen=True)
class _Calls:
    base: str
    token: str

    def __call__(self, tool: str, **arguments: object) -> dict[str, object]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = Request(f"{self.base}/api/tools/{tool}", json.dumps(arguments).encode(), headers)  # noqa: S310 - ours
        with urlopen(request) as answer:  # noqa: S310 - ours
            return json.load(answer)


if __name__ == "__main__":
    if os.name != "posix":
        sys.exit("needs /proc")
    main()
