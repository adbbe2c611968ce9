"""What a run takes beside its models: `python -m benchmarks.overhead [--repeat N]`; Linux only.

Three agents, a model that takes 1 s for every reply, a warm runner: answers, votes, the final answer, so three seconds
lie on the critical path. Beside it the same seven calls without us: one plain connection for each agent, the next round
as soon as the one before is whole. What the model's own process needs is in both, so the difference is ours.

- run: from before `start_run` is sent to the last event in the journal. coordination: from the first request at the
  model to the last event, so without the start.
- overhead: how much longer that is than the calls without us, in percent of those.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.local_model import LocalModel
from benchmarks.one_run import run_once, write_team
from benchmarks.server import Server
from benchmarks.table import Table, machine

AGENTS, MODEL_SECONDS = 3, 1.0
ROUNDS = (AGENTS, AGENTS, 1)
"""How many calls are made at once, round after round."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description="Measure our part of a run.")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="measure everything so often (default 5)")
    repeat: int = parser.parse_args().repeat
    table = Table()
    with tempfile.TemporaryDirectory(prefix="massgen-mcp-overhead-") as directory:
        home = Path(directory)
        with LocalModel(MODEL_SECONDS) as model, Server(home) as server:
            team = write_team(home, AGENTS, model.base_url)
            run_once(server, model, team)
            for number in range(repeat):
                print(f"\rrepetition {number + 1} of {repeat} ...", end="", file=sys.stderr, flush=True)
                bare = asyncio.run(_bare(model.port))
                moments = run_once(server, model, team)
                table.add("the calls without us", "ms", bare)
                table.add("run", "ms", moments.whole)
                table.add("run: overhead", "%", 100 * (moments.whole - bare) / bare)
                table.add("coordination", "ms", moments.coordination)
                table.add("coordination: overhead", "%", 100 * (moments.coordination - bare) / bare)
    print(file=sys.stderr)
    print(machine(repeat), table, sep="\n\n")


async def _bare(port: int) -> float:
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(AGENTS)]
    began = time.perf_counter()
    for calls in ROUNDS:
        await asyncio.gather(*(_call(*connection) for connection in connections[:calls]))
    took = time.perf_counter() - began
    for _, writer in connections:
        writer.close()
    return took


async def _call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    body = json.dumps({"model": "local", "messages": [], "stream": True}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await reader.readuntil(b"\r\n0\r\n\r\n")


if __name__ == "__main__":
    main()
