"""Workers of several machines are killed and frozen at random moments, PostgreSQL is restarted, clocks differ: is
anything lost, doubled or torn, and how long does a run wait for its next worker?

Each worker is a machine of its own: with a home and, where we are root, a network of its own. They share PostgreSQL, an
object store and the model.
"""

import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import anyio
import anyio.to_thread

from benchmarks.local_model import LocalModel
from massgen_mcp.config.loader import load_config
from massgen_mcp.events.agent_work import ModelCallStarted
from massgen_mcp.home import FILES_VARIABLE
from massgen_mcp.runs.host.worker import STALLED_SECONDS
from massgen_mcp.runs.service import RunService
from tests.cluster.stage import Cluster, Worker, cluster
from tests.harness import TempHome
from tests.postgres import PostgresServer
from tests.run_requests import asked
from tests.soak.crowd import call_at_once, crowd, percentile
from tests.soak.kills import AGENTS, MODEL_SECONDS, TEAM, Toll, await_end, judge, moment, write_team

RUNS = 12
"""Between two faults, at most."""
MODEL_ADDRESS = "10.77.255.1"
FAKE_CLOCK = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
"""Of Debian's package faketime."""
SKEW_SECONDS = 90
FREEZE_SECONDS = 2 * STALLED_SECONDS
CLIENTS = 50
OTHERS = ("freeze", "restart")


@contextmanager
def networks() -> Generator[Callable[[], list[str]]]:
    """Gives for each call what starts a program in a network of its own, from which the model can be reached."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        yield list
        return
    made, numbers, mark = list[str](), count(1), os.getpid()

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True)

    def network() -> list[str]:
        number = next(numbers)
        name, near, far = f"massgen-{mark}-{number}", f"mg{mark % 10000}n{number}", f"mg{mark % 10000}f{number}"
        beginning = f"10.77.{number}"
        ip("netns", "add", name)
        made.append(name)
        ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
        ip("addr", "add", f"{beginning}.1/30", "dev", near)
        ip("link", "set", near, "up")
        for arguments in (
            ["addr", "add", f"{beginning}.2/30", "dev", far],
            ["link", "set", far, "up"],
            ["link", "set", "lo", "up"],
            ["route", "add", "default", "via", f"{beginning}.1"],
        ):
            ip("-netns", name, *arguments)
        return ["ip", "netns", "exec", name]

    ip("addr", "add", f"{MODEL_ADDRESS}/32", "dev", "lo")
    try:
        yield network
    finally:
        for name in made:
            ip("netns", "del", name)
        ip("addr", "del", f"{MODEL_ADDRESS}/32", "dev", "lo")


@dataclass
class Scene:
    machines: Cluster
    service: RunService
    network: Callable[[], list[str]]
    skewed: bool
    takeovers: list["Takeover"] = field(default_factory=list["Takeover"])
    others: list[tuple[str, float, float]] = field(default_factory=list[tuple[str, float, float]])
    """The faults that were no kills: from when on and until when."""
    workers: list[Worker] = field(default_factory=list[Worker])
    frozen: list[Worker] = field(default_factory=list[Worker])

    async def add_worker(self) -> None:
        number = len(self.machines.machines)
        variables = dict[str, str]()
        if self.skewed and number % 2:
            sign = "+" if number % 4 == 1 else "-"
            variables = {
                "LD_PRELOAD": FAKE_CLOCK,
                "FAKETIME": f"{sign}{SKEW_SECONDS}s",
                "DONT_FAKE_MONOTONIC": "1",
                "PYTHONPATH": str(Path(__file__).parent / "twins" / "skewed"),
            }
        machine = self.machines.machine(f"machine-{number}")
        added = await anyio.to_thread.run_sync(
            lambda: machine.add_worker("--concurrency", "20", prefix=self.network(), variables=variables)
        )
        self.workers.append(added)

    async def measure(self, victim: Worker) -> None:
        """Until all runs of this worker, which was just killed, go on with another one or have ended."""
        database, victims = self.machines.engine().store.database, f"%-{victim.pid}-%"

        def look(run_ids: str | None) -> list[tuple[str, bool, bool, int]]:
            """Of these runs, or of the victim's: whether each has another worker, is lost, and its last event."""
            query = (
                "SELECT run_id, state NOT IN ('running', 'interrupted') OR runner NOT LIKE ?1, state <> 'running',"
                " (SELECT coalesce(max(seq), 0) FROM events WHERE run = run_id) FROM runs"
                " WHERE (?2 IS NULL AND state = 'running' AND runner LIKE ?1)"
                " OR run_id IN (SELECT value FROM json_each(?2))"
            )
            with database.reading() as db:
                return db.execute(query, (victims, run_ids)).fetchall()

        def overlapping(began: float) -> set[str]:
            return {fault for fault, _, until in self.others if until >= began}

        found = await anyio.to_thread.run_sync(look, None)
        began = anyio.current_time()
        waiting = {run_id: Takeover(seq) for run_id, _, _, seq in found}
        while waiting:
            ids = json.dumps([*waiting])
            for run_id, taken, noticed, seq in await anyio.to_thread.run_sync(look, ids):
                if waiting[run_id].saw(anyio.current_time() - began, noticed=noticed, taken=taken, seq=seq):
                    self.takeovers.append(waiting.pop(run_id))
                    self.takeovers[-1].beside = overlapping(began)
            await anyio.sleep(0.05)


@dataclass
class Takeover:
    """Of one run whose worker was killed: after how many seconds it was found to be lost, had another worker, and had
    an event of that one.
    """

    seq: int
    """Of its last event when the worker was killed."""
    noticed: float | None = None
    taken: float | None = None
    resumed: float | None = None
    beside: set[str] = field(default_factory=set[str])
    """Other faults that lasted, or happened, meanwhile."""

    def saw(self, seconds: float, *, noticed: bool, taken: bool, seq: int) -> bool:
        """Whether this was all."""
        if self.noticed is None and (noticed or taken):
            self.noticed = seconds
        if self.taken is None and taken:
            self.taken = seconds
        if self.taken is not None and seq > self.seq:
            self.resumed = seconds
        return self.resumed is not None


async def kill_workers(
    home: TempHome, *, kills: int, workers: int, seed: int, freezes: int = 0, restarts: int = 0
) -> str:
    """Start runs, each key three times through two servers, and let a fault happen at a random moment; so many of each
    kind, in random order. Then let all runs come to their end, and have 50 clients start one run.
    """
    home = replace(home, starts_anew=True)  # a copy would have the network and the clock of what it is copied from
    plan = ["kill"] * kills + ["freeze"] * freezes + ["fast", "immediate"] * restarts
    random.Random(seed).shuffle(plan)
    toll, runs, server = Toll(), list[str](), PostgresServer()
    files = {FILES_VARIABLE: str(home.work / "objects")}
    try:
        with networks() as network:
            isolated = os.geteuid() == 0 and shutil.which("ip") is not None
            host = MODEL_ADDRESS if isolated else "127.0.0.1"
            with LocalModel(MODEL_SECONDS, host) as model, cluster(home, server, **files) as machines:
                config = load_config(write_team(home.work / TEAM, model.base_url), environ={})
                services = [machines.service(), machines.service()]
                scene = Scene(machines, services[0], network, skewed=Path(FAKE_CLOCK).exists())
                async with anyio.create_task_group() as aside:
                    for _ in range(workers):
                        await scene.add_worker()
                    for trial, fault in enumerate(plan):
                        chance = random.Random(f"{seed}/{trial}")
                        for place in range(RUNS if trial == 0 else chance.randint(1, RUNS)):
                            key = f"trial {trial}, run {place}"
                            begun = list[str]()

                            async def start(number: int, key: str = key, begun: list[str] = begun) -> None:
                                service = services[number % 2]
                                request = asked(key, config, source="kills", key=key)
                                view, _ = await service.start(await service.prepare(request))
                                begun.append(view.row.run_id)

                            async with anyio.create_task_group() as starts:
                                for number in range(3):
                                    starts.start_soon(start, number)
                            toll.doubled += len(set(begun)) - 1
                            runs.append(begun[0])
                        await moment(model, chance, len(model.bodies()) + RUNS * 2 * AGENTS // 2)
                        await _happen(fault, scene, chance, server, aside, toll)
                marked = 0
                for run_id in runs:
                    await await_end(services[0], run_id)
                    with (
                        _named(run_id),
                        anyio.fail_after(300),
                    ):  # the last of its files comes a moment later, whoever is killed then
                        while not (run := (await services[0].watcher.get_run(run_id)).directory).report.exists():
                            await anyio.sleep(0.05)
                    judge(run, toll)
                    marked += sum(isinstance(record.event, ModelCallStarted) for record in run.event_log.read())
                toll.doubled += len(await services[1].watcher.list_runs(limit=10 * len(runs))) - len(runs)
                toll.doubled += max(0, len(model.bodies()) - marked)
                one_key = await _one_key(machines)
                told = f"{toll.judged()}; {freezes} freezes, {restarts} restarts each; {one_key}"
                clocks = f"clocks {SKEW_SECONDS} s apart" if scene.skewed else "one clock (no faketime)"
                return f"{told}; {'own networks' if isolated else 'one network'}, {clocks}; {_waits(scene.takeovers)}"
    finally:
        server.remove()


async def _happen(
    fault: str,
    scene: Scene,
    chance: random.Random,
    server: PostgresServer,
    aside: anyio.abc.TaskGroup,
    toll: Toll,
) -> None:
    victim = chance.choice([worker for worker in scene.workers if worker not in scene.frozen])
    match fault:
        case "kill":
            victim.kill()
            scene.workers.remove(victim)
            toll.kills += 1
            aside.start_soon(scene.measure, victim)
            await scene.add_worker()
        case "freeze":
            aside.start_soon(_freeze, scene, victim)
        case _:
            began = anyio.current_time()
            await anyio.to_thread.run_sync(lambda: server.stop(at_once=fault == "immediate"))
            await anyio.to_thread.run_sync(server.start)
            scene.others.append(("restart", began, anyio.current_time()))


async def _freeze(scene: Scene, victim: Worker) -> None:
    scene.frozen.append(victim)
    victim.send(signal.SIGSTOP)
    began = anyio.current_time()
    scene.others.append(("freeze", began, began + FREEZE_SECONDS))
    await anyio.sleep(FREEZE_SECONDS)
    victim.send(signal.SIGCONT)
    scene.frozen.remove(victim)


async def _one_key(machines: Cluster) -> str:
    arguments = {"question": "q", "models": ["scripted/x"], "idempotency_key": "the one"}
    async with crowd(machines.home, 2) as servers:
        replies = await call_at_once(servers, "start_run", [[arguments] * (CLIENTS // 2)] * 2)
    contents = [reply.content for reply in replies if reply.content is not None]
    assert len(contents) == CLIENTS, {reply.refusal for reply in replies}
    assert len({content["run_id"] for content in contents}) == 1
    assert sum(not content["reused"] for content in contents) == 1
    return f"{CLIENTS} clients with one key on two servers: 1 run"


def _waits(takeovers: list[Takeover]) -> str:
    """Of all together, of those beside each kind of fault, and how long each part of the way took."""
    if not takeovers:
        return "no run waited for another worker"
    alone = [each for each in takeovers if not each.beside]
    told = [f"{len(takeovers)} runs taken over after {_spread(each.taken for each in takeovers)}"]
    for kind, those in (
        ("kills alone", alone),
        *((f"beside a {fault}", _beside(takeovers, fault)) for fault in OTHERS),
    ):
        if those:
            told.append(f"{kind} {len(those)}: {_spread(each.taken for each in those)}")
    told.append(f"to be noticed {_spread(each.noticed for each in takeovers)}")
    told.append(
        f"from there to the next worker {_spread((each.taken or 0) - (each.noticed or 0) for each in takeovers)}"
    )
    told.append(f"to its first event {_spread((each.resumed or 0) - (each.taken or 0) for each in takeovers)}")
    return "; ".join(told)


def _beside(takeovers: list[Takeover], fault: str) -> list[Takeover]:
    return [each for each in takeovers if fault in each.beside]


def _spread(seconds: Iterable[float | None]) -> str:
    values = [each for each in seconds if each is not None]
    p50, p90 = percentile(values, 0.5), percentile(values, 0.9)
    return f"p50 {p50:.1f} s, p90 {p90:.1f} s, at most {max(values):.1f} s"


@contextmanager
def _named(run_id: str) -> Generator[None]:
    try:
        yield
    except TimeoutError as error:
        raise AssertionError(f"{run_id} has no report") from error
