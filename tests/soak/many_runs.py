"""Very many runs are submitted at once: each one ends, or was refused because the queue was full."""

import time

from tests.harness import RUNNER_MODULE, SERVER_MODULE, RawServer, TempHome, agent, wait_until
from tests.soak.crowd import call_at_once, crowd, footprint, percentile


async def many_runs(
    home: TempHome, *, runs: int, servers: int = 4, max_running: int = 50, max_queued: int = 1_000
) -> str:
    """Returns the figures: what came of the starts, time and memory per run."""
    home = home.with_variables(
        MASSGEN_MCP_MAX_RUNNING=str(max_running),
        MASSGEN_MCP_MAX_QUEUED=str(max_queued),
        MASSGEN_MCP_RUNNER_IDLE_SECONDS="20",
    )
    config = home.config("three", *(agent(f"a{n}", {"answer": f"answer {n}"}, {"vote": "agent1"}) for n in range(3)))
    async with crowd(home, servers) as crowded:
        await call_at_once(crowded[:1], "start_run", [[{"question": "warm", "config": config, "wait_seconds": 50}]])
        await wait_until(lambda: len(home.processes(RUNNER_MODULE)) == 1)  # a second one may come, look, and leave
        (runner,) = home.processes(RUNNER_MODULE)
        before = footprint(runner)
        began = time.monotonic()
        share = [{"question": "q", "config": config}] * (runs // servers)
        replies = await call_at_once(crowded, "start_run", [share] * servers)
        accepted_in = time.monotonic() - began
        accepted = [reply.content["run_id"] for reply in replies if reply.content is not None]
        refused = [reply.refusal for reply in replies if reply.content is None]
        assert all(refusal.startswith("ERROR queue_full: ") for refusal in refused), set(refused)
        assert len(accepted) + len(refused) == runs
        states = await _ends(crowded[0], accepted)
        ended_in = time.monotonic() - began
        after, server = footprint(runner), max(footprint(pid).peak for pid in home.processes(SERVER_MODULE))
    assert set(states) == {"completed"}, {state: states.count(state) for state in set(states)}
    assert len(home.runs) == len(accepted) + 1, "a refused start leaves nothing behind"
    seconds = [reply.seconds for reply in replies]
    return (
        f"{runs} runs of 3 agents from {servers} servers: {len(accepted)} completed, {len(refused)} queue_full; "
        f"start p50 {percentile(seconds, 0.5):.2f} s, p99 {percentile(seconds, 0.99):.2f} s, "
        f"all answered in {accepted_in:.1f} s; all ended in {ended_in:.1f} s, "
        f"{1000 * ended_in / max(1, len(accepted)):.0f} ms a run; runner {before.rss / 1024:.0f} MiB before, "
        f"at most {after.peak / 1024:.0f} MiB, {(after.rss - before.rss) / max(1, len(accepted)):.1f} KiB a run kept; "
        f"a server at most {server / 1024:.0f} MiB"
    )


async def _ends(server: RawServer, runs: list[str]) -> list[str]:
    """The states in which the runs ended."""
    states: list[str] = []
    for run in runs:
        state = "queued"
        while state in ("queued", "running"):
            arguments = {"run_id": run, "timeout_seconds": 50}
            reply = await server.ask("tools/call", name="wait_run", arguments=arguments)
            state = reply["result"]["structuredContent"]["status"]
        states.append(state)
    return states
