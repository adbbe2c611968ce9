"""mini-swe-agent and one of our agents, over the same model and trajectory: `python -m benchmarks.steps`; Linux only.

mini-swe-agent runs where `MASSGEN_MINI_SWE_AGENT` names its command `mini`, from a virtual environment of its own;
without that a line says so, and ours alone is measured. The model orders the same commands of both, whose outputs have
known sizes, and then the end.

- requests, and bytes of their bodies: all of them, the first, the last; per step what one adds to the one before.
- tokens: a quarter of the bytes.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from statistics import median
from threading import Thread

from benchmarks.dialects import DIALECTS, NAME, Played
from benchmarks.processes import environment, finish

VARIABLE = "MASSGEN_MINI_SWE_AGENT"
SIZES = (0, 200, 1_000, 4_000, 9_000, 30_000)
"""Bytes that the commands print, by turns."""
STEPS = 30
TASK = "Find out which numbers are printed, and write them down."
_END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


@dataclass(slots=True)
class Trajectory:
    """The model: `bodies` are the requests that it got."""

    bodies: list[bytes] = field(default_factory=list[bytes])

    def reply(self, body: bytes) -> Played:
        self.bodies.append(body)
        number, request = len(self.bodies), json.loads(body)
        tools = DIALECTS["/chat/completions"].tools(request)
        done = number > STEPS
        if "bash" in tools:
            return Played(number, json.dumps({"command": _END if done else command(number)}), "bash")
        if done:
            return Played(number, json.dumps({"content": "They are written down."}), "new_answer")
        return Played(number, json.dumps({"command": command(number)}), "run_command")


def command(number: int) -> str:
    """Prints so many bytes, in lines of 50."""
    size = SIZES[number % len(SIZES)]
    return f"seq -f 'line %g of step {number} ..............................' 1000 | cut -c 1-49 | head -c {size}"


def main() -> None:
    ours = shutil.which("massgen", path=str(Path(sys.executable).parent))
    if ours is None:
        raise SystemExit("the command massgen is not installed beside this Python")
    with tempfile.TemporaryDirectory(prefix="massgen-mcp-steps-") as directory:
        rows = {"ours": _ours(ours, Path(directory) / "ours")}
        theirs = os.environ.get(VARIABLE)
        if theirs and Path(theirs).is_file():
            rows["mini-swe-agent"] = _theirs(theirs, Path(directory) / "theirs")
        else:
            print(f"MINI-SWE-AGENT IS NOT MEASURED: {VARIABLE} does not name its command `mini`")
    printed = sum(SIZES[number % len(SIZES)] for number in range(1, STEPS + 1))
    print(f"{STEPS} commands, which print {printed:,} bytes in all\n")
    print(_table(rows))


def _ours(program: str, directory: Path) -> list[int]:
    place = project(directory)

    def run(url: str) -> None:
        team = directory / "team.yaml"
        backend = {"type": "chatcompletion", "model": NAME, "base_url": url}
        settings = {"max_steps_per_round": STEPS + 5, "context_paths": [{"path": str(place), "permission": "write"}]}
        agent = {"id": "solo", "backend": {**backend, "enable_mcp_command_line": True}}
        team.write_text(json.dumps({"agents": [agent], "orchestrator": settings}))
        environ = {**environment(directory), "OPENAI_API_KEY": "none"}
        asked = [program, "--automation", "--config", str(team), TASK]
        finish(asked, directory=place, environ=environ, quiet=True)

    return _measured(run)


def _theirs(program: str, directory: Path) -> list[int]:
    place = project(directory)

    def run(url: str) -> None:
        environ = {**environment(directory), "OPENAI_API_KEY": "none", "OPENAI_API_BASE": url}
        environ |= {"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"}
        command = [program, "-y", "--exit-immediately", "-m", f"openai/{NAME}", "-t", TASK, "-l", "0"]
        command += ["-o", str(directory / "trajectory.json"), "-c", "mini.yaml"]
        finish(command, directory=place, environ=environ, quiet=True)

    return _measured(run)


def project(directory: Path) -> Path:
    """An empty repository."""
    place = directory / "project"
    place.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    return place


def _measured(run: Callable[[str], None]) -> list[int]:
    """Bytes of each request that came while it ran."""
    model = Trajectory()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            played = model.reply(body)
            if json.loads(body).get("stream"):
                self.wfile.write(DIALECTS["/chat/completions"].stream(played))
            else:
                self._whole(played)

        def _whole(self, played: Played) -> None:
            function = {"name": played.tool, "arguments": played.text}
            calls = [{"id": f"call_{played.number}", "type": "function", "function": function}]
            choice: Mapping[str, object] = {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": None, "tool_calls": calls},
            }
            usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
            head = {"id": "chatcmpl-local", "object": "chat.completion", "created": 1, "model": NAME}
            reply = json.dumps({**head, "choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        run(f"http://127.0.0.1:{server.server_port}/v1")
    finally:
        server.shutdown()
    return [len(body) for body in model.bodies]


def _table(rows: Mapping[str, list[int]]) -> str:
    head = (
        f"{'agent':<16}{'requests':>9}{'tokens':>11}{'bytes':>12}{'first':>8}{'last':>10}{'per step':>10}{'median':>8}"
    )
    lines = [head, "-" * len(head)]
    for name, sizes in rows.items():
        added = [later - earlier for earlier, later in pairwise(sizes)]
        lines.append(
            f"{name:<16}{len(sizes):>9}{sum(sizes) // 4:>11,}{sum(sizes):>12,}{sizes[0]:>8,}{sizes[-1]:>10,}"
            f"{sum(added) // len(added):>10,}{median(added):>8,.0f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
