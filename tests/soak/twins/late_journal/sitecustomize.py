"""A known-bad twin: a journal that is written when the run has ended, as naive programs do."""

# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from massgen_mcp.runs.engine import journal


async def _later(self: journal.JournalWriter) -> None:
    """Nothing is on disk yet."""


async def _settle_at_the_end(self: journal.JournalWriter) -> None:
    if self._pending and b'"type":"run_' in self._pending[-1] and b"run_started" not in self._pending[-1]:
        await _settle(self)


_settle = journal.JournalWriter.settle
journal.JournalWriter.settle = _settle_at_the_end
journal.JournalWriter.drain = _later
