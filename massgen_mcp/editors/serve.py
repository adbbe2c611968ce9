"""The agent over standard input and output. It ends with the editor; runs do not, they are the store's."""

import os
import sys
from collections.abc import Mapping

import anyio
from anyio.abc import ByteSendStream
from anyio.streams.file import FileReadStream

from massgen_mcp.editors.agent import EditorAgent
from massgen_mcp.json_rpc import ConnectionBroken
from massgen_mcp.runs.service import RunService
from massgen_mcp.server.transport import leave, leave_with_parent
from massgen_mcp.threads import in_thread


async def serve_editor(service: RunService, environ: Mapping[str, str]) -> None:
    """Until the editor is gone; then the process ends here. Whatever else is printed goes to standard error."""
    reading, writing = os.dup(sys.stdin.fileno()), os.dup(sys.stdout.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave_with_parent, os.getppid())
        incoming = FileReadStream(os.fdopen(reading, "rb", buffering=0))
        agent = EditorAgent(_Output(writing), incoming, service, environ, tasks)
        try:
            await agent.read()
        except ConnectionBroken as broken:
            sys.stderr.write(f"ERROR invalid_arguments: cannot understand the editor's messages: {broken}\n")
        leave()


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
