"""START HERE. What is measured, in the order in which it is measured; every repetition measures everything once.

All of it runs against the local model, in state directories made for it and removed again. What the rows mean:

- command: a whole process from before its start to its end. The bare interpreter is beside it, for the ratio.
- server: from before the start of `massgen-mcp` to the answer to `initialize`, client included.
- cold: no runner lives, so `start_run` has to start one, which has to import everything.
- warm: a runner lives and has done a run.
- first request: from before `start_run` is sent to the arrival of the first request at the model.
- whole run: from before `start_run` is sent to the last event in the run's journal. told: to the answer of `wait_run`.
- coordination: from the first model request to the last event.
- runner CPU: what the runner used during the run, all threads.
- peak: VmHWM of the process after cold and warm runs of up to ten agents one after the other, one run at a time;
  then what ten runs at once of three agents each add to it, per run.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.local_model import LocalModel
from benchmarks.one_run import QUESTION, Moments, expected_requests, run_many, run_once, write_team
from benchmarks.processes import Finished, cpu_seconds, environment, finish, peak_mib, runner_pids
from benchmarks.server import Server
from benchmarks.table import Table, machine

TEAMS = (1, 3, 10)
OTHER_WIRES = ("openai", "claude")
"""All other rows are over Chat Completions."""
AT_ONCE = 10
"""Runs at once, to see what a further one adds to the runner's memory."""
EXIT_WRONG_COUNT = 1


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure massgen-mcp beside a local model."
    )
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="measure everything so often (default 5)")
    repeat: int = parser.parse_args().repeat
    if repeat < 1:
        parser.error("--repeat must be at least 1")
    table = Table()
    with LocalModel() as model:
        wrong = _repetition(model, Table())  # compiles bytecode and warms the page cache: its timings do not count
        for number in range(repeat):
            print(f"\rrepetition {number + 1} of {repeat} ...", end="", file=sys.stderr, flush=True)
            wrong |= _repetition(model, table)
    print(file=sys.stderr)
    print(machine(repeat), table, _verdict(wrong), sep="\n\n")
    return EXIT_WRONG_COUNT if wrong else 0


def _repetition(model: LocalModel, table: Table) -> set[str]:
    """Measure everything once; returns what is wrong with the numbers of model requests."""
    wrong: set[str] = set()

    def note(agents: int, kind: str, moments: Moments) -> None:
        table.add(f"model requests, {_count(agents)}, {kind}", "requests", moments.requests)
        if moments.requests != (expected := expected_requests(agents)):
            wrong.add(f"{_count(agents)}, {kind}: {moments.requests} model requests instead of {expected}")

    _commands(model, table)
    with _fresh_home() as home, Server(home) as server:
        table.add("server: start to initialize, wall", "ms", server.start_wall)
        table.add("server: start to initialize, CPU", "ms", server.start_cpu)
        note(3, "cold", _cold(server, model, table, 3))
        for agents in TEAMS:
            note(agents, "warm", _warm(server, model, table, agents))
        for wire in OTHER_WIRES:
            _wire(server, model, table, wire)
        _memory(server, model, table)
    with _fresh_home() as home, Server(home) as server:
        note(10, "cold", _cold(server, model, table, 10))
    return wrong


def _commands(model: LocalModel, table: Table) -> None:
    massgen = shutil.which("massgen", path=str(Path(sys.executable).parent))
    if massgen is None:
        raise SystemExit("the command massgen is not installed beside this Python")
    with _fresh_home() as home:
        team = write_team(home, 3, model.base_url)
        bare = finish([sys.executable, "-c", "pass"], directory=home, environ=environment(home))
        table.add("python -c pass, wall", "ms", bare.wall)
        table.add("python -c pass, CPU", "ms", bare.cpu)
        run = [massgen, "--config", str(team), "--automation", QUESTION]
        _command("python -c 'import massgen_mcp'", [sys.executable, "-c", "import massgen_mcp"], home, bare, table)
        _command("massgen --help", [massgen, "--help"], home, bare, table)
        done = _command("massgen --automation, 3 agents", run, home, bare, table)
        table.add("massgen --automation, 3 agents, peak", "MiB", done.peak)


def _command(name: str, command: Sequence[str], home: Path, bare: Finished, table: Table) -> Finished:
    done = finish(command, directory=home, environ=environment(home))
    table.add(f"{name}, wall", "ms", done.wall)
    table.add(f"{name}, CPU", "ms", done.cpu)
    table.add(f"{name}, CPU to bare python", "x", done.cpu / bare.cpu)
    return done


def _cold(server: Server, model: LocalModel, table: Table, agents: int) -> Moments:
    moments = run_once(server, model, write_team(server.home, agents, model.base_url))
    _add(table, f"cold, {_count(agents)}", moments)
    return moments


def _warm(server: Server, model: LocalModel, table: Table, agents: int) -> Moments:
    team = write_team(server.home, agents, model.base_url)
    runner = _runner(server)
    before = cpu_seconds(runner)
    moments = run_once(server, model, team)
    _add(table, f"warm, {_count(agents)}", moments)
    table.add(f"warm, {_count(agents)}: runner CPU", "ms", cpu_seconds(runner) - before)
    return moments


def _wire(server: Server, model: LocalModel, table: Table, wire: str) -> None:
    """Ten agents over another wire, once its SDK is there."""
    address = model.root if wire == "claude" else model.base_url
    run_once(server, model, write_team(server.home, 1, address, wire))
    runner, team = _runner(server), write_team(server.home, 10, address, wire)
    before = cpu_seconds(runner)
    moments = run_once(server, model, team)
    table.add(f"warm, 10 agents, {wire}: whole run", "ms", moments.whole)
    table.add(f"warm, 10 agents, {wire}: runner CPU", "ms", cpu_seconds(runner) - before)


def _add(table: Table, kind: str, moments: Moments) -> None:
    table.add(f"{kind}: start_run to its answer", "ms", moments.answered - moments.sent)
    table.add(f"{kind}: start_run to first request", "ms", moments.first_request - moments.sent)
    table.add(f"{kind}: whole run", "ms", moments.whole)
    table.add(f"{kind}: whole run, told by wait_run", "ms", moments.told - moments.sent)
    table.add(f"{kind}: coordination", "ms", moments.coordination)


def _memory(server: Server, model: LocalModel, table: Table) -> None:
    runner = _runner(server)
    one_at_a_time = peak_mib(runner)
    table.add("peak, server", "MiB", peak_mib(server.pid))
    table.add("peak, runner", "MiB", one_at_a_time)
    run_many(server, write_team(server.home, 3, model.base_url), AT_ONCE)
    table.add(f"peak, runner, per run of {AT_ONCE} at once", "MiB", (peak_mib(runner) - one_at_a_time) / AT_ONCE)


def _count(agents: int) -> str:
    return "1 agent" if agents == 1 else f"{agents} agents"


def _runner(server: Server) -> int:
    [pid] = runner_pids(server.home)
    return pid


@contextmanager
def _fresh_home() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="massgen-mcp-benchmark-") as directory:
        yield Path(directory)


def _verdict(wrong: set[str]) -> str:
    if not wrong:
        return "Model requests: exact, 2N+1 in every run of N agents (1 for a team of one)."
    return "\n".join(["Model requests: WRONG", *sorted(wrong)])


if __name__ == "__main__":
    sys.exit(main())
