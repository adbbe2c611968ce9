"""The snapshot of a server's first answers is what the server says when nothing happens, whatever happens meanwhile."""

from pathlib import Path

import anyio
from mcp.server.subscriptions import ResourcesListChanged

from massgen_mcp.home import Home
from massgen_mcp.redaction import Redactor
from massgen_mcp.runs.local import local_engine
from massgen_mcp.runs.service import RunService
from massgen_mcp.server.app import MassgenServer
from massgen_mcp.server.build import build_server
from massgen_mcp.server.start_snapshot import make_snapshot


async def tell_of_runs(server: MassgenServer) -> None:
    """As if runs were started all the time."""
    while True:
        await server.changes.publish(ResourcesListChanged())
        await anyio.lowlevel.checkpoint()


async def test_runs_that_start_while_a_snapshot_is_made_change_nothing_in_it(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    service = RunService(local_engine(home), {})
    server = build_server(home, service, Redactor({})).server
    quiet = await make_snapshot(server)
    assert all("resources/list" in answers for answers in quiet.values())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell_of_runs, server)
        assert await make_snapshot(server) == quiet
        tasks.cancel_scope.cancel()
    service.close()
