"""docs/architecture.md names every file between `start_run`, a model's request, and `get_result`."""

from dataclasses import replace
from pathlib import Path

from mcp.types import CallToolResult

from tests.harness import TempHome, agent, home, wait_until
from tests.test_architecture import the_way_of_a_run

__all__ = ["home"]

MOST = 25
MOST_TO_STORE = 7
"""Those of them between `start_run` and the store."""
MOST_ENTERED = {"start": 64, "store": 15, "model": 120}
"""Files in which a function is called, with all that reads the config, keeps and counts: between `start_run` and the
queue of runs, the part of it after the run is prepared, and between the runner and the first request to a model.
"""
WIRE = "backends/claude.py"
HOOK = Path(__file__).parent / "on_the_way"


async def test_the_files_on_the_way_of_a_run_are_those_that_the_page_names(home: TempHome, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    traced = replace(home, starts_anew=True).with_variables(PYTHONPATH=str(HOOK), MASSGEN_TEST_WAY=str(seen))
    config = traced.config("two", agent("a", {"answer": "yes"}), agent("b", {"answer": "no"}))
    async with traced.client() as client:

        async def call(tool: str, **arguments: str) -> CallToolResult:
            return await client.call_tool(tool, arguments)

        begun = (await call("start_run", question="Yes or no?", config=config)).structured_content
        assert begun is not None, begun
        await call("wait_run", run_id=begun["run_id"])
        ended = (await call("get_result", run_id=begun["run_id"])).structured_content
        assert ended is not None
        assert ended["status"] == "completed"
    await wait_until(lambda: not traced.processes())
    lines = [line.split() for line in seen.read_text().splitlines()]
    walks = {first: files for first, *files in lines if first.startswith("walk:")}
    met = {file for line in lines for file in line if line[0] not in walks}
    way = the_way_of_a_run()
    assert len(way) <= MOST
    assert way.index("server/results/start.py") <= MOST_TO_STORE
    assert {file.replace("backends/scripted.py", WIRE) for file in met} == set(way)
    entered = {name: len(walks[f"walk:{name}"]) for name in MOST_ENTERED}
    assert {name: count for name, count in entered.items() if count > MOST_ENTERED[name]} == {}
