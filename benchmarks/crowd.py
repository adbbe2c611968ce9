"""Very many runs at once: `python -m benchmarks.crowd [--runs N]`; Linux only.

So many runs of three agents are started through four servers at once; the model takes 0.5 s for every reply. Places,
limits and the queue are the product's defaults, but for the length of the queue.

- completed: how many of the runs ended with an answer.
- started: until the last `start_run` was answered. all: until the last run had ended.
- the model alone: what these calls would take if nothing but the limit of calls at once were in their way.
- runner CPU: of the runner, all threads, per run. peak: the most memory that it ever had.
"""

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from benchmarks.local_model import LocalModel
from benchmarks.one_run import QUESTION, ended, expected_requests, write_team
from benchmarks.processes import cpu_seconds, peak_mib, runner_pids
from benchmarks.server import Server
from benchmarks.table import Table, machine

SERVERS, AGENTS, MODEL_SECONDS, AT_ONCE = 4, 3, 0.5, 100
LONG_QUEUE = {"MASSGEN_MCP_MAX_QUEUED": "100000"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crowd", description="Measure very many runs at once.")
    parser.add_argument("--runs", type=int, default=1000, metavar="N", help="how many (default 1000)")
    runs: int = parser.parse_args().runs
    table = Table()
    before = os.getloadavg()[0]
    measure(table, runs)
    print(machine(1), f"Load before: {before:.1f}.", table, sep="\n\n")


def measure(table: Table, runs: int) -> None:
    with ExitStack() as stack:
        home = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="massgen-mcp-crowd-", ignore_cleanup_errors=True))
        )
        model = stack.enter_context(LocalModel(MODEL_SECONDS))
        servers = [stack.enter_context(Server(home, LONG_QUEUE)) for _ in range(SERVERS)]
        team = str(write_team(home, AGENTS, model.base_url))
        first = servers[0].call("start_run", question=QUESTION, config=team)["run_id"]
        assert ended(servers[0], first) == "completed"
        (runner,) = runner_pids(home)
        used, began = cpu_seconds(runner), time.monotonic()

        def start(place: int) -> list[str]:
            share = range(place, runs, SERVERS)
            return [servers[place].call("start_run", question=QUESTION, config=team)["run_id"] for _ in share]

        with ThreadPoolExecutor(SERVERS) as threads:
            started = [run_id for share in threads.map(start, range(SERVERS)) for run_id in share]
        table.add(f"{runs} runs: started", "ms", time.monotonic() - began)
        states = [ended(servers[0], run_id) for run_id in started]
        calls = runs * expected_requests(AGENTS)
        table.add(f"{runs} runs: all", "ms", time.monotonic() - began)
        table.add(f"{runs} runs: the model alone", "ms", MODEL_SECONDS * calls / AT_ONCE)
        table.add(f"{runs} runs: completed", "runs", states.count("completed"))
        table.add(f"{runs} runs: model requests", "requests", len(model.arrivals()) - expected_requests(AGENTS))
        table.add(f"{runs} runs: runner CPU, per run", "ms", (cpu_seconds(runner) - used) / runs)
        table.add(f"{runs} runs: runner, peak", "MiB", peak_mib(runner))


if __name__ == "__main__":
    main()
