"""`status.json` of a run, and the record of its last apply, which stands in it: `changes/application.json`."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from massgen_mcp.errors import MassgenError
from massgen_mcp.home import write_durably
from massgen_mcp.run_state.state import RunState
from massgen_mcp.runs.engine import RunFiles
from massgen_mcp.views.status_json import status_json

RECORD = "application.json"


def write_status(run: RunFiles, state: RunState) -> None:
    """Raises `MassgenError` store_unavailable, disk_full, `OSError`."""
    now = state.now(time.monotonic(), time.time())
    run.write_status(
        status_json(
            state, log_dir=str(run.path), session_id=run.path.name, now=now, applied=read_application(run, state)
        )
    )


def note_application(run: RunFiles, state: RunState, fields: Mapping[str, Any]) -> None:
    """Record what became of the run's changes to the caller's files. Without a record the files are none the worse."""
    with suppress(OSError, MassgenError):
        if run.changes.is_dir():
            write_durably(run.changes / RECORD, json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace"))
            write_status(run, state)


def read_application(run: RunFiles, state: RunState) -> dict[str, Any] | None:
    """Return what was recorded last; None before anything was."""
    if state.end is None:
        return None
    with suppress(OSError, ValueError):
        return json.loads((run.changes / RECORD).read_bytes())
    return None
