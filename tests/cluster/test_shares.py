"""All workers together ask a provider no more than its limits allow, whatever becomes of workers and PostgreSQL."""

import json
import random
import re
import signal
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import anyio
import anyio.to_thread
import psycopg
import pytest
from anyio.abc import TaskGroup

from massgen_mcp.backends.leases import Asked, GrantedShares, LimitName
from massgen_mcp.backends.limiter import Destination, ProviderLimiter, ProviderLimiters
from massgen_mcp.config.access.limits import RateLimits
from massgen_mcp.config.loader import load_config
from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError
from massgen_mcp.events.agent_work import ModelCallWaiting
from massgen_mcp.events.parts import Event
from massgen_mcp.events.run import RunResumed
from massgen_mcp.runs.service import RunService
from massgen_mcp.runs.store.postgres.shares import SharedLimits
from tests.cli.test_batch import answering
from tests.cluster.held_model import HeldModel, held_model
from tests.cluster.stage import Cluster, cluster
from tests.commands import run_command
from tests.harness import SERVER_MODULE, TempHome, home, wait_until
from tests.needs import needs
from tests.people.test_over_http import OPERATOR, ask, bearer, serving
from tests.postgres import PostgresServer, shared_server
from tests.raw_double import reply
from tests.run_requests import asked

__all__ = ["home"]

pytestmark = [needs("postgres"), pytest.mark.long, pytest.mark.uncounted]

PATIENCE = 180.0
SHORT_OF_A_MINUTE = 30.0
"""A request comes a moment after it counts, and on a busy machine that moment is long."""
EventT = TypeVar("EventT", bound=Event)
HERE = Destination("https://provider.test/v1", "planted-key-of-shares-0123456789")


@pytest.fixture
def machines(home: TempHome) -> Iterator[Cluster]:
    with cluster(home, shared_server()) as made:
        yield made


def team(home: TempHome, model: HeldModel, **limits: int) -> Config:
    """One agent, which asks once."""
    backend = {"type": "chatcompletion", "model": "m", "base_url": f"{model.url}/v1"}
    config = {"agents": [{"id": "ada", "backend": backend}], "limits": {"chatcompletion": limits} if limits else {}}
    path = home.work / "team.json"
    path.write_text(json.dumps(config))
    return load_config(path, environ={})


async def started(service: RunService, config: Config, *names: str) -> dict[str, str]:
    """Ids of runs whose questions begin with these names, by them; each has its worker."""
    runs = {
        name: (await service.start(await service.prepare(asked(f"{name}: six times seven?", config))))[0].row.run_id
        for name in names
    }
    for run_id in runs.values():
        await until_state(service, run_id, "running")
    return runs


async def until_state(service: RunService, run_id: str, state: str) -> None:
    with anyio.fail_after(PATIENCE):
        while (await service.watcher.get_run(run_id)).row.state != state:
            await anyio.sleep(0.05)


async def until_event(
    service: RunService, run_id: str, kind: type[EventT], told: Callable[[EventT], bool] = lambda _: True
) -> None:
    """Of the run, since its worker has taken it."""
    with anyio.fail_after(PATIENCE):
        while True:
            events = [record.event for record in (await service.watcher.get_run(run_id)).directory.event_log.read()]
            resumed = max((place for place, event in enumerate(events) if isinstance(event, RunResumed)), default=0)
            if any(isinstance(event, kind) and told(event) for event in events[resumed:]):
                return
            await anyio.sleep(0.05)


async def runner_of(service: RunService, run_id: str) -> str:
    return (await service.watcher.get_run(run_id)).row.runner or ""


def name_in(body: str) -> str:
    """The name of the run that asks."""
    found = re.search(r"(run\d|one|two|three|four): six times seven", body)
    assert found
    return found[1]


class Row(NamedTuple):
    share: int
    held: int | None
    ends: float
    paused_until: float


def shares(machines: Cluster, name: LimitName = "concurrency") -> dict[str, Row]:
    """What each worker has of a limit, by its name."""
    with psycopg.connect(machines.url) as db:
        query = "SELECT worker, share, held, ends, paused_until FROM massgen.shares WHERE name = %s"
        return {worker: Row(*row) for worker, *row in db.execute(query, (name,))}


async def ended_well(service: RunService, runs: Mapping[str, str]) -> None:
    for run_id in runs.values():
        await until_state(service, run_id, "completed")


async def test_all_workers_together_ask_no_more_at_once_than_the_limit(machines: Cluster) -> None:
    service = machines.service()
    for _ in range(3):
        machines.add_worker("--concurrency", "3")
    async with held_model(lambda _: answering()) as model:
        runs = await started(service, team(machines.home, model, concurrency=4), *(f"run{n}" for n in range(9)))
        assert len({await runner_of(service, run_id) for run_id in runs.values()}) == 3
        await wait_until(lambda: len(model.held) == 4, PATIENCE)
        shown = json.loads(run_command(machines.home, SERVER_MODULE, "doctor", "--json").stdout)
        (told,) = [check["message"] for check in shown["checks"] if check["name"] == "shared limits"]
        assert told == f"{model.url}/v1: concurrency 4 of 4, held by 3 workers"
        async with serving(machines.home.with_variables(MASSGEN_MCP_HTTP_TOKEN=OPERATOR)) as url:
            lines = (await ask(url, "GET", "/metrics", headers=bearer(OPERATOR))).text.splitlines()
        for name in ("held", "most"):
            assert f'massgen_limit_{name}{{address="{model.url}/v1",limit="concurrency"}} 4' in lines
        for _ in runs:
            await wait_until(lambda: model.held, PATIENCE)
            model.answer()
        await ended_well(service, runs)
        assert (model.most_at_once, len(model.began)) == (4, 9)


async def test_workers_that_share_nothing_exceed_the_limit(home: TempHome) -> None:
    """What the test above would see."""
    async with held_model(lambda _: answering()) as model:
        with cluster(home, shared_server()) as one, cluster(home, shared_server()) as other:
            for machines in (one, other):
                machines.add_worker("--concurrency", "5")
                await started(machines.service(), team(home, model, concurrency=4), *(f"run{n}" for n in range(5)))
            await wait_until(lambda: len(model.held) == 8, PATIENCE)


async def test_requests_of_a_minute_are_those_of_all_workers_also_of_one_that_is_gone(machines: Cluster) -> None:
    service = machines.service()
    workers = [machines.add_worker("--concurrency", "4") for _ in range(2)]
    async with held_model(lambda _: answering()) as model:
        model.answer_all()
        runs = await started(service, team(machines.home, model, requests_per_minute=5), *(f"run{n}" for n in range(8)))
        await wait_until(lambda: len(model.began) == 5, PATIENCE)
        served = {name_in(body) for body in model.bodies}
        waiting = {run_id: await runner_of(service, run_id) for name, run_id in runs.items() if name not in served}
        (gone,) = [worker for worker in workers if f"-{worker.pid}-" in next(iter(waiting.values()))]
        gone.kill()
        machines.add_worker("--concurrency", "8")
        for run_id, runner in waiting.items():
            if f"-{gone.pid}-" in runner:
                await until_event(service, run_id, RunResumed)
            await until_event(service, run_id, ModelCallWaiting)
            taken_by = await runner_of(service, run_id)
            await wait_until(lambda worker=taken_by: worker in shares(machines, "requests_per_minute"), PATIENCE)
        assert sum(row.held or 0 for row in shares(machines, "requests_per_minute").values()) <= 5
        assert model.most_within(SHORT_OF_A_MINUTE) == 5


async def test_the_only_place_goes_from_worker_to_worker(machines: Cluster) -> None:
    """Each of them always has a call that waits."""
    service = machines.service()
    for _ in range(3):
        machines.add_worker("--concurrency", "3")
    async with held_model(lambda _: answering()) as model:
        runs = await started(service, team(machines.home, model, concurrency=1), *(f"run{n}" for n in range(9)))
        runners = {name: await runner_of(service, run_id) for name, run_id in runs.items()}
        await wait_until(lambda: len(shares(machines)) == 3, PATIENCE)
        served = list[str]()
        for _ in range(4):
            await wait_until(lambda: model.held, PATIENCE)
            holder = runners[name_in(model.held[0].body)]
            await wait_until(lambda holder=holder: shares(machines)[holder].share == 0, PATIENCE)
            model.answer()
            served.append(holder)
        assert (len(set(served)), served[3]) == (3, served[0])
        model.answer_all()
        await ended_well(service, runs)
        assert model.most_at_once == 1


async def test_the_place_of_a_worker_that_was_killed_comes_back(machines: Cluster) -> None:
    """Neither worker has room for a second run, so the call that waits is the only one that can get the place."""
    service = machines.service()
    first = machines.add_worker("--concurrency", "1")
    async with held_model(lambda _: answering()) as model:
        config = team(machines.home, model, concurrency=1)
        runs = await started(service, config, "one")
        await wait_until(lambda: model.held, PATIENCE)
        machines.add_worker("--concurrency", "1")
        runs |= await started(service, config, "two")
        await until_event(service, runs["two"], ModelCallWaiting)
        assert len(model.held) == 1
        first.kill()
        await wait_until(lambda: [name_in(held.body) for held in model.held] == ["two"], PATIENCE)
        model.answer_all()
        await ended_well(service, runs)
        assert model.most_at_once == 1


async def test_a_worker_that_leaves_gives_back_at_once_what_it_has_not_used(machines: Cluster) -> None:
    service = machines.service()
    first = machines.add_worker()
    async with held_model(lambda _: answering()) as model:
        model.answer_all()
        config = team(machines.home, model, concurrency=1, requests_per_minute=3)
        await ended_well(service, await started(service, config, "one"))
        first.send(signal.SIGTERM)
        assert first.process.wait(30) == 0
        machines.add_worker()
        runs = await started(service, config, "two", "three", "four")
        await wait_until(lambda: len(model.began) == 3, PATIENCE)
        (last,) = runs.keys() - {name_in(body) for body in model.bodies}
        await until_event(service, runs[last], ModelCallWaiting, lambda told: told.obstacle == "requests_per_minute")
        assert model.most_within(SHORT_OF_A_MINUTE) == 3


async def test_a_worker_that_wakes_up_begins_no_call_with_a_share_that_has_ended(machines: Cluster) -> None:
    service = machines.service()
    frozen = machines.add_worker("--concurrency", "2")
    async with held_model(lambda _: answering()) as model:
        config = team(machines.home, model, concurrency=1)
        runs = await started(service, config, "one", "two")
        await wait_until(lambda: model.held, PATIENCE)
        frozen.send(signal.SIGSTOP)
        model.answer()  # it does not hear that it has a place again
        machines.add_worker()
        runs |= await started(service, config, "three")
        await wait_until(lambda: [name_in(held.body) for held in model.held] == ["three"], PATIENCE)
        (name,) = [name for name in shares(machines) if f"-{frozen.pid}-" in name]
        before = shares(machines)[name].ends
        frozen.send(signal.SIGCONT)
        await wait_until(lambda: shares(machines)[name].ends > before, PATIENCE)
        model.answer_all()
        await ended_well(service, runs)
        assert model.most_at_once == 1


async def test_workers_wait_together_when_a_provider_asks_one_of_them_to(machines: Cluster) -> None:
    """Where no limit is set, too."""
    service = machines.service()
    first = machines.add_worker("--concurrency", "1")
    refusal = reply(b"{}", status="429 Too Many Requests", media_type="application/json", headers={"Retry-After": "50"})
    async with held_model(lambda _: refusal) as model:
        model.answer_all()
        config = team(machines.home, model)
        await started(service, config, "one")
        await wait_until(lambda: any(row.paused_until > row.ends for row in shares(machines).values()), PATIENCE)
        machines.add_worker()
        runs = await started(service, config, "two")
        await until_event(service, runs["two"], ModelCallWaiting, lambda told: told.obstacle == "retry_after")
        assert (len(model.began), first.process.poll()) == (1, None)


async def test_limits_hold_and_runs_end_when_postgresql_was_away(home: TempHome) -> None:
    server = PostgresServer()
    try:
        with cluster(home, server) as machines:
            service = machines.service()
            for _ in range(2):
                machines.add_worker("--concurrency", "3")
            async with held_model(lambda _: answering()) as model:
                runs = await started(service, team(home, model, concurrency=3), *(f"run{n}" for n in range(6)))
                await wait_until(lambda: len(model.held) == 3, PATIENCE)
                for at_once in (True, False):
                    await anyio.to_thread.run_sync(lambda at_once=at_once: server.stop(at_once=at_once))
                    model.answer()
                    await anyio.to_thread.run_sync(server.start)
                model.answer_all()
                await ended_well(service, runs)
                assert (model.most_at_once, len(model.began)) == (3, 6)
    finally:
        server.remove()


# -- the same without processes, for what happens between two of their steps -------------------------------------------


@dataclass
class Machine:
    """A worker's limiters, and its calls."""

    shared: SharedLimits
    limits: RateLimits
    """Of its runs, while there are any."""
    limiters: ProviderLimiters = field(default_factory=lambda: ProviderLimiters(shared=True))
    runs: ExitStack = field(default_factory=ExitStack)
    limiter: ProviderLimiter | None = None
    under_way: list[anyio.Event] = field(default_factory=list[anyio.Event])
    waiting: list[anyio.CancelScope] = field(default_factory=list[anyio.CancelScope])
    sent: list[float] = field(default_factory=list[float])
    renewed: float = 0.0
    """When it last had a reply."""

    def begin(self) -> None:
        self.limiter = self.limiter or self.runs.enter_context(self.limiters.limiter(HERE, self.limits))

    def end(self) -> None:
        if not self.under_way and not self.waiting:
            self.runs.close()
            self.limiter = None

    async def call(self) -> None:
        assert self.limiter is not None
        with anyio.CancelScope() as scope:
            self.waiting.append(scope)
            async with self.limiter.slot(lambda _: None):
                self.waiting.remove(scope)
                self.sent.append(anyio.current_time())
                self.under_way.append(done := anyio.Event())
                await done.wait()
        if scope.cancelled_caught:
            self.waiting.remove(scope)

    async def renew(self, *, lost: bool = False) -> None:
        """`lost`: PostgreSQL has done it, and the reply does not come."""

        async def ask(asked: Mapping[Destination, Asked]) -> Mapping[Destination, GrantedShares]:
            granted = await self.shared.renew(asked)
            if lost:
                raise MassgenError("store_unavailable", "lost")
            return granted

        began = anyio.current_time()
        with suppress(MassgenError):
            await self.limiters.renew_shares(ask)
            self.renewed = began


@asynccontextmanager
async def several(url: str, *limits: RateLimits) -> AsyncGenerator[tuple[list[Machine], TaskGroup]]:
    """Each has a run."""
    made = [Machine(SharedLimits(url, f"worker-{place}"), limit) for place, limit in enumerate(limits)]
    async with anyio.create_task_group() as tasks:
        for one in made:
            one.begin()
        yield made, tasks
        tasks.cancel_scope.cancel()
    for one in made:
        one.shared.close()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "limits",
    [[RateLimits(4, 30)] * 3, [RateLimits(5, 30), RateLimits(4, None), RateLimits(100, None, is_set=False)]],
    ids=["whose runs end and begin", "of which one has no limit"],
)
async def test_the_sum_of_what_workers_use_is_never_more_than_the_limit(limits: list[RateLimits], seed: int) -> None:
    """Renewals in any order, with lost replies; calls that come, go, and are given up."""
    chance, reached, sent = random.Random(seed), 0, list[float]()
    actions = ["call", "call", "end", "give up", "renew", "renew", "lose", *(["none"] if len(set(limits)) == 1 else [])]
    async with several(shared_server().empty_store(), *limits) as (machines, tasks):
        for one in machines:
            await one.renew()
        for _ in range(400):
            one = chance.choice(machines)
            match chance.choice(actions):
                case "call":
                    one.begin()
                    tasks.start_soon(one.call)
                case "end" if one.under_way:
                    one.under_way.pop(chance.randrange(len(one.under_way))).set()
                case "give up" if one.waiting:
                    chance.choice(one.waiting).cancel()
                case "none":
                    one.end()
                case "lose":
                    await one.renew(lost=True)
                case _:
                    await one.renew()
            for machine in machines:
                if anyio.current_time() > machine.renewed + 1:  # however slow this is, no lease ends
                    await machine.renew()
            await anyio.wait_all_tasks_blocked()
            at_once = sum(len(machine.under_way) for machine in machines)
            assert at_once <= 4
            sent = [at for machine in machines for at in machine.sent]
            assert sum(at > anyio.current_time() - SHORT_OF_A_MINUTE for at in sent) <= 30
            reached = max(reached, at_once)
        assert (reached, len(sent) >= 30) == (4, True)


async def test_a_worker_renews_its_share_while_a_run_is_exported_or_imported(machines: Cluster) -> None:
    async with several(machines.url, RateLimits(2)) as ((worker,), tasks):
        with machines.engine().files.moving():
            tasks.start_soon(worker.renew)
            await wait_until(lambda: "worker-0" in shares(machines), PATIENCE)


async def test_a_share_is_used_until_its_lease_ends_and_given_to_others_only_then(machines: Cluster) -> None:
    """As where a worker is frozen, or cannot reach PostgreSQL."""
    async with several(machines.url, RateLimits(2), RateLimits(2)) as ((away, other), tasks):
        for machine in (away, other):
            for _ in range(2):
                tasks.start_soon(machine.call)
        with anyio.fail_after(PATIENCE):
            while len(away.sent) < 2:
                await away.renew()
                await anyio.wait_all_tasks_blocked()
            await other.renew()
            assert (len(other.under_way), len(other.waiting)) == (0, 2)
            while len(other.sent) < 2:
                await other.renew()
                await anyio.wait_all_tasks_blocked()
        away.under_way.pop().set()
        tasks.start_soon(away.call)
        await anyio.wait_all_tasks_blocked()
        assert (len(away.sent), len(away.waiting)) == (2, 1)
        with psycopg.connect(machines.url) as db:
            stored = str(db.execute("TABLE massgen.shares").fetchall())
        assert HERE.address in stored
        assert HERE.key not in stored
        with anyio.fail_after(PATIENCE):
            for done in other.under_way:
                done.set()
            while len(away.sent) < 3:
                await other.renew()
                await away.renew()
