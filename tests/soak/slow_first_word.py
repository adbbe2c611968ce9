"""Models that need minutes for their first word, as on a machine without a GPU: each is asked once, and waited for."""

from pathlib import Path

import anyio

from massgen_mcp.config.loader import config_from_data
from massgen_mcp.runs.engine import FrozenRequest, RunFiles
from massgen_mcp.runs.host.execute import RunContext, execute_run
from tests.harness import TempHome
from tests.raw_double import Flow, answering, reply
from tests.wires.calls import load_sdks
from tests.wires.rows import KEY, MODEL, ROWS, Row

ANSWER = '{"content": "Paris is the capital."}'


async def slow_first_word(home: TempHome, *, seconds: float, limit: float) -> str:
    """A run of one agent on every wire, all at once: the first word comes after `seconds`, `call_timeout_seconds` is
    `limit`. Returns the figures.
    """
    load_sdks()
    requests: list[int] = []
    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for place, row in enumerate(ROWS):

            async def one(row: Row = row, place: int = place) -> None:
                requests.append(await _wait_for(row, home.path.with_name(f"run{place}"), seconds, limit))

            tasks.start_soon(one)
    took = anyio.current_time() - began
    assert took >= seconds, f"the first word came after {took:.1f} s"
    assert requests == [1] * len(ROWS), f"requests: {requests}"
    slow = f"first word after {seconds:g} s, call_timeout_seconds {limit:g}"
    return f"{len(ROWS)} wires, {slow}: all completed, 1 request each"


async def _wait_for(row: Row, path: Path, seconds: float, limit: float) -> int:
    whole = reply(row.dialect().call("new_answer", ANSWER).stop("calls").body())
    late = Flow(lambda: (whole,), silence_seconds=seconds)
    async with answering(lambda _seen, _number: late, row.beside) as server:
        address = {row.address: server.url + row.root, "api_key_env": "THE_KEY"}
        config = config_from_data(
            {
                "agents": [{"id": "slow", "backend": {"type": row.kind, "model": MODEL, **address, **row.settings}}],
                "timeout_settings": {"call_timeout_seconds": limit},
            },
            "soak",
            environ={"THE_KEY": KEY},
        )
        run = RunFiles.create(path, FrozenRequest("What is the capital of France?", config))
        ended = await execute_run(run, "run-slow", RunContext({"THE_KEY": KEY}))
    assert ended.state == "completed", f"{row.title}: {ended.end}"
    return len(server.requests)
