"""Delegate a question over MCP, as a coding agent does: start, wait, read the result.

python examples/mcp_client.py scripted "Should we rewrite it or refactor it?"
"""

import os
import sys
from typing import Any

import anyio
from mcp import Client, StdioServerParameters


async def main(team: str, question: str) -> None:
    server = StdioServerParameters(command="massgen-mcp", env=dict(os.environ))
    async with Client(server) as client:

        async def tool(name: str, **arguments: object) -> dict[str, Any]:
            reply = await client.call_tool(name, arguments)
            if reply.is_error or reply.structured_content is None:
                sys.exit(f"{name}: {reply.content}")
            return reply.structured_content

        run = await tool("start_run", question=question, team=team)
        result = await tool("wait_run", run_id=run["run_id"], timeout_seconds=45)
        while "poll_after_ms" in result:  # there is something to wait for
            result = await tool("wait_run", run_id=run["run_id"], timeout_seconds=45)
        print(result["answer"])
        print(f"{result['winner']} won with {result['vote_counts']}")


if __name__ == "__main__":
    team, question = sys.argv[1:]
    anyio.run(main, team, question)
