"""What others see of a run while it goes on: its events on disk, `status.json`, and word that there is something new.

Nothing is done for a run in which nothing happens, but for the sign of life that a host may want.
"""

import time
from collections.abc import Callable

import anyio

from massgen_mcp.errors import MassgenError
from massgen_mcp.events.record import LogRecord
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import EventWriter, RunFiles
from massgen_mcp.runs.host.beats import next_beat
from massgen_mcp.runs.host.run_log import RunLog
from massgen_mcp.views.status_json import status_json

INTERVAL = 0.1
"""Others see something new at most this often, in seconds."""
AGAIN_SECONDS = 2.0
"""After so long a write that failed is tried again."""


class Publisher:
    """`on_news` is called when others can read what is new; with True if the state or the phase of the run has changed.
    `heartbeat`: `status.json` is written every so many seconds even if nothing happened, that of all runs at once.
    """

    def __init__(
        self,
        run: RunFiles,
        state: RunState,
        journal: EventWriter,
        log: RunLog,
        *,
        on_news: Callable[[bool], None],
        heartbeat: float,
    ) -> None:
        self._run = run
        self._state = state
        self._journal = journal
        self._log = log
        self._on_news = on_news
        self._heartbeat = heartbeat
        self._changed = anyio.Event()
        self._published: tuple[str, str] | None = None
        self._failed = False

    def heard(self, _: LogRecord) -> None:
        """Something has happened."""
        self._changed.set()

    async def publish(self) -> None:
        """Until it is cancelled."""
        self._changed.set()
        longest = self._heartbeat
        while True:
            with anyio.CancelScope(deadline=next_beat(longest)):
                await self._changed.wait()
            self._changed = anyio.Event()
            written = await self._drained()  # first, so that the run itself goes on meanwhile
            self._try_to_write()
            if written:
                self._tell()
            longest = self._heartbeat if written else min(self._heartbeat, AGAIN_SECONDS)
            await anyio.sleep(INTERVAL)

    async def _drained(self) -> bool:
        try:
            await self._journal.drain()
        except (OSError, MassgenError):  # whoever must have the journal on disk will hear of it
            return False
        return True

    def _tell(self) -> None:
        now = (self._state.state, self._state.phase)
        self._on_news(now != self._published)
        self._published = now

    def _try_to_write(self) -> None:
        """A status that cannot be written is told once, and ends nothing."""
        try:
            write_status(self._run, self._state)
        except (OSError, MassgenError):
            pass  # the storage has its own ways to be heard
        except Exception as error:  # noqa: BLE001 - what only looks at a run must not end it
            if not self._failed:
                self._log.report(error)
            self._failed = True


def write_status(run: RunFiles, state: RunState) -> None:
    run.write_status(
        status_json(
            state, log_dir=str(run.path), session_id=run.path.name, now=state.now(time.monotonic(), time.time())
        )
    )
