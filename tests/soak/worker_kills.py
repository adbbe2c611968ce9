"""`kill -9` of workers of several machines at random moments: is anything lost, doubled or torn?"""

import random

import anyio

from benchmarks.local_model import LocalModel
from massgen_mcp.config.loader import load_config
from massgen_mcp.events.agent_work import ModelCallStarted
from tests.cluster.stage import cluster
from tests.harness import TempHome, wait_until
from tests.postgres import shared_server
from tests.soak.kills import AGENTS, MODEL_SECONDS, TEAM, Toll, await_end, judge, moment, write_team
from tests.teams import asked

RUNS = 12
"""Between two kills, at most."""


async def kill_workers(home: TempHome, *, kills: int, workers: int, seed: int) -> str:
    """Start runs, each key three times through two servers; kill a worker at a random moment and start another one in
    its place; `kills` times. Then let all runs come to their end.
    """
    toll, runs = Toll(), list[str]()
    with LocalModel(MODEL_SECONDS) as model, cluster(home, shared_server()) as machines:
        config = load_config(write_team(home.work / TEAM, model.base_url), environ={})
        services = [machines.service(), machines.service()]
        for _ in range(workers):
            machines.add_worker("--concurrency", "20")
        for trial in range(kills):
            chance = random.Random(f"{seed}/{trial}")
            for place in range(RUNS if trial == 0 else chance.randint(1, RUNS)):
                key = f"trial {trial}, run {place}"
                begun = list[str]()

                async def start(server: int, key: str = key, begun: list[str] = begun) -> None:
                    view, _ = await services[server % 2].start(asked(key, config, source="kills", key=key))
                    begun.append(view.row.run_id)

                async with anyio.create_task_group() as starts:
                    for server in range(3):
                        starts.start_soon(start, server)
                toll.doubled += len(set(begun)) - 1
                runs.append(begun[0])
            await moment(model, chance, len(model.bodies()) + RUNS * 2 * AGENTS // 2)
            victim = chance.choice([worker for worker in machines.workers if worker.process.returncode is None])
            victim.kill()
            toll.kills += 1
            machines.add_worker("--concurrency", "20")
        marked = 0
        for run_id in runs:
            await await_end(services[0], run_id)
            run = (await services[0].look(run_id)).directory
            await wait_until(run.report.exists)  # the last of its files, also where its worker was killed just then
            judge(run, toll)
            marked += sum(isinstance(record.event, ModelCallStarted) for record in run.event_log.read())
        toll.doubled += len(await services[1].recent(limit=10 * len(runs))) - len(runs)
        toll.doubled += max(0, len(model.bodies()) - marked)
    return toll.judged()
