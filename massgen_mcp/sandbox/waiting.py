"""Whether a command waits for somebody at a terminal. It has none, and nothing to read on its standard input; most
programs end at once for that reason, and some wait until their time is over.
"""

import re
from contextlib import suppress
from pathlib import Path

import anyio.to_thread

from massgen_mcp.sandbox.output import Output
from massgen_mcp.sandbox.process import SandboxedProcess

LOOKED_AT_BYTES = 8 * 1024
SILENT_SECONDS = 3.0
LOOKS = 20
BUSY_SHARE = 0.25
"""A command whose processes are at work in more of the looks than this does not wait. Our own looking is a part."""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SCREEN = re.compile(r"\x1b\[\d+;\d+H|\x1b\[\?1049h")
"""Written by programs that draw on a whole screen."""
PROMPT = re.compile(r"[?:>)\]] ?\Z|press (any key|enter|return)|--more--", re.IGNORECASE)
"""At the end of a last line that has no end of line."""
MISSED_TERMINAL = re.compile(
    r"not a (tty|terminal)|/dev/tty|EOF when reading a line|terminal is dumb|inappropriate ioctl|failed tty get"
    r"|error opening terminal|(needs|requires|without) an? .{0,20}(terminal|tty)\b",
    re.IGNORECASE,
)
"""Said by programs that have ended because there is no terminal."""


async def until_it_waits(process: SandboxedProcess, output: Output) -> None:
    """Returns when the command shows a screen or a prompt, prints nothing more, and none of its processes works."""
    while True:
        before = output.total
        busy = 0
        for _ in range(LOOKS):
            await anyio.sleep(SILENT_SECONDS / LOOKS)
            busy += await anyio.to_thread.run_sync(works, process.pid)
        if output.total == before and busy <= LOOKS * BUSY_SHARE and asks_somebody(output.ending(LOOKED_AT_BYTES)):
            return


def asks_somebody(ending: str) -> bool:
    """Whether this end of an output is a screen, or a question that waits for an answer."""
    last = CONTROL.sub("", ending.rpartition("\n")[2])
    return bool(SCREEN.search(ending) or PROMPT.search(last))


def works(supervisor: int) -> bool:
    """Whether a process below this one runs or waits for a disk; True where nobody can tell. Blocking."""
    pending, states = [supervisor], set[str]()
    while pending:
        pid = pending.pop()
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                pending += [int(child) for child in (task / "children").read_text().split()]
                if pid != supervisor:
                    states.add((task / "stat").read_text().rpartition(")")[2].split()[0])
    return not states or bool(states & {"R", "D"})
