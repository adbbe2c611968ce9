"""A runner lives through very many runs: neither its files, nor its threads, children or memory grow with them."""

import sqlite3
from contextlib import closing
from functools import partial
from statistics import linear_regression

import anyio

from tests.harness import RUNNER_MODULE, SERVER_MODULE, TempHome, agent, wait_until
from tests.soak.crowd import Footprint, call_at_once, crowd, footprint

MOST_THREADS = 48
"""The pool of worker threads has 40 at most, and a few more have other work."""
GIVING_BACK = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
"""Lets glibc return what is freed, so that resident memory shows what is kept: by default it has an arena per thread
and raises both thresholds with the largest block freed, so that the once largest batch stays resident (mallopt(3)).
"""
KIB_PER_RUN = 2.0
"""Slope of the resident memory after warm-up that counts as growth."""

LOOKS = 50


async def leaks(home: TempHome, *, runs: int, batch: int, most_kib: float = KIB_PER_RUN) -> str:
    """Returns the figures. Memory is judged over the second half of the runs, once caches are warm."""
    home = home.with_variables(MASSGEN_MCP_RUNNER_IDLE_SECONDS="30", **GIVING_BACK)
    write = {"call": "write_file", "arguments": {"path": "a", "content": "x"}}
    config = home.config(
        "team",
        agent("one", write, {"answer": "one"}, {"vote": "own"}),
        agent("two", {"answer": "two"}, {"vote": "own"}),
    )
    samples: list[tuple[int, Footprint, Footprint]] = []
    runners: set[int] = set()
    async with crowd(home, 1) as servers:
        for done in range(0, runs + batch, batch):
            calls = [{"question": "q", "config": config, "wait_seconds": 50}] * batch
            replies = await call_at_once(servers, "start_run", [calls])
            states = {reply.content["status"] if reply.content else reply.refusal for reply in replies}
            assert states == {"completed"}, states
            both = await wait_until(partial(_both, home))
            assert both is not None
            runner, server = both
            runners.add(runner)
            _, *first = samples[0] if samples else (0, None, None)
            samples.append((done, await _settled(runner, first[0]), await _settled(server, first[1])))
    assert len(runners) == 1, "one runner did it all"
    done_then = [done for done, _, _ in samples]
    told = [
        _judge("runner", done_then, [runner for _, runner, _ in samples], most_kib),
        _judge("server", done_then, [server for _, _, server in samples], most_kib),
    ]
    return f"{runs} runs: {'; '.join(told)}"


async def _settled(process: int, first: Footprint | None) -> Footprint:
    """With what a busy machine closes late, closed; what is never closed is waited for in vain."""
    for _ in range(LOOKS):
        if first is None or footprint(process).files <= first.files + 2:
            break
        await anyio.sleep(0.1)
    return footprint(process)


def _both(home: TempHome) -> tuple[int, int] | None:
    """Runner and server, when the runner has put everything away: a run is answered a moment before that."""
    with closing(sqlite3.connect(home.path / "runs.sqlite3")) as store:
        (running,) = store.execute("SELECT count(*) FROM runs WHERE state = 'running'").fetchone()
    if running:
        return None
    runners, servers = home.processes(RUNNER_MODULE), home.processes(SERVER_MODULE)
    return (runners[0], servers[0]) if len(runners) == 1 and servers else None


def _judge(name: str, done: list[int], prints: list[Footprint], most_kib: float) -> str:
    first, last = prints[0], prints[-1]
    assert last.files <= first.files + 2, f"{name}: {first.files} open files became {last.files}"
    assert last.threads <= MOST_THREADS, f"{name}: {last.threads} threads"
    assert max(seen.zombies for seen in prints) == 0, f"{name}: zombies"
    half = len(prints) // 2
    slope = linear_regression(done[half:], [seen.rss for seen in prints[half:]]).slope
    assert slope <= most_kib, f"{name}: {slope:.2f} KiB a run"
    return (
        f"{name} open files {first.files} to {last.files}, threads {first.threads} to {last.threads}, zombies 0, "
        f"{first.rss / 1024:.0f} to {last.rss / 1024:.0f} MiB, slope {slope:+.2f} KiB a run"
    )
