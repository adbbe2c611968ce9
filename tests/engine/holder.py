"""A process of its own that adds and executes a run, is its runner, and then waits to be killed.

`python -m tests.engine.holder DIRECTORY FINGERPRINT RUN_ID`; prints a line when all of it is done.
"""

import sys
from contextlib import ExitStack
from pathlib import Path

import anyio

from massgen_mcp.events.agent_work import TextDelta
from massgen_mcp.redaction import NO_KEYS
from massgen_mcp.runs.engine import FrozenRequest, NewRun
from tests.engine.machine import LocalMachine
from tests.teams import silent_team


async def main(directory: str, fingerprint: str, run_id: str) -> None:
    engine = LocalMachine(Path(directory)).open()
    with ExitStack() as held:
        held.enter_context(engine.liveness.hold(fingerprint))
        held.enter_context(engine.liveness.listen(fingerprint))
        files = engine.files.create(run_id, FrozenRequest("q", silent_team(1)), NO_KEYS)
        held.enter_context(engine.liveness.hold_foreground(files))
        engine.store.queue.add(NewRun(run_id, "q", "c", fingerprint, "hash"))
        log = files.event_log.append()
        for text in ("settled", "settled, too"):
            log.record(TextDelta(agent="agent_a", call_id="c", text=text))
        await log.settle()
        log.record(TextDelta(agent="agent_a", call_id="c", text="not settled"))
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _, *arguments = sys.argv
    anyio.run(lambda: main(*arguments))
