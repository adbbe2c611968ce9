"""The end of a run that cannot go on: failed, by no fault of its team, with the best answer that can still be had."""

import logging
from collections.abc import Mapping
from contextlib import suppress

import anyio.to_thread

from massgen_mcp.config.access.held_keys import redactor_for
from massgen_mcp.errors import FailureReason, JournalNewer
from massgen_mcp.events.run import RunFailed
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import RunFiles

logger = logging.getLogger("massgen_mcp.run")


def failure_of(state: RunState, message: str, reason: FailureReason = "internal") -> RunFailed:
    """The event of that end."""
    winner = answer = None
    with suppress(Exception):
        winner, answer = state.best()
    return RunFailed(reason=reason, message=message, winner=winner, answer=answer)


async def break_off(directory: RunFiles, reason: FailureReason, message: str, environ: Mapping[str, str]) -> RunState:
    """End a run that nobody executes, in its journal too if that can still be written.

    Raises `JournalNewer`.
    """
    state = RunState()

    def fold() -> None:
        for record in directory.event_log.read_to_continue():
            state.apply(record)

    try:
        await anyio.to_thread.run_sync(fold)
        if state.end is None:
            journal = directory.event_log.append(redactor=redactor_for(environ))
            journal.listen(state.apply)
            try:
                journal.record(failure_of(state, message, reason))
                await journal.settle()
            finally:
                journal.close()
    except JournalNewer:
        raise
    except Exception as further:  # noqa: BLE001 - what broke the run may break its fold, too; whoever runs it goes on
        logger.warning("the journal of a broken run cannot be written: %s", further)
    if state.end is None:
        state.end_with(RunFailed(reason=reason, message=message))
    return state
