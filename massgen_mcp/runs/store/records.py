"""The records of a run for whoever looks back at it: as far as its journal is whole."""

from collections.abc import Iterator

from massgen_mcp.events.record import LogRecord
from massgen_mcp.runs.engine import DamagedJournal, RunFiles

BATCH = 2000
"""So many records are in memory at once."""


def whole_records(run: RunFiles) -> Iterator[LogRecord]:
    """Without streamed text; those before a damage, if there is one. Raises `MassgenError` store_unavailable."""
    reader = run.event_log.follow(text=False)
    try:
        while records := reader.read(BATCH):
            yield from records
    except DamagedJournal as damage:
        yield from damage.intact
