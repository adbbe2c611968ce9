"""Where the interactive mode's questions come from. A person at a terminal has the reader of `line_editor`."""

import sys
from typing import Protocol

import anyio.to_thread

from massgen_mcp.cli.output import print_line
from massgen_mcp.errors import MassgenError

PROMPT = "You: "


class Reader(Protocol):
    async def read(self) -> str | None:
        """The next line or lines; None when the person leaves or nothing more comes."""
        ...


class PipeReader:
    """One question a line, for pipes and terminals that cannot do more."""

    async def read(self) -> str | None:
        line = await anyio.to_thread.run_sync(sys.stdin.buffer.readline, abandon_on_cancel=True)
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise MassgenError(
                "invalid_arguments", "a question on standard input is not valid UTF-8; convert it with `iconv -t UTF-8`"
            ) from None
        if line:
            print_line(f"{PROMPT}{text.rstrip()}")
        return text if line else None
