"""What waiting costs, and what long runs and long queues do. `python -m benchmarks.waiting [--runs N]`; Linux only.

- queue: 40 runs of one agent at once, a model that takes 1 s, two calls at once, 10 s for each call.
- behind a limit of 4: 200 runs of one agent, a model that takes 0.5 s; one of other credentials, one that is cancelled.
- waiting runs: so many runs whose agents hang; what the runner uses while nothing happens, in percent of a core.
- waiters: 200 `wait_run` calls at once on a run in which nothing happens; what the server uses.
- pollers: 200 `get_status` calls a second on a run in which nothing happens, by turns with as many of a bare server of
  the SDK, whose tool does nothing: how long the answers take.
- get_status: of a run that goes on and has 10,000 events; CPU of the server per call, after the first.
- long journal: a run of 50 MB of streamed text is gone on with; the longest time for which the loop stood still.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio

from benchmarks.local_model import NAME, LocalModel
from benchmarks.one_run import QUESTION, ended
from benchmarks.processes import cpu_seconds, runner_pids
from benchmarks.server import Server
from benchmarks.table import Table, machine
from massgen_mcp.config.loader import config_from_data
from massgen_mcp.events.agent_work import ModelCallStarted, RoundStarted, TextDelta
from massgen_mcp.events.parts import AgentInfo
from massgen_mcp.events.record import LogRecord
from massgen_mcp.events.run import AttemptStarted, RunResumed, RunStarted
from massgen_mcp.home import Home
from massgen_mcp.runs.engine import FrozenRequest, NewRun, RunFiles, new_run_id
from massgen_mcp.runs.host.execute import RunContext, execute_run
from massgen_mcp.runs.store.opening import local_engine
from tests.teams import Observer

OTHER_KEY = "OPENAI_API_KEY"
BEHIND = 200
QUEUED, WAITERS, EVENTS, LONG_MB = 40, 200, 10_000, 50
WATCHED_SECONDS = 10.0
TURNS, TURN_SECONDS = 5, 4.0
"""The pollers ask the two servers by turns."""
WIDE = {"MASSGEN_MCP_MAX_RUNNING": "5000", "MASSGEN_MCP_MAX_QUEUED": "10000"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.waiting", description="Measure what waiting costs.")
    parser.add_argument("--runs", type=int, default=1000, metavar="N", help="runs that wait (default 1000)")
    runs: int = parser.parse_args().runs
    table = Table()
    _queue(table)
    _behind(table)
    _idle(table, runs)
    _polled(table, WAITERS)
    _status(table)
    _long_journal(table)
    print(machine(1), table, sep="\n\n")


def _queue(table: Table) -> None:
    with _home() as home, LocalModel(1.0) as model, Server(home) as server:
        backend = {"type": "chatcompletion", "model": NAME, "base_url": model.base_url}
        config = _config(
            home,
            "queue",
            backend,
            limits={"chatcompletion": {"concurrency": 2}},
            timeout_settings={"call_timeout_seconds": 10},
        )
        began = time.monotonic()
        started = [server.call("start_run", question=QUESTION, config=config)["run_id"] for _ in range(QUEUED)]
        states = [ended(server, run_id) for run_id in started]
        table.add(f"queue: {QUEUED} runs, completed", "runs", states.count("completed"))
        table.add("queue: all of them", "ms", time.monotonic() - began)


def _behind(table: Table) -> None:
    with _home() as home, LocalModel(0.5) as model, Server(home) as ours, Server(home, {OTHER_KEY: "other"}) as theirs:
        backend = {"type": "chatcompletion", "model": NAME, "base_url": model.base_url}
        config = _config(home, "narrow", backend, limits={"chatcompletion": {"concurrency": 4}})
        began = time.monotonic()
        started = [ours.call("start_run", question=QUESTION, config=config)["run_id"] for _ in range(BEHIND)]
        other = theirs.call("start_run", question=QUESTION, config=config)["run_id"]
        cancelling = time.monotonic()
        cancelled = started.pop(BEHIND // 2)
        ours.call("control_run", run_id=cancelled, action="cancel")
        ended(ours, cancelled)
        table.add(
            f"behind a limit of 4: {BEHIND} runs, one of them cancelled after", "ms", time.monotonic() - cancelling
        )
        ended(theirs, other)
        table.add("behind a limit of 4: one of other credentials, done after", "ms", time.monotonic() - cancelling)
        states = [ended(ours, run_id) for run_id in started]
        table.add("behind a limit of 4: all others", "ms", time.monotonic() - began)
        table.add("behind a limit of 4: completed", "runs", states.count("completed"))
        first = [_first_event(home, run_id) for run_id in started]
        late = sum(any(later < mine - 0.5 for later in first[place + 1 :]) for place, mine in enumerate(first))
        table.add("behind a limit of 4: begun 0.5 s or more after one that was started later", "runs", late)


def _first_event(home: Path, run_id: str) -> float:
    with (home / "runs" / run_id / "events.jsonl").open() as journal:
        return float(json.loads(journal.readline())["time"])


def _polled(table: Table, runs: int) -> None:
    """So many clients of one server that ask for the status of a run once a second each; and the same of a bare one."""
    with _home() as home, Server(home) as server, Server(home, module="benchmarks.bare_server") as bare:
        config = _config(home, "stuck", {"type": "scripted", "script": [{"hang": True}]})
        run_id = server.call("start_run", question=QUESTION, config=config)["run_id"]
        asked = {"get_status": server, "get_status of a bare SDK server": bare}
        for each in asked.values():
            for _ in range(20):
                each.call("get_status", run_id=run_id)
        for _ in range(TURNS):
            p99: list[float] = []
            for name, each in asked.items():
                before = cpu_seconds(each.pid)
                taken = sorted(each.ask_regularly("get_status", {"run_id": run_id}, clients=runs, seconds=TURN_SECONDS))
                table.add(
                    f"pollers: {runs}, {name}, CPU per answer", "ms", (cpu_seconds(each.pid) - before) / len(taken)
                )
                p99.append(taken[len(taken) * 99 // 100])
                table.add(f"pollers: {runs}, {name}, p50", "ms", taken[len(taken) // 2])
                table.add(f"pollers: {runs}, {name}, p99", "ms", p99[-1])
            table.add(f"pollers: {runs}, p99 to the bare one's", "x", p99[0] / p99[1])


def _idle(table: Table, runs: int) -> None:
    with _home() as home, Server(home, WIDE) as server:
        config = _config(home, "stuck", {"type": "scripted", "script": [{"hang": True}]})
        started = [server.call("start_run", question=QUESTION, config=config)["run_id"] for _ in range(runs)]
        while not all((home / "runs" / run_id / "status.json").exists() for run_id in started):
            time.sleep(0.5)
        time.sleep(3)
        (runner,) = runner_pids(home)
        table.add(f"waiting runs: {runs}, runner's CPU", "%", _used(runner))
        for _ in range(WAITERS):
            server.ask_later("wait_run", run_id=started[0], timeout_seconds=50)
        time.sleep(3)
        table.add(f"waiters: {WAITERS}, server's CPU", "%", _used(server.pid))


def _used(pid: int) -> float:
    """CPU of a process over some seconds, in percent of a core."""
    before, began = cpu_seconds(pid), time.monotonic()
    time.sleep(WATCHED_SECONDS)
    return 100 * (cpu_seconds(pid) - before) / (time.monotonic() - began)


def _status(table: Table) -> None:
    with _home() as home, ExitStack() as stack:
        engine = local_engine(Home(home).ensure())
        stack.callback(engine.close)
        run_id = new_run_id()
        run = _begun(home / "project", EVENTS, 40)
        stack.enter_context(engine.liveness.hold_foreground(run))
        engine.store.queue.add_foreground(NewRun(run_id, QUESTION, "", "f", ""), run.path)
        server = stack.enter_context(Server(home))
        server.call("get_status", run_id=run_id)
        for _ in range(5):
            before = cpu_seconds(server.pid)
            for _ in range(20):
                server.call("get_status", run_id=run_id)
            table.add(f"get_status of a run with {EVENTS} events, CPU", "ms", (cpu_seconds(server.pid) - before) / 20)


def _begun(project: Path, deltas: int, characters: int) -> RunFiles:
    """A run whose agent has written so much, and was cut off."""
    backend = {"type": "scripted", "script": [{"answer": "42"}]}
    run = RunFiles.create(
        project / "run", FrozenRequest(QUESTION, config_from_data({"agents": [{"id": "a", "backend": backend}]}, ""))
    )
    journal = run.event_log.append()
    agent = AgentInfo(name="agent_a", id="a", backend="scripted", model="scripted")
    journal.record(RunStarted(run_id="run-long", question=QUESTION, agents=(agent,)))
    journal.record(AttemptStarted(attempt=1))
    journal.record(RoundStarted(agent="agent_a", round=1, revision=0, ballot=(), heard=0, opening="o", nonce="n"))
    journal.record(ModelCallStarted(agent="agent_a", call_id="agent_a.1.1.1", purpose="coordinate"))
    for _ in range(deltas):
        journal.record(TextDelta(agent="agent_a", call_id="agent_a.1.1.1", text="x" * characters))
    anyio.run(journal.settle)
    journal.close()
    return run


def _long_journal(table: Table) -> None:
    with _home() as home:
        run = _begun(home, LONG_MB * 2000, 400)
        longest = resumed = 0.0

        async def tick() -> None:
            nonlocal longest
            while True:
                began = time.monotonic()
                await asyncio.sleep(0.005)
                longest = max(longest, time.monotonic() - began - 0.005)

        async def go_on() -> None:
            nonlocal resumed
            ticking = asyncio.create_task(tick())
            began = time.monotonic()

            def heard(record: LogRecord) -> None:
                nonlocal resumed
                if isinstance(record.event, RunResumed):
                    resumed = time.monotonic() - began

            state = await execute_run(run, "run-long", RunContext({}, Observer(on_record=heard)))
            ticking.cancel()
            assert state.state == "completed", state.end

        size = (run.path / "events.jsonl").stat().st_size
        table.add("long journal: size", "MiB", size / (1 << 20))
        asyncio.run(go_on())
        table.add("long journal: gone on with", "ms", resumed)
        table.add("long journal: the loop stood still, at most", "ms", longest)


def _config(home: Path, name: str, backend: dict[str, Any], **settings: object) -> str:
    path = home / f"{name}.yaml"
    path.write_text(json.dumps({"agents": [{"id": "a", "backend": backend}], **settings}))
    return str(path)


@contextmanager
def _home() -> Generator[Path]:
    """A state directory for one figure, removed again."""
    with tempfile.TemporaryDirectory(prefix="massgen-mcp-benchmark-") as directory:
        yield Path(directory)


if __name__ == "__main__":
    main()
