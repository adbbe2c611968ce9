"""The agent over standard input and output. It ends with the editor; runs do not, they are the store's."""

import os
import sys
from collections.abc import Mapping

import anyio.to_thread
from anyio.abc import ByteReceiveStream, ByteSendStream

from massgen_mcp.editors.agent import EditorAgent
from massgen_mcp.json_rpc import ConnectionBroken
from massgen_mcp.runs.service import RunService
from massgen_mcp.server.transport import leave, leave_with_parent
from massgen_mcp.threads import in_thread

PIECE_BYTES = 64 * 1024


async def serve_editor(service: RunService, environ: Mapping[str, str]) -> None:
    """Until the editor is gone; then the process ends here. Whatever else is printed goes to standard error."""
    reading, writing = os.dup(sys.stdin.fileno()), os.dup(sys.stdout.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave_with_parent, os.getppid())
        agent = EditorAgent(_Output(writing), _Input(reading), service, environ, tasks)
        try:
            await agent.read()
        except ConnectionBroken as broken:
            sys.stderr.write(f"ERROR invalid_arguments: cannot understand the editor's messages: {broken}\n")
        leave()


class _Input(ByteReceiveStream):
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def receive(self, max_bytes: int = PIECE_BYTES) -> bytes:
        piece = await anyio.to_thread.run_sync(os.read, self._descriptor, max_bytes)
        if not piece:
            raise anyio.EndOfStream
        return piece

    async def aclose(self) -> None:
        os.close(self._descriptor)


class _Output(ByteSendStream):
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @in_thread
    def send(self, item: bytes) -> None:
        rest = memoryview(item)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    async def aclose(self) -> None:
        os.close(self._descriptor)
