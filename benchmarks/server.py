"""A server process as its client sees it: lines of JSON-RPC over pipes, without an SDK whose time would count.

Must not know what is measured.
"""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.processes import cpu_seconds, end, environment, runner_pids

ROOT = Path(__file__).resolve().parent.parent
OURS = "massgen_mcp.cli.massgen_mcp.main"
PATIENCE = 60.0
"""Seconds after which an answer is given up on."""


class Server:
    """A server on a state directory, started and initialized. A context: server and runners end with it.

    `start_wall` and `start_cpu` are the seconds from before its start to its `initialize` answer.
    """

    def __init__(
        self, home: Path, variables: Mapping[str, str] | None = None, *, module: str = OURS, root: Path = ROOT
    ) -> None:
        """`variables`: further ones of its environment. `module`: another server's. `root`: where its sources are."""
        self.home = home
        self._last_id = 0
        self._rest = b""
        began = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=home,
            env={**environment(home), "PYTHONPATH": str(root), **(variables or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        try:
            client = {"name": "benchmarks", "version": "0"}
            self._ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
            self.start_wall = time.perf_counter() - began
            self.start_cpu = cpu_seconds(self.pid)
            self._send({"method": "notifications/initialized"})
            self._ask("tools/list", {})
        except BaseException:
            self.end()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool; returns its structured content. Raises `RuntimeError` with the server's words if it refuses."""
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(str(result["content"][0]["text"]))
        content: dict[str, Any] = result["structuredContent"]
        return content

    def ask_later(self, tool: str, **arguments: object) -> None:
        """Call a tool, and do not wait for its answer."""
        self._last_id += 1
        self._send({"id": self._last_id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})

    def ask_regularly(self, tool: str, arguments: dict[str, object], *, clients: int, seconds: float) -> list[float]:
        """Call a tool as that many clients do that call it once a second each; how long each answer took."""
        sent: dict[int, float] = {}
        taken: list[float] = []
        began, due = time.monotonic(), 0
        assert self._process.stdout is not None
        while len(taken) < clients * seconds:
            now = time.monotonic()
            while due < clients * seconds and began + due / clients <= now:
                self.ask_later(tool, **arguments)
                sent[self._last_id] = now
                due += 1
            if b"\n" in self._rest or select.select([self._process.stdout.fileno()], [], [], 1 / clients)[0]:
                message: dict[str, Any] = json.loads(self._line(now + PATIENCE))
                if message.get("id") in sent:
                    taken.append(time.monotonic() - sent.pop(message["id"]))
        return taken

    def _ask(self, method: str, params: dict[str, object]) -> dict[str, Any]:
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        deadline = time.monotonic() + PATIENCE
        while True:
            message: dict[str, Any] = json.loads(self._line(deadline))
            if message.get("id") == self._last_id:  # what else comes is a notification
                if "result" not in message:
                    raise RuntimeError(f"{method}: {message}")
                result: dict[str, Any] = message["result"]
                return result

    def _send(self, message: dict[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise RuntimeError(f"the server did not answer within {PATIENCE:g} s")
            if not (data := os.read(descriptor, 65536)):
                raise RuntimeError("the server left before it answered")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def end(self) -> None:
        """Of the server and its runners; again, it does nothing."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pid in runner_pids(self.home):
            end(pid)
