"""A server of the SDK with one tool that does nothing, over standard input and output: what the protocol costs.

`python -m benchmarks.bare_server`. Its tool takes and returns what our `get_status` does.
"""

from mcp.server import MCPServer
from pydantic import BaseModel

server = MCPServer("bare")


class Status(BaseModel):
    run_id: str
    status: str
    phase: str
    progress_percent: int
    elapsed_seconds: float
    model_calls: int
    tokens: int
    spent_usd: float | None
    max_usd: float | None
    note: str | None
    agents: list[str]
    reason: str | None
    poll_after_ms: int | None
    next_step: str


@server.tool()
async def get_status(run_id: str) -> Status:
    """Return what a run is doing now, without waiting."""
    return Status(
        run_id=run_id,
        status="running",
        phase="answering",
        progress_percent=0,
        elapsed_seconds=1.0,
        model_calls=0,
        tokens=0,
        spent_usd=0.0,
        max_usd=10.0,
        note=None,
        agents=["agent_a (scripted): streaming, 0 answers"],
        reason=None,
        poll_after_ms=3000,
        next_step="Continue with other work, then call wait_run; do not poll in a loop.",
    )


if __name__ == "__main__":
    server.run("stdio")
