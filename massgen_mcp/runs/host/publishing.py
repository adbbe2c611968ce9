"""What others see of a run while it goes on: its events on disk, `status.json`, `massgen.log` with the stack traces of
errors of our own, `nlip.jsonl` where agents speak NLIP, and word that there is something new.

Nothing is done for a run in which nothing happens, but for the sign of life that a host may want.
"""

import secrets
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import TextIO

import anyio

from massgen_mcp.config.models.config import Config
from massgen_mcp.errors import MassgenError, root_causes, storage_fault
from massgen_mcp.events.parts import public_agent_name
from massgen_mcp.events.record import LogRecord
from massgen_mcp.redaction import Redactor
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import EventWriter, RunFiles
from massgen_mcp.runs.view.status_file import write_status
from massgen_mcp.views.event_lines import log_line, stamped
from massgen_mcp.views.plain_text import plain, plain_lines, preview

MESSAGE_CHARACTERS = 300
NOTE_CHARACTERS = 2000
NLIP_FILE = "nlip.jsonl"


def next_beat(interval: float) -> float:
    """The next moment, on the event loop's clock, that is a multiple of `interval` seconds; never for an endless one.
    However many runs wait for it, they wake the process once.
    """
    return (anyio.current_time() // interval + 1) * interval


class RunLog:
    def __init__(self, file: TextIO, redactor: Redactor) -> None:
        self._file = file
        self._redactor = redactor

    @classmethod
    @contextmanager
    def open(cls, path: Path, redactor: Redactor) -> Generator["RunLog"]:
        with path.open("a", encoding="utf-8", errors="replace") as file:
            yield cls(file, redactor)

    def write_record(self, run: RunState, record: LogRecord) -> None:
        if line := log_line(record, run):
            self._file.write(f"{line}\n")

    def note(self, text: str) -> None:
        """Write down what is no event, on one line. Never raises."""
        with suppress(OSError, ValueError):
            self._file.write(
                f"{stamped(time.time(), 'WARNING', preview(self._redactor.text(text), NOTE_CHARACTERS))}\n"
            )
            self._file.flush()

    def report(self, error: BaseException) -> str:
        """Write down an error with its trace; returns what may be said of it elsewhere: its kind, its message, and
        under which name the trace stands here. Never raises.
        """
        name = f"fault {secrets.token_hex(4)}"
        trace = self._redactor.text("".join(traceback.format_exception(error)))
        with suppress(OSError, ValueError):  # a log that cannot be written is no reason to lose the run
            self._file.writelines([f"{name}\n", *plain_lines([trace])])
            self._file.flush()
        message = "".join(traceback.format_exception_only(root_causes(error)[0]))
        return f"{preview(plain(self._redactor.text(message)), MESSAGE_CHARACTERS)} (massgen.log has the trace: {name})"


def guarded(listener: Callable[[LogRecord], None], log: RunLog) -> Callable[[LogRecord], None]:
    """A listener whose failure is nobody's but its own; the first one is told."""
    failed = False

    def heard(record: LogRecord) -> None:
        nonlocal failed
        try:
            listener(record)
        except Exception as error:  # noqa: BLE001 - what only looks at a run must not end it
            if not failed:
                log.report(error)
            failed = True

    return heard


@contextmanager
def logged_in(log: RunLog) -> Generator[None]:
    """What fails inside is told in the log and ends nothing, but for a failure of the storage."""
    try:
        yield
    except Exception as error:
        if storage_fault(error) is not None:
            raise
        log.report(error)


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
                self._announce()
            longest = self._heartbeat if written else min(self._heartbeat, AGAIN_SECONDS)
            await anyio.sleep(INTERVAL)

    async def _drained(self) -> bool:
        try:
            await self._journal.drain()
        except (OSError, MassgenError):  # whoever must have the journal on disk will hear of it
            return False
        return True

    def _announce(self) -> None:
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


def nlip_writer(
    run: RunFiles, config: Config, state: RunState, cleanup: AsyncExitStack
) -> Callable[[LogRecord], None] | None:
    """Told of each event; None where nobody asks for it. What other agents say is not written."""
    others = {public_agent_name(place) for place, agent in enumerate(config.agents) if not config.with_nlip(agent)}
    if len(others) == len(config.agents):
        return None
    from massgen_mcp.views.nlip import nlip_line, nlip_messages  # with the standard's package

    file = cleanup.enter_context((run.path / NLIP_FILE).open("a", buffering=1, encoding="utf-8", errors="replace"))

    def heard(record: LogRecord) -> None:
        for message in nlip_messages(record):
            if not others & {message.sender, message.to}:
                file.write(f"{nlip_line(message, record, state)}\n")

    return heard
